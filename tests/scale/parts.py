"""``python -m tests.scale.parts FILES [serial|WORKERS] [ITEM_ROWS|-] [FEATURES]``: a run of so many small files, with time and memory of each stage.

Nothing is simulated: files, model, run and check are real, with a local cluster where workers are asked for. Files and model are made, rows
explained, and the run is checked in three processes, one after another, as three commands would.
"""

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.pipeline.progress import no_progress
from leafledger.pipeline.runs import explain
from leafledger.pipeline.runs.check import check
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan import planned_run
from tests.scale.simulated import find_peak

ROWS, FEATURES, TREES, LEAVES = 20, 10, 100, 31
DIFFERENT = 1000  # files; beyond these they are further names of them, so that making many of many columns takes neither hours nor all of a disk
STAGES = {  # what is measured, in its turn, and the function that does it, where its caller looks it up
    "listing": (planned_run, "list_for"),
    "planning": (explain, "plan_run"),
    "preparing": (explain, "broadcast_run"),
    "explaining": (explain, "map_run"),
    "merging": (explain, "aggregate_run"),
    "publishing": (explain, "publish_run"),
    "provenance": (explain, "keep_provenance"),
    "checking": (check, "check_run"),
}
LOOK_SECONDS = 0.5


def write_files(folder: Path, n: int, n_features: int) -> Path:
    """So many files of ROWS rows, and the model, which is of the first hundred of them."""
    import lightgbm  # not in the processes that are measured, which do not need it

    names = [f"f{j}" for j in range(n_features)]
    rng, data = np.random.default_rng(1), folder / "data"
    data.mkdir()
    tables = []
    for i in range(min(n, DIFFERENT)):
        rows = rng.normal(size=(n_features, ROWS)).astype(np.float32)
        table = pa.table({**dict(zip(names, rows, strict=True)), "row": np.arange(ROWS * i, ROWS * (i + 1))})
        pq.write_table(table, data / f"{i:06d}.parquet")
        tables += [rows.T] if i < 100 else []
    for i in range(DIFFERENT, n):
        os.link(data / f"{i % DIFFERENT:06d}.parquet", data / f"{i:06d}.parquet")
    rows = np.concatenate(tables)
    target = rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2]) + rows[:, 3] ** 2
    given = {"verbosity": -1, "num_threads": 1, "num_leaves": LEAVES, "min_data_in_leaf": 5, "seed": 1, "deterministic": True}
    lightgbm.train(given, lightgbm.Dataset(rows, target, feature_name=names), TREES).save_model(folder / "model.txt")
    return data


class Children:
    """What processes that this one started have taken, looked at twice a second until they end, or the block does."""

    def __init__(self) -> None:
        self._cpu: dict[int, float] = {}
        self._peak: dict[int, int] = {}
        self._over = threading.Event()

    def __enter__(self) -> "Children":
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for child in psutil.Process().children(recursive=True):
                try:
                    times = child.cpu_times()
                    self._cpu[child.pid], self._peak[child.pid] = times.user + times.system, find_peak(child.pid)
                except (psutil.Error, OSError, ValueError):  # it is over
                    continue

    def cpu(self) -> float:
        """Seconds of all, as far as they were seen."""
        return sum([*self._cpu.values()])

    def peak(self) -> int:
        """Bytes of the largest."""
        return max([*self._peak.values()], default=0)


@contextmanager
def watched(name: str, found: dict[str, Any], children: Children) -> Iterator[None]:
    """Measure what the block takes: of this process without what is measured inside, and of those that it starts."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    began, cpu, others = time.perf_counter(), time.process_time(), children.cpu()
    inside = sum(each["seconds"] for each in found.values()), sum(each["client_cpu"] for each in found.values())
    yield
    within = sum(each["seconds"] for each in found.values()) - inside[0], sum(each["client_cpu"] for each in found.values()) - inside[1]
    found[name] = {
        "seconds": time.perf_counter() - began - within[0],
        "client_cpu": time.process_time() - cpu - within[1],
        "client_peak": find_peak(os.getpid()),
        "workers_cpu": children.cpu() - others,
        "worker_peak": children.peak(),
    }


def apart(work: Callable[..., Any], *given: Any) -> Any:
    """Do something in a new process, which is over then."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(work, *given).result()


def measure_stages(work: Callable[..., dict[str, Any]], folder: Path, where: str, item_rows: int | str | None) -> dict[str, Any]:
    """Do some work, and say what those of STAGES took that are in it."""
    found = dict[str, Any]()

    def wrap(name: str, stage: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            with watched(name, found, children):
                return stage(*given, **named)

        return call

    with Children() as children, ExitStack() as patched:
        for name, (module, function) in STAGES.items():
            patched.enter_context(mock.patch.object(module, function, wrap(name, getattr(module, function))))
        said = work(folder, {"scheduler": "serial"} if where == "serial" else {"workers": int(where)}, item_rows)
    return said | {"stages": found}


def explain_files(folder: Path, where: dict[str, Any], item_rows: int | str | None) -> dict[str, Any]:
    """A run of all of them."""
    job = make_job(str(folder / "model.txt"), str(folder / "data"), str(folder / "run"), Options(ids=("row",), item_rows=item_rows, **where))
    manifest = explain.explain_job(job, no_progress).manifest
    return {"parts": len(manifest.parts), "rows": manifest.n_rows}


def check_files(folder: Path, where: dict[str, Any], item_rows: int | str | None) -> dict[str, Any]:
    """The run, verified."""
    return {"sound": check.check_run(folder / "run", **({} if "scheduler" in where else where)).sound}


def measure(n: int, where: str, item_rows: int | str | None, n_features: int, folder: Path) -> dict[str, Any]:
    """Explain so many files, check the run, and say what each stage took."""
    apart(write_files, folder, n, n_features)
    explained, checked = (apart(measure_stages, work, folder, where, item_rows) for work in (explain_files, check_files))
    sizes = {file.name: file.stat().st_size for file in (folder / "run").glob("*.json")}
    stages = explained["stages"] | checked["stages"]
    return {"files": n, "where": where, "item_rows": item_rows, "features": n_features, "bytes": sizes} | explained | checked | {"stages": stages}


def show(found: dict[str, Any]) -> Iterator[str]:
    """A table of it, as Markdown has it."""
    n, total = found["files"], [0.0, 0.0, 0.0]
    yield f"{n:,} files, {found['features']:,} features, {found['parts']:,} parts, {found['rows']:,} rows"
    yield f"{found['where']}, item_rows {found['item_rows']}, {found['bytes']}"
    yield "| stage | time | CPU of the client | a file | CPU of workers | client's memory | a worker's |"
    yield "|---|---|---|---|---|---|---|"
    for name, each in found["stages"].items():
        taken = each["seconds"], each["client_cpu"], each["workers_cpu"]
        total = [a + b for a, b in zip(total, taken, strict=True)]
        peaks = each["client_peak"] >> 20, each["worker_peak"] >> 20
        yield f"| {name} | {taken[0]:.1f} s | {taken[1]:.1f} s | {1e3 * taken[1] / n:.2f} ms | {taken[2]:.1f} s | {peaks[0]} MiB | {peaks[1]} MiB |"
    yield f"| all | {total[0]:.1f} s | {total[1]:.1f} s | {1e3 * total[1] / n:.2f} ms | {total[2]:.1f} s | | |"


def main(arguments: list[str]) -> None:
    """Measure, and print a table and the numbers."""
    n, where, item_rows, n_features = [*arguments, *("serial", "-", str(FEATURES))[len(arguments) - 1 :]]
    asked = None if item_rows == "-" else int(item_rows) if item_rows.isdecimal() else item_rows
    with tempfile.TemporaryDirectory() as folder:
        found = measure(int(n), where, asked, int(n_features), Path(folder))
    print("\n".join(show(found)))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
