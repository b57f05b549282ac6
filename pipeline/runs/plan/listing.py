"""Listing of a run's data, with footers of many files read on cluster workers.

A footer takes as long on the client as a small part on one of possibly hundreds of workers. Threads of this process would not read local ones faster.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ...dataset.files.footers import Footer, read_footers
from ...dataset.files.listing import NOTHING, Listing, list_data
from ...dataset.files.matching import ExtraColumns, Matching
from ...errors import InvalidData, LeafledgerError
from ...methods.worker_memory import WORKER_OVERHEAD
from ...models.model import Model
from ...tables.live_files import LiveFile
from ..job.job import Job

if TYPE_CHECKING:
    from ...cluster.requirements import Packed


MANY, BLOCK = 2048, 256  # files that justify a cluster, and files of a task
MATCHING_BYTES = 1 << 20  # largest packed size sent with every task; models with millions of categories exceed it


@dataclass(frozen=True, slots=True)
class _Block:
    """Files whose footers are read by one task."""

    place: int
    uri: str  # of the data set
    files: Sequence[LiveFile]

    def __str__(self) -> str:
        return f"{self.uri}: footers of files {self.files[0].file.uri} to {self.files[-1].file.uri}"


@dataclass(frozen=True, slots=True)
class _ReadBlock:
    """Footers of a block, up to the first error that refuses the data set."""

    footers: Sequence[Footer | InvalidData]
    refused: LeafledgerError | None


def _read_block(matching: Matching, block: _Block) -> _ReadBlock:
    """Read the footers of a block: a Dask task."""
    found = list[Footer | InvalidData]()
    try:
        found.extend(read_footers(block.files, matching))
    except LeafledgerError as error:
        return _ReadBlock(found, error)
    return _ReadBlock(found, None)


def _connect(job: Job, n_blocks: int) -> AbstractContextManager[Any]:
    """Connect to the run's cluster."""
    from ...cluster import requirements as workers
    from ...cluster import start_client as cluster

    if job.placement.scheduler is None:
        return cluster.local_client(job.placement, n_blocks)
    return cluster.remote_client(job.placement.scheduler, workers.need(WORKER_OVERHEAD), job.placement.wait, job.placement.security)


def _read_on_workers(job: Job, uri: str, files: Sequence[LiveFile], packed: "Packed") -> Iterator[Footer | InvalidData]:
    """Read footers in the order of files; the first error is that of the first file."""
    from ...cluster import tasks as tasks_

    blocks = [_Block(place, uri, files[start : start + BLOCK]) for place, start in enumerate(range(0, len(files), BLOCK))]
    waiting, place = dict[int, _ReadBlock](), 0
    with _connect(job, len(blocks)) as client:
        for block, read in tasks_.map_dask(client, _read_block, packed, blocks, WORKER_OVERHEAD):
            waiting[block.place] = read
            while place in waiting:
                done = waiting.pop(place)
                yield from done.footers
                if done.refused is not None:
                    raise done.refused
                place += 1


def _read_many(job: Job, uri: str, files: Sequence[LiveFile], matching: Matching) -> Iterator[Footer | InvalidData]:
    """Read the footers of many files on workers."""
    if len(files) < MANY:
        yield from read_footers(files, matching)
        return
    from ...cluster.requirements import pack

    packed = pack(matching)
    yield from _read_on_workers(job, uri, files, packed) if len(packed.data) <= MATCHING_BYTES else read_footers(files, matching)


def list_for(job: Job, uri: str, model: Model, asked: ExtraColumns = NOTHING) -> Listing:
    """List a data set of a run, see `list_data`; where footers are read does not affect the result.

    Parameters
    ----------
    job : Job
        Its cluster's workers read the footers of `MANY` files, if it has one.
    uri : str
        Of its data or its background.

    Raises
    ------
    ClusterLost
        No scheduler answers, it has no workers any more, or every worker that some files were given to died.
    UnfitCluster
        The workers do not start, or do not fit.
    """
    if job.placement.is_here:
        return list_data(uri, model, asked)
    return list_data(uri, model, asked, partial(_read_many, job, uri))
