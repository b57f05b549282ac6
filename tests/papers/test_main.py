"""What ``make papers PAPERS=--quick`` shows, and that the command fails where a claim does not hold."""

import json

import numpy as np
import pytest

from tests.papers import __main__ as command
from tests.papers import figures

LONG = ("draw_figures", "draw_gap", "draw_marginal", "draw_removal")


@pytest.mark.parametrize("draw", [pytest.param(draw, marks=pytest.mark.more if draw.__name__ in LONG else ()) for draw in command.DRAWN])
def test_claims_hold_at_few_sizes(draw):
    """At few depths, of small models, on few rows; every number is there, infinite where the published overflows."""
    drawn = list(draw(quick=True))
    assert [claim.text for _, claims in drawn for claim in claims if not claim.holds] == []
    assert all(figure.lines for figure, _ in drawn)
    assert not any(np.isnan(number) for figure, _ in drawn for line in figure.lines for number in line.numbers.values())


def test_the_command_fails_with_a_claim(monkeypatch, capsys, tmp_path):
    """Tables are printed and numbers kept all the same, and the exit status is not zero."""
    figure = figures.Figure("A figure", ("D",), (figures.Line((3,), {"ours": 2e-3}),))
    monkeypatch.setattr("sys.argv", ["papers", "--quick", "--folder", str(tmp_path)])
    monkeypatch.setattr(command, "DRAWN", [lambda quick: [(figure, [figures.stay_below(figure, ("ours",), figures.EXACT)])]])
    with pytest.raises(SystemExit, match="1 of the claims"):
        command.main()
    assert "FAILS  ours: below 1e-12 at every D" in capsys.readouterr().out
    (kept,) = json.loads((tmp_path / "results.json").read_text())["figures"]
    assert kept["claims"] == [{"text": "ours: below 1e-12 at every D", "verdict": "FAILS"}]


@pytest.mark.parametrize("asked", [[], ["--full"]])
def test_all_is_drawn_in_full_where_that_is_asked_for(asked, monkeypatch, capsys, tmp_path):
    """By those that have more to draw; the others know no such thing."""
    told = []
    figure = figures.Figure("A figure", ("D",), (figures.Line((3,), {"ours": 1.0}),))

    def draw_more(quick, full=False):
        told.append(("more", quick, full))
        return [(figure, [])]

    def draw_usual(quick):
        told.append(("usual", quick))
        return []

    monkeypatch.setattr("sys.argv", ["papers", *asked, "--folder", str(tmp_path)])
    monkeypatch.setattr(command, "DRAWN", (draw_more, draw_usual))
    monkeypatch.setattr(command, "MORE", (draw_more,))
    command.main()
    assert told == [("more", False, bool(asked)), ("usual", False)]
    assert "A figure" in capsys.readouterr().out
