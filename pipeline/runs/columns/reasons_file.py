"""Reasons files: parsing, and validation that every row can get its reasons."""

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from os import PathLike
from string import Formatter
from typing import Any, cast, get_args

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS
from leafledger.kernels.trees.binning import read_columns

from ...arguments.choices import OWN
from ...arguments.readers import read_choice, read_float, read_names, read_number, read_text, shorten
from ...dataset.columns.partition import Groups
from ...dataset.columns.players import combination_names
from ...display.nearest import did_you_mean
from ...display.text import is_whole
from ...errors import UsageError
from ...methods.tables import player_names
from ...models.model import Feature, Model
from ...stores import storage
from ..job.job import Job
from ..job.options import ReasonsFile
from .change_columns import check_listed, check_model, read_changes
from .reasons import FEATURE, VALUE, Band, Direction, Reasons, Worded, find_codes, has_texts

FIELDS = ("direction", "most", "least", "never", "default", "reason", "changes", "change")
BOUNDS = ("above", "at_least", "below", "at_most")
CONDITIONS = (*BOUNDS, "in", "missing")
WORDING = ("code", "text")
MOST = 4  # default: more than four are not likely to be helpful (Regulation B, official comments to 12 CFR 1002.9(b)(2))
SAMPLE = 1.5  # number to test a text with
LONGEST = 1000  # characters of a formatted value


def _refuse_doubled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice")
    return dict(pairs)


def load_settings(given: Mapping[str, Any] | str | PathLike, name: str) -> tuple[Any, str, str]:
    """Load settings from TOML, JSON or a mapping.

    Parameters
    ----------
    given : mapping, str or path
        The settings, or where a TOML or JSON file of them is.
    name : str
        What they are called where they are given as a mapping.

    Returns
    -------
    found : Any
        What they say.
    digest : str
        Their SHA-256, hexadecimal.
    where : str
        Their place, for messages.

    Raises
    ------
    UsageError
        It is neither TOML nor JSON.
    """
    if isinstance(given, Mapping):
        try:
            text = json.dumps(given, sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"{name}: hold what cannot be written as JSON: {' '.join(str(error).split())}") from error
        return json.loads(text), hashlib.sha256(text.encode()).hexdigest(), name
    where = str(given)
    data = storage.read(where)
    try:
        text = data.decode()
        found = json.loads(text, object_pairs_hook=_refuse_doubled) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: neither TOML nor JSON: {' '.join(str(error).split())}") from error
    return found, hashlib.sha256(data).hexdigest(), where


def _refuse_unknown(given: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(given, Mapping):
        raise UsageError(f"{where}: is {shorten(given)}, expected a table of {', '.join(known)}")
    for name in given:
        if name not in known:
            raise UsageError(f"{where}: has {name!r:.80}, expected {', '.join(known)}{did_you_mean(name, known)}")


def _read_words(given: Mapping[str, Any], where: str) -> tuple[str | None, str]:
    code, text = given.get("code"), given.get("text")
    if not isinstance(text, str) or not text.strip() or not is_whole(text):
        raise UsageError(f"{where}: text is {shorten(text)}, expected words")
    if code is not None and not (isinstance(code, str) and code and is_whole(code)):
        raise UsageError(f"{where}: code is {shorten(code)}, expected a text")
    return code, text


def _read_values(given: Any, where: str) -> tuple[str | float, ...]:
    listed = given if isinstance(given, list) else [given]
    if not listed:
        raise UsageError(f"{where}: in is {shorten(given)}, expected a list of values")
    return tuple(each if isinstance(each, str) else read_float(f"{where}: in", each, "texts or numbers") for each in listed)


def _read_band(given: Mapping[str, Any], where: str) -> Band:
    code, text = _read_words(given, where)
    bounds = {name: read_float(f"{where}: {name}", given[name]) for name in BOUNDS if name in given}
    if {"above", "at_least"} <= bounds.keys() or {"below", "at_most"} <= bounds.keys():
        raise UsageError(f"{where}: has two bounds on one side, {' and '.join(bounds)}; leave out one")
    missing = given.get("missing", False)
    if not isinstance(missing, bool):
        raise UsageError(f"{where}: missing is {shorten(missing)}, expected true or false")
    if ("in" in given) + bool(bounds) + missing > 1:
        raise UsageError(
            f"{where}: has {', '.join(name for name in CONDITIONS if name in given)}, which are bands of their own; write one entry for each"
        )
    band = Band(code, text, **bounds, one_of=_read_values(given["in"], where) if "in" in given else None, missing=missing)
    if band.bounded and band.low >= band.high:
        raise UsageError(f"{where}: no number is between its bounds")
    return band


def _overlap(one: Band, other: Band) -> bool:
    if one.bounded and other.bounded:
        return one.low < other.high and other.low < one.high
    if one.one_of is not None and other.one_of is not None:
        return bool({*one.one_of} & {*other.one_of})
    for some, bounds in ((one, other), (other, one)):
        if some.one_of is not None and bounds.bounded:
            return any(bounds.low <= (value, False) < bounds.high for value in some.one_of if not isinstance(value, str))
    return (one.missing and other.missing) or (one.for_others and other.for_others)


def _same_values(one: Band, other: Band, feature: Feature) -> bool:
    """Return whether two lists share a category of the model, as 1 and 01."""
    listed = (*(one.one_of or ()), *(other.one_of or ()))
    if one.one_of is None or other.one_of is None or not has_texts(feature) or not all(isinstance(value, str) for value in listed):
        return False
    mine, others = find_codes(feature, pa.array(one.one_of)), find_codes(feature, pa.array(other.one_of))
    return bool(np.isin(mine, others).any())


def _check_template(text: str, values: Sequence[Any], where: str) -> None:
    """Refuse a text that cannot be formatted with a number or text as value, or without one."""
    try:
        for _, name, form, conversion in Formatter().parse(text):
            if name is None:
                continue
            if name not in (FEATURE, VALUE) or conversion is not None or "{" in (form or ""):
                raise ValueError(f"expected {{{FEATURE}}} or {{{VALUE}}} in braces, got {{{name}{'!' + conversion if conversion else ''}}}")
            if name == VALUE and not values:
                raise ValueError("there is no value to fill in")
            for value in values if name == VALUE else [""]:
                if len(format(value, form or "")) > LONGEST:
                    raise ValueError(f"more than {LONGEST} characters for a value")
    except (ValueError, KeyError, IndexError) as error:
        raise UsageError(f"{where}: text {shorten(text)} cannot be filled in: {' '.join(str(error).split())}") from error


def _covers_numbers(bands: Sequence[Band]) -> bool:
    """Return whether bounds, which do not overlap, cover all numbers."""
    reached = (-math.inf, False)
    for band in sorted((band for band in bands if band.bounded), key=lambda band: band.low):
        if band.low > reached:
            return False
        reached = band.high
    return reached == (math.inf, True)


def _check_bands(worded: Worded, feature: Feature | None, default: Band | None, where: str) -> None:
    """Refuse bands that overlap, that have impossible values, or that omit possible ones."""
    bands = worded.bands
    for i, one in enumerate(bands):
        for other in bands[:i]:
            if _overlap(one, other) or (feature is not None and _same_values(one, other, feature)):
                raise UsageError(f"{where}: two of its bands are of the same values")
        if feature is None and not one.for_others:
            raise UsageError(f"{where}: is a group of several features, which has no value to make bands of")
        if feature is not None and feature.categorical and one.bounded:
            raise UsageError(f"{where}: is a feature of categories, which are not above or below anything; name them with in")
        if feature is not None and one.one_of is not None:
            _check_values(one.one_of, feature, where)
        _check_template(one.text, _samples(feature, one), where)
    whole = any(band.for_others for band in bands) or default is not None
    numbers = feature is not None and not feature.categorical and _covers_numbers(bands)
    if not whole and not (numbers and any(band.missing for band in bands)):
        lacking = "missing values" if numbers else "some values"
        raise UsageError(f"{where}: has no text for {lacking}; add an entry without bounds for all others, or a default")


def _samples(feature: Feature | None, band: Band) -> Sequence[Any]:
    """Return sample values to test a text with."""
    if feature is None or band.missing:
        return ()
    return ("a",) if has_texts(feature) else (SAMPLE,)


def _check_values(values: tuple[str | float, ...], feature: Feature, where: str) -> None:
    """Refuse values that the feature's column cannot hold, or that mean the same category."""
    for value in values:
        if isinstance(value, str) != has_texts(feature):
            raise UsageError(
                f"{where}: in has {value!r}, but it is a feature of {feature.kind}; write {'texts' if has_texts(feature) else 'numbers'}"
            )
    codes = find_codes(feature, pa.array(values)).tolist()
    if feature.categories is not None and not feature.hashed and len(feature.categories) in codes:
        which = "which no split asks for; write an entry without in for all others" if feature.partial else "which is no category of the model"
        raise UsageError(f"{where}: in has {values[codes.index(len(feature.categories))]!r}, {which}")


def read_reasons(given: ReasonsFile, players: Sequence[str], features: Sequence[Feature], groups: Groups, used: Sequence[str]) -> Reasons:
    """Read the reasons, and refuse those that cannot be given for every row."""
    found, digest, where = load_settings(given, "reasons")
    _refuse_unknown(found, FIELDS, where)
    if "direction" not in found:
        raise UsageError(f"{where}: has no direction; say whether reasons are what 'raises' or what 'lowers' the prediction")
    default = None
    if "default" in found:
        _refuse_unknown(found["default"], WORDING, f"{where}: default")
        default = Band(*_read_words(found["default"], f"{where}: default"))
    entries = found.get("reason", [])
    if not isinstance(entries, list):
        raise UsageError(f"{where}: reason is {shorten(entries)}, expected a list of tables, [[reason]] in TOML")
    by_player: dict[str, list[Band]] = {}
    for number, entry in enumerate(entries, 1):
        here = f"{where}: reason {number}"
        _refuse_unknown(entry, (FEATURE, *WORDING, *CONDITIONS), here)
        name = read_text(f"{here}: feature", entry.get(FEATURE))
        by_player.setdefault(name, []).append(_read_band(entry, f"{here}, of {name!r}"))
    reasons = Reasons(
        digest=digest,
        direction=cast(Direction, read_choice(f"{where}: direction", found["direction"], get_args(Direction))),
        most=read_number(f"{where}: most", found.get("most", MOST), 1),
        least=read_float(f"{where}: least", found.get("least", 0.0), "a share from 0 to 1", 0.0, 1.0),
        never=read_names(f"{where}: never", found.get("never", ()), "features or groups"),
        default=default,
        worded=tuple(Worded(name, tuple(sorted(bands, key=lambda band: band.for_others))) for name, bands in by_player.items()),
        changes=read_changes(found, features, where),
    )
    check_reasons(reasons, players, features, groups, used, where)
    return reasons


def check_reasons(reasons: Reasons, players: Sequence[str], features: Sequence[Feature], groups: Groups, used: Sequence[str], where: str) -> None:
    """Refuse reasons that cannot be given for every row.

    Parameters
    ----------
    players, features, groups, used
        As of `read_reasons`.
    where : str
        What messages start with.
    """
    of_name, worded = {feature.name: feature for feature in features}, {each.player: each for each in reasons.worded}
    for what, names in (("reason", worded), ("never", reasons.never)):
        for name in names:
            if name not in players:
                expected = f"expected a feature{' or group' if groups else ''}{did_you_mean(name, players)}"
                raise UsageError(f"{where}: {what} has {name!r:.80}, which has no attributions; {expected}")
    if reasons.changes is not None:
        check_listed(reasons.changes, features, where)
    both = next((name for name in reasons.never if name in worded), None)
    if both is not None:
        raise UsageError(f"{where}: {both!r} has words, but is never to be named")
    members = dict(groups)
    of_player = {name: of_name.get(its[0]) if len(its := members.get(name, (name,))) == 1 else None for name in players}
    for each in reasons.worded:
        _check_bands(each, of_player[each.player], reasons.default, f"{where}: {each.player!r}")
    for name, feature in of_player.items():
        bands, its = reasons.bands_of(name), members.get(name, (name,))
        if name in reasons.never:
            continue
        if not bands and ({*its} & {*used} or its[0] not in of_name):
            raise UsageError(f"{where}: {name!r} has no words; add a reason for it, a default, or name it under never")
        if reasons.default is not None and reasons.default in bands[-1:]:
            _check_template(reasons.default.text, _samples(feature, reasons.default), f"{where}: default, for {name!r}")


def plan_reasons(job: Job, model: Model, groups: Groups) -> Reasons | None:
    """Read the reasons of a run.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.

    Returns
    -------
    Reasons or None
        None where it is not asked for.

    Raises
    ------
    UsageError
        They are not of rows with attributions of the margin, or see `read_reasons`.
    """
    options, method = job.options, METHODS[job.options.method]
    if options.reasons is None:
        return None
    if options.global_only:
        raise UsageError("reasons are of rows, which are not published with global_only; leave out one or the other")
    if not method.attributes:
        raise UsageError(f"reasons are of attributions of the margin, of which method {options.method!r} has none")
    used = [model.features[column].name for column in read_columns(model.ensemble).tolist()]
    combinations = combination_names(model, groups) if options.combinations == OWN else ()
    played = groups if method.phi.of_groups else ()
    found = read_reasons(options.reasons, player_names(method, groups, model.features, combinations), model.features, played, used)
    if found.changes is not None:
        check_model(found.changes, model, job.row_output is not None, "reasons" if isinstance(options.reasons, Mapping) else str(options.reasons))
    return found
