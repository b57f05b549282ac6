"""Stored rows of parts: types for reading, and conversion to shown rows."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS

from ..dataset.columns import schema
from ..dataset.files.pieces import leave_out, take_rows
from ..display.nearest import did_you_mean
from ..display.waterfall import Step
from ..errors import InvalidRun, UsageError
from ..in_memory.explain.one_row import ROUNDED
from ..methods import interaction_lists as interactions
from ..methods.output_space import TOTALS
from ..runs.columns.top_attributions import FEATURE, PHI, VALUE, feature_of
from ..runs.lookup.row_lookup import FoundRows, as_plain, has_views
from ..runs.records.manifest import Manifest
from ..runs.records.plan import Plan
from .row_data import REASONS, ShownOutput, ShownRow, Wording
from .row_view import Shown

NANOSECONDS = pa.time64("ns")  # time of day; Python and pandas have microseconds


def choose_types(plan: Plan, first: pa.Schema, of_views: bool) -> pa.Schema:
    """Choose types for reading all parts, which may differ in types."""
    carried = [{name for name, _ in item.partition} for item in plan.items]
    mixed = {name for name in plan.ids if 0 < sum(name in names for names in carried) < len(carried)}
    read = pa.schema([field.with_type(pa.string()) if field.name in mixed else field for field in first], first.metadata)
    return read if of_views or not has_views(read) else as_plain(read.empty_table()).schema


def _read_column(column: pa.ChunkedArray) -> list[Any]:
    """Return values, as Arrow's text if Python has no equivalent, such as dates beyond the year 9999."""
    try:
        return (column.cast(pa.time64("us")) if column.type == NANOSECONDS else column).to_pylist()
    except (OverflowError, ValueError, LookupError):
        if len(column) > 1:
            return [value for at in range(len(column)) for value in _read_column(column.slice(at, 1))]
        return [" ".join(column.combine_chunks().to_string().split()).strip("[] ")]


def label_rows(ids: pa.Table) -> Any:
    """Make a pandas Index of rows from their ids."""
    import pandas as pd

    texts = {each.name: _read_column(ids[each.name]) for each in ids.schema if each.type == NANOSECONDS or pa.types.is_nested(each.type)}
    plain = ids.drop_columns([*texts]).to_pandas(integer_object_nulls=True)  # floats would round ids
    plain = plain.astype({name: np.float32 for name in plain if plain[name].dtype == np.float16})  # pandas has no index of half floats
    written = {name: pd.Series([None if each is None else str(each) for each in values], dtype=object) for name, values in texts.items()}
    found = [written[name] if name in written else plain[name] for name in ids.column_names]
    if not found:
        return pd.RangeIndex(ids.num_rows)
    return pd.Index(found[0], name=ids.column_names[0]) if len(found) == 1 else pd.MultiIndex.from_arrays(found, names=ids.column_names)


def _read_number(value: float | None) -> float:
    return math.nan if value is None else value


def _read_values(plan: Plan, stored: Mapping[str, Any]) -> dict[str, Any]:
    return {feature.name: stored[name] for feature, name in zip(plan.features, plan.value_columns, strict=True)} if plan.values else {}


def _read_wide(plan: Plan, stored: Mapping[str, Any], k: int) -> tuple[list[Step], dict[str, float], dict[str, float]]:
    """Return attributions, errors and scores of all players, of output k."""
    (_, phi, _), kind, n = plan.columns, METHODS[plan.method].phi, len(plan.players)
    n_named = n - len(plan.scores)
    groups = plan.groups if kind.of_groups else ()
    values = _read_values(plan, stored)
    found = [_read_number(stored[name]) for name in phi[k * n : (k + 1) * n]]
    errors = [stored[name] for name in plan.error_columns[k * n : (k + 1) * n]]
    steps = []
    for player, number in zip(plan.players[:n_named], found, strict=False):
        feature = feature_of(player, groups)
        value = values.get(feature)
        steps.append(Step(player, math.nan if value is None and feature in values else value, number))
    order = sorted((step for step in steps if step.phi), key=lambda step: step.phi) if kind.ranks else sorted(steps, key=lambda step: -abs(step.phi))
    return order, dict(zip(plan.players, errors, strict=False)), dict(zip(plan.players[n_named:], found[n_named:], strict=True))


def _read_list(plan: Plan, stored: Mapping[str, Any], k: int) -> list[Step]:
    return [Step(entry[FEATURE], entry[VALUE], entry[PHI]) for entry in stored[plan.top_columns[k]]]


def _read_reasons(plan: Plan, stored: Mapping[str, Any], k: int) -> tuple[Mapping[str, Any], ...] | None:
    """Return an output's reasons."""
    return _read_entries(plan, stored, schema.name_columns(REASONS, plan.written_outputs, ())[k])


def _read_entries(plan: Plan, stored: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], ...] | None:
    """Return what a list column has, unless the column is an id."""
    listed = None if name in plan.ids else stored.get(name)
    return tuple(listed) if isinstance(listed, list) and all(isinstance(reason, dict) for reason in listed) else None


def _read_names(entry: Mapping[str, Any], of_sets: bool) -> tuple[str, ...]:
    return tuple(entry[interactions.FEATURES]) if of_sets else (entry[interactions.FIRST], entry[interactions.SECOND])


def _read_output(manifest: Manifest, plan: Plan, stored: Mapping[str, Any], k: int, where: str) -> ShownOutput:
    totals, _, pairs = plan.columns
    steps, errors, scores = _read_wide(plan, stored, k) if plan.wide else (_read_list(plan, stored, k), {}, {})
    name = stored[plan.chosen[0]] if plan.chosen else plan.outputs[k]
    total = _read_number(stored[totals[k]])
    base = _read_number(stored[plan.base_columns[k]]) if plan.base_columns else manifest.base[plan.outputs.index(name)]
    n_named = len(plan.players) - len(plan.scores)
    if plan.additive and plan.wide and not (plan.base_columns and math.isnan(total)):
        phi = [step.phi for step in steps]
        if not abs(math.fsum(phi) + base - total) <= ROUNDED * (math.fsum(map(abs, phi)) + abs(base) + abs(total)):
            raise InvalidRun(f"{where}: attributions do not add up to {TOTALS[plan.space]} - base value; check the run")
    kept = tuple((_read_names(entry, plan.sets is not None), entry[interactions.VALUE]) for entry in stored[pairs[k]]) if pairs else None
    single = len(plan.outputs) == 1 and plan.output is None  # a selected one of several outputs is named
    return ShownOutput(
        output="" if single else name,
        base=base,
        total=total,
        steps=tuple(steps),
        errors=errors,
        scores=scores,
        n_others=0 if plan.wide else n_named - len(steps),
        interactions=kept,
        reasons=_read_reasons(plan, stored, k),
        changes=next((_read_entries(plan, stored, name) for name in plan.change_columns), None),
    )


def show_rows(uri: str, manifest: Manifest, plan: Plan, found: FoundRows, output: str | None = None) -> Shown:
    """Convert stored rows to shown rows."""
    if output is not None and (plan.chosen or output not in plan.outputs):
        own = "each row has one of its own" if plan.chosen else f"expected one of {', '.join(plan.outputs)}{did_you_mean(output, plan.outputs)}"
        raise UsageError(f"output is {output!r:.80}, {own}")
    numbers = range(len(plan.written_outputs)) if output is None else [plan.outputs.index(output)]
    rows = []
    columns = map(_read_column, found.table.columns)
    for place, *row in zip(found.places, *columns, strict=True):
        stored = dict(zip(found.table.column_names, row, strict=True))
        where = f"{place.uri}: row {place.row}"
        try:
            outputs = [_read_output(manifest, plan, stored, k, where) for k in numbers]
            ids, values = {name: stored[name] for name in plan.ids}, _read_values(plan, stored)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidRun(f"{where}: not a row of this run: {' '.join(str(error).split())}") from error
        item = leave_out(plan.items[place.part], {each.uri for each in manifest.rejected if each.part == place.part})
        taken = take_rows(item, manifest.find_planned(place.part, place.row), 1)
        outputs.sort(key=lambda each: -each.total)
        rows.append(ShownRow(place, taken.uri, taken.first_row, ids, values, tuple(outputs)))
    phi, total = METHODS[plan.method].phi, TOTALS[plan.space]
    return Shown(
        uri,
        manifest.sha256,
        plan.method,
        Wording(phi.column, bool(phi.ranks), total, plan.additive, plan.sets is not None, plan.total),
        found.n_found,
        tuple(rows),
    )
