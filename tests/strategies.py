"""Random forests and rows that go where things go wrong: repeated features, categories, no cover, missing values, values at thresholds."""

import numpy as np
from hypothesis import strategies as st

from leafledger.kernels.trees.ensemble import TreeEnsemble, bit_set, check

THRESHOLDS = (-1.5, -0.0, 0.0, 0.25, 1.0, 3e38)
COVERS = (0.0, 1e-3, 0.1, 0.5, 0.999)  # share of a split's cover that goes left; 0.0 may also go right
N_CATEGORIES = 3


class _Builder:
    """Nodes as they are drawn."""

    def __init__(self, draw, n_features, categorical, width):
        self.draw, self.n_features, self.categorical, self.width = draw, n_features, categorical, width
        self.nodes, self.sets = [], []

    def grow(self, depth, cover):
        node = {"feature": -1, "threshold": 0.0, "missing_left": False, "category_set": -1, "left": -1, "right": -1, "cover": cover}
        node["value"] = [self.draw(st.integers(-8, 8)) / 4 for _ in range(self.width)]
        self.nodes.append(node)
        index = len(self.nodes) - 1
        if depth == 0 or self.draw(st.integers(0, 4)) == 0:
            return index
        node["feature"] = self.draw(st.integers(0, self.n_features - 1))
        node["missing_left"] = self.draw(st.booleans())
        if node["feature"] in self.categorical:
            node["category_set"] = len(self.sets)
            self.sets.append(bit_set(self.draw(st.sets(st.integers(0, N_CATEGORIES))), N_CATEGORIES))
        else:
            node["threshold"] = self.draw(st.sampled_from(THRESHOLDS))
        share = self.draw(st.sampled_from(COVERS))
        left, right = cover * share, cover * (1 - share)
        if self.draw(st.booleans()):
            left, right = right, left
        node["left"], node["right"] = self.grow(depth - 1, left), self.grow(depth - 1, right)
        return index


@st.composite
def forests(draw, max_trees=3, max_depth=4, max_features=5):
    """Well-formed ensembles of scalar leaves, of several outputs, and of vector leaves."""
    n_features = draw(st.integers(1, max_features))
    categorical = {n_features - 1} if draw(st.booleans()) else set()
    outputs = draw(st.sampled_from((1, 1, 2)))
    width = draw(st.sampled_from((1, outputs)))
    builder = _Builder(draw, n_features, categorical, width)
    roots = [builder.grow(draw(st.integers(0, max_depth)), draw(st.sampled_from((100.0, 0.0)))) for _ in range(draw(st.integers(0, max_trees)))]
    types = {
        "feature": np.int32,
        "threshold": float,
        "missing_left": bool,
        "category_set": np.int32,
        "left": np.int32,
        "right": np.int32,
        "cover": float,
    }
    ensemble = TreeEnsemble(
        **{name: np.array([node[name] for node in builder.nodes], dtype) for name, dtype in types.items()},
        value=np.array([node["value"] for node in builder.nodes]).reshape(-1, width),
        root=np.array(roots, np.int32),
        output=np.array([t % outputs if width == 1 else 0 for t in range(len(roots))], np.int32),
        base=np.array([draw(st.integers(-4, 4)) / 2 for _ in range(outputs)]),
        n_categories=np.array([N_CATEGORIES if j in categorical else 0 for j in range(n_features)], np.int32),
        zero_missing=np.array([j not in categorical and draw(st.booleans()) for j in range(n_features)]),
        set_start=np.concatenate(([0], np.cumsum([words.size for words in builder.sets]))).astype(np.int64),
        set_words=np.concatenate(builder.sets) if builder.sets else np.zeros(0, np.uint32),
        single_precision=draw(st.booleans()),
    )
    check(ensemble)
    return ensemble


SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, 0.1, 1.0, 2.0, 3.0, 7.0, -1.0, -0.5, 1e308, 5e-324)


@st.composite
def batches(draw, ensemble, max_rows=4, of_data=False):
    """Rows of an ensemble, ``(n, features)`` float64, near and at its thresholds; those of data have no codes between -1 and 0, which are refused."""
    values = [*SPECIAL, *THRESHOLDS, *(np.nextafter(threshold, side) for threshold in THRESHOLDS for side in (-np.inf, np.inf))]
    codes = [value for value in values if not -1 < value < 0] if of_data else values
    of_each = [codes if n else values for n in ensemble.n_categories.tolist()]
    n_rows = draw(st.integers(1, max_rows))
    return np.array([[draw(st.sampled_from(allowed)) for allowed in of_each] for _ in range(n_rows)])


@st.composite
def partitions(draw, ensemble, max_groups=3):
    """A group for every feature, ``(features,)`` int64, numbered from 0 without a gap."""
    drawn = [draw(st.integers(0, max_groups - 1)) for _ in range(ensemble.n_features)]
    return np.unique(drawn, return_inverse=True)[1]
