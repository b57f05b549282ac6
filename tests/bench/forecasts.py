"""Forecasts beside the runs that they are of: each in a process of its own, as the command and a script would."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.models import CASES, MARGINAL, Case, trained
from tests.bench.runs import write_rows

WORKERS = (1, 2)
METHODS = ("shapley", "banzhaf")
RUNS = ("xgboost-100x6", 2_000_000), ("lightgbm-100x6", 1_000_000), ("catboost-500x6", 4_000_000)
QUICK_ROWS = 50_000
FILES, ROUNDS = 16, 2
# What a run takes: its time, the processors' of all its processes, the most that each of these held, and what they moved.
RUN = """
import json, os, sys, threading, time
import psutil
from leafledger.pipeline.cluster.resource_usage import find_peak

def watch():
    while not over.wait(1):
        for child in psutil.Process().children(recursive=True):
            try:
                with open(f"/proc/{child.pid}/status") as file:
                    held = next((int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM")), 0)
                name = " ".join(child.cmdline())
            except (OSError, psutil.Error):
                continue
            peaks[child.pid] = max(held, peaks.get(child.pid, 0)) if "spawn_main" in name else 0

def follow(work):
    return lambda piece: read.append(piece.moved.read)

if __name__ == "__main__":
    over, peaks, read = threading.Event(), {}, []
    from leafledger import explain
    from leafledger.pipeline.stores.traffic import find_moved
    model, data, out, method, workers = sys.argv[1:]
    threading.Thread(target=watch, daemon=True).start()
    cpu, began = sum(os.times()[:4]), time.perf_counter()
    explain(model, data, out, method=method, workers=int(workers), progress=follow)
    seconds, cpu = time.perf_counter() - began, sum(os.times()[:4]) - cpu
    over.set()
    said = {"seconds": seconds, "cpu_seconds": cpu, "memory": find_peak() + sum(peaks.values()), "read_bytes": find_moved().read + sum(read)}
    print(json.dumps(said))
"""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A forecast and its run."""

    model: str
    method: str
    n_rows: int
    workers: int
    forecast: dict[str, Any]  # as ``plan --forecast --json`` has it
    run: dict[str, Any]  # the same of the run, as far as it can be measured

    def ratio(self, name: str) -> float:
        """The forecast over the run."""
        return self.forecast[name] / self.run[name]


def _python(*arguments: object) -> dict[str, Any]:
    done = subprocess.run([sys.executable, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def _measure(model: Path, data: Path, out: Path, case: Case, method: str, n_rows: int, workers: int) -> Foreseen:
    """The forecast first, so that the run finds no more in the disk's cache than it would."""
    told = ("-m", "leafledger", "plan", model, data, "--out", out, "--method", method, "--workers", workers, "--forecast", "--json")
    forecast = _python(*told)["forecast"]
    script = out.parent / "run.py"
    script.write_text(RUN)
    run = _python(script, model, data, out, method, workers)
    files = [path for path in out.rglob("*") if path.is_file()]
    run |= {"written_bytes": sum(path.stat().st_size for path in files), "objects": len(files)}
    shutil.rmtree(out)
    return Foreseen(case.name, method, n_rows, workers, forecast, run)


def measure_forecasts(folder: Path, quick: bool) -> Iterator[Foreseen]:
    """Every model, method and number of workers in turn, and all of them again."""
    cases = {case.key: case for case in (*CASES, *MARGINAL)}
    for key, n_rows in RUNS[:1] if quick else RUNS * ROUNDS:
        rows, case = QUICK_ROWS if quick else n_rows, cases[key]
        with tempfile.TemporaryDirectory(dir=folder) as name:
            data = write_rows(Path(name, "data"), rows, FILES)
            for method in METHODS:
                for workers in WORKERS:
                    yield _measure(trained(case, folder), data, Path(name, "out"), case, method, rows, workers)
