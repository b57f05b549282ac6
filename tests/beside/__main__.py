"""``python -m tests.beside [--folder FOLDER] [--python PYTHON] [--only TOOL...]``: explain one night of 50,000 flights by every tool, write
``docs/beside.json``.

Every tool is installed by pip into an environment of its own below the folder, 8 GB in all; shap and xgboost need Python 3.12, H2O a Java runtime
(``apt-get install default-jre-headless``), pages are opened in Chromium (``apt-get install chromium``). The flights come with the demo's packages.
"""

import argparse
import json
import os
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from docs.generated import BESIDE as FILE
from tests.bench.machine import describe_machine
from tests.beside.environments import ROOT, TOOLS, Tool, make_environment
from tests.beside.night import DEPTH, FEATURES, N_ROWS, N_TREES, make_night
from tests.beside.pages import look_at


def _read(path: Path) -> tuple[np.ndarray, pd.DataFrame]:
    found = pd.read_parquet(path)
    return found[FEATURES].to_numpy(np.float64), found


def compare_values(path: Path, reference: Path | None) -> dict[str, float | int | None] | None:
    """How far values are from adding up to the tool's own predictions, and from the reference's, as fractions of the largest; None without any."""
    if not path.exists():
        return None
    values, found = _read(path)
    predictions = found["prediction"].to_numpy(np.float64)
    off = np.abs(values.sum(axis=1) + found["base"].to_numpy(np.float64) - predictions)
    theirs = None if reference is None else _read(reference)[0]
    apart = None if theirs is None else float(np.abs(values - theirs).max() / np.abs(theirs).max())
    return {"rows": len(found), "residual": float(off.max() / np.abs(predictions).max()), "apart": apart}


def measure(tool: Tool, folder: Path, python: str) -> dict[str, Any]:
    """Let a tool do the night, in a process of its own."""
    out = folder / tool.name / "out"
    shutil.rmtree(out, ignore_errors=True)
    environment = make_environment(tool, folder / tool.name / "environment", python)
    out.mkdir(parents=True)
    # Started in the folder above this package, whose name is not "tests": other distributions bring packages called so.
    variables = {**os.environ, "PYTHONPATH": "", "PYTHONWARNINGS": "ignore"}
    subprocess.run([environment.python, "-m", f"beside.{tool.module}", folder / "night", out], check=True, cwd=ROOT / "tests", env=variables)
    said = json.loads((out / "steps.json").read_text())
    reference = folder / TOOLS[0].name / "out" / "phi.parquet" if tool.reads_models and tool is not TOOLS[0] else None
    values, report = compare_values(out / "phi.parquet", reference), asdict(look_at(out / "report"))
    return {"name": tool.name, "packages": environment.n_packages, "installed_bytes": environment.n_bytes, **said, "values": values, "report": report}


def main() -> None:
    """Measure the tools that are asked for, and write what was found in the place of what was written of them before."""
    parser = argparse.ArgumentParser(prog="python -m tests.beside", description="A night by every tool.")
    parser.add_argument("--folder", type=Path, default=Path("build/beside"))
    parser.add_argument("--python", default="python3.12", help="of the tools' environments")
    parser.add_argument("--only", nargs="+", choices=[tool.name for tool in TOOLS], metavar="TOOL", help="Leafledger first, if it is not there yet")
    options = parser.parse_args()
    folder = options.folder.absolute()
    if not (folder / "night").exists():
        make_night(folder / "night")
    kept = {each["name"]: each for each in json.loads(FILE.read_text())["tools"]} if FILE.exists() else {}
    for tool in TOOLS:
        if options.only is None or tool.name in options.only:
            kept[tool.name] = measure(tool, folder, options.python)
            print(json.dumps(kept[tool.name], indent=1), flush=True)
    night = {"rows": N_ROWS, "features": len(FEATURES), "trees": N_TREES, "depth": DEPTH}
    machine = {name: value for name, value in describe_machine(()).items() if name in ("processor", "cores")}
    said = {"night": night, "machine": machine, "tools": [kept[tool.name] for tool in TOOLS if tool.name in kept]}
    FILE.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n")
    print(f"{FILE} written")


if __name__ == "__main__":
    main()
