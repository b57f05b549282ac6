"""Impacts and errors by feature, against sums over rows."""

from math import sqrt

import numpy as np
import pytest

from tests.papers.impacts import _of_features


def test_impacts_and_errors_are_means_over_rows():
    """By their definitions, the root of the mean square among them."""
    both = np.random.default_rng(0).normal(size=(2, 7, 3))
    found = _of_features(both)
    for j in range(3):
        rows = [(float(both[0, i, j]), float(both[1, i, j])) for i in range(7)]
        assert found["shapley"][j] == pytest.approx(sum(abs(phi) for phi, _ in rows) / 7)
        assert found["banzhaf"][j] == pytest.approx(sum(abs(beta) for _, beta in rows) / 7)
        assert found["MAE"][j] == pytest.approx(sum(abs(phi - beta) for phi, beta in rows) / 7)
        assert found["RMSE"][j] == pytest.approx(sqrt(sum((phi - beta) ** 2 for phi, beta in rows) / 7))
