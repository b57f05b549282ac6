"""SHA-256 digests of a run's input files, an optional record beside the plan."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event

from ...dataset.files.identity import is_still
from ...display.text import printable
from ...errors import InvalidData, InvalidRun, NotThere, RunConflict
from ...json_records import as_text, digest_text, iterate_text
from ...stores import storage
from ..formats.numbers import FORMAT
from .folder import RunFolder
from .json_file import JsonFile, create_same, refuse_other, refuse_rewritten

READERS = 8  # files that are read at a time
PIECE = 1 << 22  # bytes that are read of one at a time
NEVER = Event()  # that nobody sets


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file, by its bytes."""

    uri: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files that a run reads."""

    format_version: int = field(default=FORMAT, kw_only=True, compare=False)
    plan: str  # SHA-256 of plan.json
    data: tuple[InputFile, ...]  # with rows, in the order of the plan
    background: tuple[InputFile, ...]  # none where rows of one are not read

    @property
    def text(self) -> str:
        """Text of inputs.json."""
        return as_text(self)

    @property
    def sha256(self) -> str:
        """Of inputs.json, hexadecimal: who keeps it with the manifest's can tell later what the numbers come from."""
        return digest_text(self)


FILE = JsonFile(Inputs, "not a record of a run's inputs", check=refuse_rewritten)


def digest_file(uri: str, stop: Event = NEVER) -> InputFile:
    """Read a file piece by piece."""
    digest, size = hashlib.sha256(), 0
    with storage.opened(uri) as file:
        while piece := file.read(PIECE):
            if stop.is_set():
                raise CancelledError(uri)
            digest.update(piece)
            size += len(piece)
    return InputFile(uri, size, digest.hexdigest())


def _digest_known(known: tuple[str, str], stop: Event) -> InputFile:
    """A file that the run was planned with."""
    uri, etag = known
    found = digest_file(uri, stop)
    if not is_still(etag, storage.stat_if_exists(uri)):
        raise InvalidData(f"{uri}: changed since the run was planned")
    return found


@contextmanager
def _several() -> Iterator[tuple[Executor, Event]]:
    """Readers of several files at a time, which stop at their next piece, instead of hours later, where something goes wrong outside."""
    stop = Event()
    with ThreadPoolExecutor(READERS) as readers:
        try:
            yield readers, stop
        except BaseException:
            stop.set()
            readers.shutdown(wait=False, cancel_futures=True)
            raise


def digest_files(files: Sequence[tuple[str, str]], on_done: Callable[[int], None]) -> tuple[InputFile, ...]:
    """Digest files, several at a time.

    Parameters
    ----------
    files : sequence of (str, str)
        URIs, and what each file is known by, see `identify`.
    on_done : callable
        Called with the position of every file in turn.

    Returns
    -------
    tuple of InputFile
        In their order.

    Raises
    ------
    InvalidData
        One has changed since it was listed.
    """
    found = []
    with _several() as (readers, stop):
        for k, each in enumerate(readers.map(partial(_digest_known, stop=stop), files)):
            found.append(each)
            on_done(k)
    return tuple(found)


def read_inputs(run: str) -> Inputs | None:
    """Read which files a run was made of.

    Returns
    -------
    Inputs or None
        None where they were not digested.
    """
    return FILE.read(RunFolder(run).inputs)


def check_inputs(run: str, found: Inputs, plan: str, data: Sequence[str]) -> None:
    """Refuse a record of other inputs than the plan's.

    Parameters
    ----------
    plan : str
        SHA-256 of the run's plan, hexadecimal.
    data : sequence of str
        URIs of the files that the plan has.
    """
    where = RunFolder(run).inputs
    refuse_other(where, "plan", found.plan, plan)
    if [file.uri for file in found.data] != list(data):
        raise InvalidRun(f"{where}: lists {len(found.data)} files, which are not the {len(data)} of the plan")


def refuse_changed(was: Inputs, now: Inputs) -> None:
    """Refuse files with other bytes than when the run was begun.

    Raises
    ------
    RunConflict
        The first that has, or the lists of files differ.
    """
    before = {file.uri: file for file in (*was.data, *was.background)}
    for file in (*now.data, *now.background):
        held = before.get(file.uri)
        if held != file:
            said = "was none of its inputs" if held is None else f"was {printable(held.sha256[:12])}"
            raise RunConflict(f"{file.uri}: SHA-256 is {file.sha256[:12]}, when the run was begun it {said}; choose another output or remove it")
    if was != now:
        raise RunConflict(f"the run was begun with other inputs: {len(before)} files, expected {len(now.data) + len(now.background)}")


def write_inputs(run: str, found: Inputs) -> None:
    """Write which files a run is made of, or find it written.

    Raises
    ------
    RunConflict
        Another attempt read other bytes.
    """
    uri = RunFolder(run).inputs
    held = create_same(uri, iterate_text(found))
    if held is not None:
        refuse_changed(FILE.parse(held, uri), found)


def find_changed(was: Sequence[InputFile]) -> dict[str, str]:
    """Digest files once more.

    Returns
    -------
    dict of str to str
        From the URIs of files that are not what they were to what is wrong with each.
    """

    def look(file: InputFile, stop: Event) -> str | None:
        try:
            found = digest_file(file.uri, stop)
        except NotThere as error:
            return str(error)
        said = f"{file.uri}: SHA-256 is {found.sha256[:12]}, when the run was made it was {printable(file.sha256[:12])}"
        return None if found == file else said

    with _several() as (readers, stop):
        return {file.uri: said for file, said in zip(was, readers.map(partial(look, stop=stop), was), strict=True) if said is not None}
