"""The house rules as programs: layers, one place for Numba's options, no file that has outgrown its noun, tests that mirror the packages."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("kernels", "pipeline", "flows", "leafledger")
MIRRORED = ("kernels", "pipeline", "flows")
UNTESTED = {"pipeline/progress.py": "types, and a function that does nothing"}  # modules without tests of their own, and why
TESTED_WITH = {  # modules whose tests stand beside those of another in the same folder, or in the same place one folder up
    "flows/night_flags.py": "test_deployment.py",
    "flows/work_pool.py": "test_deploy.py",
    "kernels/cuda/decorator.py": "test_walk.py",
    "kernels/jit/instructions.py": "test_lanes.py",
    "kernels/jit/notices.py": "test_code_files.py",
    "kernels/jit/widths.py": "test_lanes.py",
    "pipeline/arguments/choices.py": "../runs/job/test_options.py",
    "pipeline/changes/find.py": "../in_memory/changes/test_nearest_changes.py",
    "pipeline/command/app.py": "test_cli.py",
    "pipeline/finished/row_data.py": "test_row_view.py",
    "pipeline/finished/row_json.py": "test_row_view.py",
    "pipeline/finished/row_page.py": "test_row_html.py",
    "pipeline/finished/row_text.py": "test_row_view.py",
    "pipeline/runs/publish/kept_run.py": "../../history/test_rollback.py",
    "pipeline/runs/publish/same_run.py": "../../history/test_rollback.py",
    "pipeline/runs/publish/settle.py": "../../history/test_rollback.py",
    "pipeline/serving/told_reasons.py": "test_recipe.py",
    "pipeline/stores/dialects/dialect.py": "../test_contract.py",
    "pipeline/stores/dialects/google.py": "test_clouds.py",
    "pipeline/stores/dialects/plain.py": "../test_contract.py",
    "pipeline/stores/dialects/s3.py": "../test_commit.py",
    "pipeline/stores/dialects/web.py": "../test_parquet_files.py",
    "pipeline/stores/store.py": "test_contract.py",
    "pipeline/tables/lakehouse.py": "test_writing.py",
}
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
VENDORS = {"xgboost", "lightgbm", "catboost", "mlflow", "deltalake", "pyiceberg", "pyspark", "duckdb"}
DASK = {"dask", "distributed"}
ALLOWED = {  # first names that a package may import beyond the standard library; its own kind below, by absolute names
    "kernels": {"numpy", "scipy", "numba", "llvmlite"},
    "pipeline": {"numpy", "pyarrow", "fsspec", "psutil", "cyclopts", "rich", "cairosvg", "pandas", "polars", "shap", "yaml", "jinja2", "markupsafe"}
    | {"prometheus_client", "cryptography", "openlineage", "azure"}
    | DASK
    | VENDORS,
    "flows": {"prefect", "httpx", "pyarrow", "cyclopts", "rich", "yaml"},  # httpx, whose errors Prefect's client raises
    "leafledger": set(),
}
BELOW = {  # what each may import of this distribution
    "kernels": (),
    "pipeline": ("leafledger.kernels",),
    "flows": ("leafledger.pipeline"),
    "leafledger": ("leafledger.kernels", "leafledger.pipeline", "leafledger.duckdb", "leafledger.mlflow", "leafledger.spark"),
}
DASK_ROOMS = ("pipeline/cluster/", "pipeline/runs/execute/dask.py", "pipeline/runs/forecast/forecast.py", "pipeline/in_memory/rows/dask_frames.py")
MOST_FILES = 14  # in a folder
# What a part of a package may import of it, from the ground up: what stands in an earlier line, and itself.
FLOORS = {
    "kernels": (
        ("errors", "jit"),
        ("arrays", "game_values"),
        ("trees", "quotients", "set_indices"),
        ("changes", "path_dependent", "slices"),
        ("reductions", "compiled"),
        ("method", "distributions"),
        ("marginal", "r2"),
        ("weighted",),
        ("semivalues", "effects"),
        ("batch", "cuda", "ranking"),
        ("prediction_gap", "prepare"),
        ("comparison", "methods"),
    ),
    "pipeline": (
        ("display", "json_records", "progress"),
        ("errors",),
        ("extras",),
        ("stores",),
        ("arguments", "tables"),
        ("cluster", "models"),
        ("dataset",),
        ("methods",),
        ("changes",),
        ("runs",),
        ("in_memory", "comparisons", "drift", "history"),
        ("explain", "finished", "effects", "serving"),
        ("report", "forgetting"),
        ("plots",),
        ("command",),
    ),
    "pipeline/runs": (
        ("formats", "job", "lookup"),
        ("columns",),
        ("records",),
        ("advisories", "publish"),
        ("plan",),
        ("execute", "monitor"),
        ("check", "stages"),
        ("explain", "forecast"),
    ),
    "pipeline/models": (
        ("formats", "objectives"),
        ("model", "mlflow"),
        ("catboost", "lightgbm", "xgboost", "row_output", "source", "unsupported_formats"),
        ("portable_format", "selection"),
        ("sklearn",),
    ),
    "pipeline/dataset": (("columns",), ("files",)),
    "pipeline/drift": (("measure",), ("compare",), ("drift",), ("verdict",), ("against",)),
    "pipeline/report": (
        ("counts",),
        ("figures",),
        ("page", "grids", "vocabulary"),
        ("changes", "losses", "words", "glossary", "told"),
        ("quality", "predictions", "overview"),
        ("contents",),
        ("report",),
    ),
    "pipeline/in_memory": (("rows", "pictures"), ("changes", "explain", "inspect"), ("rankings",)),
    "pipeline/command": (("app",), ("terminal",), ("commands",), ("cli",)),
}


@cache
def nodes_of(path):
    """All nodes of a file, which several tests walk."""
    return [*ast.walk(ast.parse(path.read_text()))]


def imported(path):
    """Absolute imports of a module, wherever they stand, and the line."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module, node.lineno


@pytest.mark.slow
def test_imports_go_down_the_layers():
    """kernels import numpy and numba, pipeline imports kernels, flows import pipeline; Dask and each model library have one place."""
    for path in MODULES:
        name, package = str(path.relative_to(ROOT)), path.relative_to(ROOT).parts[0]
        for module, line in imported(path):
            first = module.split(".")[0]
            if first in sys.stdlib_module_names:
                continue
            assert first in ALLOWED[package] or module.startswith(BELOW[package]), f"{path}:{line} imports {module}"
            assert first not in DASK or name.startswith(DASK_ROOMS), f"{path}:{line} imports {module}"
            assert first not in VENDORS or first in path.parent.parts or path.stem.startswith(first), f"{path}:{line} imports {module}"


def imported_parts(path, package):
    """Parts of a package that a module in it imports, and the line."""
    folders = path.relative_to(ROOT).parts[:-1]
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            inside = "/".join([*folders[: len(folders) - node.level + 1], *(node.module or "").split(".")]).rstrip("/")
            if f"{inside}/".startswith(f"{package}/"):
                rest = inside.removeprefix(package).strip("/").split("/")
                for name in rest[:1] if rest[0] else [alias.name for alias in node.names]:
                    yield name, node.lineno


@pytest.mark.parametrize("package", FLOORS)
def test_arrows_go_down_within_a_package(package):
    """A part imports what stands on a lower floor, and itself; on every floor stands something that is there."""
    floor = {part: number for number, parts in enumerate(FLOORS[package]) for part in parts}
    for part in floor:
        assert (ROOT / package / part).is_dir() or (ROOT / package / f"{part}.py").exists(), f"{package} has no {part}"
    for path in sorted((ROOT / package).rglob("*.py")):
        here = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        for name, line in imported_parts(path, package):
            if here in floor and name in floor and name != here:
                assert floor[name] < floor[here], f"{path}:{line}: {here} imports {name}"


def test_every_part_stands_on_a_floor():
    """Whatever is in a package that has floors; its face, which hands names on, may import every part."""
    for package, floors in FLOORS.items():
        parts = {path.stem for path in (ROOT / package).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
        assert parts - {"__init__"} == {part for floor in floors for part in floor}, package


@pytest.mark.slow
def test_no_module_imports_in_a_circle():
    """What a module imports, straight or through others, never imports it; what only type checkers read counts as well."""
    arrows = {path: set(modules_of(path)) for path in MODULES}
    done, open_ones = set(), []

    def enter(path):
        assert path not in open_ones, " -> ".join(str(each.relative_to(ROOT)) for each in [*open_ones[open_ones.index(path) :], path])
        if path not in done:
            open_ones.append(path)
            for other in sorted(arrows.get(path, ())):
                enter(other)
            done.add(open_ones.pop())

    for path in MODULES:
        if path.parts[-2:] != ("leafledger", "__init__.py"):  # everything is imported from there, on first use
            enter(path)


def modules_of(path):
    """Files of this distribution that a module imports; not its folder's face, which hands on names of files that are among them."""
    folders = path.relative_to(ROOT).parts[:-1]
    for node in nodes_of(path):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = ROOT.joinpath(*folders[: len(folders) - node.level + 1], *(node.module or "").split("."))
        elif (node.module or "").startswith("leafledger."):
            base = ROOT.joinpath(*node.module.split(".")[1:])
        else:
            continue
        for alias in node.names:
            for found in (base / f"{alias.name}.py", base.with_suffix(".py"), base / "__init__.py"):
                if found.exists() and found != path:
                    yield found
                    break


@pytest.mark.parametrize("package", ["kernels", "pipeline", "flows"])
def test_folders_stay_small(package):
    """A reader finds a file by its name among a few."""
    for folder in sorted(path for path in [ROOT / package, *(ROOT / package).rglob("*")] if path.is_dir()):
        files = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= MOST_FILES, f"{folder} has {len(files)} files"


@pytest.mark.slow
def test_modules_open_with_a_sentence_and_stay_small():
    """A module says what it holds, and holds at most 400 lines."""
    for path in MODULES:
        text = path.read_text()
        assert not text or ast.get_docstring(nodes_of(path)[0]), f"{path} has no docstring"
        assert text.count("\n") <= 400, f"{path} has {text.count(chr(10))} lines"


def test_numba_options_are_set_once():
    """Only ``kernels/jit/decorator.py`` calls ``njit``; a kernel takes its options from there."""
    assert [path.name for path in MODULES if "njit" in path.read_text()] == ["decorator.py"]


@pytest.mark.slow
def test_no_module_asks_which_library_or_method_it_is():
    """Differences end in loaders and in tables of methods."""
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.Compare):
                names = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
                names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                assert not names & {"library", "method"}, f"{path}:{node.lineno}"


BARE = re.compile(rf"^\s*(?:from|import)\b.*(?<![\w.])(?:{'|'.join(MIRRORED)})\b", re.MULTILINE)  # also in a text, which is no import


@pytest.mark.slow
def test_nothing_is_imported_by_a_bare_name():
    """In a checkout ``kernels`` is found beside ``leafledger.kernels``: whoever imported both would have every class twice."""
    paths = [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "docs").rglob("*.py"))]
    for path in (path for path in paths if BARE.search(path.read_text())):  # parsing a thousand files takes seconds
        for module, line in imported(path):
            assert module.split(".")[0] not in MIRRORED, f"{path}:{line} imports {module}, expected leafledger.{module}"


KIND = re.compile(r"\bis_of\(|\bis_local\(|filesystem\.protocol|scheme == |startswith\(WEB\)|DIALECTS\.get\(")
MOST_KINDS = 6  # lines of stores that tell one kind of store from another


def test_nobody_asks_which_store_it_is():
    """What kinds of stores do differently stands in their dialects; whoever reads or writes calls a store by its interface."""
    asking = [f"{path.relative_to(ROOT)}:{n}" for path in MODULES for n, line in enumerate(path.read_text().splitlines(), 1) if KIND.search(line)]
    assert [place for place in asking if not place.startswith("pipeline/stores/")] == []
    assert len(asking) <= MOST_KINDS, asking


def names_in(lines):
    """Names of the distributions that requirements ask for."""
    return {re.match(r"[\w.-]+", line).group().lower() for line in lines if line[:1].isalnum()}


def test_every_dependency_is_pinned():
    """Of the package, of every extra and of every group, so that all environments have the same versions."""
    pinned, project = (ROOT / "infra" / "constraints.txt").read_text().splitlines(), tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [line for lines in project["dependency-groups"].values() for line in lines if isinstance(line, str)]
    extras = [line for lines in project["project"]["optional-dependencies"].values() for line in lines]
    asked = names_in([*project["project"]["dependencies"], *extras, *groups]) - {project["project"]["name"]}
    assert asked <= names_in(pinned)


TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))
FROM_TESTS = re.compile(r"^\s*(?:from|import)\b(?:[^(\n]*\([^)]*|.*)\btest_", re.MULTILINE)


@pytest.mark.slow
def test_nothing_is_imported_from_tests():
    """What several tests share stands in a module that holds no tests: whoever moves a test breaks no other."""
    for path in (path for path in TEST_FILES if FROM_TESTS.search(path.read_text())):
        for node in nodes_of(path):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and (node.level or node.module.split(".")[0] == "tests"):
                names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
            for name in names:
                assert not any(part.startswith("test_") for part in name.split(".")), f"{path}:{node.lineno} imports {name}"


TEST = re.compile(r"^def test_", re.MULTILINE)


def test_every_module_has_its_tests():
    """They stand in the same place below ``tests``, or where TESTED_WITH says, and there are some."""
    for path in [path for path in MODULES if path.relative_to(ROOT).parts[0] in MIRRORED and path.name != "__init__.py"]:
        name = str(path.relative_to(ROOT))
        mirror = ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.stem.removeprefix('_')}.py")
        assert not (mirror.exists() and name in (UNTESTED | TESTED_WITH)), f"{name} has {mirror.relative_to(ROOT)}"
        tests = mirror.parent / TESTED_WITH[name] if name in TESTED_WITH else mirror
        assert tests.exists() or name in UNTESTED, f"{name} has no {tests.relative_to(ROOT)}"
        if tests.exists():
            assert TEST.search(tests.read_text()), f"{tests} holds no test"
