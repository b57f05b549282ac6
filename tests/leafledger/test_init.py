"""The public API: what it lists, that it is lazy, and that tools see it."""

import ast
import inspect
import pickle
import pydoc
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Unpack

import jedi
import pytest

import leafledger
from leafledger.pipeline.serving.recipe import ASKED, Asked

ROOT = Path(__file__).parents[2]
DOORS = ("spark.attribute", "duckdb.register", "mlflow.save_explainer", "mlflow.log_explainer")


def python(*arguments, cwd=ROOT):
    """Exit code, standard output and standard error of a new Python, in which only this checkout's packages are on the path."""
    found = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=cwd, env={"PYTHONPATH": str(ROOT)})
    return found.returncode, found.stdout, found.stderr


def test_dir_lists_the_public_names_alone():
    """``dir`` and tab completion show what ``__all__`` says and the version, each with a docstring of its own."""
    assert sorted(leafledger.__all__) == [name for name in dir(leafledger) if name != "__version__"]
    for name in set(leafledger.__all__) - {"METHODS"}:
        assert inspect.getdoc(getattr(leafledger, name)), name


@pytest.mark.slow
def test_every_name_is_one_object():
    """Whatever else was imported in the meantime, a name is the object that its module defines, at every access."""
    program = (
        "import importlib, leafledger\n"
        "for home, names in leafledger._HOMES.items():\n"
        "    for name in names:\n"
        "        first = getattr(leafledger, name)\n"
        "        module = importlib.import_module(home)\n"
        "        assert first is getattr(leafledger, name) is getattr(module, name), name\n"
    )
    assert python("-c", program) == (0, "", "")


def test_help_says_where_functions_are_imported_from():
    """Not where they are defined; and a function's pickle is read by every later version that has it."""
    for name in leafledger.__all__:
        found = getattr(leafledger, name)
        if inspect.isfunction(found):
            assert found.__module__ == "leafledger", name
            assert pickle.loads(pickle.dumps(found)) is found
    said = pydoc.render_doc(leafledger.attribute, renderer=pydoc.plaintext)
    assert "function attribute in module leafledger" in said.splitlines()[0]
    assert "leafledger.Attributions" in said


def test_type_checkers_and_the_interpreter_import_the_same():
    """What stands under TYPE_CHECKING, what is imported on first use, and ``__all__`` are one list."""
    checked = {}
    for node in ast.walk(ast.parse(Path(leafledger.__file__).read_text())):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            checked |= {alias.name: found.module for found in node.body if isinstance(found, ast.ImportFrom) for alias in found.names}
    assert checked == leafledger._HOME_OF
    assert sorted(checked) == sorted(leafledger.__all__)


def test_a_name_that_is_none_is_refused():
    """A misspelt name is an AttributeError that tells it."""
    with pytest.raises(AttributeError, match="module 'leafledger' has no attribute 'atribute'"):
        leafledger.atribute  # noqa: B018 - looking it up is what fails


def test_importing_it_compiles_nothing():
    """Kernels, Arrow and Dask are imported on first use."""
    program = "import sys, leafledger; dir(leafledger); print({'numba', 'numpy', 'pyarrow', 'dask', 'leafledger.pipeline'} & set(sys.modules))"
    assert python("-c", program) == (0, "set()\n", "")


def test_the_version_is_the_installed_one():
    """``__version__`` and ``--version`` are what pip says."""
    assert leafledger.__version__ == version("leafledger")
    assert python("-m", "leafledger", "--version") == (0, f"{version('leafledger')}\n", "")


@pytest.mark.slow
def test_python_m_is_the_command(tmp_path):
    """``python -m leafledger`` does what ``leafledger`` does, and ends with its exit codes."""
    assert python("-m", "leafledger", "check", str(tmp_path)) == (6, "", f"leafledger: {tmp_path}: no manifest.json there: not a finished run\n")
    code, said, _ = python("-m", "leafledger", "--help")
    assert code == 0
    assert "Usage: leafledger COMMAND" in said


# Of other packages mypy reads stubs alone, not the sources of Dask, MLflow and Numba, which take three quarters of the time and give ours no type.
MYPY = """
[mypy]
follow_imports = skip
ignore_missing_imports = true
[mypy-leafledger.*]
follow_imports = silent
"""


@pytest.mark.slow
def test_mypy_resolves_every_name(tmp_path):
    """No public name is Any, calls are checked, and a misspelt name is an error."""
    settings = tmp_path / "mypy.ini"
    settings.write_text(MYPY)
    lines = [f"reveal_type(leafledger.{name})" for name in [*leafledger.__all__, *DOORS, "__version__"]]
    script = tmp_path / "script.py"
    script.write_text("\n".join(["import leafledger", *lines, "leafledger.atribute", "leafledger.check_run(1.5)"]))
    code, said, error = python("-m", "mypy", "--config-file", str(settings), "--cache-dir", str(tmp_path / "cache"), str(script))
    assert code == 1, error
    revealed = [line for line in said.splitlines() if "Revealed type" in line]
    assert len(revealed) == len(lines)
    assert not [line for line in revealed if line.endswith('"Any"')]
    assert 'Module has no attribute "atribute"' in said
    assert 'Argument 1 to "check_run" has incompatible type "float"' in said


@pytest.mark.slow
def test_jedi_completes_and_finds_every_name():
    """Editors complete the public names, go to their definitions and show parameters."""
    script = "import leafledger\nleafledger."
    project = jedi.Project(ROOT, smart_sys_path=False)
    completed = {found.name for found in jedi.Script(script, project=project).complete(2, len("leafledger."))}
    assert set(leafledger.__all__) <= completed
    (signature,) = jedi.Script("import leafledger\nleafledger.attribute(", project=project).get_signatures(2, len("leafledger.attribute("))
    assert "rows" in [parameter.name for parameter in signature.params]


@pytest.mark.parametrize("call", DOORS)
def test_editors_complete_the_modules_for_other_systems(call):
    """And what ``prepare`` takes beside a background, which they pass on."""
    module, name = call.split(".")
    script = jedi.Script(f"import leafledger\nleafledger.{module}.", project=jedi.Project(ROOT, smart_sys_path=False))
    assert name in {completed.name for completed in script.complete(2, len(f"leafledger.{module}."))}
    passed = {*inspect.signature(leafledger.prepare).parameters} - {"model", "method", "background", "tables", "device"}
    assert {*Asked.__annotations__} == {*ASKED} == passed
    assert inspect.signature(getattr(getattr(leafledger, module), name)).parameters["asked"].annotation == Unpack[Asked]


def write_script(line):
    """A script of which this is the third line."""
    lines = ["import leafledger", 'found = leafledger.attribute("model", [])', line]
    return jedi.Script("\n".join(lines), project=jedi.Project(ROOT, smart_sys_path=False))


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("found", "importance"),
        ("found.plot", "beeswarm"),
        ("found.plot.bar()", "save"),
        ('leafledger.prepare("model")([])', "waterfall"),
    ],
)
@pytest.mark.slow
def test_jedi_completes_what_results_are(expression, name):
    """Attributions of a call and of an explainer, their plots and pictures."""
    script = write_script(f"{expression}.")
    assert name in {completed.name for completed in script.complete(3, len(expression) + 1)}


@pytest.mark.slow
def test_jedi_knows_data_frames():
    """Whose names, which it would take seconds to complete, are pandas' own."""
    assert [found.full_name for found in write_script("made = found.importance()").infer(3, 0)] == ["pandas.core.frame.DataFrame"]
