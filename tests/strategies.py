"""Random forests and rows that go where things go wrong: repeated features, categories, no cover, missing values, values at thresholds."""

import itertools

import numpy as np
from hypothesis import strategies as st

from leafledger.kernels.trees.ensemble import TreeEnsemble, bit_set, check

THRESHOLDS = (-1.5, -0.0, 0.0, 0.25, 1.0, 3e38)
COVERS = (0.0, 1e-3, 0.1, 0.5, 0.999)  # share of a split's cover that goes left; 0.0 may also go right
N_CATEGORIES = 3
# One draw for what is drawn together, and strategies made once: both cost as much as what is tested.
LEAVES = st.sampled_from(sorted((quarters / 4 for quarters in range(-8, 9)), key=abs))
STOPS = st.integers(0, 4)  # at 0
SPLITS = st.sampled_from([*itertools.product(THRESHOLDS, (False, True), COVERS, (False, True))])
CATEGORIES = st.sampled_from([[code for code in range(N_CATEGORIES + 1) if bits >> code & 1] for bits in range(2 ** (N_CATEGORIES + 1))])
OUTPUTS = st.sampled_from([*[(1, 1)] * 4, (2, 1), (2, 2)])  # how many, and how many in a leaf


class _Builder:
    """Nodes as they are drawn."""

    def __init__(self, draw, n_features, categorical, width):
        self.draw, self.features, self.categorical, self.width = draw, st.integers(0, n_features - 1), categorical, width
        self.nodes, self.sets = [], []

    def grow(self, depth, cover):
        node = {"feature": -1, "threshold": 0.0, "missing_left": False, "category_set": -1, "left": -1, "right": -1, "cover": cover}
        node["value"] = [self.draw(LEAVES) for _ in range(self.width)]
        self.nodes.append(node)
        index = len(self.nodes) - 1
        if depth == 0 or self.draw(STOPS) == 0:
            return index
        node["feature"] = self.draw(self.features)
        threshold, node["missing_left"], share, swapped = self.draw(SPLITS)
        if node["feature"] in self.categorical:
            node["category_set"] = len(self.sets)
            self.sets.append(bit_set(self.draw(CATEGORIES), N_CATEGORIES))
        else:
            node["threshold"] = threshold
        left, right = cover * share, cover * (1 - share)
        if swapped:
            left, right = right, left
        node["left"], node["right"] = self.grow(depth - 1, left), self.grow(depth - 1, right)
        return index


@st.composite
def forests(draw, max_trees=3, max_depth=4, max_features=5):
    """Well-formed ensembles of scalar leaves, of several outputs, and of vector leaves."""
    n_features = draw(st.integers(1, max_features))
    categorical = {n_features - 1} if draw(st.booleans()) else set()
    outputs, width = draw(OUTPUTS)
    builder = _Builder(draw, n_features, categorical, width)
    grown = st.tuples(st.integers(0, max_depth), st.sampled_from((100.0, 0.0)))
    roots = [builder.grow(*draw(grown)) for _ in range(draw(st.integers(0, max_trees)))]
    zero_missing = draw(st.integers(0, 2**n_features - 1))  # a bit of each feature
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
        zero_missing=np.array([j not in categorical and bool(zero_missing >> j & 1) for j in range(n_features)]),
        set_start=np.concatenate(([0], np.cumsum([words.size for words in builder.sets]))).astype(np.int64),
        set_words=np.concatenate(builder.sets) if builder.sets else np.zeros(0, np.uint32),
        single_precision=draw(st.booleans()),
    )
    check(ensemble)
    return ensemble


SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, 0.1, 1.0, 2.0, 3.0, 7.0, -1.0, -0.5, 1e308, 5e-324)
VALUES = [*SPECIAL, *THRESHOLDS, *(np.nextafter(threshold, side) for threshold in THRESHOLDS for side in (-np.inf, np.inf))]
ROWS, CODES = st.sampled_from(VALUES), st.sampled_from([value for value in VALUES if not -1 < value < 0])


@st.composite
def batches(draw, ensemble, max_rows=4, of_data=False):
    """Rows of an ensemble, ``(n, features)`` float64, near and at its thresholds; those of data have no codes between -1 and 0, which are refused."""
    of_each = [CODES if n and of_data else ROWS for n in ensemble.n_categories.tolist()]
    return np.array([[draw(value) for value in of_each] for _ in range(draw(st.integers(1, max_rows)))])


@st.composite
def partitions(draw, ensemble, max_groups=3):
    """A group for every feature, ``(features,)`` int64, numbered from 0 without a gap."""
    drawn = [draw(st.integers(0, max_groups - 1)) for _ in range(ensemble.n_features)]
    return np.unique(drawn, return_inverse=True)[1]
