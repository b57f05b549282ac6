"""The command writes a page and says where it is; what is wrong is one line."""

import json
import shutil
import sys

from leafledger.pipeline.command.cli import main


def test_the_command_says_where_the_page_is(serial, tmp_path, capsys):
    run = shutil.copytree(serial[0], tmp_path / "run")
    assert main(["report", str(run), "--scheduler", "serial", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["report", str(run), "--scheduler", "serial"]) == 0
    assert capsys.readouterr().out == f"report: {run}/report/index.html ({(run / 'report/index.html').stat().st_size / 1000:,.0f} kB)\n"


def test_a_log_has_no_bar(serial, tmp_path, capsys, monkeypatch):
    """Every line is one of the log, whoever looks on."""
    run = shutil.copytree(serial[0], tmp_path / "run")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["report", str(run), "--scheduler", "serial", "--log-format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["level"] for line in lines} == {"info"}


def test_no_run_is_one_line(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 6
    assert capsys.readouterr().err == f"leafledger: {tmp_path}: no manifest.json there: not a finished run\n"
