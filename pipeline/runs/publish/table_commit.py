"""Commit of a run's parts to a lakehouse table, and their removal when the run is replaced or deleted."""

from dataclasses import dataclass, field
from datetime import date as Date
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from ...dataset.files.listing import Listing
from ...errors import InvalidRun, SchemaMismatch, StorageError
from ...json_records import as_text
from ...stores import commit, storage
from ...tables.names import Name
from ...tables.shared_parts import Removal, Share, SharedPart, plain, refuse_alike
from ...tables.writing import TablePlace
from ..formats.numbers import FORMAT
from ..job.job import Job
from ..job.table_option import choose_table
from ..records.current_run import is_current
from ..records.derived import TABLE, read_after, read_derived, write_derived, write_object
from ..records.folder import RunFolder
from ..records.json_file import JsonFile
from ..records.manifest import Manifest
from ..records.part import list_sizes
from ..records.plan import Plan


@dataclass(frozen=True, slots=True)
class TableRecord:
    """The record of the table that a run is in, see `TablePlace`."""

    format_version: int = field(default=FORMAT, kw_only=True, compare=False)
    format: Name
    uri: str


FILE = JsonFile(TableRecord, "does not name a table")


def _read_place(run: str) -> TablePlace | None:
    """The table that a run is in, or that in whose place it is; None where nothing says so."""
    found = FILE.read(storage.join(run, TABLE))
    return None if found is None else TablePlace(found.format, found.uri)


def _write_place(place: TablePlace) -> bytes:
    return as_text(TableRecord(place.format, place.uri)).encode()


def _is_in_its_table(out: str, manifest: Manifest) -> bool:
    """Return whether the run replaced no other, or the recorded table is its own."""
    if not manifest.place or any(entry["uri"] == TABLE for entry in read_after(out, manifest.sha256).objects):
        return True
    held = _read_place(out)
    return held is not None and held.holds(out, manifest.sha256)


def _check_there(out: str, manifest: Manifest) -> None:
    """Refuse to commit missing or incomplete parts."""
    sizes = list_sizes(out, manifest.parts)
    for part in manifest.parts:
        found = sizes.get(part["uri"])
        if found != part["size"]:
            is_there = "is missing" if found is None else f"has {found:,} bytes"
            raise InvalidRun(f"{RunFolder(out).listed(part)}: {is_there}, the manifest says {part['size']:,} bytes; the run is not committed")


def _make_share(date: Date | None, out: str, manifest: Manifest) -> Share | None:
    """Describe the parts to commit; None for a run without rows or date."""
    if date is None or not manifest.parts:
        return None
    _check_there(out, manifest)
    parts = tuple(SharedPart(RunFolder(out).listed(part), part["size"], part["n_rows"]) for part in manifest.parts)
    with storage.opened(parts[0].uri) as file:
        found = pq.read_schema(file)
    columns = plain({field.name: field.type for field in found}, out)
    return Share(out, manifest.sha256, date, columns, parts, partial(is_current, out, manifest))


def check_table(job: Job, found: Listing, plan: Plan) -> None:
    """Refuse a table that a run cannot be committed to, before anything is explained.

    Parameters
    ----------
    found : Listing
        The run's data.
    """
    place = choose_table(job.options, job.out)
    if place is None:
        return
    written = plan.part_columns
    refuse_alike(written, job.data)
    values = zip(plan.value_columns, (feature.name for feature in plan.features), strict=plan.values)
    passed = {**dict(values), **{name: name for name in plan.ids}}  # from columns of parts to data columns
    columns = plain({name: found.types.get(column, pa.string()) for name, column in passed.items()}, job.data)  # values from paths are texts
    carried = set[str]() if found.alike else {name for _, partition, _ in found.files for name, _ in partition}
    for name, column in passed.items():
        if column in carried and columns.field(name).type != pa.string():
            raise SchemaMismatch(
                f"{job.data}: column {column!r} is {found.types[column]} in some files, and text in the paths of others; a table has it in one type"
            )
    place.check(written)


def commit_table(job: Job, out: str, manifest: Manifest, kept: bool = False) -> None:
    """Commit the parts of a finished run to its table, once for all attempts.

    A run is in one table: it is removed from another one, and so is the run that it replaced, in the same commit if both are in the same table. A run
    without rows commits no parts, and removes those of the replaced run. The table is recorded before the commit, so that removal can find it.
    Nothing is done if the run was replaced meanwhile; a kept run stays under its date in the table.

    Parameters
    ----------
    kept : bool
        It is another run than was asked for, and may be of another date.

    Raises
    ------
    UsageError, SchemaMismatch
        The table does not take the parts as they are, or does not let go of those of the run that it held.
    """
    place = choose_table(job.options, out)
    if not is_current(out, manifest) or (place is None and _is_in_its_table(out, manifest)):
        return
    if kept and place is not None and place.holds(out, manifest.sha256):
        return
    try:
        share = None if place is None else _make_share(job.options.date, out, manifest)
    except (InvalidRun, StorageError):
        if is_current(out, manifest):
            raise
        return  # already removed by the run that replaced this one
    held = _read_place(out)
    for left in dict.fromkeys((held, place)):
        if left is not None and (left != place or share is None):
            left.withdraw(Removal(out, wanted=partial(is_current, out, manifest)))
    if place is not None and share is not None:
        write_object(storage.join(out, TABLE), _write_place(place))
        place.commit(share)
        if not is_current(out, manifest):  # replaced meanwhile, by a run that found nothing in the table to remove
            place.withdraw(Removal(out, manifest=manifest.sha256))
    elif held is not None and is_current(out, manifest):
        commit.remove(storage.join(out, TABLE))


def record_commit(job: Job, out: str, manifest: Manifest) -> None:
    """List the record of the table, after the records of the replaced run are gone."""
    place = choose_table(job.options, out)
    if place is not None and manifest.parts and is_current(out, manifest):
        _list_place(out, manifest, place)


def _list_place(run: str, manifest: Manifest, place: TablePlace) -> None:
    made = _write_place(place)
    if read_derived(run, manifest.sha256, TABLE) != made:
        write_derived(run, manifest.sha256, {TABLE: made})


def find_table(run: str) -> TablePlace | None:
    """Find the table that a run is in, as its own record says; None where it is in none."""
    place = _read_place(run)
    return place if place is not None and place.find_day(run) is not None else None


def commit_again(run: str, manifest: Manifest) -> None:
    """Let the table that a run is in have its parts as the manifest lists them by now; nothing where it has them, or was replaced meanwhile."""
    place = find_table(run)
    if place is None or not is_current(run, manifest):
        return
    if not place.holds(run, manifest.sha256):
        share = _make_share(place.find_day(run), run, manifest)
        if share is not None:
            place.commit(share)


def record_table(run: str, manifest: Manifest) -> None:
    """List the record of the table that a run is in, after `commit_again`, and after the records of the replaced run are gone."""
    place = find_table(run)
    if place is not None and is_current(run, manifest):
        _list_place(run, manifest, place)


def remove_from_table(run: str) -> None:
    """Remove a run from its table before its folder is deleted; or the run that it replaced, if it was not committed itself.

    Parameters
    ----------
    run : str
        URI of its folder.

    Raises
    ------
    UsageError, SchemaMismatch
        The table does not let go of its parts as they are, or others have files of the table in the folder.
    """
    place = _read_place(run)  # for any manifest, also damaged or of an older version, since the whole run goes
    if place is not None:
        place.withdraw(Removal(run, whole=True))
