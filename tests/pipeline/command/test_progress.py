"""What a person sees while a run works."""

import io
import re

from rich.console import Console

from leafledger import explain
from pipeline.command.progress import Bar, log_lines


def test_the_bar_counts_parts_and_speed(example, tmp_path):
    """On a terminal: parts done of all, rows per second, time left."""
    screen = io.StringIO()
    with Bar(Console(file=screen, force_terminal=True, width=120)) as bar:
        explain(example.model, example.data, tmp_path / "run", scheduler="serial", progress=bar)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).splitlines()[-1]
    assert re.search(r"explaining .* 4/4 parts, [\d,]+ rows/s 0:00:00", last)


def test_the_log_has_a_line_per_part(example, tmp_path, capsys):
    """Without one: which part, its rows and speed, how far the run is."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", progress=log_lines)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert re.fullmatch(r"explaining: part 3: \d+ rows, [\d,]+ rows/s; 4 of 4 parts, 3000 of 3000 rows", lines[-1])
