"""Collection and writing of a run's provenance, a record beside the reproducible manifest."""

import platform
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from ...cluster.worker_identity import this_machine
from ...errors import redact
from ..job.job import Job
from ..records.manifest import Manifest
from ..records.part import Part
from ..records.provenance import Provenance, Workers, write_provenance
from .attempt import Attempt

PACKAGES = ("leafledger", "numpy", "scipy", "numba", "llvmlite", "pyarrow", "fsspec")  # packages of every run
# Modules that only some runs import, with their distributions: models are read without the library that wrote them.
IMPORTED = {"dask": "dask", "distributed": "distributed", "xgboost": "xgboost", "lightgbm": "lightgbm", "catboost": "catboost"}
IMPORTED |= {"sklearn": "scikit-learn", "skops": "skops", "mlflow": "mlflow-skinny", "s3fs": "s3fs", "prefect": "prefect"}


@cache  # a tenth of a small run
def _find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # renamed, or without installation metadata
        return None


def _versions() -> dict[str, str]:
    names = (*PACKAGES, *(package for module, package in IMPORTED.items() if module in sys.modules))
    return {name: found for name in names if (found := _find_version(name)) is not None}


def _write_time(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def make_provenance(job: Job, attempt: Attempt, parts: Sequence[Part], manifest: Manifest) -> Provenance:
    """Make the provenance of a just published run."""
    made = [part for part in parts if part.seconds]
    processes = Counter(worker.machine for worker in {part.worker for part in made})
    return Provenance(
        manifest=manifest.sha256,
        started=_write_time(attempt.started),
        finished=_write_time(datetime.now(UTC)),
        python=platform.python_version(),
        packages=_versions(),
        client=this_machine(),
        scheduler=None if job.placement.scheduler is None else redact(job.placement.scheduler),
        workers=tuple(Workers(machine, processes[machine]) for machine in sorted(processes, key=lambda machine: (machine.host, machine.cpu))),
        flow=attempt.flow,
        seconds={name: round(seconds, 3) for name, seconds in attempt.seconds.items()},
        parts_made=len(made),
        parts_found=len(parts) - len(made),
    )


def keep_provenance(job: Job, attempt: Attempt, parts: Sequence[Part], manifest: Manifest) -> None:
    """Write the provenance of a just published run; a failure is added to the attempt's ``warned``.

    Parameters
    ----------
    job : Job
        Its output is where the run's plan lies.
    attempt : Attempt
        All of whose stages are over.
    """
    unkept = write_provenance(job.out, make_provenance(job, attempt, parts, manifest))
    if unkept is not None:
        attempt.warned.append(unkept)
