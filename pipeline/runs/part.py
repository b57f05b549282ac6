"""One part of a run: what a Dask task makes of a work item. May run twice; the object it makes is created once."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kernels.batch import attribute_batch
from kernels.buffers import make_buffers
from kernels.methods import METHODS, SHARED
from kernels.summaries import Summary

from ..dataset.listing import Rejected, WorkItem
from ..errors import InvalidData, InvalidLabel, InvalidRun
from ..stores import commit, storage
from ..stores.arrays import open_tables
from .footer import read_footer
from .item import explain_item
from .planned import read_plan
from .states import unpack_state

PARTS = "attributions"


@dataclass(frozen=True, slots=True)
class Part:
    """A published part: what its footer says, and the object's own size and digest."""

    part: int
    uri: str
    n_rows: int
    size: int
    sha256: str
    residual: float | None  # largest of any row, as a fraction of the bound; None where the method is not additive
    seconds: float  # 0 where an earlier run made it
    states: dict[str, str]  # reduction -> its state, as text


def part_uri(run: str, part: int) -> str:
    """Name the object of a part.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    part : int

    Returns
    -------
    str
    """
    return storage.join(run, PARTS, f"part-{part:05d}.parquet")


def read_part(uri: str, part: int, local: Path, plan_digest: str, seconds: float) -> Part:
    """Read what a part's own bytes say.

    Parameters
    ----------
    uri : str
        Of the part.
    part : int
        Its number.
    local : Path
        A local copy of it.
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    seconds : float
        That it took to make, 0 where it was there already.

    Returns
    -------
    Part

    Raises
    ------
    InvalidRun
        It is no part, or another plan made it.
    """
    footer = read_footer(uri, part, local, plan_digest)
    return Part(part, uri, footer.n_rows, local.stat().st_size, storage.sha256(local), footer.residual, seconds, footer.states)


def _check_bytes(uri: str, local: Path, states: dict[str, str], summaries: Sequence[Summary]) -> None:
    """InvalidRun where bytes of a part are not those that were written: every page has a checksum, and so has every state."""
    try:
        for summary in summaries:
            unpack_state(summary.reduction, states[summary.name])
        with pq.ParquetFile(local, page_checksum_verification=True) as parquet:
            for group in range(parquet.num_row_groups):
                parquet.read_row_group(group)
    except (pa.ArrowException, OSError, InvalidRun) as error:
        reason = " ".join(str(error).split())
        raise InvalidRun(f"{uri}: damaged, or arrived damaged, remove it if it stays so, and the next run makes it again: {reason}") from error


def fetch_part(run: str, part: int, plan_digest: str) -> Part | None:
    """Read a part as it was published, verified against its footer and page by page.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    part : int
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.

    Returns
    -------
    Part or None
        None if it is not there.

    Raises
    ------
    InvalidRun
        It is damaged, or another plan made it.
    StorageError
        The store does not answer.
    """
    uri = part_uri(run, part)
    if not storage.exists(uri):
        return None
    with storage.scratch() as folder:
        local = folder / "part.parquet"
        storage.download(uri, local)
        found = read_part(uri, part, local, plan_digest, 0.0)
        _check_bytes(uri, local, found.states, read_plan(run, plan_digest).summaries)
        return found


def make_part(run: str, plan_digest: str, tables: str, item: WorkItem) -> Part:
    """Do a work item, or find it done. Names and a small record come in, a small record goes out.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    tables : str
        URI of the method's prepared tables.
    item : WorkItem

    Returns
    -------
    Part

    Raises
    ------
    InvalidData
        Rows cannot be read, or are others than were planned.
    InvalidRun
        The part that is there is damaged, or another plan made it.
    LeafledgerError
        Whatever else a part cannot be made for, see `explain_item`.
    """
    found = fetch_part(run, item.part, plan_digest)
    if found is not None:
        return found
    started = time.perf_counter()
    plan, prepared = read_plan(run, plan_digest), open_tables(tables)
    uri = part_uri(run, item.part)
    with storage.scratch() as folder:
        local = folder / "part.parquet"
        explain_item(plan, plan_digest, item, prepared, local)
        if commit.create(uri, local):
            return read_part(uri, item.part, local, plan_digest, time.perf_counter() - started)
    found = fetch_part(run, item.part, plan_digest)  # another attempt was faster, or a lost acknowledgement was ours
    if found is None:
        raise InvalidRun(f"{uri}: exists and does not")
    return found


def try_part(run: str, plan_digest: str, tables: str, item: WorkItem) -> Part | Rejected:
    """Do a work item, or say why its rows cannot be read. They are tried twice, since bytes may also be damaged on their way.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    tables : str
        URI of the method's prepared tables.
    item : WorkItem

    Returns
    -------
    Part or Rejected

    Raises
    ------
    InvalidLabel
        A label or weight cannot be used, which ends the run.
    LeafledgerError
        Whatever else a part cannot be made for; InvalidData of rows is returned as rejected.
    """
    with suppress(InvalidData):
        return make_part(run, plan_digest, tables, item)
    try:
        return make_part(run, plan_digest, tables, item)
    except InvalidLabel:
        raise
    except InvalidData as error:
        return Rejected(item.part, item.uri, item.row_groups, item.n_rows, str(error))


def warm(tables: str, method: str) -> None:
    """Compile, or read from the cache, every kernel that parts of a method will call.

    Parameters
    ----------
    tables : str
        URI of the method's prepared tables.
    method : str
        Its name.
    """
    prepared = open_tables(tables)
    buffers = make_buffers(prepared, 1)
    attribute_batch(METHODS[method], prepared, buffers)
    for summary in (*METHODS[method].summaries, *SHARED):
        summary.update(summary.init(buffers), buffers, 1)
