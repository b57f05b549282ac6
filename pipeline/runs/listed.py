"""The data of a run listed: the footers of many files are read by the workers of a cluster that is there already, those of others here.

A footer takes the client as long as a small part takes a worker, of which there may be hundreds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ..dataset.footers import Footer, read_footers
from ..dataset.listing import NOTHING, Listing, list_data
from ..dataset.matching import Asked, Matching
from ..errors import InvalidData, LeafledgerError
from ..models import Model
from ..tables.live import LiveFile
from .job import SERIAL, Job
from .sizes import WORKER_OVERHEAD

MANY, BLOCK = 2048, 256  # files that are worth a cluster, and those of a task
MATCHING_BYTES = 1 << 20  # packed, that every task may be sent: of a model with millions of categories it is more


@dataclass(frozen=True, slots=True)
class _Block:
    """Files whose footers are read together."""

    place: int
    uri: str  # of the data set
    files: Sequence[LiveFile]

    def __str__(self) -> str:
        return f"{self.uri}: footers of files {self.files[0].file.uri} to {self.files[-1].file.uri}"


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a block, up to what refuses the data set."""

    footers: Sequence[Footer | InvalidData]
    refused: LeafledgerError | None


def _read_block(matching: Matching, block: _Block) -> _Read:
    """What a Dask task does."""
    found = list[Footer | InvalidData]()
    try:
        found.extend(read_footers(block.files, matching))
    except LeafledgerError as error:
        return _Read(found, error)
    return _Read(found, None)


def _read_on_workers(job: Job, uri: str, files: Sequence[LiveFile], matching: Matching) -> Iterator[Footer | InvalidData]:
    """In the order of the files, whoever reads them first; the first refusal is that of the first file too."""
    from . import cluster, workers

    packed = workers.pack(matching)
    if len(files) < MANY or len(packed.data) > MATCHING_BYTES:
        yield from read_footers(files, matching)
        return
    blocks = [_Block(place, uri, files[start : start + BLOCK]) for place, start in enumerate(range(0, len(files), BLOCK))]
    waiting, place = dict[int, _Read](), 0
    with cluster.remote_client(str(job.options.scheduler), workers.need(WORKER_OVERHEAD), job.options.wait) as client:
        for block, read in cluster.map_dask(client, _read_block, packed, blocks, WORKER_OVERHEAD):
            waiting[block.place] = read
            while place in waiting:
                done = waiting.pop(place)
                yield from done.footers
                if done.refused is not None:
                    raise done.refused
                place += 1


def list_for(job: Job, uri: str, model: Model, asked: Asked = NOTHING) -> Listing:
    """List a data set of a run, see `list_data`. Where its footers are read changes nothing in what is found, nor in what is refused.

    Parameters
    ----------
    job : Job
        Its scheduler's workers read the footers of `MANY` files.
    uri : str
        Of its data or its background.
    model : Model
    asked : Asked

    Returns
    -------
    Listing

    Raises
    ------
    ClusterLost
        No scheduler answers, it has no workers any more, or every worker that some files were given to died.
    LeafledgerError
        As `list_data`.
    """
    if job.options.scheduler in (None, SERIAL):
        return list_data(uri, model, asked)
    return list_data(uri, model, asked, partial(_read_on_workers, job, uri))
