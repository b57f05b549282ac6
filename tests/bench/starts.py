"""Starts of the command, whole processes: their processor time, which other work on the machine hardly changes."""

import resource
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

from tests.bench.runs import write_rows

IMPORTS, VERSION, AGAIN, EXPLAINED = "import numpy, pyarrow.parquet", "--version", "finished run again", "25,000 rows explained"
N_ROWS = 25_000
COMMAND = ("-m", "leafledger")


def _processor_seconds(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_starts(model: Path, repeats: int) -> dict[str, float]:
    """Seconds of each start, the fewest of several, after one that is not counted: it makes the run, and compiles what is not there."""
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        data, numbers = write_rows(Path(folder, "data"), N_ROWS, 1), count()

        def explain(out: str) -> float:
            return _processor_seconds(*COMMAND, "explain", str(model), str(data), "--out", str(Path(folder, out)), "--scheduler", "serial")

        starts = {
            IMPORTS: lambda: _processor_seconds("-c", "import numpy, pyarrow, pyarrow.parquet"),
            VERSION: lambda: _processor_seconds(*COMMAND, "--version"),
            AGAIN: lambda: explain("finished"),
            EXPLAINED: lambda: explain(f"new-{next(numbers)}"),
        }
        for start in starts.values():
            start()
        return {name: min(start() for _ in range(repeats)) for name, start in starts.items()}
