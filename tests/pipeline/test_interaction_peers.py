"""Interactions of sets are shapiq's, index by index, where shapiq is installed: among what ``make bench`` needs."""

import numpy as np
import pandas as pd
import pytest
import xgboost

from leafledger import attribute

shapiq = pytest.importorskip("shapiq", reason="shapiq is only among what make bench needs")

RNG = np.random.default_rng(6)
TRAIN = RNG.normal(size=(500, 6))
TARGET = TRAIN[:, 0] * TRAIN[:, 1] + TRAIN[:, 2] * TRAIN[:, 3] * TRAIN[:, 4] + TRAIN[:, 0]
ROWS, BACKGROUND = RNG.normal(size=(5, 6)), RNG.normal(size=(20, 6))
SINGLE = 2e-6  # of the largest interaction: shapiq reads XGBoost's leaves in single precision


@pytest.fixture(scope="module")
def model():
    return xgboost.XGBRegressor(max_depth=4, n_estimators=15, n_jobs=1).fit(TRAIN, TARGET)


def check(found, theirs):
    """Every set of every row; what shapiq does not list is 0, and of nobody only shapiq has a number."""
    places = [tuple(int(name) for name in members) for members in found.sets]
    for i, each in enumerate(theirs):
        listed = {tuple(sorted(members)): each.values[place] for members, place in each.interaction_lookup.items() if members}
        assert np.abs([listed.pop(members, 0.0) for members in places] - found.interactions[i, 0]).max() < SINGLE * np.abs(found.interactions).max()
        assert max(map(abs, listed.values()), default=0.0) < SINGLE * np.abs(found.interactions).max()


def ask(model, index, order, background=None):
    """Ours, features called by their positions."""
    names = [str(j) for j in range(6)]
    rows = pd.DataFrame(ROWS, columns=names)
    background = None if background is None else pd.DataFrame(background, columns=names)
    return attribute(model, rows, interactions="all", order=order, index=index, background=background)


@pytest.mark.parametrize("index", ["SII", "k-SII", "BII"])
def test_path_dependent_interactions_are_theirs(model, index):
    """Those that shapiq has, of up to three features."""
    explain = shapiq.TreeExplainer(model, index=index, min_order=1, max_order=3).explain
    check(ask(model, index, 3), [explain(row) for row in ROWS])


@pytest.mark.parametrize("index", ["SII", "k-SII", "STII", "FSII", "BII", "FBII"])
def test_marginal_interactions_are_theirs(model, index):
    """Against twenty rows."""
    from shapiq.tree.interventional import InterventionalTreeSHAPIQ

    explain = InterventionalTreeSHAPIQ(model, BACKGROUND, index=index, max_order=3).explain_function
    check(ask(model, index, 3, BACKGROUND), [explain(row) for row in ROWS])
