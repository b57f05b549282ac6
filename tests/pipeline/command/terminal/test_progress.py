"""What a person sees while a run works."""

import io
import re
import shutil
import sys

import pytest
from rich.console import Console

from leafledger import drift, explain, report
from leafledger.pipeline.command.terminal.progress import Bar, log_lines, watched
from leafledger.pipeline.command.terminal.terminal import Log, logged
from leafledger.pipeline.progress import Work, no_progress
from tests.pipeline.conftest import damage, write_small


def test_the_bar_counts_parts_and_speed(example, tmp_path):
    """On a terminal: parts done of all, rows per second, time left."""
    screen = io.StringIO()
    with Bar(Console(file=screen, force_terminal=True, width=120)) as bar:
        explain(example.model, example.data, tmp_path / "run", scheduler="serial", progress=bar)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).splitlines()[-1]
    assert re.search(r"explaining .* 4/4 parts, [\d,]+ rows/s, 100%", last)


def test_the_log_has_a_line_per_part(example, tmp_path, capsys):
    """Without one: where it works, then which part, its rows and speed, how far the run is."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", progress=log_lines)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "explaining in this process"
    assert len(lines) == 5
    assert re.fullmatch(r"explaining: part 3: \d+ rows, [\d,]+ rows/s; 4 of 4 parts, 3000 of 3000 rows, 100%", lines[-1])


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


@pytest.mark.slow
def test_a_file_that_is_left_out_of_a_part_is_no_part(example, tmp_path, capsys):
    """In a log or a bar: of parts of several files there are as many as are planned, whatever of them cannot be read."""
    data, screen = write_small(example.frame, tmp_path / "data"), io.StringIO()
    for name in ("03", "04"):
        damage(data / "month=1" / f"{name}.parquet")
    manifest = explain(example.model, data, tmp_path / "run-0", scheduler="serial", item_rows=100, progress=log_lines)
    lines = [line for line in capsys.readouterr().err.splitlines() if "rejected:" in line]
    with Bar(Console(file=screen, force_terminal=True, width=120)) as bar:
        explain(example.model, data, tmp_path / "run-1", scheduler="serial", item_rows=100, progress=bar)
    assert (len(manifest.rejected), len({entry.part for entry in manifest.rejected})) == (2, 2)
    n_parts = len(manifest.parts)
    assert [re.search(r"; (\d+ of \d+ parts),", line)[1] for line in lines] == [f"1 of {n_parts} parts", f"2 of {n_parts} parts"]
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).splitlines()[-1]
    assert f" {n_parts}/{n_parts} parts, " in last


@pytest.mark.slow
def test_a_run_that_left_rows_out_is_measured_to_its_end(example, tmp_path, capsys):
    """And not beyond: rows that parts of several files left out are counted as done, so they are among all."""
    data = write_small(example.frame, tmp_path / "data")
    damage(data / "month=1" / "03.parquet")
    manifest = explain(example.model, data, tmp_path / "run", scheduler="serial", item_rows=100, values=True)
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    drift(tmp_path / "run", against=tmp_path / "other", scheduler="serial", by="carrier", progress=log_lines)
    report(tmp_path / "run", scheduler="serial", progress=log_lines)
    ends = re.findall(r"^(\w+).*; (\d+) of \2 parts, (\d+) of (\d+) rows, 100%$", capsys.readouterr().err, re.MULTILINE)
    assert [doing for doing, *_ in ends] == ["measuring"] * 4 + ["counting"]
    assert {(done, of) for _, _, done, of in ends} == {(str(manifest.n_rows + manifest.n_rejected),) * 2}
