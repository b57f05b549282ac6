"""Rows of a finished run as JSON-compatible objects."""

import math
from collections.abc import Mapping
from typing import Any

from .row_data import CHANGES, REASONS, ShownOutput, ShownRow, Wording


def _plain(value: Any) -> Any:
    """Convert a value for JSON: numbers and texts stay, anything else becomes text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else str(value)


def _output_dict(wording: Wording, found: ShownOutput) -> dict[str, Any]:
    made: dict[str, Any] = {"output": found.output, "base": _plain(found.base), wording.total: _plain(found.total)}
    made["attributions"] = [
        {"feature": step.player, wording.column: _plain(step.phi)}
        | ({} if step.value is None else {"value": _plain(step.value)})
        | ({"error": _plain(found.errors[step.player])} if step.player in found.errors else {})
        for step in found.steps
    ]
    made |= {name: _plain(value) for name, value in found.scores.items()}
    if found.n_others:
        made["not_kept"] = found.n_others
    if found.interactions is not None:
        named = ({"features": [*names]} if wording.sets else {"first": names[0], "second": names[1]} for names, _ in found.interactions)
        made["interactions"] = [{**name, "value": _plain(value)} for name, (_, value) in zip(named, found.interactions, strict=True)]
    listed = {REASONS: found.reasons, CHANGES: found.changes}
    return made | {name: [_plain(entry) for entry in entries] for name, entries in listed.items() if entries is not None}


def row_document(wording: Wording, row: ShownRow) -> dict[str, Any]:
    """Convert a row to objects, lists, texts and numbers without loss; NaN becomes null."""
    where = {"part": row.place.part, "row": row.place.row, "file": row.file, "file_row": row.file_row}
    values = {"values": _plain(row.values)} if row.values else {}
    return where | {"ids": _plain(row.ids)} | values | {"outputs": [_output_dict(wording, found) for found in row.outputs]}
