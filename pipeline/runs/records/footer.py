"""The footer of a part: recipe, work item, units, base values, and reduction states."""

import json
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...arguments.choices import Space
from ...dataset.files.listing import Joined, WorkItem
from ...dataset.files.pieces import leave_out
from ...display.text import printable
from ...errors import InvalidRun
from ...json_records import EMPTY, as_fields, parse_text, read_entry
from ...tables.live_files import Hive
from ..formats.earlier import take_footer
from ..formats.numbers import FORMAT, read_number

KEY = b"leafledger"


@dataclass(frozen=True, slots=True)
class Footer:
    """What a part says of itself."""

    n_rows: int
    residual: float | None
    states: dict[str, str]
    space: Space  # units of attributions and base values
    base: dict[str, float] | None  # of every output of the model; None where it is not told, as by 0.1
    stored: int  # rows that the part holds: all of the item, or none where summaries alone are asked for
    rejected: dict[str, str] = field(default_factory=dict)  # files of the item that could not be read, and why
    format_version: int = FORMAT  # of its text; of one without a number that of the last version that wrote none


@dataclass(frozen=True, slots=True)
class _Written:
    """The text of a footer: the recipe, the work item but for its number, so that a part may be one of several plans, and what became of it."""

    format_version: int = field(default=FORMAT, kw_only=True, compare=False)
    recipe: str  # SHA-256, hexadecimal
    uri: str
    etag: str
    row_groups: tuple[int, ...]
    skip: int
    n_rows: int
    first_row: int
    partition: Hive
    stored: int
    residual: float | None
    states: dict[str, str]
    space: Space
    base: dict[str, float] | None
    joined: tuple[Joined, ...] = field(default=(), metadata={EMPTY: True})
    rejected: dict[str, str] = field(default_factory=dict, metadata={EMPTY: True})


def _rows_of(item: WorkItem) -> dict[str, Any]:
    return {field.name: getattr(item, field.name) for field in fields(item) if field.name != "part"}


def write_footer(writer: pq.ParquetWriter, recipe: str, item: WorkItem, footer: Footer) -> None:
    """Add the footer to a part that is about to be closed.

    Parameters
    ----------
    writer : pq.ParquetWriter
        Of the part, open.
    recipe : str
        Of the run, see `plan.recipe`.
    item : WorkItem
        That the part is of.
    footer : Footer
        Of all rows of the item that could be read.
    """
    said = {name: getattr(footer, name) for name in ("stored", "residual", "states", "space", "base", "rejected")}
    found = _Written(recipe=recipe, **_rows_of(item), **said)
    writer.add_key_value_metadata({KEY.decode(): json.dumps(found, default=as_fields)})


def read_footer(uri: str, file: Any, recipe: str, item: WorkItem) -> Footer:
    """Read the footer of a part.

    Parameters
    ----------
    uri : str
        Of the part, for messages.
    file : path or file
        A local path, or an open file.
    recipe : str
        That it has to be made by, see `plan.recipe`.
    item : WorkItem
        That it has to be of.
    """
    try:
        metadata = pq.read_metadata(file)
        entry = parse_text((metadata.metadata or {}).get(KEY, b"{}"))
        number = read_number(entry, uri)
        footer = read_entry(_Written, entry if number == FORMAT else take_footer(entry, number))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidRun(f"{uri}: not a part of a run: {' '.join(str(error).split())}") from error
    if footer.recipe != recipe:
        raise InvalidRun(f"{uri}: a part of another plan ({printable(footer.recipe[:12])}), expected {recipe[:12]}")
    if any(getattr(footer, name) != value for name, value in _rows_of(item).items()):
        raise InvalidRun(f"{uri}: says that it is of other rows than the plan's part {item.part}")
    if footer.stored != metadata.num_rows:
        raise InvalidRun(f"{uri}: holds {metadata.num_rows} rows, its footer says {footer.stored}")
    if footer.rejected and not footer.rejected.keys() < {piece.uri for piece in item.pieces}:
        raise InvalidRun(f"{uri}: says that files cannot be read that are not the plan's, or none of them")
    n_rows, told = leave_out(item, footer.rejected).n_rows, (footer.residual, footer.states, footer.space, footer.base)
    return Footer(n_rows, *told, footer.stored, footer.rejected, footer.format_version)
