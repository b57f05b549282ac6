"""Features are put in the order of their flat index, and refused where they do not fit together."""

import numpy as np
import pytest

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.catboost.columns import MAX_FEATURES, Column, order_columns


def number(flat, borders, name="x"):
    return Column(False, 0, flat, name, False, np.array(borders, np.float32), (), None)


def category(flat, values, texts=None, name="c"):
    return Column(True, 0, flat, name, False, np.empty(0, np.float32), values, texts)


def test_gaps_between_flat_indices_close():
    """Positions are ranks."""
    assert order_columns((number(9, [0.5]), category(4, (7,)), number(0, [])), "m") == {0: 0, 4: 1, 9: 2}


@pytest.mark.parametrize(
    ("columns", "error", "says"),
    [
        ((number(0, [1.0]), number(0, [2.0])), InvalidModel, r"flat feature indices are \[0, 0\], expected distinct numbers >= 0"),
        ((number(-1, [1.0]),), InvalidModel, r"flat feature indices are \[-1\], expected distinct numbers >= 0"),
        ((number(0, [2.0, 1.0]),), InvalidModel, "feature 'x' has border 2 before 1, expected ascending ones"),
        ((category(0, (7, 7)),), InvalidModel, "feature 'c' has the same category twice"),
        ((category(0, (7, 8), ("a", "a")),), InvalidModel, "feature 'c' has the same category twice"),
        ((category(0, (7, 8), ("a",)),), InvalidModel, "feature 'c' has 1 texts for 2 categories"),
        ((number(0, []),) * (MAX_FEATURES + 1), UnsupportedModel, f"{MAX_FEATURES + 1} features, expected at most {MAX_FEATURES}"),
    ],
)
def test_features_that_do_not_fit_together_are_refused(columns, error, says):
    """In one line with the feature."""
    with pytest.raises(error, match=f"^m: {says}$"):
        order_columns(columns, "m")
