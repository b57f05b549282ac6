"""The house rules as programs: layers, one place for Numba's options, no file that has outgrown its noun, tests that mirror the packages."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("kernels", "pipeline", "flows", "leafledger")
MIRRORED = ("kernels", "pipeline", "flows")
UNTESTED = {"pipeline/runs/progress.py": "types, and a function that does nothing"}  # modules without tests of their own, and why
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
VENDORS = {"xgboost", "lightgbm", "catboost", "mlflow", "deltalake", "pyiceberg"}
DASK = {"dask", "distributed"}
ALLOWED = {  # first names that a package may import beyond the standard library
    "kernels": {"numpy", "scipy", "numba", "llvmlite"},
    "pipeline": {"kernels", "numpy", "pyarrow", "fsspec", "psutil", "cyclopts", "rich", "pandas", "shap", "yaml", "jinja2", "markupsafe"}
    | {"prometheus_client", "cryptography", "openlineage", "azure"}
    | DASK
    | VENDORS,
    "flows": {"pipeline", "prefect", "httpx", "pyarrow", "cyclopts", "rich", "yaml"},  # httpx, whose errors Prefect's client raises
    "leafledger": {"kernels", "pipeline"},
}
# What a part of a package may import of it; single files of the package by their own names.
GROUND = ("_jit", "lanes", "narrowing", "ordering")
DECLARED = (*GROUND, "buffers", "game_values", "method", "parameters", "reductions", "summaries", "trees", "tuning")
ARROWS = {
    "kernels": {
        **dict.fromkeys(("_jit", "parameters", "merge_tree", "ordering"), ()),
        **dict.fromkeys(("game_values", "narrowing"), ("parameters",)),
        "lanes": ("_jit",),
        "labels": ("parameters",),
        "reductions": ("_jit", "merge_tree", "ordering"),
        "groups": ("_jit", "labels", "reductions"),
        "cells": ("_jit",),
        "distributions": ("_jit", "cells", "reductions"),
        "trees": GROUND,
        "buffers": (*GROUND, "labels", "trees"),
        "summaries": ("buffers", "groups", "labels", "reductions"),
        "tuning": ("buffers",),
        "method": ("buffers", "game_values", "parameters", "summaries", "trees", "tuning"),
        "path_dependent": (*GROUND, "game_values", "trees"),
        "marginal": (*GROUND, "game_values", "method", "parameters", "trees"),
        "semivalues": (*DECLARED, "path_dependent", "marginal"),
        "r2": (*DECLARED, "groups", "labels"),
        "ranking": (*DECLARED, "path_dependent", "marginal", "semivalues"),
        "prediction_gap": (*DECLARED, "path_dependent", "semivalues", "ranking"),
    },
    "pipeline": {
        "display": (),
        "errors": ("display",),
        "records": (),
        "iterations": ("errors",),
        "stores": ("errors",),
        "models": ("errors", "display", "records", "iterations", "stores"),
        "tables": ("errors", "stores"),
        "dataset": ("errors", "display", "records", "stores", "models", "tables"),
        "runs": ("errors", "display", "records", "iterations", "stores", "models", "tables", "dataset"),
        "in_memory": ("errors", "display", "records", "stores", "models", "dataset", "runs"),
        "comparisons": ("errors", "display", "records", "stores", "models", "dataset", "runs"),
        "drift": ("errors", "display", "records", "stores", "models", "dataset", "runs"),
        "report": ("errors", "display", "records", "stores", "models", "dataset", "runs", "in_memory", "drift"),
        "nights": ("errors", "display", "stores", "runs"),
        "command": ("errors", "display", "records", "stores", "models", "dataset", "runs", "in_memory", "comparisons", "drift", "report", "nights"),
    },
}


def imported(path):
    """Absolute imports of a module, wherever they stand: first names, and the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0], node.lineno


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down_the_layers(path):
    """kernels import numpy and numba, pipeline imports kernels, flows import pipeline; Dask and each model library have one place."""
    package = path.relative_to(ROOT).parts[0]
    for name, line in imported(path):
        if name in sys.stdlib_module_names:
            continue
        assert name in ALLOWED[package], f"{path}:{line} imports {name}"
        assert name not in DASK or path.name in {"cluster.py", "workers.py", "patience.py", "dask_frames.py"}, f"{path}:{line} imports {name}"
        assert name not in VENDORS or path.stem.startswith(name), f"{path}:{line} imports {name}"


def imported_parts(path):
    """Parts of its own package that a module imports, and the line."""
    folders = path.relative_to(ROOT).parts[1:]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            inside = [*folders[: len(folders) - node.level], *(node.module or "").split(".")]
            inside = [name for name in inside if name]
            for name in inside[:1] or [alias.name for alias in node.names]:
                yield name, node.lineno


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.relative_to(ROOT).parts[0] in ARROWS], ids=lambda path: str(path.relative_to(ROOT))
)
def test_arrows_go_down_within_a_package(path):
    """A family imports what stands below it in ARROWS, and itself; single files on top of all families may import every one."""
    package, *folders = path.relative_to(ROOT).parts
    arrows, here = ARROWS[package], folders[0].removesuffix(".py")
    assert here in arrows or len(folders) == 1, f"{path}: {here} is no part of {package}"
    for name, line in imported_parts(path):
        assert here not in arrows or name == here or name in arrows[here], f"{path}:{line}: {here} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_open_with_a_sentence_and_stay_small(path):
    """A module says what it holds, and holds at most 400 lines."""
    text = path.read_text()
    assert not text or ast.get_docstring(ast.parse(text)), f"{path} has no docstring"
    assert text.count("\n") <= 400, f"{path} has {text.count(chr(10))} lines"


def test_numba_options_are_set_once():
    """Only ``kernels/_jit.py`` calls ``njit``; a kernel takes its options from there."""
    assert [path.name for path in MODULES if "njit" in path.read_text()] == ["_jit.py"]


def test_no_module_asks_which_library_or_method_it_is():
    """Differences end in loaders and in tables of methods."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                names = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
                names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                assert not names & {"library", "method"}, f"{path}:{node.lineno}"


def test_this_distribution_alone_owns_its_packages():
    """The import names are generic; nothing else installed here may claim them."""
    owners = packages_distributions()
    for name in PACKAGES:
        assert owners.get(name, ["leafledger"]) == ["leafledger"]
        assert Path(find_spec(name).origin).parents[1] == Path(find_spec("kernels").origin).parents[1]


def names_in(lines):
    """Names of the distributions that requirements ask for."""
    return {re.match(r"[\w.-]+", line).group().lower() for line in lines if line[:1].isalnum()}


def versions_in(lines):
    """What is pinned, wherever it is installed."""
    return {line.partition(";")[0].strip() for line in lines}


def test_workers_get_the_versions_of_everybody_else():
    """What workers need is pinned as it is elsewhere, and every dependency is either among it or listed as not needed."""
    pinned, workers, never = (
        (ROOT / "infra" / name).read_text().splitlines() for name in ("constraints.txt", "worker-requirements.txt", "not-on-workers.txt")
    )
    assert versions_in(workers) <= versions_in(pinned)
    asked = names_in(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    assert asked == names_in(never) | (asked & names_in(workers))
    assert not names_in(never) & names_in(workers)


TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_imported_from_tests(path):
    """What several tests share stands in a module that holds no tests: whoever moves a test breaks no other."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.level or node.module.split(".")[0] == "tests"):
            names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        for name in names:
            assert not any(part.startswith("test_") for part in name.split(".")), f"{path}:{node.lineno} imports {name}"


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.relative_to(ROOT).parts[0] in MIRRORED and path.name != "__init__.py"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_module_has_its_tests(path):
    """They stand in the same place below ``tests``, and there are some."""
    name = str(path.relative_to(ROOT))
    mirror = ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.stem.removeprefix('_')}.py")
    assert mirror.exists() or name in UNTESTED, f"{name} has no {mirror.relative_to(ROOT)}"
    assert not (mirror.exists() and name in UNTESTED), f"{name} has {mirror.relative_to(ROOT)}, UNTESTED says otherwise"
    if mirror.exists():
        found = [node.name for node in ast.walk(ast.parse(mirror.read_text())) if isinstance(node, ast.FunctionDef)]
        assert any(function.startswith("test_") for function in found), f"{mirror} holds no test"
