"""Rows of the tables about forecasts: how far they were from their runs, and what the runs make of many more rows."""

from collections.abc import Callable, Sequence
from typing import Any

from leafledger.pipeline.methods.worker_memory import ITEM_ROWS
from leafledger.pipeline.runs.forecast.forecast import last_end

FAR, FAR_WORKERS = 10**9, (2, 100, 1000)  # rows, and workers, that nobody measured
OFF = {  # what a forecast says of a run
    "seconds": "time",
    "cpu_seconds": "CPU hours",
    "memory": "memory",
    "read_bytes": "read",
    "written_bytes": "written",
    "objects": "objects",
}
COMPARED = ("model and method", "rows", "workers", "forecast", "run", *OFF.values(), "measured on rows")
REACHED = ("model and method", "a row", "hours of workers", *(f"on {n:,} workers" for n in FAR_WORKERS), "read", "written", "parts")


NEAR = 0.2  # of what a run takes, by which its forecast may be off


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f} %"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def count_near(found: Sequence[dict[str, Any]]) -> str:
    """Of everything that is foreseen, how many forecasts are near what their runs took."""
    near = {name: sum(abs(each["forecast"][name] / each["run"][name] - 1) <= NEAR for each in found) for name in OFF}
    said = ", ".join(f"{what} {near[name]} of {len(found)}" for name, what in OFF.items())
    return f"Within {NEAR:.0%} of the run: {said}."


def compare_runs(found: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Rows of COMPARED: a forecast and its run each."""
    rows = []
    for each in found:
        foreseen, run = each["forecast"], each["run"]
        said = (f"{foreseen['seconds']:.1f} s", f"{run['seconds']:.1f} s", *(_percent(foreseen[name] / run[name]) for name in OFF))
        rows.append((f"{each['model']}: {each['method']}", f"{each['n_rows']:,}", f"{each['workers']}", *said, f"{foreseen['tried_rows']:,}"))
    return rows


def reach(found: Sequence[dict[str, Any]], size: Callable[[float], str]) -> list[tuple[str, ...]]:
    """Rows of REACHED, by the first runs on the most workers: of each row as much as there, in whole items, after what comes before them."""
    most, rows = max(each["workers"] for each in found), []
    first = {(each["model"], each["method"]): each for each in reversed(found) if each["workers"] == most}
    for each in reversed(first.values()):
        foreseen, run, n_rows = each["forecast"], each["run"], each["n_rows"]
        before = foreseen["seconds"] - foreseen["stages"]["explaining"]
        row = most * (run["seconds"] - before) / n_rows  # seconds of a worker
        items = [row * ITEM_ROWS] * -(-FAR // ITEM_ROWS)
        times = (_hours(before + last_end(items, n)) for n in FAR_WORKERS)
        moved = (size(FAR / n_rows * run[name]) for name in ("read_bytes", "written_bytes"))
        rows.append((f"{each['model']}: {each['method']}", f"{1e6 * row:.2f} µs", f"{FAR * row / 3600:.1f}", *times, *moved, f"{len(items):,}"))
    return rows
