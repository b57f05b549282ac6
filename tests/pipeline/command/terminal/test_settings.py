"""Options from a file and from variables: which of several wins, and that nothing misspelt is passed over."""

import json
import re
import shutil

import pytest

from leafledger.pipeline.command import cli

FILE = '[explain]\nmethod = "banzhaf"\nid = ["flight", "name"]\nworkers = 3\nquiet = true\ninteractions = 5\n'
FILE += "date = 2026-03-02\n[check]\ndeep = true\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "leafledger.toml"
    path.write_text(FILE)
    return path


def in_force(capsys, *arguments):
    """From options to values and sources."""
    assert cli.main(["config", *map(str, arguments), "--json"]) == 0
    return {each["option"]: (each["value"], each["source"]) for each in json.loads(capsys.readouterr().out)["settings"]}


def test_a_file_s_options_are_in_force(file, capsys):
    """Lists, numbers, truths and dates of TOML; what it does not have is as by default, and what has to be given is not."""
    found = in_force(capsys, "explain", "--config", file)
    said = {name: value for name, (value, source) in found.items() if source == str(file)}
    assert said == {"method": "banzhaf", "id": "flight name", "workers": "3", "quiet": "true", "interactions": "5", "date": "2026-03-02"}
    assert found["precision"] == ("float32", "default")
    assert found["model"] == (None, "not given")
    assert in_force(capsys, "check", "--config", file)["deep"] == ("true", str(file))


def test_plan_takes_the_settings_of_explain(file, capsys):
    """But those it has no use for."""
    found = in_force(capsys, "plan", "--config", file)
    assert found["method"] == ("banzhaf", str(file))
    assert "quiet" not in found


@pytest.mark.slow
def test_variables_win_over_the_file_and_flags_over_both(file, example, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LEAFLEDGER_CONFIG", str(file))
    monkeypatch.setenv("LEAFLEDGER_EXPLAIN_METHOD", "beta")
    monkeypatch.setenv("LEAFLEDGER_EXPLAIN_ID", "name flight")
    monkeypatch.setenv("LEAFLEDGER_SERVICE_HOST", "10.0.0.1")  # as Kubernetes sets it
    monkeypatch.setenv("LEAFLEDGER_EXPLAIN_PORT", "tcp://10.0.0.1:80")  # of another service
    monkeypatch.setenv("LEAFLEDGER_PORT_80_TCP", "tcp://10.0.0.1:80")
    monkeypatch.setenv("LEAFLEDGER_PORT_80_TCP_ADDR", "10.0.0.1")
    found = in_force(capsys)
    assert found["method"] == ("beta", "LEAFLEDGER_EXPLAIN_METHOD")
    assert found["id"] == ("name flight", "LEAFLEDGER_EXPLAIN_ID")
    assert found["workers"] == ("3", str(file))
    plan = ["plan", example.model, example.data, "--out", str(tmp_path / "run"), "--json"]
    assert cli.main([*plan, "--method", "shapley"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "shapley"
    monkeypatch.setenv("LEAFLEDGER_EXPLAIN_METHOD", "banzhaf")
    assert cli.main(plan) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "banzhaf"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[xplain]\n", "has 'xplain', expected a table for a command: explain, "),
        ("[plan]\n", "has 'plan', expected a table for a command: .*; plan takes those of explain"),
        ("method = 'banzhaf'\n", "has 'method', expected a table for a command"),
        ("explain = 1\n", "explain is 1, expected a table of options"),
        ("[explain]\nmehtod = 1\n", r"\[explain\] has 'mehtod', which is no option of the command, see leafledger explain --help"),
        ("[explain]\nconfig = 'x'\n", r"\[explain\] has 'config', which is no option"),
        ("[explain.method]\nx = 1\n", r"\[explain\] method is a table, expected a value or a list of values"),
        ("[explain\n", "not TOML: Expected ']' at the end of a table declaration"),
        ("[explain]\nworkers = 'two'\n", r'Invalid value for \[workers\] from .*: unable to convert "two" into int'),
        ("[explain]\nmax-rejected = 0.05\n", r'Invalid value for \[max-rejected\] from .*: unable to convert "0.05" into int\.'),
        ("[explain]\nmethod = ['a', 'b']\n", r"Invalid value for \[method\] from .*: unable to convert .* into str"),
        ("[explain]\nprecision = 'float16'\n", "float16"),
    ],
)
def test_a_file_s_mistake_is_one_line(tmp_path, example, capsys, text, says):
    """Which file, and what in it; nothing is done."""
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    assert cli.main(["explain", example.model, example.data, "--out", str(tmp_path / "run"), "--config", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert re.search(says, captured.err)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("LEAFLEDGER_EXPLAIN_MEHTOD", "x", "environment variable LEAFLEDGER_EXPLAIN_MEHTOD: expected an option, see leafledger explain --help"),
        (
            "LEAFLEDGER_EXPLAIN_METRICS_PORT",
            "9464",
            "environment variable LEAFLEDGER_EXPLAIN_METRICS_PORT: expected an option, see leafledger explain",
        ),
        ("LEAFLEDGER_METHOD", "x", "environment variable LEAFLEDGER_METHOD: expected LEAFLEDGER_COMMAND_OPTION, as in LEAFLEDGER_EXPLAIN_METHOD"),
        ("LEAFLEDGER_EXPLAIN_WORKERS", "two", "LEAFLEDGER_EXPLAIN_WORKERS"),
        ("LEAFLEDGER_EXPLAIN_WORKERS", "1.5", 'unable to convert "1.5" into int.'),
        ("LEAFLEDGER_EXPLAIN_ID", " ", "environment variable LEAFLEDGER_EXPLAIN_ID: is empty, expected a value or several with spaces between"),
        ("LEAFLEDGER_CONFIG", "nowhere.toml", "nowhere.toml: cannot read: No such file or directory"),
        ("LEAFLEDGER_LOG_FORMAT", "xml", "LEAFLEDGER_LOG_FORMAT"),
    ],
)
def test_a_variable_s_mistake_is_one_line(tmp_path, example, capsys, monkeypatch, name, value, says):
    monkeypatch.setenv(name, value)
    assert cli.main(["explain", example.model, example.data, "--out", str(tmp_path / "run")]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert (captured.out, captured.err.count("\n")) == ("", 1)


@pytest.fixture(scope="module")
def small(example, tmp_path_factory):
    """A month of the data, and a finished run of it."""
    data, out = f"{example.data}/month=1/*.parquet", tmp_path_factory.mktemp("small") / "run"
    assert cli.main(["explain", example.model, data, "--out", str(out), "--scheduler", "serial", "--global-only", "--quiet"]) == 0
    return data, out


@pytest.mark.parametrize(
    ("file", "variables", "flags", "code"),
    [
        ("replace = true", {}, [], 0),
        ("replace = true", {}, ["--if-changed", "refuse"], 7),
        ("replace = true", {}, ["--if-changed", "keep"], 0),
        ("replace = true", {"IF_CHANGED": "refuse"}, [], 7),
        ('if-changed = "replace"', {"REPLACE": "false"}, [], 7),
        ('if-changed = "refuse"', {}, ["--replace"], 0),
        ('if-changed = "replace"\nreplace = true', {}, [], 0),
        ('if-changed = "refuse"\nreplace = true', {}, [], 2),
        ('if-changed = "refuse"\nreplace = true', {}, ["--replace"], 0),
        ("", {"IF_CHANGED": "keep", "REPLACE": "true"}, [], 2),
        ("", {}, ["--replace", "--if-changed", "refuse"], 2),
    ],
)
@pytest.mark.slow
def test_one_choice_that_is_called_by_two_names(example, small, tmp_path, capsys, monkeypatch, file, variables, flags, code):
    """Whether a run is replaced says who wins, under either name, to ``plan`` as to ``explain``; who says two things at once is refused."""
    (tmp_path / "settings.toml").write_text(f"[explain]\n{file}\n")
    run = [example.model, small[0], "--out", str(tmp_path / "run"), "--scheduler", "serial", "--global-only"]
    shutil.copytree(small[1], tmp_path / "run")
    before = (tmp_path / "run/manifest.json").read_bytes()
    for name, value in variables.items():
        monkeypatch.setenv(f"LEAFLEDGER_EXPLAIN_{name}", value)
    asked = [*run, *flags, "--method", "banzhaf", "--config", str(tmp_path / "settings.toml")]
    assert [cli.main([command, *asked]) for command in ("plan", "explain")] == [code, code], capsys.readouterr().err
    replaced = code == 0 and "keep" not in flags
    assert ((tmp_path / "run/manifest.json").read_bytes() != before) == replaced


@pytest.mark.parametrize("source", ["flag", "variable", "file"])
def test_a_mistake_is_a_document_whoever_asks_for_documents(tmp_path, capsys, monkeypatch, source):
    """Also where the command line cannot be read at all."""
    (tmp_path / "settings.toml").write_text("[check]\njson = true\n" if source == "file" else "")
    if source == "variable":
        monkeypatch.setenv("LEAFLEDGER_CHECK_JSON", "true")
    asked = ["check", "--nonsense", "--config", str(tmp_path / "settings.toml"), *(["--json"] if source == "flag" else [])]
    assert cli.main(asked) == 2
    assert json.loads(capsys.readouterr().out)["error"]
