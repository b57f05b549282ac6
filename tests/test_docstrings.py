"""What functions say of themselves, as programs: all of it where everybody calls them, shapes where other folders do, one line inside a folder."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import leafledger

ROOT = Path(__file__).parents[1]
MODULES = [path for package in ("kernels", "pipeline", "flows", "leafledger") for path in sorted((ROOT / package).rglob("*.py"))]
SECTIONS = ("Parameters", "Returns", "Yields", "Raises")
CALLERS = [*MODULES, *sorted((ROOT / "docs").glob("*.py")), *sorted((ROOT / "infra").rglob("*.py"))]


@cache
def tree_of(path):
    """A file as it is parsed: when a test runs, since every process of pytest's imports this."""
    return ast.parse(path.read_text())


def functions_of(body, owner=""):
    """Functions and methods, with the classes that have them."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions_of(node.body, node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield owner, node


def arguments_of(function):
    """Parameters that a caller may give."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [argument for argument in every if argument is not None and argument.arg not in {"self", "cls"}]


def sections_of(function):
    """The text below every underlined heading of a docstring in NumPy's style."""
    pieces = re.split(r"^(\w[\w ]*)\n-{3,}\n", ast.get_docstring(function) or "", flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def documented(section):
    """The names that a section of parameters explains: its lines without indentation."""
    return [name.strip().lstrip("*") for line in re.findall(r"^(\S.*)$", section, flags=re.MULTILINE) for name in line.partition(" :")[0].split(",")]


def returns_something(function):
    """Whether a value is announced that is not None."""
    return function.returns is not None and not (isinstance(function.returns, ast.Constant) and function.returns.value is None)


def file_of(path, node):
    """Where an import statement takes its names from: a file without its suffix, or None elsewhere."""
    if node.level:
        folders = path.relative_to(ROOT).parts[:-1]
        return ROOT.joinpath(*folders[: len(folders) - node.level + 1], *(node.module or "").split("."))
    return ROOT.joinpath(*node.module.split(".")[1:]) if (node.module or "").startswith("leafledger.") else None


@cache
def calls_from_elsewhere():
    """``{(file, name)}`` that another folder takes, and ``{attribute: folders}`` in which one of that name is asked for."""
    taken, attributes = set(), defaultdict(set)
    for path in CALLERS:
        modules, asked = {}, []
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and (base := file_of(path, node)) is not None:
                for alias in node.names:
                    if (base / f"{alias.name}.py").exists():
                        modules[alias.asname or alias.name] = base / f"{alias.name}.py"
                    elif base.with_suffix(".py").parent != path.parent:
                        taken.add((base.with_suffix(".py"), alias.name))
            elif isinstance(node, ast.Attribute):
                attributes[node.attr].add(path.parent)
                asked.append((node.value, node.attr))
        for value, name in asked:
            if isinstance(value, ast.Name) and value.id in modules and modules[value.id].parent != path.parent:
                taken.add((modules[value.id], name))
    return taken, attributes


def find_module(home):
    """The file of a module, or of a folder's face."""
    base = ROOT.joinpath(*home.split(".")[1:])
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


PUBLIC = {(find_module(home), name) for home, names in leafledger._HOMES.items() for name in names}


def is_shown(path, owner, function):
    """Whether another folder may call it: by its name, or as a method; what the command and Prefect register says of itself what people read."""
    if (function.decorator_list and path.is_relative_to(ROOT / "pipeline" / "command")) or path.is_relative_to(ROOT / "flows"):
        return True
    if function.name.startswith("_") and function.name != "__call__":
        return False
    taken, attributes = calls_from_elsewhere()
    if owner:
        return (path, owner) in PUBLIC or bool(attributes.get(function.name, set()) - {path.parent})
    return (path, function.name) in taken or (path, function.name) in PUBLIC


@pytest.mark.slow
def test_sections_stand_where_others_look():
    """What only its own folder calls has no sections; what a section explains is a parameter, and it says more than its type."""
    for path in MODULES:
        for owner, function in functions_of(tree_of(path).body):
            where, sections = f"{path}:{function.lineno}: {function.name}", sections_of(function)
            assert is_shown(path, owner, function) or not set(SECTIONS) & set(sections), f"{where} is called in its own folder: one line will do"
            names = [argument.arg for argument in arguments_of(function)]
            explained = documented(sections.get("Parameters", ""))
            assert explained == [name for name in names if name in explained], where


@pytest.mark.parametrize(("path", "name"), sorted(PUBLIC), ids=lambda given: given if isinstance(given, str) else "")
def test_public_functions_explain_all_parameters_and_results(path, name):
    """Parameters names exactly what the signature has, in its order; a function of something says what it returns."""
    for owner, function in functions_of(tree_of(path).body):
        if name not in (owner, function.name) or function.name.startswith("_") or (owner and owner != name):
            continue
        where, sections = f"{path}:{function.lineno}: {function.name}", sections_of(function)
        names = [argument.arg for argument in arguments_of(function)]
        assert documented(sections.get("Parameters", "")) == names, where
        if names and returns_something(function):
            assert {"Returns", "Yields"} & set(sections), f"{where} does not say what it returns"


@pytest.mark.slow
def test_arrays_say_their_shapes():
    """Whatever another folder gives to a function of kernels: ``rows : (n, features) float64``."""
    for path in [path for path in MODULES if path.is_relative_to(ROOT / "kernels")]:
        for owner, function in functions_of(tree_of(path).body):
            if not is_shown(path, owner, function):
                continue
            section = sections_of(function).get("Parameters", "")
            explained = documented(section)
            for argument in arguments_of(function):
                if argument.annotation is not None and ast.unparse(argument.annotation).startswith("np.ndarray"):
                    assert argument.arg in explained, f"{path}:{function.lineno}: {function.name} says no shape of {argument.arg}"
