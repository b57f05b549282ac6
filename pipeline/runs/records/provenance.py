"""The provenance record: where, when and by which versions a run was made."""

from dataclasses import dataclass, field

from ...cluster.worker_identity import Machine
from ...errors import InvalidRun, LeafledgerError
from ...json_records import as_text
from ...stores import commit
from ..formats.numbers import FORMAT
from .folder import RunFolder
from .json_file import JsonFile, refuse_other


@dataclass(frozen=True, slots=True)
class Workers:
    """Processes of one machine that made parts."""

    machine: Machine
    processes: int


def check_provenance(run: str, manifest: str) -> None:
    """Refuse a record of how a run was made that is none, or that is of another run.

    Parameters
    ----------
    run : str
        URI of where the run's plan lies.
    manifest : str
        SHA-256 of its manifest, hexadecimal.
    """
    uri = RunFolder(run).provenance
    found = FILE.read(uri)
    if found is not None:
        refuse_other(uri, "manifest", found.manifest, manifest)


@dataclass(frozen=True, slots=True)
class FlowRun:
    """The run of a flow that a run is made by.

    Attributes
    ----------
    name, id : str
    deployment : str or None
        None where the flow was called as a function.
    """

    name: str
    id: str
    deployment: str | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """How the attempt that published a run went. It counts for the run whose manifest it names, and for no other.

    Attributes
    ----------
    format_version : int
        Number of the record's format.
    manifest : str
        SHA-256.
    started, finished : str
        When the attempt began, and when the manifest was there: UTC, as in 2026-03-02T01:02:03Z.
    python : str
        Its version.
    packages : dict of str to str
        Versions of what the client had imported, by name; workers have the same.
    client : Machine
        That planned and published.
    scheduler : str or None
        "serial", the address of a Dask scheduler, or None for threads of the client or a local cluster.
    workers : tuple of Workers
        That made the parts of this attempt; none where all had been made before.
    flow : FlowRun or None
        Of Prefect, if one made the run.
    seconds : dict of str to float
        How long each stage took, in the order in which they came.
    parts_made, parts_found : int
        In this attempt, and before it.
    """

    format_version: int = field(default=FORMAT, kw_only=True, compare=False)
    manifest: str
    started: str
    finished: str
    python: str
    packages: dict[str, str]
    client: Machine
    scheduler: str | None
    workers: tuple[Workers, ...]
    flow: FlowRun | None
    seconds: dict[str, float]
    parts_made: int
    parts_found: int

    @property
    def text(self) -> str:
        """Text of provenance.json."""
        return as_text(self)


FILE = JsonFile(Provenance, "not a record of how a run was made", "; remove it")


def write_provenance(run: str, made: Provenance) -> str | None:
    """Write the record of a run that is published, whole or not at all; leave one that is there of the same run.

    Parameters
    ----------
    run : str
        URI of where the run's plan lies.

    Returns
    -------
    str or None
        Why it could not be written, which takes nothing from the run; None where it was.
    """
    uri = RunFolder(run).provenance

    def change(held: bytes | None) -> bytes | None:
        try:
            there = None if held is None else FILE.parse(held, uri)
        except InvalidRun:
            there = None
        return made.text.encode() if there is None or there.manifest != made.manifest else None

    try:
        commit.update(uri, change, single_writer=True)  # of two who finish at once either may be heard
    except (LeafledgerError, NotImplementedError, OSError) as error:
        return f"{run}: is published, but how it was made is not kept: {' '.join(str(error).split())}"
    return None


def read_provenance(run: str, manifest: str) -> Provenance | None:
    """Read how a run was made.

    Parameters
    ----------
    run : str
        URI of where the run's plan lies.
    manifest : str
        SHA-256 of its manifest, hexadecimal.

    Returns
    -------
    Provenance or None
        None where it was not kept, or is of another run that stood there.
    """
    found = FILE.read(RunFolder(run).provenance)
    return found if found is not None and found.manifest == manifest else None
