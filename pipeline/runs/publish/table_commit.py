"""A run in a table of all nights: committed after its manifest, before anything of a run that it replaced goes; withdrawn before it goes itself."""

import json
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from ...dataset.files.listing import Listing
from ...errors import InvalidRun, NotThere, SchemaMismatch, StorageError
from ...json_records import read_record
from ...stores import commit, storage
from ...stores.storage import list_folder
from ...tables.share import Removal, Share, SharedPart, plain, refuse_alike
from ...tables.writing import Place
from ..job.job import Job
from ..job.table_option import choose_table
from ..records.derived import TABLE, read_after, read_derived, write_derived, write_object
from ..records.folder import PARTS
from ..records.manifest import Manifest, is_current
from ..records.plan import Plan


def _read_place(run: str) -> Place | None:
    """The table that a run is in, or that in whose place it is; None where nothing says so."""
    made = storage.read_if_exists(storage.join(run, TABLE))
    try:
        return None if made is None else read_record(Place, made)
    except ValueError as error:
        raise InvalidRun(f"{storage.join(run, TABLE)}: does not name a table: {error}") from error


def _write_place(place: Place) -> bytes:
    return json.dumps({"format": place.format, "uri": place.uri}, indent=1).encode()


def _is_in_its_table(out: str, manifest: Manifest) -> bool:
    """It took no other run's place, or the table that is written down is its own: by the record of what was made of it, or by that table."""
    if not manifest.place or any(entry["uri"] == TABLE for entry in read_after(out, manifest.sha256).objects):
        return True
    held = _read_place(out)
    return held is not None and held.holds(out, manifest.sha256)


def _check_there(out: str, manifest: Manifest) -> None:
    """No table gets a part that is not there, or not whole."""
    sizes = dict[str, int]()
    with suppress(NotThere):
        sizes = list_folder(storage.join(manifest.home(out), PARTS)).files
    for part in manifest.parts:
        found = sizes.get(part["uri"].rpartition("/")[2])
        if found != part["size"]:
            is_there = "is missing" if found is None else f"has {found:,} bytes"
            raise InvalidRun(f"{storage.join(out, part['uri'])}: {is_there}, the manifest says {part['size']:,} bytes; the run is not committed")


def _make_share(job: Job, out: str, manifest: Manifest) -> Share | None:
    """None of a run without rows, or without a date."""
    if job.options.date is None or not manifest.parts:
        return None
    _check_there(out, manifest)
    parts = tuple(SharedPart(storage.join(out, part["uri"]), part["size"], part["n_rows"]) for part in manifest.parts)
    with storage.opened(parts[0].uri) as file:
        found = pq.read_schema(file)
    columns = plain({field.name: field.type for field in found}, out)
    return Share(out, manifest.sha256, job.options.date, columns, parts, partial(is_current, out, manifest))


def check_table(job: Job, found: Listing, plan: Plan) -> None:
    """Refuse a table that a run cannot be committed to, while nothing is explained yet.

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
    passed = {**dict(values), **{name: name for name in plan.ids}}  # from columns of parts to those of the data
    columns = plain({name: found.types.get(column, pa.string()) for name, column in passed.items()}, job.data)  # what paths carry are texts
    carried = set[str]() if found.alike else {name for _, partition, _ in found.files for name, _ in partition}
    for name, column in passed.items():
        if column in carried and columns.field(name).type != pa.string():
            raise SchemaMismatch(
                f"{job.data}: column {column!r} is {found.types[column]} in some files, and text in the paths of others; a table has it in one type"
            )
    place.check(written)


def commit_table(job: Job, out: str, manifest: Manifest, kept: bool = False) -> None:
    """Commit the parts of a finished run to the table that was asked for, once, whoever tries it how often.

    A run is in one table: it leaves another that it is in, and so does a run in whose place it is, in the same commit if it is the same table. A run
    without rows has no parts to commit, and leaves none of another run. Which table that is, is written down before it is committed, so that whoever
    removes the run knows. Nothing is done where another run took its own place meanwhile, and a run that is kept, though another was asked for, stays
    under the date that it has in the table.

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
        share = None if place is None else _make_share(job, out, manifest)
    except (InvalidRun, StorageError):
        if is_current(out, manifest):
            raise
        return  # removed by who took its place
    held = _read_place(out)
    for left in dict.fromkeys((held, place)):
        if left is not None and (left != place or share is None):
            left.withdraw(Removal(out, wanted=partial(is_current, out, manifest)))
    if place is not None and share is not None:
        write_object(storage.join(out, TABLE), _write_place(place))
        place.commit(share)
        if not is_current(out, manifest):  # by now, and who took its place found nothing in the table to take out
            place.withdraw(Removal(out, manifest=manifest.sha256))
    elif held is not None and is_current(out, manifest):
        commit.remove(storage.join(out, TABLE))


def record_commit(job: Job, out: str, manifest: Manifest) -> None:
    """List what says which table a run was committed to, once what was made of a run in whose place it is has gone."""
    place = choose_table(job.options, out)
    if place is not None and manifest.parts and is_current(out, manifest):
        made = _write_place(place)
        if read_derived(out, manifest.sha256, TABLE) != made:
            write_derived(out, manifest.sha256, {TABLE: made})


def remove_from_table(run: str) -> None:
    """Take a run out of the table that it was committed to, if it was, before all of its folder is removed; or the run in whose place it is, where it
    was not taken into the table.

    Parameters
    ----------
    run : str
        URI of its folder.

    Raises
    ------
    UsageError, SchemaMismatch
        The table does not let go of its parts as they are, or others have files of the table in the folder.
    """
    place = _read_place(run)  # whatever manifest is there, damaged or of an older version: all of the run goes
    if place is not None:
        place.withdraw(Removal(run, whole=True))
