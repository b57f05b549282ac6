"""What every public function says of itself, as programs: its parameters by name, and what it returns."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = [path for package in ("kernels", "pipeline", "flows", "leafledger") for path in sorted((ROOT / package).rglob("*.py"))]


def public_functions(body, owner=""):
    """Functions and methods of public classes whose names have no underscore in front."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield owner + node.name, node


def parameters_of(function):
    """The names that a caller may give."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [argument.arg for argument in named if argument is not None and argument.arg not in {"self", "cls"}]


def sections_of(docstring):
    """The text below every underlined heading of a docstring in NumPy's style."""
    pieces = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def documented(section):
    """The names that a section of parameters explains: its lines without indentation."""
    return [name.strip().lstrip("*") for line in re.findall(r"^(\S.*)$", section, flags=re.MULTILINE) for name in line.partition(" :")[0].split(",")]


def returns_something(function):
    """Whether a value is announced that is not None."""
    return function.returns is not None and not (isinstance(function.returns, ast.Constant) and function.returns.value is None)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_public_functions_explain_their_parameters_and_results(path):
    """Parameters names exactly what the signature has, in its order; a function of something says what it returns."""
    for name, function in public_functions(ast.parse(path.read_text()).body):
        where, parameters, sections = f"{path}:{function.lineno}: {name}", parameters_of(function), sections_of(ast.get_docstring(function) or "")
        assert documented(sections.get("Parameters", "")) == parameters, where
        if parameters and returns_something(function):
            assert {"Returns", "Yields"} & set(sections), f"{where} does not say what it returns"
