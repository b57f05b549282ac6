"""A run in a table of all nights: committed after its manifest, before anything of a run that it replaced goes; withdrawn before it goes itself."""

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InvalidRun
from ..records import read_record
from ..stores import storage
from ..tables.share import Share, SharedPart, plain
from ..tables.writing import Place
from .after import FOLDER, read_made, read_replaced, write_made
from .job import Job
from .publish import Manifest
from .replacement import stands
from .table_place import choose_table

RECORD = f"{FOLDER}/table.json"


def _find_replaced(out: str, manifest: Manifest) -> Place | None:
    """The table that the run was committed to in whose place this one is."""
    made = read_replaced(out, manifest.sha256, RECORD) if manifest.place else None
    return None if made is None else _read_place(made, out)


def _read_place(made: bytes, run: str) -> Place:
    try:
        return read_record(Place, made)
    except ValueError as error:
        raise InvalidRun(f"{storage.join(run, RECORD)}: does not name a table: {error}") from error


def check_table(job: Job, types: Mapping[str, pa.DataType]) -> None:
    """Refuse a table that a run cannot be committed to, while nothing is explained yet.

    Parameters
    ----------
    job : Job
    types : mapping of str to pa.DataType
        Of columns that are passed through.

    Raises
    ------
    UsageError
        The library that writes it is not installed, or it takes no parts as they are.
    SchemaMismatch
        Such tables do not have the type of a column.
    StorageError
        It does not answer.
    """
    place = choose_table(job.options, job.out)
    if place is not None:
        plain({name: types[name] for name in job.options.ids if name in types}, job.data)
        place.check()


def commit_table(job: Job, out: str, manifest: Manifest) -> None:
    """Commit the parts of a finished run to the table that was asked for, once, whoever tries it how often.

    Where it took the place of another run, that one's parts are taken out of their table, in the same commit if it is the same table. A run without
    rows has no parts to commit, and leaves none of another run. Nothing is done where another run took its own place meanwhile.

    Parameters
    ----------
    job : Job
    out : str
        URI of the run's folder.
    manifest : Manifest
        Of the run.

    Raises
    ------
    InvalidRun
        Something else is in the record's place.
    UsageError, SchemaMismatch
        The table does not take the parts as they are.
    StorageError
        It does not answer, or refuses. The run is finished all the same, and the same command tries again.
    """
    if not stands(out, manifest):
        return
    place, replaced = choose_table(job.options, out), _find_replaced(out, manifest)
    for left in dict.fromkeys((replaced, place)):
        if left is not None and (left != place or not manifest.parts):
            left.withdraw(out)
    if place is None or job.options.date is None or not manifest.parts:
        return
    parts = tuple(SharedPart(storage.join(out, part["uri"]), part["size"], part["n_rows"]) for part in manifest.parts)
    with storage.opened(parts[0].uri) as file:
        found = pq.read_schema(file)
    place.commit(Share(out, manifest.sha256, job.options.date, plain({field.name: field.type for field in found}, out), parts))


def record_table(job: Job, out: str, manifest: Manifest) -> None:
    """Write down which table a run was committed to, for whoever removes the run.

    Parameters
    ----------
    job : Job
    out : str
        URI of the run's folder.
    manifest : Manifest
        Of the run.

    Raises
    ------
    StorageError
        The store refuses or does not answer.
    """
    place = choose_table(job.options, out)
    if place is not None and manifest.parts and stands(out, manifest):
        made = json.dumps({"format": place.format, "uri": place.uri}, indent=1).encode()
        if read_made(out, manifest.sha256, RECORD) != made:
            write_made(out, manifest.sha256, {RECORD: made})


def withdraw(run: str) -> None:
    """Take a run out of the table that it was committed to, if it was; or the run in whose place it is, where it was not taken into the table.

    Parameters
    ----------
    run : str
        URI of its folder.

    Raises
    ------
    InvalidRun
        Something else is in the record's place.
    UsageError, SchemaMismatch
        The table does not let go of its parts as they are.
    StorageError
        The store or the table does not answer.
    """
    made = storage.read_if_exists(storage.join(run, RECORD))  # whatever manifest is there, damaged or of an older version: all of the run goes
    if made is not None:
        _read_place(made, run).withdraw(run)
