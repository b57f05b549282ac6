"""``python -m tests.worker .venv-worker``: an environment of ``leafledger[s3]``, a worker's, explains, checks and compares like this one."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import pandas as pd
import skops.io
import xgboost
from sklearn.ensemble import RandomForestRegressor

from leafledger import explain

EXPLAIN_AND_CHECK = """
import sys, leafledger
rows, *runs = sys.argv[1:]
for model, out in zip(runs[::2], runs[1::2]):
    leafledger.explain(model, rows, out, scheduler="serial")
    assert leafledger.check_run(out, deep=True).sound, out
"""
ABSENT = {"catboost", "lightgbm", "mlflow-skinny", "prefect", "scikit-learn", "skops", "xgboost"}
N_ROWS = 400


def write_models(folder: Path) -> Iterator[Path]:
    """A model of every library and format, trained on the same rows, which are written beside them."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(N_ROWS, 4)), columns=["distance", "delay", "hour", "wind"])
    target = rows["distance"] + rows["delay"] * (rows["hour"] > 0)
    rows.to_parquet(folder / "rows.parquet")
    booster = xgboost.train({"max_depth": 3}, xgboost.DMatrix(rows, target), 5)
    symmetric = catboost.CatBoostRegressor(iterations=5, depth=3, verbose=False, allow_writing_files=False).fit(rows, target)
    for name in ("model.ubj", "model.json"):
        booster.save_model(folder / name)
        yield folder / name
    lightgbm.train({"verbosity": -1, "num_leaves": 7}, lightgbm.Dataset(rows, target), 5).save_model(folder / "model.txt")
    yield folder / "model.txt"
    symmetric.save_model(folder / "model.cbm")
    yield folder / "model.cbm"
    skops.io.dump(RandomForestRegressor(5, max_depth=3, random_state=0).fit(rows, target), folder / "model.skops")
    yield folder / "model.skops"


def run(python: Path, *arguments: object, code: int = 0) -> str:
    """What ``python -m leafledger`` prints, its errors last, run away from this checkout."""
    command = [str(python), "-m", "leafledger", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())
    assert done.returncode == code, f"{' '.join(command)}: exit {done.returncode}, expected {code}: {done.stderr}"
    return done.stdout + done.stderr


def published(folder: Path) -> dict[str, bytes]:
    """The bytes of every table that a run published."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


@contextmanager
def cluster(worker: Path) -> Iterator[str]:
    """A scheduler and a worker of that environment, and their address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    host, _, port = address.partition(":")
    dask, quiet = [str(worker), "-m", "dask"], {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    parts = (["scheduler", "--host", host, "--port", port, "--no-dashboard"], ["worker", f"tcp://{address}", "--nthreads", "1", "--no-dashboard"])
    running = [subprocess.Popen([*dask, *part], cwd=tempfile.gettempdir(), **quiet) for part in parts]
    try:
        yield f"tcp://{address}"
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def check_same(worker: Path, folder: Path) -> None:
    """Explain and check with the files of every library, one of them by the command: the same bytes as here, and on a cluster of such workers."""
    rows, models = folder / "rows.parquet", list(write_models(folder))
    got = {model: folder / f"there-{model.name}" for model in models}
    run(worker, "explain", models[0], rows, "--out", got[models[0]], "--scheduler", "serial")
    run(worker, "check", got[models[0]], "--deep")
    others = [path for model in models[1:] for path in (model, got[model])]
    subprocess.run([worker, "-c", EXPLAIN_AND_CHECK, rows, *others], check=True, cwd=tempfile.gettempdir())
    for model in models:
        expected = folder / f"here-{model.name}"
        explain(model, rows, expected, scheduler="serial")
        assert published(expected), f"{expected} holds no table"
        assert published(got[model]) == published(expected), f"{got[model]} differs from {expected}"
        print(f"{model.name}: the same bytes, checked")
    with cluster(worker) as address:
        explain(models[0], rows, folder / "cluster", scheduler=address)
    assert published(folder / "cluster") == published(folder / f"here-{models[0].name}"), "the cluster's run differs"
    print("a cluster of that environment, its client of this one: the same bytes")
    print(run(worker, "compare", models[0], rows, "--methods", "shapley,banzhaf", "--out", folder / "compared.parquet", "--quiet"))


def list_packages(python: Path) -> tuple[set[str], int]:
    """Names of the distributions of an environment, and their bytes, but for what was compiled."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    names = {found.metadata["Name"].lower().replace("_", "-") for found in distributions(path=[str(site)])}
    return names, sum(path.stat().st_size for path in site.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def main() -> None:
    """Check packages and results."""
    worker = Path(sys.argv[1]).absolute() / "bin" / "python"
    names, size = list_packages(worker)
    assert not names & ABSENT, f"{worker}: {sorted(names & ABSENT)} are installed"
    print(f"{len(names)} packages, {size / 1e6:,.0f} MB")
    with tempfile.TemporaryDirectory() as folder:
        check_same(worker, Path(folder))


if __name__ == "__main__":
    main()
