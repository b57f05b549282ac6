"""Would the tests notice? Small changes of the code, one at a time, each run against the tests of its module: whoever survives is shown.

``python -m tests.mutants`` draws from `pipeline` and from what of `kernels` is not compiled. What is in EQUIVALENT changes nothing that can be seen,
for the reason that stands there.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.lines_run import First, Recorder

ROOT = Path(__file__).parents[1]
PACKAGES = ("kernels", "pipeline")
COPIED = ("kernels", "pipeline", "flows", "leafledger", "tests", "docs", "infra", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
IMPORTED_AS = "leafledger"  # the package in which the others are found, by links
COMPILED = ("jit", "intrinsic", "lower_builtin", "register_model", "_instruction")
SECONDS = 240  # that the tests of a module may take
LONGER, BESIDE = 5, 20  # times what they take as the code is, and seconds for what else the machine does: who hangs is noticed
# Other people's packages are imported once, since that takes longer than the tests of many a module.
IMPORTED = ("numba", "scipy.stats", "pandas", "pyarrow.dataset", "lightgbm", "xgboost", "catboost", "sklearn.ensemble", "skops.io")
IMPORTED += ("distributed", "s3fs", "rich.console", "cyclopts", "hypothesis.extra.numpy", "pytest")
EQUIVALENT = Path(__file__).with_name("mutants.json")  # from a mutant's name to the reason
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATIONS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "minimum": "maximum", "maximum": "minimum"}


class _Swap(ast.NodeTransformer):
    def __init__(self, node: ast.AST, new: ast.AST) -> None:
        self.node, self.new = node, new

    def visit(self, found: ast.AST) -> ast.AST:
        return self.new if found is self.node else self.generic_visit(found)


@dataclass(frozen=True)
class Mutant:
    """A change of one node of a module."""

    path: Path
    tree: ast.Module
    node: ast.AST
    new: ast.AST

    def __str__(self) -> str:
        """The module and the change, of a number with its place: others like it stand elsewhere."""
        change = f"{self.path.relative_to(ROOT)}: {_first_line(self.node)} -> {_first_line(self.new)}"
        if not isinstance(self.node, ast.Constant):
            return change
        line = self.path.read_text().splitlines()[self.node.lineno - 1]
        return f"{change} at {self.node.col_offset - len(line) + len(line.lstrip())} of {line.strip()}"

    @property
    def lines(self) -> range:
        """Those whose tests can notice it."""
        first = getattr(self.node, "lineno", 0)
        return range(first, first + 1 if isinstance(self.node, ast.If | ast.While) else getattr(self.node, "end_lineno", first) + 1)

    @property
    def source(self) -> str:
        """The module with the node in the other's place."""
        return ast.unparse(_Swap(self.node, self.new).visit(copy.deepcopy(self.tree, {id(self.node): self.node})))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _runs(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of code that runs uncompiled and is more than words: no docstrings, annotations, messages, imports and declarations."""
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr) or (isinstance(node, ast.Expr) and _is_text(node.value)):
        return
    if isinstance(node, ast.FunctionDef) and any(name in ast.unparse(mark) for mark in node.decorator_list for name in COMPILED):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return  # of zip: it guards against mistakes of the code, and no claim fails without it
    if isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) == "TYPE_CHECKING":
        return  # imports; tests of the command hold what it imports at its start
    yield node
    skipped = {"annotation", "returns", "decorator_list", "args" if isinstance(node, ast.FunctionDef | ast.Lambda) else ""}
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if name not in skipped and isinstance(child, ast.AST):
                yield from _runs(child)


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    other = copy.deepcopy(node)
    if isinstance(other, ast.Compare) and len(other.ops) == 1:
        other.ops = [COMPARISONS[type(other.ops[0])]()]
        yield other
    elif isinstance(other, ast.BinOp | ast.AugAssign) and type(other.op) in OPERATIONS:
        other.op = OPERATIONS[type(other.op)]()
        yield other
    elif isinstance(other, ast.BoolOp):
        other.op = ast.Or() if isinstance(other.op, ast.And) else ast.And()
        yield other
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        yield other.operand
    elif isinstance(other, ast.If | ast.IfExp | ast.While):
        other.test = ast.UnaryOp(ast.Not(), other.test)
        yield other
    elif isinstance(other, ast.Return) and other.value is not None and not isinstance(other.value, ast.Constant):
        other.value = ast.Constant(None)
        yield other
    elif isinstance(other, ast.Expr) and isinstance(other.value, ast.Call):
        yield ast.Pass()
    elif isinstance(other, ast.Call):
        called = other.func.id if isinstance(other.func, ast.Name) else other.func.attr if isinstance(other.func, ast.Attribute) else ""
        if called in FUNCTIONS:
            setattr(other.func, "id" if isinstance(other.func, ast.Name) else "attr", FUNCTIONS[called])
            yield other
    elif isinstance(other, ast.Constant) and isinstance(other.value, bool | int | float) and other.value + 1 != other.value:
        yield ast.Constant(not other.value if isinstance(other.value, bool) else other.value + 1)


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0]


def mutants_of(path: Path) -> list[Mutant]:
    """All of a module, in the order of its lines."""
    tree = ast.parse(path.read_text())
    found = []
    for node in _runs(tree):
        for new in _changed(node):
            fixed = ast.fix_missing_locations(ast.copy_location(new, node))
            found.append(Mutant(path, tree, node, fixed))
    return found


def tests_of(path: Path) -> list[str]:
    """The test modules of a module, below ROOT: the one of its name, then those whose name goes on unless another module's does."""
    folder, modules = Path("tests") / path.relative_to(ROOT).parent, [other.stem for other in path.parent.glob("*.py")]
    more = [
        found.name
        for found in sorted((ROOT / folder).glob(f"test_{path.stem}_*.py"))
        if path.stem == max((name for name in modules if f"{found.stem}_".startswith(f"test_{name}_")), key=len)
    ]
    return [str(folder / name) for name in (f"test_{path.name}", *more)]


def draw(n: int, seed: int, only: Sequence[str] = ("",), n_modules: int = 10**9) -> list[Mutant]:
    """So many mutants of so many modules that have tests of their own, at random."""
    modules = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    asked = [path for path in modules if any(part in str(path.relative_to(ROOT)) for part in only)]
    tested = [path for path in asked if (ROOT / tests_of(path)[0]).exists()]
    known, chance = json.loads(EQUIVALENT.read_text()), random.Random(seed)
    if n_modules < len(tested):
        tested = sorted(chance.sample(tested, n_modules))
    found = [mutant for path in tested for mutant in mutants_of(path) if str(mutant) not in known]
    return chance.sample(found, min(n, len(found)))


def passes(path: Path, copied: Path, seconds: float = SECONDS, plugin: Recorder | First | None = None) -> bool:
    """Whether the tests of a module pass in a copy, in time."""
    environment = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copied)}
    if path.is_relative_to(ROOT / "kernels"):
        environment["NUMBA_DISABLE_JIT"] = "1"  # nothing is compiled anew for it
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([*IMPORTED])
    run = processes.Process(target=_run, args=(tests_of(path), copied, environment, plugin))
    run.start()
    run.join(seconds)
    if run.exitcode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid or 0, signal.SIGKILL)  # and whatever the tests have started
        run.kill()
        run.join()
    return run.exitcode == 0


def _run(tests: list[str], copied: Path, environment: dict[str, str], plugin: Recorder | First | None) -> None:
    """Run tests in a copy, in this process, where nothing of ours stays imported."""
    os.setpgrp()
    os.chdir(copied)
    with open(os.devnull, "r+b") as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
    os.environ |= environment
    sys.dont_write_bytecode = True
    importlib.import_module("numba").config.reload_config()
    for name in [name for name in sys.modules if name.partition(".")[0] in COPIED]:
        del sys.modules[name]
    sys.path[:] = [str(copied), *(place for place in sys.path if Path(place).resolve() != Path(__file__).parents[1])]
    plugins = [] if plugin is None else [plugin]
    options = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutants", "-W", "ignore:Module already imported")
    os._exit(importlib.import_module("pytest").main([*options, *tests], plugins=plugins))  # without waiting for threads that a test has left


def survives(mutant: Mutant, copied: Path, seconds: float = SECONDS, record: Path | None = None) -> bool:
    """Whether the tests of its module pass, first those that run its lines by a record of what runs."""
    place = copied / mutant.path.relative_to(ROOT)
    was = place.read_text()
    place.write_text(mutant.source)
    try:
        return passes(mutant.path, copied, seconds, None if record is None else First(record, mutant.lines))
    finally:
        place.write_text(was)


def main() -> int:
    """Try some, and exit with 1 if any survives, with 2 where a module's tests fail as the code is, so that its changes are not tried."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Changes of the code that the tests should notice.")
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PATH", help="modules whose path has one of these in it")
    parser.add_argument("--modules", type=int, default=10**9, help="that they are drawn from: each has to be run as it is, too")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="that the tests of a module may take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    chosen = draw(given.mutants, given.seed, given.only, given.modules)
    survivors = []
    limits: dict[Path, tuple[float, Path]] = {}  # seconds, and which tests run which lines
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as threads:
        places: SimpleQueue[Path] = SimpleQueue()
        for k in range(given.jobs):
            place = Path(folder) / str(k)
            place.mkdir()
            for name in COPIED:  # with kernels that were compiled there
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, place / name, symlinks=True)  # by which leafledger finds the packages beside it
                else:
                    shutil.copy(ROOT / name, place / name)
            places.put(place)

        def attempt(mutant: Mutant) -> tuple[Mutant, bool]:
            place = places.get()
            try:
                return mutant, survives(mutant, place, *limits[mutant.path])
            finally:
                places.put(place)

        for path in dict.fromkeys(mutant.path for mutant in chosen):
            began, record, copied = time.monotonic(), Path(folder) / f"{len(limits)}.json", Path(folder) / "0"
            if not passes(
                path, copied, given.seconds, Recorder(copied / IMPORTED_AS / path.relative_to(ROOT), record)
            ):  # every change would seem to be noticed
                print(f"{' '.join(tests_of(path))} fails, or takes more than {given.seconds} s, as the code is: not changed", flush=True)
                continue
            limits[path] = min(given.seconds, BESIDE + LONGER * (time.monotonic() - began)), record
        tried = [mutant for mutant in chosen if mutant.path in limits]
        for mutant, survived in threads.map(attempt, tried):
            if survived:
                survivors.append(mutant)
                print(f"line {getattr(mutant.node, 'lineno', 0)} of {mutant}", flush=True)
    print(f"{len(survivors)} of {len(tried)} mutants survive")
    return 2 if len(tried) < len(chosen) else 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
