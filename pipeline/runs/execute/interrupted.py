"""Work items that an earlier process was explaining when it died, found by a record in the run's folder and by the parts that are there.

Threads die with their process. A worker of Dask that dies is survived by its client, so cluster runs need no record.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil

from ...cluster.threads import AHEAD
from ...cluster.worker_identity import this_worker
from ...dataset.files.listing import WorkItem
from ...errors import InvalidRun, NotThere, StorageError
from ...json_records import as_text
from ...stores import commit, storage
from ..formats.numbers import FORMAT
from ..records.folder import RunFolder
from ..records.json_file import JsonFile


@dataclass(frozen=True, slots=True)
class Attempt:
    """The process that works on a run. Its record is removed when it ends in good order, with the run finished or not."""

    format_version: int = field(default=FORMAT, kw_only=True, compare=False)
    host: str
    process: int
    began: float  # when the process did, in seconds since 1970
    threads: int


FILE = JsonFile(Attempt, "not a record of an attempt", "; remove it")


def _began(process: int) -> float | None:
    """When a process of this machine began; None where there is none."""
    try:
        return float(psutil.Process(process).create_time())
    except psutil.Error:
        return None


def _this_attempt(n_threads: int) -> Attempt:
    worker = this_worker()
    return Attempt(worker.machine.host, worker.process, _began(worker.process) or 0.0, n_threads)


def find_suspects(run: str, items: Sequence[WorkItem]) -> set[int]:
    """Find the items one of which may have killed the process of an earlier attempt, by their parts' numbers; none where it ended in good order."""
    uri = RunFolder(run).attempt
    try:
        found = FILE.read(uri)
    except InvalidRun:
        found = Attempt("", 0, 0.0, AHEAD)
    if found is None or (found.host == this_worker().machine.host and _began(found.process) == found.began):
        return set()
    names = dict[str, int]()
    with suppress(NotThere):
        names = storage.list_folder(RunFolder(run).parts).files
    # Items are begun in turn: one that was being explained has no part, and comes before the last that has one or soon after, as do unreadable ones.
    unmade = [RunFolder(run).part(item.part).rpartition("/")[2] not in names for item in items]
    last = max((place for place, missing in enumerate(unmade) if not missing), default=-1)
    return {item.part for item, missing in zip(items[: last + 1 + found.threads + AHEAD], unmade, strict=False) if missing}


def forget(run: str) -> None:
    """Remove the record of an attempt that died, once all items are done."""
    uri = RunFolder(run).attempt
    if storage.exists(uri):
        commit.remove(uri)


@contextmanager
def recorded(run: str, n_threads: int) -> Iterator[None]:
    """Keep the record of this attempt while it works on items."""
    uri, text = RunFolder(run).attempt, as_text(_this_attempt(n_threads)).encode()
    commit.update(uri, lambda held: text if held != text else None, single_writer=True)
    try:
        yield
    finally:
        with suppress(StorageError):  # a record that is left costs the next attempt some caution
            commit.remove(uri)
