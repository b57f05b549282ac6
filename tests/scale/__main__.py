"""``python -m tests.scale [WORKERSxPARTSxSECONDS[xFEATURES] ...]``: measure, print, fail where parts differ.

Without arguments the four sizes of ``docs/scale.json`` are measured and written there.
Every measurement has a scheduler, workers and a client of its own, in three new processes, one measurement after another.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from docs.generated import SCALE as FILE
from tests.bench.machine import describe_machine
from tests.scale.work import Work

ALL = ("10x1000x0.1", "100x1000x1", "300x1500x10", "1000x5000x10")
SPREAD = 0.2
FEATURES = 200
LIMIT = 3600  # seconds of one measurement


def run_cell(text: str) -> dict[str, Any]:
    """Measure one in a process of its own."""
    workers, parts, seconds, *features = text.split("x")
    asked = {"workers": int(workers), "parts": int(parts), "work": asdict(Work(float(seconds), SPREAD, int(*features or [FEATURES])))}
    done = subprocess.run([sys.executable, "-m", "tests.scale.cell", json.dumps(asked)], stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT)
    return json.loads(done.stdout.splitlines()[-1])


def is_right(found: dict[str, Any]) -> bool:
    """Whether every part came, made once, and they add up to the bits of one process."""
    return found["same"] and not found["missing"] and not found["twice"]


def describe(found: dict[str, Any]) -> str:
    """In a line."""
    cell, n = found["cell"], found["cell"]["parts"]
    return (
        f"{'right' if is_right(found) else 'WRONG'}  {cell['workers']:,} workers, {n:,} parts of {cell['work']['seconds']:g} s: "
        f"{found['seconds']:.1f} s, workers busy {found['busy']:.1%}, "
        f"scheduler {1e3 * found['scheduler_cpu'] / n:.2f} ms a part, {found['scheduler_cpu'] / found['seconds']:.1%} of a core "
        f"({found['quiet']:.1%} without work), {found['scheduler_peak'] / 1e6:,.0f} MB; client {1e3 * found['client_cpu'] / n:.2f} ms a part, "
        f"{found['client_peak'] / 1e6:,.0f} MB; late {found['late_median']:.2f} s, at most {found['late_most']:.2f} s; "
        f"workers {found['farm_cpu'] / found['seconds']:.0%} of a core; {sum(map(len, found['complaints'].values()))} complaints"
    )


def main(cells: Sequence[str]) -> None:
    """Measure all cells in turn."""
    started, all_found = time.perf_counter(), []
    machine = describe_machine(("distributed",))
    for cell in cells or ALL:
        found = run_cell(cell)
        all_found.append(found)
        print(describe(found), flush=True)
        if not cells:
            said = {"date": datetime.now(UTC).date().isoformat(), "seconds": round(time.perf_counter() - started), "machine": machine}
            FILE.write_text(json.dumps({**said, "cells": all_found}, indent=1, ensure_ascii=False) + "\n")
    if not all(map(is_right, all_found)):
        raise SystemExit("some parts are missing, were made twice, or add up to other bits")


if __name__ == "__main__":
    main(sys.argv[1:])
