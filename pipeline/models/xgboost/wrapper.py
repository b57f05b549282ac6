"""Attributes that XGBoost's estimators add to their files; before version 2.0 these hold all parameters."""

import json
from typing import Any

from ...errors import InvalidModel
from ..formats.ubjson import shown

NOTES = "scikit_learn"


def read_attributes(learner: dict[str, Any]) -> dict[str, Any]:
    """Return a Booster's attributes, none of a learner without them."""
    found = learner.get("attributes")
    return found if isinstance(found, dict) else {}


def read_notes(learner: dict[str, Any], where: str) -> dict[str, Any]:
    """Return an estimator's parameters, none of a Booster that was trained without one."""
    text = read_attributes(learner).get(NOTES, "{}")
    try:
        notes = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        notes = None
    if not isinstance(notes, dict):
        raise InvalidModel(f"{where}: attribute {NOTES!r} is {shown(text)}, expected an estimator's parameters in JSON")
    return notes


def read_missing(learner: dict[str, Any], where: str) -> float | None:
    """Return the number that stands for a missing value besides NaN, where an estimator noted one."""
    found = read_notes(learner, where).get("missing")
    if found is None or found != found:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise InvalidModel(f"{where}: 'missing' of the estimator is {shown(found)}, expected a number")
    try:
        return float(found)
    except OverflowError:
        raise InvalidModel(f"{where}: 'missing' of the estimator is an integer of {len(str(found))} digits, expected a number") from None
