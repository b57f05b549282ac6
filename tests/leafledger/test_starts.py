"""What is imported, entry by entry: nothing that the entry does not need, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost

ROOT = Path(__file__).parents[2]
VENDORS = {"xgboost", "lightgbm", "catboost", "sklearn", "skops", "shap", "mlflow"}
CLUSTERS = {"dask", "distributed", "prefect", "cryptography"}
STORES = {"s3fs", "boto3", "botocore", "aiohttp", "adlfs", "gcsfs", "deltalake", "pyiceberg"}
PAGES = {"jinja2", "markupsafe", "openlineage", "prometheus_client"}
SELDOM = VENDORS | CLUSTERS | STORES | PAGES
COMPILERS = {"numba", "llvmlite"}
ARRAYS = {"numpy", "scipy", "pandas", "pyarrow", "fsspec"}
TERMINAL = {"cyclopts", "rich", "pygments", "markdown_it"}
COMMAND = "from leafledger.pipeline.command.cli import main; assert main({}) == 0"
EXPLAIN = COMMAND.format("['explain', 'model.json', 'rows.parquet', '--out', {!r}, '--scheduler', 'serial', '--quiet']")
ENTRIES = {  # what is run, and which packages it leaves alone
    "import": ("import leafledger", SELDOM | COMPILERS | ARRAYS | TERMINAL | {"importlib.metadata", "inspect"}),
    "version": (COMMAND.format("['--version']"), SELDOM | COMPILERS | ARRAYS | {"pygments", "markdown_it"}),
    "help": (COMMAND.format("['--help']"), SELDOM | COMPILERS | ARRAYS),
    "methods in the help": (COMMAND.format("['explain', '--help']"), SELDOM | COMPILERS | {"scipy", "pandas", "pyarrow", "fsspec"}),
    "load a model": ("import leafledger; leafledger.load_ensemble('model.json')", SELDOM | COMPILERS | TERMINAL | {"scipy", "pandas"}),
    "finished run again": (EXPLAIN.format("finished"), SELDOM | COMPILERS | {"scipy", "pandas"}),
    "explain": (EXPLAIN.format("new"), SELDOM),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that XGBoost wrote as JSON, rows, and a finished run of them."""
    where = tmp_path_factory.mktemp("starts")
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b", "c"])
    booster = xgboost.train({"max_depth": 2, "nthread": 1}, xgboost.DMatrix(rows, rows["a"] + rows["b"]), num_boost_round=3)
    booster.save_model(where / "model.json")
    rows.to_parquet(where / "rows.parquet")
    _run(EXPLAIN.format("finished"), where)
    return where


def _run(program, folder):
    """Names of the modules that a program leaves imported."""
    said = "\nimport sys; print('\\nmodules:', *sys.modules)"
    environment = {"PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-c", program + said], capture_output=True, text=True, check=True, cwd=folder, env=environment)
    return set(found.stdout.rpartition("modules:")[2].split())


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_imports_no_more_than_it_needs(entry, folder):
    """What takes a second to import is not imported by whoever does without: so starts stay short."""
    program, without = ENTRIES[entry]
    assert _run(program, folder) & without == set()
