"""Leafledger: both nights by its command, as every night, the first with nothing compiled yet; drift between them, and the report."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.beside.night import BEFORE, FEATURES, MODEL, NIGHT
from tests.beside.steps import Steps

DRIFTED = 4  # exit code


def main(folder, out):
    """Explain, compare, report."""
    import pandas as pd

    folder, out, steps = Path(folder), Path(out), Steps()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(out / "compiled")}

    def run(*arguments, allowed=(0,)):
        done = subprocess.run([sys.executable, "-I", "-m", "leafledger", *map(str, arguments), "--quiet"], env=environment, check=False)
        assert done.returncode in allowed, (arguments, done.returncode)

    options = ["--values"]
    with steps.step("first night"):
        run("explain", folder / MODEL, folder / BEFORE, "--out", out / "before", *options)
    with steps.step("explain"):
        run("explain", folder / MODEL, folder / NIGHT, "--out", out / "run", *options)
    with steps.step("one process"):
        run("explain", folder / MODEL, folder / NIGHT, "--out", out / "again", *options, "--scheduler", "serial")
    with steps.step("drift"):
        run("drift", out / "run", "--against", out / "before", allowed=(0, DRIFTED))
    with steps.step("report"):
        run("report", out / "run", "--against", out / "before")
    (out / "run" / "report").rename(out / "report")
    found = pd.read_parquet(out / "run" / "attributions")
    base = json.loads((out / "run" / "manifest.json").read_text())["base"][0]
    phi = found[[f"phi_{name}" for name in FEATURES]].set_axis(FEATURES, axis=1)
    phi.assign(base=base, prediction=found["margin"]).to_parquet(out / "phi.parquet")
    steps.save(out, ["leafledger"])


if __name__ == "__main__":
    main(*sys.argv[1:])
