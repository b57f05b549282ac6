"""What extras bring, as the project's own metadata have it, and the one line where it is not installed."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.extras import EXTRAS, needing

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BROUGHT = {name: [Requirement(line) for line in lines] for name, lines in PROJECT["optional-dependencies"].items()}
# That are not called as their modules.
DISTRIBUTIONS = {"mlflow": "mlflow-skinny", "openlineage": "openlineage-python", "numba_cuda": "numba-cuda", "prometheus_client": "prometheus-client"}
# What no extra has to bring where it is imported: whoever has an object of a library, or a store's answer, has the library.
THERE = {"xgboost", "azure"}
GIVEN = {"cairosvg", "duckdb", "polars", "pyspark"}  # of people who hand over their frames and connections, or want a picture in pixels


@pytest.mark.parametrize("module", EXTRAS)
def test_an_extra_brings_what_is_said_of_it(module):
    """And the distribution alone does not."""
    assert DISTRIBUTIONS.get(module, module) in [each.name for each in BROUGHT[EXTRAS[module]]]
    assert DISTRIBUTIONS.get(module, module) not in [Requirement(line).name for line in PROJECT["dependencies"]]


def test_all_is_every_extra():
    """So that whoever wants everything gets it, but for what needs a card, and holds NumPy back."""
    (everything,) = BROUGHT["all"]
    assert everything.name == PROJECT["name"]
    assert everything.extras == set(BROUGHT) - {"all", "cuda"}


def imported():
    """Names that the package imports beyond the standard library."""
    for package in ("kernels", "pipeline", "flows", "leafledger"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
                yield from (name.partition(".")[0] for name in names)


@pytest.mark.slow
def test_what_is_imported_is_a_dependency_or_an_extra():
    """Nothing is there by chance, as what a dependency happens to bring."""
    modules = set(imported()) - sys.stdlib_module_names - {"leafledger"}
    core = {Requirement(line).name for line in PROJECT["dependencies"]} - {"pyyaml"} | {"yaml"}
    of_others = {"markupsafe", "httpx"}  # of jinja2, whose templates are marked by it, and of Prefect, whose client raises its errors
    assert modules - set(EXTRAS) - THERE - GIVEN - of_others == core


def test_what_is_missing_is_one_line():
    """By its name, and the extra's."""
    with pytest.raises(UsageError) as raised, needing("s3://b/a", "s3fs"):
        raise ModuleNotFoundError("No module named 's3fs'", name="s3fs")
    assert str(raised.value) == "s3://b/a needs s3fs: pip install 'leafledger[s3]'"
    with pytest.raises(UsageError) as raised, needing("models:/a/1", "mlflow"):
        raise ModuleNotFoundError("halted", name="mlflow.tracking")
    assert str(raised.value) == "models:/a/1 needs mlflow: pip install 'leafledger[mlflow]'"


@pytest.mark.parametrize("error", [ImportError("libz.so: no such file"), ModuleNotFoundError("No module named 'idna'", name="idna")])
def test_what_does_not_load_is_not_installed_again(error):
    """It is there, and says itself what ails it."""
    with pytest.raises(UsageError) as raised, needing("to_shap", "shap"):
        raise error
    assert str(raised.value) == f"to_shap needs shap, which cannot be imported: {error}"
    assert raised.value.__cause__ is error


@pytest.mark.slow
def test_model_files_need_no_library():
    """Nor does anything else that a run imports: no loader, and no module of runs, imports what an extra brings."""
    absent = sorted({*EXTRAS, "xgboost", "lightgbm", "catboost", "sklearn", "skops"})
    program = (
        f"import sys; sys.modules |= dict.fromkeys({absent})\n"
        "import leafledger, leafledger.pipeline.command.cli, leafledger.flows.deploy, leafledger.flows.serve\n"
        "from leafledger import *"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
