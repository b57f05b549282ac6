"""``python -I tests/wheel.py`` from an environment in which the wheel alone is installed: what is shipped, and a run of it from end to end."""

import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd

import leafledger

PACKAGES = {"leafledger", "kernels", "pipeline", "flows"}
N_ROWS = 200


def check_files() -> None:
    """Every package is there with its types, from where it was installed, and nothing else is."""
    shipped = {path.as_posix() for path in distribution("leafledger").files or ()}
    modules = {name for name in shipped if ".dist-info/" not in name and "__pycache__" not in name and not name.startswith("..")}
    expected = {f"{package}/{name}" for package in PACKAGES for name in ("__init__.py", "py.typed")}
    assert not expected - modules, f"missing from the wheel: {sorted(expected - modules)}"
    assert {name.split("/")[0] for name in modules} == PACKAGES, f"in the wheel: {sorted({name.split('/')[0] for name in modules})}"
    assert Path(leafledger.__file__).is_relative_to(sys.prefix), f"imported from {leafledger.__file__}, not from {sys.prefix}"
    print(f"{len(modules)} files shipped:", *sorted(modules), sep="\n  ")


def command(*arguments: str) -> str:
    """What ``leafledger`` prints, installed beside this Python."""
    run = subprocess.run([Path(sys.executable).with_name("leafledger"), *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"leafledger {' '.join(arguments)}: exit {run.returncode}: {run.stderr}"
    return run.stdout


def check_run(folder: Path) -> None:
    """A model and its rows, explained and checked by the command."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=["distance", "delay", "hour"])
    target = rows["distance"] + rows["delay"] * (rows["hour"] > 0)
    lightgbm.train({"verbosity": -1, "num_leaves": 7}, lightgbm.Dataset(rows, target), 5).save_model(folder / "model.txt")
    rows.to_parquet(folder / "rows.parquet")
    command("explain", f"{folder}/model.txt", f"{folder}/rows.parquet", "--out", f"{folder}/run")
    print(command("report", f"{folder}/run", "--scheduler", "serial"))
    print(command("check", f"{folder}/run", "--deep"))


def main() -> None:
    """Check files, version and a run."""
    check_files()
    version = distribution("leafledger").version
    printed = command("--version").strip()
    assert printed == version == leafledger.__version__, f"--version prints {printed}, __version__ is {leafledger.__version__}, expected {version}"
    with tempfile.TemporaryDirectory() as folder:
        check_run(Path(folder))


if __name__ == "__main__":
    main()
