"""Whole runs, Parquet in and Parquet out: how fast they are, how much memory a worker takes as rows grow, how soon a first attribution is there."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import distributed
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger import explain
from leafledger.pipeline.cluster.placement import SERIAL
from leafledger.pipeline.cluster.start_client import SILENT
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.model import load_model
from leafledger.pipeline.runs.plan.planned_run import plan_run
from tests.bench.models import NAMES, make_rows
from tests.bench.timing import Contender, Speed, race

ROW_GROUP = 1 << 16
SERIAL_RUN, CLUSTER_RUN, THREADS_RUN = "explain, serial", "explain, local cluster with its start", "explain, threads"
COLD, WARM, OTHER = "cold", "warm", "other"
STARTS = {COLD: "kernels compiled", WARM: "kernels from the cache", OTHER: "kernels from the cache, another model's compiled"}
# Peak memory by the kernel's own count for this process: what getrusage gives a child starts at its parent's.
EXPLAIN = """
import sys, leafledger
leafledger.explain(*sys.argv[1:4], scheduler="serial")
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
# Moments at which the parts of a first attribution are done, on the clock that the parent reads too; the second batch tells compiling from working.
ATTRIBUTE = """
import sys, time
moments = [time.monotonic()]
from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.kernels.prepare import prepare
from leafledger.kernels.methods import METHODS
import leafledger
moments.append(time.monotonic())
model = leafledger.load_ensemble(sys.argv[1])
moments.append(time.monotonic())
method = METHODS["shapley"]
prepared = prepare(model.ensemble, method, {})
moments.append(time.monotonic())
buffers = make_buffers(prepared, 1)
for _ in range(2):
    attribute_batch(method, prepared, buffers)
    moments.append(time.monotonic())
print(*moments)
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """Peak memory of a process that explains a data set on its own, and what the plan foresaw; bytes."""

    n_rows: int
    peak: int
    projected: int


@dataclass(frozen=True, slots=True)
class First:
    """Seconds from the start of Python to the first row's attributions, and of which parts.

    ``compiling`` is the first batch less ``batch``, the same once more; what making the tables compiles counts as ``tables``.
    """

    total: float
    python: float
    imports: float
    model: float
    tables: float
    compiling: float
    batch: float


def write_rows(folder: Path, n_rows: int, n_files: int) -> Path:
    """A data set of float32 columns, written a row group at a time."""
    folder.mkdir(parents=True)
    seeds, per_file = count(100), n_rows // n_files
    schema = pa.schema([(name, pa.float32()) for name in NAMES])
    for i in range(n_files):
        with pq.ParquetWriter(folder / f"rows-{i:02d}.parquet", schema) as writer:
            for first in range(0, per_file, ROW_GROUP):
                rows = make_rows(min(ROW_GROUP, per_file - first), next(seeds))
                writer.write_table(pa.table(list(rows.T), schema=schema), ROW_GROUP)
    return folder


def _by_hand(model: Path, data: Path, out: Path, n_threads: int) -> None:
    """What a run replaces: the data set in memory, XGBoost's contributions, one file."""
    import xgboost

    booster = xgboost.Booster({"nthread": n_threads}, model_file=model)
    phi = booster.predict(xgboost.DMatrix(pd.read_parquet(data)), pred_contribs=True)
    pd.DataFrame(phi, columns=[*NAMES, "base"]).to_parquet(out, compression="zstd")


def _fresh(folder: Path, work: Callable[[Path], object]) -> Callable[[], None]:
    """The work into an output that is new on every call."""
    numbers = count()

    def call():
        out = folder / f"out-{next(numbers)}"
        work(out)
        shutil.rmtree(out) if out.is_dir() else out.unlink()

    return call


def race_runs(model: Path, n_rows: int, rows_by_hand: int, n_threads: int, repeats: int) -> list[Speed]:
    """A run on one thread and on several, on a local cluster that it starts and stops itself, and on one that is there; and the same by hand."""
    with tempfile.TemporaryDirectory(dir=model.parent) as name:
        folder = Path(name)
        data, little = write_rows(folder / "data", n_rows, 4 * n_threads), write_rows(folder / "little", rows_by_hand, 1)

        def run(out: Path, **where: Any) -> None:
            explain(model, data, out, **where)

        def contender(label: str, threads: int, rows: int, work: Callable[[Path], object]) -> Contender:
            place = folder / label.replace(" ", "-")
            place.mkdir()
            return Contender(label, threads, rows, _fresh(place, work))

        with distributed.LocalCluster(
            n_workers=n_threads, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=SILENT
        ) as cluster:
            contenders = [
                contender(SERIAL_RUN, 1, n_rows, partial(run, scheduler=SERIAL)),
                contender(CLUSTER_RUN, n_threads, n_rows, partial(run, workers=n_threads)),
                contender(THREADS_RUN, n_threads, n_rows, partial(run, threads=n_threads)),
                contender("explain, cluster started before", n_threads, n_rows, partial(run, scheduler=cluster.scheduler_address)),
                contender("XGBoost by hand", n_threads, rows_by_hand, lambda out: _by_hand(model, little, out, n_threads)),
            ]
            contenders[3].call()  # its workers have imported and compiled what they need before they count as started
            return race(contenders, repeats, warm=False)


def _python(code: str, *arguments: Path, **environment: str) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=os.environ | environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure_memory(model: Path, sizes: tuple[int, ...]) -> list[Memory]:
    """Peak memory of serial runs over one file each, with row groups of the same size."""
    found = []
    for n_rows in sizes:
        with tempfile.TemporaryDirectory(dir=model.parent) as folder:
            data, out = write_rows(Path(folder, "data"), n_rows, 1), Path(folder, "out")
            job = make_job(model, data, out, Options(scheduler=SERIAL))
            projected = plan_run(job, load_model(job)).memory.total
            found.append(Memory(n_rows, int(_python(EXPLAIN, model, data, out)) << 10, projected))
    return found


def _first(model: Path, **environment: str) -> First:
    started = time.monotonic()
    moments = [started, *map(float, _python(ATTRIBUTE, model, **environment).split())]
    *parts, first, again = (later - earlier for earlier, later in pairwise(moments))
    return First(moments[-2] - started, *parts, first - again, again)


def _median(found: list[First]) -> First:
    return First(*(statistics.median(getattr(first, name) for first in found) for name in First.__annotations__))


def measure_first(model: Path, other: Path, repeats: int) -> dict[str, First]:
    """Cold and warm starts, and that of another model, each cold one with an empty cache of its own: it compiles, or loads, what a batch needs."""
    found: dict[str, list[First]] = {COLD: [], WARM: [], OTHER: []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=model.parent) as cache:
            for start, explained in ((COLD, model), (WARM, model), (OTHER, other)):
                found[start].append(_first(explained, NUMBA_CACHE_DIR=cache))
    return {start: _median(some) for start, some in found.items()}


def measure_warm(model: Path) -> dict[str, First]:
    """A warm start from the kernels that this process has compiled."""
    return {WARM: _first(model)}
