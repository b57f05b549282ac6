"""Verification of selected rows: recomputed from the plan's inputs, and compared with the stored rows."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...dataset.files.pieces import leave_out, take_rows
from ...errors import InvalidData, InvalidRun, NotRepeatable
from ...stores import storage
from ..execute.write_part import write_part
from ..lookup.row_lookup import FoundRows, RowAddress, as_plain
from ..records.folder import RunFolder
from ..records.footer import read_footer
from ..records.manifest import Game, Manifest
from ..records.plan import Plan, recipe
from .recompute_rows import recompute_tables, same_values


def _as_stored(place: RowAddress, again: pa.Table, stored: pa.Table) -> pa.Table:
    """Convert recomputed columns to the types of the stored rows, where halves are floats, and mixed columns texts."""
    again = as_plain(again)
    try:
        if again.schema.names == stored.schema.names:
            return again.cast(stored.schema)
    except pa.ArrowException:
        pass
    raise InvalidRun(f"{place.uri}: its columns differ from those of its rows explained again")


def _compare(place: RowAddress, again: pa.Table, stored: pa.Table) -> None:
    again = _as_stored(place, again, stored)
    for name in again.column_names:
        if not same_values(again[name], stored[name]):
            raise InvalidRun(f"{place.uri}: row {place.row} explained again differs in column {name!r}")


def _read_again(local: Path) -> pa.Table:
    with pq.ParquetFile(local) as parquet:
        return parquet.read()


def _check_footers(made_by: str, plan: Plan, places: Sequence[RowAddress]) -> None:
    for part, uri in dict.fromkeys((place.part, place.uri) for place in places):
        with storage.opened(uri) as file:
            read_footer(uri, file, made_by, plan.items[part])


def verify_rows(run: str, manifest: Manifest, plan: Plan, found: FoundRows, model: str | None = None) -> None:
    """Recompute rows and compare them with the stored ones: every column, without tolerance.

    Parameters
    ----------
    found : FoundRows
        The rows, with all columns.
    model : str, optional
        URI of the model's file; by default where it was.

    Raises
    ------
    NotRepeatable
        The model, the data, the background or the version of leafledger is not that of the plan any more.
    UsageError
        ``model`` is another model than that of the run.
    """
    tables = recompute_tables(plan, model)
    said = Game(manifest.library, manifest.base, manifest.bound, manifest.used, manifest.players, manifest.pairs)
    if tables.game != said:
        raise InvalidRun(f"{RunFolder(run).manifest}: what it says of the model, such as base values, differs from the model")
    made_by = recipe(plan)
    _check_footers(made_by, plan, found.places)
    with storage.scratch() as folder:
        for number, place in enumerate(found.places):
            item, local = plan.items[place.part], folder / f"row-{number}.parquet"
            readable = leave_out(item, {each.uri for each in manifest.rejected if each.part == item.part})
            one = take_rows(readable, manifest.find_planned(item.part, place.row), 1)
            try:
                write_part(plan, made_by, one, tables.prepared, local)
            except InvalidData as error:
                raise NotRepeatable(str(error)) from error
            _compare(place, _read_again(local), found.table.slice(number, 1))
