"""Names reach the terminal as text and nothing else, and a stream that cannot be written never changes what a run says of itself."""

import errno
import io
import json
import os
import re
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost

from leafledger.pipeline.command import cli
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.command.terminal.terminal import Log, Stream, complain, guarded_streams, log, logged, named, open_console, say, write_raw

NASTY = "[/]\x1b[31m\u202e é"
SHOWN = "[/]\\x1b[31m\\u202e é"


class Full(io.TextIOWrapper):
    """A stream on a disk that is full."""

    def __init__(self, number=errno.ENOSPC):
        super().__init__(io.BytesIO(), encoding="utf-8")
        self._number = number

    def write(self, _text):
        raise OSError(self._number, os.strerror(self._number))


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """A model with names of all kinds, its rows, and where a run of them goes."""
    folder = tmp_path_factory.mktemp("nasty") / NASTY.replace("/", "")
    folder.mkdir()
    draw = np.random.default_rng(1)
    names = ["plain", f"{NASTY} a", "[bold]", ":smile:"]
    frame = pd.DataFrame(draw.normal(size=(200, 4)), columns=["plain", "a", "b", "c"])
    target = (frame["plain"] + frame["a"] * frame["b"] > 0).astype(int)
    matrix = xgboost.DMatrix(frame.to_numpy(), target, feature_names=["plain", "a", "b", "c"])
    trained = xgboost.train({"max_depth": 2}, matrix, 3)
    saved = trained.save_raw("json").decode()
    for old, new in zip(('"a"', '"b"', '"c"'), names[1:], strict=True):
        saved = saved.replace(old, f'"{new}"'.replace("\x1b", "\\u001b").replace("/", "\\/"))
    (folder / "named.json").write_text(saved)
    pq.write_table(pa.Table.from_pandas(frame.set_axis(names, axis=1)), folder / "named.parquet")
    return folder


@pytest.mark.slow
def test_names_are_text_and_nothing_else(nasty, capsys):
    """Of features, files, folders: neither markup, nor control characters, nor marks that turn the direction of writing."""
    out = nasty / "run [red]"
    arguments = [str(nasty / "named.json"), str(nasty / "named.parquet"), "--out", str(out), "--scheduler", "serial"]
    for command in (["plan", *arguments], ["explain", *arguments], ["explain", *arguments], ["check", str(out), "--deep"]):
        assert cli.main(command) == 0
        said, log = capsys.readouterr()
        shown = said + log
        assert str(out).replace(NASTY.replace("/", ""), SHOWN.replace("/", "")) in shown
        assert all(char.isprintable() for char in shown.replace("\n", ""))
        if command[0] == "explain" and "rows explained" in said:
            for name in (f"{SHOWN} a", "[bold]", ":smile:"):
                assert name in said
    assert cli.main(["explain", *arguments, "--method", "banzhaf"]) == 7
    assert capsys.readouterr().err.count("\n") == 1
    assert cli.main(["check", f"no{NASTY}where"]) == 6
    assert capsys.readouterr().err.startswith("leafledger: ")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE, errno.EIO])
def test_what_cannot_be_written_is_lost(monkeypatch, number):
    """And said on standard error, but for a pipe whose reader has gone; nothing is raised."""
    err = io.StringIO()
    monkeypatch.setattr(sys, "stdout", Full(number))
    monkeypatch.setattr(sys, "stderr", err)
    with guarded_streams():
        console = open_console()
        say(console, "a line")
        say(console, "another")
    said = f"leafledger: standard output: cannot write: {os.strerror(number)}\n"
    assert err.getvalue() == ("" if number == errno.EPIPE else said)


def test_errors_that_nobody_reads_are_lost(monkeypatch, capsys):
    """They never go to standard output in place of standard error."""
    for stream in (Full(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        assert cli.main(["check", "nowhere"]) == 6
    complain("nothing")
    assert capsys.readouterr().out == ""
    assert not Stream(None).isatty()


def test_a_raw_text_is_written_as_it_is(capsys):
    """Documents are read by programs: no line is broken or ended, nothing is escaped or markup."""
    text = "[bold]" + 300 * "x" + NASTY
    write_raw(text)
    assert capsys.readouterr().out == text


def test_a_stream_is_a_person_s_as_long_as_it_is_open():
    """What a terminal is, the system says; of a stream that is closed nobody sees anything, and asking is no error."""
    person, ours = os.openpty()
    screen = os.fdopen(ours, "w")
    stream = Stream(screen)
    assert stream.isatty()
    screen.close()
    assert not stream.isatty()
    assert stream.write("lost") == 4  # and nothing is raised
    os.close(person)
    with open(os.devnull, "w") as nowhere:
        assert not Stream(nowhere).isatty()


def test_characters_that_an_encoding_lacks_are_escaped(monkeypatch):
    """Tables have other lines then."""
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    with guarded_streams():
        say(open_console(), "é")
    assert screen.buffer.getvalue() == b"\\xe9\n"


def held_back():
    """An environment in which Python holds back what is not for a terminal, as it does unless it is told otherwise."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def finished(tmp_path, example, redirect, name):
    """Exit code and standard error of a run in a process of its own, whose streams go elsewhere."""
    command = [sys.executable, "-m", "leafledger", "explain", example.model, example.data, "--out", str(tmp_path / name), "--scheduler", "serial"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirect}', "sh", *command],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[4],
        env=held_back() | ({"PYTHONIOENCODING": "ascii"} if name == "ascii" else {}),
    )
    assert (tmp_path / name / "manifest.json").exists()
    return done.returncode, done.stderr.decode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.slow
def test_the_exit_code_is_the_run_s(example, tmp_path):
    """With standard output full, closed or a pipe whose reader is gone, standard error full or closed, or an encoding without box characters."""
    code, log = finished(tmp_path, example, "> /dev/full", "full")
    assert code == 0
    assert log.splitlines()[-1] == "leafledger: standard output: cannot write: No space left on device"
    assert "Traceback" not in log
    assert finished(tmp_path, example, ">&- 2>&-", "closed")[0] == 0
    assert finished(tmp_path, example, "2> /dev/full", "ascii")[0] == 0
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "leafledger", "check", str(tmp_path / "full")]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, cwd=Path(__file__).parents[4], env=held_back())
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path):
    """Else a library that writes to standard error would write into it."""
    code = "import os, sys\nfrom leafledger.pipeline.command.terminal.terminal import guarded_streams\nwith guarded_streams():\n"
    code += "    numbers = [os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT) for _ in range(2)]\n    os.write(numbers[0], repr(numbers).encode())"
    written = tmp_path / "numbers"
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code, str(written)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[4])
    assert min(json.loads(written.read_text())) > 2


def test_lines_of_a_log_say_when_how_grave_and_of_which_run(capsys):
    """As text, and as JSON; without a log they are as people read them."""
    with logged(Log("json")), named("build/run"):
        log("a line\nof two")
        complain("rows were left out")
        warnings.simplefilter("always")
        warnings.warn("a library's", RuntimeWarning, stacklevel=1)
    first, second, third = map(json.loads, capsys.readouterr().err.splitlines())
    assert {name: first[name] for name in ("level", "run", "message")} == {"level": "info", "run": "build/run", "message": "a line\nof two"}
    assert abs(datetime.now(UTC) - datetime.fromisoformat(first["time"])) < timedelta(minutes=1)
    assert (second["level"], second["message"]) == ("warning", "rows were left out")
    assert (third["level"], third["message"]) == ("warning", "RuntimeWarning: a library's")
    with logged(Log("text")):
        complain("refused\nthis", "error")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ERROR - refused\\nthis\n", capsys.readouterr().err)
    complain("refused")
    assert capsys.readouterr().err == "leafledger: refused\n"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.slow
def test_a_command_s_log(example, tmp_path, capsys, form):
    """Every line on standard error is one of it, an error's too; with ``--quiet`` one is left at the end."""
    told = ["explain", example.model, example.data, "--out", str(tmp_path / "{date}"), "--date", "2026-03-02", "--scheduler", "serial"]
    run, n_lines = str(tmp_path / "2026-03-02"), []
    for more in ([], ["--quiet"]):
        assert main([*told, *more, "--log-format", form]) == 0
        lines = capsys.readouterr().err.splitlines()
        n_lines.append(len(lines))
        assert all(json.loads(line)["run"] == run if form == "json" else f"Z INFO {run} " in line for line in lines)
    assert n_lines == [6, 1]
    assert "finished before: 3,000 rows in 4 parts, SHA-256 " in lines[-1]
    assert main([*told[:4], run, "--method", "banzhaf", "--log-format", form]) == 7
    line = capsys.readouterr().err
    assert (json.loads(line)["level"] == "error") if form == "json" else f"Z ERROR {run} {run}: holds another run" in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["--log-format", "json", "check", "s3://AKIA:SECRETKEY@bucket/x"],
        ["--log-format", "text", "check", "s3://AKIA:SECRETKEY@bucket/x"],
        ["check", "run", "s3://AKIA:SECRETKEY@bucket/x", "--json"],
        ["check", "run", "--workers", "https://h/x?X-Amz-Signature=SECRETKEY", "--json"],
        ["explain", "m", "d", "--out", "s3://AKIA:SECRETKEY@bucket/x", "--precision", "https://h/x?sig=SECRETKEY", "--log-format", "json"],
        ["config", "explain"],
        ["config", "explain", "--json"],
        ["--config", "options.toml", "config", "drift"],
    ],
)
def test_a_credential_is_said_nowhere(arguments, tmp_path, capsys, monkeypatch):
    """Neither in a log, its field ``run`` among it, nor in a line or a document about an argument that was not read yet, nor among options."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAFLEDGER_EXPLAIN_OUT", "s3://AKIA:SECRETKEY@bucket/x")
    Path("options.toml").write_text('[drift]\nagainst = "sftp://me:SECRETKEY@host/a"\nby = ["https://h/x?sig=SECRETKEY"]\n')
    assert main(arguments) == (0 if "config" in arguments else 2)
    said = "".join(capsys.readouterr())
    assert "***" in said
    assert "SECRETKEY" not in said
