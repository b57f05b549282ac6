"""What counts as drift: how sure it has to be, and how large."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

from ...arguments.readers import read_float, shorten
from ...errors import UsageError
from ...runs.columns.reasons_file import load_settings

Given = Mapping[str, Any] | str | PathLike
RATE = "false_discovery_rate"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A column has drifted where a test says so, corrected for all tests of the two nights, and it is far enough from what it was."""

    false_discovery_rate: float = 0.01  # of nights without any drift, at most so many have an alarm; of all alarms so many are false, on the average
    distance: float = 0.05  # of Kolmogorov and Smirnov, or total variation: so many of the rows are elsewhere
    share: float = 0.01  # of the rows, by which those change that are missing or unseen
    psi: float | None = None  # a column has drifted too where its PSI is so much above what is expected without drift
    ndcg: float = 0.9  # and the order of the features, where it is worth less (as Amazon SageMaker Clarify has it)


def read_thresholds(given: Given | None) -> Thresholds:
    """Read thresholds.

    Parameters
    ----------
    given : mapping, str, path or None
        Some of the fields of Thresholds by name, or a TOML or JSON file of them. None for all as they are by default.

    Raises
    ------
    UsageError
        A name is unknown, or a value is no number from 0 to 1; ``psi`` may be larger.
    """
    if given is None:
        return Thresholds()
    if not isinstance(given, Mapping | str | PathLike):
        raise UsageError(f"thresholds are {shorten(given)}, expected a path or URI of a TOML or JSON file, or such an object")
    found, _, where = load_settings(given, "thresholds")
    known = [field.name for field in fields(Thresholds)]
    if not isinstance(found, Mapping):
        raise UsageError(f"{where}: is {shorten(found)}, expected a table of {', '.join(known)}")
    for name in found:
        if name not in known:
            raise UsageError(f"{where}: has {name!r:.80}, expected {', '.join(known)}")
    most = {"psi": float("inf")}
    expected = {"psi": "a number of at least 0"}
    return Thresholds(
        **{
            name: read_float(f"{where}: {name}", value, expected.get(name, "a number from 0 to 1"), 0.0, most.get(name, 1.0))
            for name, value in found.items()
        }
    )
