"""``python -m tests.bench [--quick] [--folder FOLDER]``: measure everything in one go, print tables, write ``results.json``."""

import argparse
import json
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pipeline.config import count_cores

from .compare import CONTRIBUTIONS, PREDICT, Comparison, compare
from .models import CASES, trained
from .runs import First, Memory, measure_first, measure_memory, race_runs
from .timing import Speed

PACKAGES = ("leafledger", "numpy", "numba", "pyarrow", "dask", "xgboost", "lightgbm", "catboost")
RUNS_CAPTION = "by hand: read_parquet, pred_contribs on all cores, to_parquet; on fewer rows, for it is slow"
WIDTH = 110  # of the tables, also where there is no terminal


def describe_machine() -> dict[str, str]:
    """Processor, cores, how busy they are, and versions: without them the numbers say nothing."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": str(count_cores()),
        "load average at start": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def _columns(title: str, *numbers: str, caption: str | None = None) -> Table:
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    table.add_column("", no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _cells(speed: Speed) -> tuple[str, ...]:
    return speed.name, str(speed.threads), f"{speed.n_rows:,}", f"{speed.rate:,.0f}", "" if speed.spread is None else f"{speed.spread:.0%}"


def show_comparison(comparison: Comparison) -> Table:
    caption = (
        f"tables {comparison.table_bytes / 2**20:.1f} MiB; the library's contributions differ from these by at most "
        f"{comparison.largest_difference:.1e}, the largest is {comparison.largest_phi:.3g}"
    )
    table = _columns(comparison.model, "threads", "rows", "rows/s", "spread", "/ contrib.", "/ predict", caption=caption)
    for speed in comparison.speeds:
        ratios = (comparison.ratio(speed, to) for to in (CONTRIBUTIONS, PREDICT))
        table.add_row(*_cells(speed), *("" if ratio is None else f"{ratio:.3g}" for ratio in ratios))
    return table


def show_runs(speeds: list[Speed]) -> Table:
    table = _columns(
        f"Parquet in, Parquet out: {CASES[0].name}", "processes", "rows", "rows/s", "spread", "seconds", "/ by hand", caption=RUNS_CAPTION
    )
    for speed in speeds:
        table.add_row(*_cells(speed), f"{speed.seconds:.1f}", f"{speed.rate / speeds[-1].rate:.3g}")
    return table


def show_memory(found: list[Memory]) -> Table:
    table = _columns("Memory of a worker", "peak MiB", "projected MiB")
    for memory in found:
        table.add_row(f"{memory.n_rows:,} rows", str(memory.peak >> 20), str(memory.projected >> 20))
    return table


def show_first(first: First) -> Table:
    table = _columns("Start of Python to the first attribution", "seconds")
    table.add_row("kernels compiled", f"{first.cold:.1f}")
    table.add_row("kernels from the cache", f"{first.warm:.1f}")
    return table


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Benchmark of kernels and whole runs.")
    parser.add_argument("--quick", action="store_true", help="the first model only, fewer rows and repeats: under a minute once it is trained")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"), help="where models are kept and results.json is written")
    options = parser.parse_args()
    quick, folder = options.quick, options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    console, cores, started = Console(width=max(WIDTH, Console().width)), count_cores(), time.perf_counter()

    machine = describe_machine()
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()), highlight=False)
    console.print(
        "rows/s: medians of interleaved repeats; spread: (slowest - fastest) / median; / contrib. and / predict: "
        "rows/s over the library's own on as many threads\n",
        highlight=False,
    )
    comparisons = []
    with ThreadPoolExecutor(cores) as threads:
        for case in CASES[:1] if quick else CASES:
            comparisons.append(compare(case, folder, 10_000 if quick else 50_000, threads, cores, 3 if quick else 5))
            console.print(show_comparison(comparisons[-1]))
    model = trained(CASES[0], folder)
    runs = race_runs(model, 50_000 if quick else 400_000, 2_000 if quick else 10_000, cores, 1 if quick else 3)
    console.print(show_runs(runs))
    memory = measure_memory(model, (20_000, 200_000) if quick else (200_000, 2_000_000))
    console.print(show_memory(memory))
    first = measure_first(model, 1 if quick else 3)
    console.print(show_first(first))

    results = {
        "machine": machine,
        "quick": quick,
        "comparisons": [asdict(comparison) for comparison in comparisons],
        "runs": [asdict(speed) for speed in runs],
        "memory": [asdict(entry) for entry in memory],
        "first_attribution": asdict(first),
    }
    (folder / "results.json").write_text(json.dumps(results, indent=1))
    console.print(f"{folder}/results.json written; {time.perf_counter() - started:.0f} s in all", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
