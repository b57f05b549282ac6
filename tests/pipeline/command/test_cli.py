"""The command line: what it prints, its exit codes, and that a mistake never ends in a traceback."""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from leafledger.kernels.methods import METHODS
from leafledger.pipeline.command import cli

ROOT = Path(__file__).parents[3]


def run(capsys, *arguments):
    """Exit code, standard output, standard error."""
    code = cli.main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.slow
def test_explain_says_where_the_results_are(example, tmp_path, capsys):
    """The first run shows outputs, residual and top features, on standard error where it works and each part; the second has nothing to do."""
    out = tmp_path / "run"
    arguments = ("explain", example.model, example.data, "--out", out, "--id", "flight", "name", "--scheduler", "serial")
    code, said, log = run(capsys, *arguments)
    assert code == 0
    assert "3,000 rows explained in 4 parts" in said
    assert "attributions add up to margin - base value within" in said
    assert f"manifest:     {out}/manifest.json" in said
    assert f"SHA-256:      {hashlib.sha256((out / 'manifest.json').read_bytes()).hexdigest()}\n" in said
    assert "│    1 │ delay" in said
    assert log.count("\n") == 5
    assert "4 of 4 parts, 3000 of 3000 rows, 100%" in log
    code, said, _ = run(capsys, *arguments)
    digest = hashlib.sha256((out / "manifest.json").read_bytes()).hexdigest()
    assert (code, said) == (0, f"{out}: finished before, nothing to do (3,000 rows in 4 parts)\nSHA-256:      {digest}\n")
    code, said, _ = run(capsys, "check", out)
    assert code == 0
    assert re.fullmatch(
        rf"{out}: sound, 3,000 rows in 4 parts, attributions add up within \S+ of the margin's bound as computed\n"
        rf"SHA-256 of manifest\.json: {digest}\n",
        said,
    )


@pytest.mark.slow
def test_what_could_not_be_verified_is_said(example, tmp_path, capsys):
    """The model is gone: exit code 3 and why, until it is said where it is."""
    shutil.copy(example.model, tmp_path / "model.txt")
    out = tmp_path / "run"
    assert run(capsys, "explain", tmp_path / "model.txt", example.data, "--out", out, "--scheduler", "serial", "--quiet")[0] == 0
    (tmp_path / "model.txt").unlink()
    code, said, log = run(capsys, "check", out, "--deep")
    assert code == 3
    assert said.startswith(f"{out}: not verified in full, 3,000 rows")
    assert log.startswith("leafledger: not verified: no row was explained again")
    assert log.count("\n") == 1
    for more, again in (("--deep", "256 rows explained again"), ("--all-rows", "3,000 rows explained again")):
        code, said, log = run(capsys, "check", out, more, "--model", example.model)
        assert (code, log) == (0, "")
        assert f"{out}: sound, 3,000 rows" in said
        assert f"as stored, {again}\n" in said


def test_quiet_is_quiet(example, tmp_path, capsys):
    """With ``--quiet`` only errors are shown."""
    code, said, log = run(capsys, "explain", example.model, example.data, "--out", tmp_path / "run", "--scheduler", "serial", "--quiet")
    assert (code, said, log) == (0, "", "")


def test_plan_writes_nothing(example, tmp_path, capsys):
    """The plan shows rows, items, memory and parameters, and leaves no trace."""
    out = tmp_path / "run"
    code, said, _ = run(capsys, "plan", example.model, example.data, "--out", out, "--method", "banzhaf", "--parameter", "p=0.25")
    assert code == 0
    for text in ("lightgbm, 4 features, outputs 0, SHA-256", "banzhaf p=0.25", "3,000 rows in 4 files", "4 items", " threads (tables "):
        assert text in said
    assert not out.exists()


@pytest.mark.slow
def test_groups_and_interactions_are_shown(example, tmp_path, capsys):
    """The plan says how many there are, a run shows the largest and the verifier finds it sound."""
    (tmp_path / "groups.json").write_text('{"flight": ["distance", "delay"]}')
    out = tmp_path / "run"
    arguments = (example.model, example.data, "--out", out, "--partition", tmp_path / "groups.json", "--interactions", "all")
    code, said, _ = run(capsys, "plan", *arguments)
    assert code == 0
    assert "groups  3 of 4 features" in said
    assert "pairs   1 interact, all kept of a row" in said
    code, said, _ = run(capsys, "explain", *arguments, "--scheduler", "serial")
    assert code == 0
    assert "│    1 │ flight" in said
    assert "│    1 │ flight │ carrier" in said
    assert run(capsys, "check", out)[0] == 0


@pytest.mark.slow
def test_shares_of_r2_are_shown(example, tmp_path, capsys):
    """The plan says which columns are asked for; a run shows R^2 and its shares, also where a constant label leaves nothing to share."""
    arguments = ("--method", "r2", "--label", "delay", "--weight", "month", "--by", "carrier", "month", "--global-only")
    code, said, _ = run(capsys, "plan", example.model, example.data, "--out", tmp_path / "run", *arguments)
    assert code == 0
    assert "labels  delay, weight month; rows without one are left out\n" in said
    assert "by      carrier, month\n" in said
    code, said, _ = run(capsys, "explain", example.model, example.data, "--out", tmp_path / "run", *arguments, "--scheduler", "serial")
    assert code == 0
    n_missing = example.frame["delay"].isna().sum()
    assert f"{3000 - n_missing:,} rows, {n_missing} without a label" in said
    assert "│    1 │ delay" in said
    assert "attributions:" not in said
    one = [str(path) for path in Path(example.data).glob("month=1")]
    constant = (example.model, *one, "--out", tmp_path / "one", "--method", "r2", "--label", "month", "--scheduler", "serial")
    code, said, _ = run(capsys, "explain", *constant)
    assert code == 0
    assert "R² – ± –" in said
    code, said, log = run(capsys, "explain", example.model, example.data, "--out", tmp_path / "no", "--method", "r2")
    assert (code, said, log) == (2, "", "leafledger: method 'r2' needs labels; name their column with --label\n")


def test_parameters_are_written_as_they_are_given(example, tmp_path, capsys):
    """Numbers, lists and points, shortened where they are long; those that are not given are not shown."""
    arguments = ("plan", example.model, example.data, "--out", tmp_path / "run", "--method", "semivalue", "--parameter")
    code, said, _ = run(capsys, *arguments, "density=0:0,0.5:2,1:0")
    assert code == 0
    assert "method  semivalue density=0:0,0.5:2,1:0\n" in said
    _, said, _ = run(capsys, *arguments, "atoms=" + ",".join(f"{i / 100}:1" for i in range(100)))
    assert "…\n" in said
    assert max(map(len, said.splitlines()[1:2])) < 100


def test_the_help_tells_every_method(capsys):
    """Names and parameters of all methods, and how parameters are written."""
    assert cli.main(["explain", "--help"]) == 0
    said = capsys.readouterr().out
    for method in METHODS.values():
        assert all(name in said for name in (method.name, *(parameter.name for parameter in method.parameters)))
    assert "density=0:0,0.5:2,1:0" in said


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("explain",), 2, "leafledger: "),
        (("explode",), 2, "leafledger: "),
        (("explain", "model", "data"), 2, "--out"),
        (("explain", "{model}", "a.parquet", "b.parquet", "c.parquet", "--out", "{out}"), 2, "got 'b.parquet' and 1 more beyond what"),
        (("explain", "nowhere.json", "{data}", "--out", "{out}"), 6, "nowhere.json: cannot read: no such file or object"),
        (("explain", "{model}", "nowhere", "--out", "{out}"), 6, "nowhere: cannot list: no such file or object"),
        (
            ("explain", "{model}", "{data}", "--out", "{out}", "--method", "lime"),
            2,
            "method 'lime' is unknown, expected one of shapley, banzhaf, beta",
        ),
        (("explain", "{model}", "{data}", "--out", "{out}", "--parameter", "p"), 2, "parameters is ('p',), expected NAME=VALUE"),
        (("explain", "{model}", "{data}", "--out", "{out}", "--precision", "float16"), 2, "precision"),
        (("explain", "{model}", "{data}", "--out", "{out}", "--workers", "two"), 2, "two"),
        (("explain", "{model}", "{data}", "--out", "{out}", "--id", "nowhere"), 8, "column 'nowhere' missing"),
        (
            ("explain", "{data}/month=1/data.parquet", "{data}", "--out", "{out}"),
            8,
            "data.parquet: is Parquet, which holds rows and no model; are model and data swapped?",
        ),
        (("explain", "{data}", "{model}", "--out", "{out}"), 2, "data: is a folder, expected a model's file; are model and data swapped?"),
        (("explain", "{model}", "{model}", "--out", "{out}"), 8, "model.txt: not a Parquet file"),
        (("explain", "{model}", "http://127.0.0.1:9/x", "--out", "{out}"), 9, "http://127.0.0.1:9/x: cannot "),
        (("explain", "{model}", "nope://x", "--out", "{out}"), 2, "nope://x: cannot open"),
        (("explain", "{model}", "{data}", "--out", "{out}", "--partition", "groups.json"), 6, "groups.json: cannot read: no such file or object"),
        (("explain", "{model}", "{data}", "--out", "{out}", "--partition", "{model}"), 2, "model.txt: not JSON: "),
        (("explain", "{model}", "{data}", "--out", "{out}", "--partition", ""), 2, "partition is '', expected a path or URI"),
        (("explain", "{model}", "{data}", "--out", "{out}", "--interactions", "few"), 2, "interactions is 'few', expected a number of at least 1"),
        (("explain", "{model}", "{data}", "--out", "{out}", "--method", "owen"), 2, "method 'owen' needs a partition of the features"),
        (("check", "{out}"), 6, "no manifest.json there: not a finished run"),
    ],
)
def test_a_mistake_gets_one_line(example, tmp_path, monkeypatch, capsys, arguments, code, says):
    """Standard error holds one line that starts with the command's name; the exit code tells what whoever waits for it can do."""
    monkeypatch.chdir(tmp_path)
    names = {"{model}": example.model, "{data}": example.data, "{out}": "out"}
    filled = []
    for argument in arguments:
        for name, value in names.items():
            argument = argument.replace(name, value)
        filled.append(argument)
    got, said, error = run(capsys, *filled)
    assert (got, said) == (code, "")
    assert error.startswith("leafledger: ")
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_help_imports_little():
    """Help and version answer without importing Numba, Dask, Arrow or a model library, also where methods are listed."""
    program = (
        "import sys; from leafledger.pipeline.command.cli import main\n"
        "assert [main(each) for each in (['--version'], ['--help'], ['check', '--help'], ['explain', '--help'])] == [0] * 4\n"
        "heavy = {'numba', 'dask', 'distributed', 'fsspec', 'pandas', 'pyarrow', 'xgboost', 'lightgbm', 'catboost', 'prefect', 's3fs', 'botocore'}\n"
        "sys.exit(f'imported {heavy & set(sys.modules)}' if heavy & set(sys.modules) else 0)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("command", ["explain", "plan", "compare", "check"])
def test_the_help_of_every_command_has_an_example(command, capsys):
    """And its own line of usage; options stand in groups that say what they are about."""
    assert cli.main([command, "--help"]) == 0
    said = capsys.readouterr().out
    assert f"Example: leafledger {command} " in said
    assert f"Usage: leafledger {command} " in said
    assert "─ Input and output ─" in said


@pytest.mark.slow
def test_kernels_compile_one_signature(example, tmp_path):
    """After an end-to-end run in a fresh process every kernel that ran has exactly one signature."""
    program = (
        "import gc, sys\n"
        "from numba.core.dispatcher import Dispatcher\n"
        "from leafledger.kernels.reductions import reduction\n"
        "from leafledger.kernels.path_dependent import quadrature\n"
        "from leafledger.kernels.trees import binning, lookup, margin\n"
        "from leafledger.pipeline.command.cli import main\n"
        f"arguments = [{example.model!r}, {example.data!r}, '--out', {str(tmp_path / 'run')!r}, '--interactions', 'all']\n"
        "arguments += ['--scheduler', 'serial', '--quiet']\n"
        "assert main(['explain', *arguments]) == 0\n"
        "import pandas\n"
        "from leafledger import attribute\n"
        f"frame = pandas.read_parquet({example.data!r})\n"
        f"attribute({example.model!r}, frame.assign(month=frame['month'].astype(int)))\n"
        "walks = [each for each in gc.get_objects() if isinstance(each, Dispatcher) and each.py_func.__module__ == quadrature.__name__]\n"
        "kernels = [binning._bin_columns, margin._descend, margin._select, lookup.add_lookups, reduction._measure, *walks]\n"
        "counts = [len(getattr(kernel, 'compiled', kernel).signatures) for kernel in kernels]\n"
        "sys.exit(0 if set(counts) <= {0, 1} and sum(counts) >= 4 else f'signatures: {counts}')"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_flags_are_read_beside_prefect():
    """The served flow takes the same flags, though Prefect brings pydantic, by which cyclopts validates where it is imported."""
    program = (
        "import prefect; from leafledger.pipeline.command.cli import main\n"
        "flags = ['--parameter', 'p=0.3', 'q=1', '--parameter', 'r=2',\n"
        "'--id', 'a', 'b', '--by', 'c', '--interactions', '3', '--date', '2026-11-20']\n"
        "raise SystemExit(main(['explain', 'nowhere', 'data', '--out', 'out', *flags]))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (2, "leafledger: method 'shapley' has no parameter 'p', it takes none\n")


@pytest.mark.slow
def test_a_working_directory_that_is_gone_is_one_line(tmp_path):
    """Libraries look at it as soon as they are imported."""
    (tmp_path / "gone").mkdir()
    program = f"import os, sys; os.chdir({str(tmp_path / 'gone')!r}); os.rmdir({str(tmp_path / 'gone')!r})\n"
    program += "from leafledger.pipeline.command.cli import main; sys.exit(main(['check', 'run']))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == "leafledger: the working directory cannot be used, change to another one: No such file or directory\n"


def test_no_folder_for_temporary_files_is_one_line(example, tmp_path, capsys, monkeypatch):
    """Whether a run needs it, or a verification."""
    out = tmp_path / "run"
    explained = ("explain", example.model, example.data, "--out", out, "--scheduler", "serial", "--quiet")
    assert run(capsys, *explained)[0] == 0

    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp', '/var/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    for arguments in (("check", out), (*explained[:4], tmp_path / "other", *explained[5:])):
        code, said, log = run(capsys, *arguments)
        assert (code, said) == (9, "")
        assert log.startswith("leafledger: ")
        assert "No usable temporary directory found" in log
        assert log.count("\n") == 1
