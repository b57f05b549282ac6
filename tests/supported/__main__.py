"""``python -m tests.supported FOLDER [NAME ...]``: chosen tests with other Pythons, and with the oldest and the newest packages that this one takes.

Environments are made in FOLDER, 3 GB each; each takes minutes, most of them to compile kernels. ``docs/supported.json`` says what came out.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from docs.generated import SUPPORTED as FILE
from tests.versions.environments import find_python

ROOT = Path(__file__).parents[2]
UV = str(Path(sys.executable).with_name("uv"))
# Kernels, loaders, values in memory, rows found again; a run on Dask, a report, tables, stores on a network, a flow.
QUICK = ("kernels/jit", "kernels/path_dependent/test_quadrature.py", "pipeline/models", "pipeline/in_memory/explain", "pipeline/runs/lookup")
WHOLE = ("runs/test_explain.py", "runs/execute/test_part_columns.py", "report/test_report.py", "tables/test_writing.py", "stores/test_contract.py")
CALLS = (
    ("--quick", *(f"tests/{name}" for name in QUICK)),
    (*(f"tests/pipeline/{name}" for name in WHOLE), "tests/flows/test_explain.py"),
)
TOLD = (
    *("numpy", "scipy", "numba", "pandas", "pyarrow", "dask", "prefect", "xgboost", "lightgbm", "catboost"),
    *("scikit-learn", "fsspec", "s3fs", "deltalake", "pyiceberg", "mlflow-skinny", "shap"),
)


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python, how versions of packages are chosen, and what pytest is told besides."""

    python: str
    packages: str
    options: tuple[str, ...] = ()


OTHERS_WARN = ("-W", "default")  # versions that were never meant for each other warn of each other
ENVIRONMENTS = {
    "oldest": Environment("3.11", "lowest-direct", OTHERS_WARN),
    "newest": Environment("3.12", "highest", OTHERS_WARN),
    "3.12": Environment("3.12", "pinned"),
    "3.13": Environment("3.13", "pinned"),
    "3.14": Environment("3.14", "pinned"),
}


def call(*arguments: str | Path, **variables: str) -> int:
    """Run a command from the top of the checkout; what it prints is shown."""
    return subprocess.run(arguments, cwd=ROOT, env=os.environ | variables, check=False).returncode


def make_environment(chosen: Environment, folder: Path) -> Path:
    """Make an environment anew with this package, editable, and return its Python."""
    running = chosen.python == ".".join(map(str, sys.version_info[:2]))
    python, found = folder / "bin" / "python", sys.executable if running else find_python(chosen.python)
    pins, commands = folder / "oldest.txt", [[UV, "venv", "--quiet", "--clear", "--python", found, folder]]
    install = [UV, "pip", "install", "--quiet", "--python", python, "--editable", ".[all]", "--group", "test"]
    if chosen.packages == "pinned":
        install += ["--constraint", "infra/constraints.txt"]
    if chosen.packages == "lowest-direct":  # of what this package asks for itself; what only tests ask for is the newest
        resolve = [UV, "pip", "compile", "--quiet", "pyproject.toml", "--extra", "all", "--resolution", chosen.packages]
        commands.append([*resolve, "--python", python, "--output-file", pins])
        install += ["--constraint", pins]
    for command in (*commands, install):
        if call(*command):
            raise SystemExit(f"{folder}: cannot be made")
    return python


def read_results(folder: Path) -> dict[str, object]:
    """Count what pytest wrote of an environment's tests, and name those that failed."""
    counts, failed = {"passed": 0, "skipped": 0}, list[str]()
    for number in range(len(CALLS)):
        for case in ElementTree.parse(folder / f"{number}.xml").iter("testcase"):
            kinds = {child.tag for child in case}
            if kinds & {"failure", "error"}:
                failed.append(f"{case.get('classname')}::{case.get('name')}")
            else:
                counts["skipped" if "skipped" in kinds else "passed"] += 1
    return {**counts, "failed": failed}


def describe(folder: Path) -> dict[str, object]:
    """Say which versions an environment has, and what came out of the tests there."""
    python = folder / "bin" / "python"
    listed = subprocess.run([UV, "pip", "list", "--python", python, "--format", "json"], capture_output=True, text=True, check=True)
    versions = {each["name"]: each["version"] for each in json.loads(listed.stdout)}
    version = subprocess.run([python, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True, check=True)
    found = {"date": time.strftime("%Y-%m-%d"), "python": version.stdout.strip(), **read_results(folder)}
    return found | {"versions": {name: versions[name] for name in TOLD if name in versions}}


def try_out(chosen: Environment, folder: Path) -> dict[str, object]:
    """Run the tests in an environment, and say what came out."""
    python = make_environment(chosen, folder)
    for number, asked in enumerate(CALLS):
        told = ("-q", "-p", "no:cacheprovider", f"--junitxml={folder / f'{number}.xml'}", *chosen.options)
        call(python, "-m", "pytest", *told, *asked, NUMBA_CACHE_DIR=f"{folder}/kernels")
    return describe(folder)


def main(folder: Path, names: list[str]) -> None:
    """Try those that are named, by default all."""
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in names or ENVIRONMENTS:
        kept[name] = try_out(ENVIRONMENTS[name], folder.resolve() / name)
        FILE.write_text(json.dumps({each: kept[each] for each in ENVIRONMENTS if each in kept}, indent=1) + "\n")
        print(f"{name}: {kept[name]['passed']} passed, {kept[name]['skipped']} skipped, {len(kept[name]['failed'])} failed", flush=True)
    if wrong := [f"{name}: {case}" for name in names or ENVIRONMENTS for case in kept[name]["failed"]]:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
