"""What a person sees while a run works."""

import io
import re
import sys

import pytest
from rich.console import Console

from leafledger import explain
from pipeline.command.progress import Bar, log_lines, watched
from pipeline.command.terminal import Log, logged
from pipeline.runs.progress import Work, no_progress


def test_the_bar_counts_parts_and_speed(example, tmp_path):
    """On a terminal: parts done of all, rows per second, time left."""
    screen = io.StringIO()
    with Bar(Console(file=screen, force_terminal=True, width=120)) as bar:
        explain(example.model, example.data, tmp_path / "run", scheduler="serial", progress=bar)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).splitlines()[-1]
    assert re.search(r"explaining .* 4/4 parts, [\d,]+ rows/s 0:00:00", last)


def test_the_log_has_a_line_per_part(example, tmp_path, capsys):
    """Without one: where it works, then which part, its rows and speed, how far the run is."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", progress=log_lines)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "explaining in this process"
    assert len(lines) == 5
    assert re.fullmatch(r"explaining: part 3: \d+ rows, [\d,]+ rows/s; 4 of 4 parts, 3000 of 3000 rows", lines[-1])


@pytest.mark.parametrize("form", [None, "json"])
@pytest.mark.parametrize("somebody", [False, True])
def test_a_bar_is_for_who_looks_on(monkeypatch, capsys, somebody, form):
    """A log has lines, and ``--quiet`` nothing, whoever looks on."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: somebody)
    with logged(Log(form)), watched(quiet=False) as progress:
        progress(Work("loading", "run", 0, 0))
        if somebody and form is None:
            assert isinstance(progress, Bar)
        else:
            assert progress is log_lines
    assert "loading" in capsys.readouterr().err
    with logged(Log(form)), watched(quiet=True) as progress:
        assert progress is no_progress
    assert capsys.readouterr().err == ""
