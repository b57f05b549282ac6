"""Where and when a run was made, and by what: a record beside the manifest, which says none of that and is the same everywhere."""

import json
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from ..display import printable
from ..errors import InvalidRun, LeafledgerError, redact
from ..records import read_record
from ..stores import commit, storage
from .attempt import Attempt, FlowRun
from .job import Job
from .machine import Machine, this_machine
from .part import Part
from .publish import Manifest

PROVENANCE = "provenance.json"
PACKAGES = ("leafledger", "numpy", "scipy", "numba", "llvmlite", "pyarrow", "fsspec")  # that every run is made by
# Modules that only some runs import, and the distributions that they are of: models are read without the library that wrote them.
IMPORTED = {"dask": "dask", "distributed": "distributed", "xgboost": "xgboost", "lightgbm": "lightgbm", "catboost": "catboost"}
IMPORTED |= {"sklearn": "scikit-learn", "skops": "skops", "mlflow": "mlflow-skinny", "s3fs": "s3fs", "prefect": "prefect"}


@dataclass(frozen=True, slots=True)
class Workers:
    """Processes of one machine that made parts."""

    machine: Machine
    processes: int


@dataclass(frozen=True, slots=True)
class Provenance:
    """How the attempt that published a run went. It counts for the run whose manifest it names, and for no other.

    Attributes
    ----------
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
        "serial", the address of a Dask scheduler, or None for a local cluster.
    workers : tuple of Workers
        That made the parts of this attempt; none where all had been made before.
    flow : FlowRun or None
        Of Prefect, if one made the run.
    seconds : dict of str to float
        How long each stage took, in the order in which they came.
    parts_made, parts_found : int
        In this attempt, and before it.
    """

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
        return json.dumps(asdict(self), indent=1)


def _versions() -> dict[str, str]:
    found = {}
    for name in (*PACKAGES, *(package for module, package in IMPORTED.items() if module in sys.modules)):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # it is there under another name, or without what installers write
            continue
    return found


def _write_time(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def make_provenance(job: Job, attempt: Attempt, parts: Sequence[Part], manifest: Manifest) -> Provenance:
    """Say how a run was made that has just been published.

    Parameters
    ----------
    job : Job
    attempt : Attempt
        All of whose stages are over.
    parts : sequence of Part
        Of the run, those made now and those found.
    manifest : Manifest

    Returns
    -------
    Provenance
    """
    made = [part for part in parts if part.seconds]
    processes = Counter(worker.machine for worker in {part.worker for part in made})
    return Provenance(
        manifest=manifest.sha256,
        started=_write_time(attempt.started),
        finished=_write_time(datetime.now(UTC)),
        python=platform.python_version(),
        packages=_versions(),
        client=this_machine(),
        scheduler=None if job.options.scheduler is None else redact(job.options.scheduler),
        workers=tuple(Workers(machine, processes[machine]) for machine in sorted(processes, key=lambda machine: (machine.host, machine.cpu))),
        flow=attempt.flow,
        seconds={name: round(seconds, 3) for name, seconds in attempt.seconds.items()},
        parts_made=len(made),
        parts_found=len(parts) - len(made),
    )


def _read(data: bytes, uri: str) -> Provenance:
    try:
        found = read_record(Provenance, data)
    except ValueError as error:
        raise InvalidRun(f"{uri}: not a record of how a run was made: {error}; remove it") from error
    return found


def write_provenance(run: str, made: Provenance) -> str | None:
    """Write the record of a run that is published, whole or not at all; leave one that is there of the same run.

    Parameters
    ----------
    run : str
        URI of where the run's plan lies.
    made : Provenance

    Returns
    -------
    str or None
        Why it could not be written, which takes nothing from the run; None where it was.
    """
    uri = storage.join(run, PROVENANCE)

    def change(held: bytes | None) -> bytes | None:
        try:
            there = None if held is None else _read(held, uri)
        except InvalidRun:
            there = None
        return made.text.encode() if there is None or there.manifest != made.manifest else None

    try:
        commit.update(uri, change, single_writer=True)  # of two who finish at once either may be heard
    except (LeafledgerError, NotImplementedError, OSError) as error:
        return f"{run}: is published, but how it was made is not kept: {' '.join(str(error).split())}"
    return None


def keep_provenance(job: Job, attempt: Attempt, parts: Sequence[Part], manifest: Manifest) -> None:
    """Write how a run was made that has just been published; where that cannot be written, the attempt's ``warned`` says why.

    Parameters
    ----------
    job : Job
        Its output is where the run's plan lies.
    attempt : Attempt
        All of whose stages are over.
    parts : sequence of Part
        Of the run.
    manifest : Manifest
    """
    unkept = write_provenance(job.out, make_provenance(job, attempt, parts, manifest))
    if unkept is not None:
        attempt.warned.append(unkept)


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

    Raises
    ------
    InvalidRun
        What is there is no such record.
    StorageError
        The store does not answer.
    """
    uri = storage.join(run, PROVENANCE)
    data = storage.read_if_exists(uri)
    found = None if data is None else _read(data, uri)
    return found if found is not None and found.manifest == manifest else None


def check_provenance(run: str, manifest: str) -> None:
    """Refuse a record of how a run was made that is none, or that is of another run.

    Parameters
    ----------
    run : str
        URI of where the run's plan lies.
    manifest : str
        SHA-256 of its manifest, hexadecimal.

    Raises
    ------
    InvalidRun
        It is; where there is no record, nothing is refused.
    StorageError
        The store does not answer.
    """
    uri = storage.join(run, PROVENANCE)
    data = storage.read_if_exists(uri)
    found = None if data is None else _read(data, uri)
    if found is not None and found.manifest != manifest:
        raise InvalidRun(f"{uri}: is of a manifest with SHA-256 {printable(found.manifest[:12])}, the run's has {manifest[:12]}; remove it")
