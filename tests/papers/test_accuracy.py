"""Errors of shares are those of theory, with few features and rows."""

from fractions import Fraction

from tests.papers import accuracy, explained


def test_errors_are_of_both_groups(monkeypatch):
    """With nine nuisance features; more rows come nearer."""
    monkeypatch.setattr(accuracy, "choose", lambda model, *given: ({"max_depth": model.depth, "eta": 0.1, "nthread": 1}, 60))
    few, many = (accuracy.errors(explained.MODELS[2], 12, n, Fraction(3, 2), 3) for n in (100, 2_000))
    assert many[accuracy.SIGNAL] < few[accuracy.SIGNAL] < 0.1
    assert many[accuracy.NUISANCE] < few[accuracy.NUISANCE] < many[accuracy.SIGNAL]


def test_sage_finds_the_same_features():
    figure, claims = accuracy.beside_sage(["diabetes"], timed=False)
    assert len(figure.lines) == 5
    assert [claim.holds for claim in claims] == [True]
