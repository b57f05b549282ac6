"""Errors of shares are those of theory, with few features and rows."""

from fractions import Fraction

import numpy as np
import xgboost

from tests.papers import accuracy, explained


def test_errors_are_of_both_groups(monkeypatch):
    """With nine nuisance features; more rows come nearer."""
    monkeypatch.setattr(accuracy, "choose", lambda model, *given: ({"max_depth": model.depth, "eta": 0.1, "nthread": 1}, 60))
    few, many = (accuracy.errors(explained.MODELS[2], 12, n, Fraction(3, 2), 3) for n in (100, 2_000))
    assert many[accuracy.SIGNAL] < few[accuracy.SIGNAL] < 0.1
    assert many[accuracy.NUISANCE] < few[accuracy.NUISANCE] < many[accuracy.SIGNAL]


def test_sage_finds_the_same_features():
    figure, claims = accuracy.beside_sage(["diabetes"], timed=False)
    assert len(figure.lines) == 6
    assert [claim.holds for claim in claims] == [True] * 3


def test_sage_adds_up_to_r2_and_the_distance_of_its_background():
    """By its definition, of every row drawn from: the loss of the mean prediction less that of the model is R² where both means are the same."""
    rows, labels = np.random.default_rng(0).integers(0, 2, (200, 3)).astype(np.float32), np.random.default_rng(1).normal(size=200)
    booster = xgboost.train({"max_depth": 2, "eta": 1.0, "lambda": 0.0, "nthread": 1}, xgboost.DMatrix(rows, labels), 3)
    predicted = booster.inplace_predict(rows)
    r2 = 1 - ((labels - predicted) ** 2).mean() / labels.var()
    found, error = accuracy.sage_sum(booster, rows, labels, 100)
    assert abs(found - r2 - (predicted.mean() - labels.mean()) ** 2 / labels.var()) < 1e-5
    assert 0 < error < 1
