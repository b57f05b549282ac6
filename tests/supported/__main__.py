"""``python -m tests.supported FOLDER [NAME ...]``: chosen tests with other Pythons, and with the oldest and the newest packages that this one takes.

Environments are made in FOLDER, 3 GB each; each takes minutes, most of them to compile kernels. ``docs/supported.json`` says what came out.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docs.generated import SUPPORTED as FILE
from tests.versions.environments import find_python

ROOT = Path(__file__).parents[2]
STILL_SECONDS = 900  # without a test that begins or ends: a server has 400 to start, and what took place may show 300 later
END_SECONDS = 10  # to write where it stands
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


def wait_for_tests(running: subprocess.Popen[bytes], log: Path, still: float) -> bool:
    """Wait for pytest, which is ended with all that it started once its log has stood still for so many seconds; whether it was."""
    try:
        while running.poll() is None and time.time() - log.stat().st_mtime < still:
            with suppress(subprocess.TimeoutExpired):
                running.wait(min(1, still))
        return running.poll() is None
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGABRT)  # upon which pytest writes where every thread is
            with suppress(subprocess.TimeoutExpired):
                running.wait(END_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def run_tests(command: Sequence[str | Path], log: Path, still: float = STILL_SECONDS, **variables: str) -> str | None:
    """Run pytest, and say in a line what went wrong besides tests that failed; what it wrote is shown where all did not pass."""
    with (
        log.open("wb") as out,
        subprocess.Popen(command, cwd=ROOT, env=os.environ | variables, stdout=out, stderr=out, start_new_session=True) as running,
    ):
        stood = wait_for_tests(running, log, still)
    if not running.returncode:
        return None
    written = log.read_text(errors="replace")
    print(written, flush=True)
    tests = re.findall(r"^(tests/.+?::.+?)(?: [A-Z]+.*)?$", written, re.MULTILINE)
    last = tests[-1].strip() if tests else "before the first test"
    ended = f"stood still for {still:g} s" if stood else f"pytest ended with {running.returncode}"
    return None if running.returncode == 1 else f"{last}: {ended}"


def read_results(folder: Path, wrong: list[str]) -> dict[str, Any]:
    """Count what pytest wrote of an environment's tests, and name those that failed, and what went wrong besides."""
    counts, failed = {"passed": 0, "skipped": 0}, list[str]()
    for path in sorted(folder.glob("*.xml")):  # none of tests that were ended
        for case in ElementTree.parse(path).iter("testcase"):
            kinds = {child.tag for child in case}
            if kinds & {"failure", "error"}:
                failed.append(f"{case.get('classname')}::{case.get('name')}")
            else:
                counts["skipped" if "skipped" in kinds else "passed"] += 1
    return {**counts, "failed": failed + wrong}


def describe(folder: Path, wrong: list[str]) -> dict[str, Any]:
    """Say which versions an environment has, what came out of the tests there, and what went wrong besides."""
    python = folder / "bin" / "python"
    listed = subprocess.run([UV, "pip", "list", "--python", python, "--format", "json"], capture_output=True, text=True, check=True)
    versions = {each["name"]: each["version"] for each in json.loads(listed.stdout)}
    version = subprocess.run([python, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True, check=True)
    found = {"date": time.strftime("%Y-%m-%d"), "python": version.stdout.strip(), **read_results(folder, wrong)}
    return found | {"versions": {name: versions[name] for name in TOLD if name in versions}}


def try_out(chosen: Environment, folder: Path) -> dict[str, Any]:
    """Run the tests in an environment, and say what came out."""
    python = make_environment(chosen, folder)
    wrong = list[str | None]()
    for number, asked in enumerate(CALLS):
        told = ("-v", "-p", "no:cacheprovider", f"--junitxml={folder / f'{number}.xml'}", *chosen.options)
        command = (python, "-m", "pytest", *told, *asked)
        wrong.append(run_tests(command, folder / f"{number}.log", NUMBA_CACHE_DIR=f"{folder}/kernels"))
    return describe(folder, [each for each in wrong if each])


def main(folder: Path, names: list[str]) -> None:
    """Try those that are named, by default all."""
    found = dict[str, dict[str, Any]]()
    for name in names or ENVIRONMENTS:
        found[name] = try_out(ENVIRONMENTS[name], folder.resolve() / name)
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}  # another may have written meanwhile
        kept |= found
        FILE.write_text(json.dumps({each: kept[each] for each in ENVIRONMENTS if each in kept}, indent=1) + "\n")
        counts = ", ".join(f"{found[name][each]} {each}" for each in ("passed", "skipped"))
        print(f"{name}: {counts}, {len(found[name]['failed'])} failed", flush=True)
    if wrong := [f"{name}: {case}" for name, each in found.items() for case in each["failed"]]:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
