"""One part of a run, made from a work item by an idempotent task."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.methods import METHODS
from leafledger.kernels.reductions.summary import Summary

from ...cluster.resource_usage import Stopwatch
from ...cluster.worker_identity import this_worker
from ...dataset.files.listing import Rejected, WorkItem
from ...dataset.files.pieces import leave_out
from ...errors import InvalidData, InvalidLabel, InvalidRun
from ...methods.reduction_states import unpack_state
from ...methods.warmup import call_kernels
from ...stores import commit, storage
from ...stores.table_arrays import open_tables
from ...stores.traffic import count_moved, take_moved
from ..records.folder import RunFolder
from ..records.footer import read_footer
from ..records.part import Part, reject
from ..records.plan_file import open_recipe
from .worker_metrics import count_found, count_made, count_rejected
from .write_part import InOrder, write_part


def read_part(uri: str, item: WorkItem, local: Path, recipe: str, seconds: float) -> Part:
    """Read a part's record from its footer."""
    footer, size = read_footer(uri, local, recipe, item), local.stat().st_size
    return Part(
        item.part,
        footer.n_rows,
        size,
        storage.sha256(local),
        footer.residual,
        seconds,
        footer.states,
        this_worker(),
        rejected=reject(item, footer.rejected),
    )


def check_bytes(uri: str, local: Path, states: dict[str, str], summaries: Sequence[Summary]) -> None:
    """Refuse a damaged part, by the checksums of pages and states."""
    try:
        for summary in summaries:
            unpack_state(summary.reduction, states[summary.name])
        with pq.ParquetFile(local, page_checksum_verification=True) as parquet:
            for group in range(parquet.num_row_groups):
                parquet.read_row_group(group)
    except (pa.ArrowException, OSError, InvalidRun) as error:
        reason = " ".join(str(error).split())
        raise InvalidRun(f"{uri}: damaged, or arrived damaged, remove it if it stays so, and the next run makes it again: {reason}") from error


def fetch_part(run: str, recipe: str, item: WorkItem) -> Part | None:
    """Read a part as it was published, verified against its footer and page by page."""
    uri = RunFolder(run).part(item.part)
    if not storage.exists(uri):
        return None
    with storage.scratch() as folder:
        local = folder / "part.parquet"
        storage.download(uri, local)
        found = read_part(uri, item, local, recipe, 0.0)
        check_bytes(uri, local, found.states, open_recipe(run, recipe).summaries)
        return replace(found, moved=take_moved())


def make_or_fetch_part(
    run: str, recipe: str, tables: str, item: WorkItem, rejected: Mapping[str, str] = MappingProxyType({}), in_order: InOrder = map
) -> Part:
    """Make the part of a work item, or find it made."""
    found = fetch_part(run, recipe, item)
    if found is not None:
        return found
    started = time.perf_counter()
    plan, prepared, uri = open_recipe(run, recipe), open_tables(tables), RunFolder(run).part(item.part)
    with storage.scratch() as folder:
        local = folder / "part.parquet"
        spent, watch = write_part(plan, recipe, item, prepared, local, rejected, in_order), Stopwatch()
        with watch.timed("publishing"):
            created = commit.create(uri, local)
            made = read_part(uri, item, local, recipe, time.perf_counter() - started) if created else None
        if made is not None:
            return replace(made, moved=take_moved(), spent=spent.add(watch.spent()))
    found = fetch_part(run, recipe, item)  # another attempt was faster, or our acknowledgement was lost
    if found is None:
        raise InvalidRun(f"{uri}: exists and does not")
    return found


def find_unreadable(run: str, recipe: str, tables: str, item: WorkItem) -> dict[str, str]:
    """Find the unreadable files of an item by trying each twice, without publishing."""
    plan, found = open_recipe(run, recipe), dict[str, str]()
    for piece in item.pieces:
        with storage.scratch() as folder:
            for left in (True, False):
                try:
                    write_part(plan, recipe, piece, open_tables(tables), folder / "part.parquet")
                except InvalidData as error:
                    if not left and isinstance(error, InvalidLabel):
                        raise
                    found[piece.uri] = str(error)
                else:
                    found.pop(piece.uri, None)
                    break
    return found


def make_part_or_reject(
    run: str, recipe: str, tables: str, item: WorkItem, rejected: Mapping[str, str] = MappingProxyType({}), in_order: InOrder = map
) -> tuple[Part | Rejected, ...]:
    """Make the part of a work item, or reject it if unreadable. Reads are tried twice, since bytes may be damaged in transit.

    Unreadable files do not affect others: the files of an item are tried one by one, and the readable ones make the part.
    """
    with suppress(InvalidData):
        part = make_or_fetch_part(run, recipe, tables, item, rejected, in_order)
        return _count((part, *part.rejected))
    count_moved(retried=1)
    unreadable = {**rejected, **(find_unreadable(run, recipe, tables, leave_out(item, rejected)) if item.joined else {})}
    if item.joined and len(unreadable) == len(item.pieces):
        return _count(reject(item, unreadable))
    try:
        part = make_or_fetch_part(run, recipe, tables, item, unreadable, in_order)
        return _count((part, *part.rejected))
    except InvalidLabel:
        raise
    except InvalidData as error:
        return _count(reject(item, {piece.uri: unreadable.get(piece.uri, str(error)) for piece in item.pieces}))


def _count(made: tuple[Part | Rejected, ...]) -> tuple[Part | Rejected, ...]:
    """Count a result in this process's metrics, and return it."""
    for one in made:
        if isinstance(one, Rejected):
            count_rejected()
        elif one.seconds:
            count_made(one.n_rows, one.seconds)
        else:
            count_found()
    return made


def warm(tables: str, method: str) -> None:
    """Compile or load every kernel that parts of a method call.

    Parameters
    ----------
    tables : str
        URI of the method's prepared tables.
    method : str
        Its name.
    """
    call_kernels(METHODS[method], open_tables(tables))
