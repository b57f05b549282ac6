"""Nearest changes of every row as a column of a part, and how the reasons file says what may be changed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.slices.buffers import Buffers, Prepared
from leafledger.kernels.trees.binning import padded
from leafledger.kernels.trees.margin import add_margins

from ...arguments.readers import read_text, shorten
from ...changes.asked import FIELDS, Change, Changes, check_changes, check_names, read_change, read_threshold
from ...changes.find import find_changes, find_used, make_tables
from ...changes.values import Values, support
from ...changes.words import TEXT, check_text, plain, write_change
from ...display.nearest import did_you_mean
from ...errors import UsageError
from ...models.model import Feature, Model
from .reasons import Direction, Reasons

CHANGES = "changes"
FEATURE, VALUE, UNTIL, WORDS = "feature", "value", "until", "text"  # fields of a change
ENTRY = pa.struct([(name, pa.string()) for name in (FEATURE, VALUE, UNTIL, WORDS)])
OF_ALL = ("threshold", "space", "text")
OF_ONE = (FEATURE, "text", *FIELDS)


def _refuse_unknown(given: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(given, Mapping):
        raise UsageError(f"{where}: is {shorten(given)}, expected a table of {', '.join(known)}")
    for name in given:
        if name not in known:
            raise UsageError(f"{where}: has {name!r:.80}, expected {', '.join(known)}{did_you_mean(name, known)}")


def read_changes(found: Mapping[str, Any], features: Sequence[Feature], where: str) -> Changes | None:
    """Read what may be changed.

    Parameters
    ----------
    found : mapping
        What the file says: "changes", a table with the threshold, and "change", a list of tables, one for each feature.
    features : sequence of Feature
        Of the model.
    where : str
        What messages start with.

    Returns
    -------
    Changes or None
        None where it has neither.

    Raises
    ------
    UsageError
        It has one of them alone, names what the model does not have, or says what cannot be.
    """
    if CHANGES not in found and "change" not in found:
        return None
    if CHANGES not in found or not found.get("change"):
        lacks = "no table 'changes' with the threshold that they are to cross" if CHANGES not in found else "no [[change]] of a feature"
        raise UsageError(f"{where}: has {lacks}; expected both or neither")
    _refuse_unknown(found[CHANGES], OF_ALL, f"{where}: {CHANGES}")
    entries, of_all = found["change"], found[CHANGES]
    if not isinstance(entries, list):
        raise UsageError(f"{where}: change is {shorten(entries)}, expected a list of tables, [[change]] in TOML")
    listed = []
    for number, entry in enumerate(entries, 1):
        here = f"{where}: change {number}"
        _refuse_unknown(entry, OF_ONE, here)
        name = read_text(f"{here}: {FEATURE}", entry.get(FEATURE))
        text = None if "text" not in entry else check_text(entry["text"], f"{here}, of {name!r}")
        listed.append(read_change(name, {key: value for key, value in entry.items() if key in FIELDS}, f"{here}, of {name!r}", text))
    threshold, space = read_threshold(of_all.get("threshold"), of_all.get("space"), f"{where}: {CHANGES}: ")
    changes = Changes(threshold, space, check_text(of_all.get("text", TEXT), f"{where}: {CHANGES}"), tuple(listed))
    check_listed(changes, features, where)
    return changes


def check_listed(changes: Changes, features: Sequence[Feature], where: str) -> None:
    """Refuse features that the model does not have, or that stand twice, and what no file says."""
    names = [change.feature for change in changes.features]
    check_names(names, features, f"{where}: change")
    if len({*names}) < len(names):
        raise UsageError(f"{where}: change has {next(name for name in names if names.count(name) > 1)!r} twice, expected once")
    read_threshold(changes.threshold, changes.space, f"{where}: {CHANGES}: ")
    check_text(changes.text, f"{where}: {CHANGES}")
    for change in changes.features:
        here = f"{where}: change of {change.feature!r}"
        read_change(change.feature, {name: getattr(change, name) for name in FIELDS}, here)
        if change.text is not None:
            check_text(change.text, here)


def with_changes(prepared: Prepared, model: Model, reasons: Reasons | None) -> Prepared:
    """Add the tables of nearest changes, where they are asked for.

    Raises
    ------
    UsageError
        They cannot be of this model, see `make_tables` and `check_changes`.
    UnsupportedModel
        See `check_changes`.
    """
    if reasons is None or reasons.changes is None:
        return prepared
    return prepared._replace(changes=make_tables(model, reasons.changes))


def check_model(changes: Changes, model: Model, chosen: bool, where: str) -> None:
    """Refuse changes that cannot be of a model, or where each row has an output of its own."""
    if chosen:
        raise UsageError(f"{where}: {CHANGES}: a threshold is of one output, but each row has one of its own; expected the name of one as output")
    check_changes(changes.features, model, model.features, where)
    make_tables(model, changes)


def _told(now: float, found: float, until: float, change: Change, told: Values, text: str) -> tuple[str, str, str | None, str]:
    """Return a change's fields."""
    value, end = told.name(found), None if np.isnan(until) else told.name(until)
    words = write_change(change.text or text, change.feature, None if told.names is not None else now, value, end)
    return change.feature, plain(value), None if end is None else plain(end), words


def make_changes(
    changes: Changes,
    direction: Direction,
    prepared: Prepared,
    features: Sequence[Feature],
    types: Mapping[str, pa.DataType],
    buffers: Buffers,
    n: int,
) -> pa.Array:
    """Make the column of a slice.

    Parameters
    ----------
    direction : "raises" or "lowers"
        Rows on this side of the threshold have changes: those that reach it, or those that do not.
    prepared : Prepared
        With the tables of changes.
    features : sequence of Feature
        All of the model.
    types : mapping of str to pa.DataType
        Of the columns of features that are read.
    buffers : Buffers
        As ``attribute_batch`` left them, of one output.
    n : int
        How many of the rows count, the first.

    Returns
    -------
    pa.ListArray
        n lists of `ENTRY`; null where the row is on the other side, or too close to the threshold to tell.
    """
    used, tables = find_used(changes.features, features, prepared.bins.read), prepared.changes
    asked, of_name = [changes.features[k] for k in used], {feature.name: feature for feature in features}
    known = [of_name[change.feature] for change in asked]
    supported, told = support(asked, known, prepared.bins, tables, [types[feature.name] for feature in known], CHANGES)
    margin = np.zeros((1, padded(n)))
    add_margins(np.ascontiguousarray(buffers.bins[:, : margin.shape[1]]), prepared.margin, margin)
    concerned = margin[0, :n] >= tables.at[0] if direction == "raises" else margin[0, :n] < tables.below[0]
    found = find_changes(buffers.bins, buffers.values, margin[0, :n], tables, supported)
    there = np.isfinite(found.value) & concerned
    now = buffers.values[tables.feature, :n]
    row, place = np.nonzero(there.T)
    entries = [
        _told(now[k, i], found.value[k, i], found.until[k, i], asked[k], told[k], changes.text)
        for i, k in zip(row.tolist(), place.tolist(), strict=True)
    ]
    offsets = pa.array(np.concatenate(([0], np.cumsum(there.sum(axis=0)))).astype(np.int32), mask=np.append(~concerned, False))
    fields = [pa.array([entry[k] for entry in entries], pa.string()) for k in range(ENTRY.num_fields)]
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, fields=list(ENTRY)))
