"""The shapes of Filom et al. 2024, Table 6, of ensembles that can be counted by hand."""

import numpy as np

from tests.papers.shapes import shape_of
from tests.papers.trees import lay_out
from tests.trees import join


def test_shapes_by_hand():
    """A stump on feature 1, and a tree of two levels that asks for feature 0 twice on one way and for 1 on the other, of three features."""
    leaf = (1.0, 1.0)
    stump, tree = lay_out((1, leaf, leaf), 3), lay_out((0, (0, leaf, leaf), (1, leaf, leaf)), 3)
    found = shape_of(join([stump, tree]))
    assert found == {"trees": 2, "trees of a feature": 1.0, "leaves": 3.0, "depth": 1.5, "distinct features": 1.5}
    assert np.isclose(shape_of(stump)["trees of a feature"], 1 / 3)
