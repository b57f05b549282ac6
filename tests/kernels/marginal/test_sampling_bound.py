"""The bound of Theorem 3.15, from the formula as it is printed; and whether it holds."""

import math

import catboost
import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_allclose

from leafledger import attribute, load_ensemble
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.marginal.sampling_bound import bound_sampling
from leafledger.pipeline.models.model import Feature, Model
from tests.trees import one_tree

RNG = np.random.default_rng(4)
ROWS = RNG.normal(size=(3000, 4))
LABEL = ROWS[:, 0] * ROWS[:, 1] + np.sin(3 * ROWS[:, 2])


@pytest.fixture(scope="module")
def model():
    made = catboost.CatBoostRegressor(iterations=12, depth=3, random_seed=2, thread_count=1, verbose=False, allow_writing_files=False)
    return load_ensemble(made.fit(ROWS, LABEL))


def printed(model, feature):
    """Formulas 3.27 to 3.29, tree by tree. Of leaves of one sign the value nearest to zero is common to all, and changes no attribution."""
    ensemble, counts, ginis, growths, norms = model.ensemble, 0, [], [], []
    for root in ensemble.root:
        splits, leaves, nodes = set(), [], [root]
        while nodes:
            v = nodes.pop()
            if ensemble.left[v] < 0:
                leaves.append(v)
            else:
                splits.add((int(ensemble.feature[v]), float(ensemble.threshold[v])))
                nodes += [ensemble.left[v], ensemble.right[v]]
        features = {asked for asked, _ in splits}
        if feature not in features:
            continue
        common = min((float(ensemble.value[v, 0]) for v in leaves), key=abs)
        common = common if len({ensemble.value[v, 0] > 0 for v in leaves}) == 1 else 0.0
        leaves = [v for v in leaves if ensemble.cover[v] > 0]
        p = [ensemble.cover[v] / sum(ensemble.cover[u] for u in leaves) for v in leaves]
        counts += 1
        ginis.append(math.fsum(share**2 for share in p) ** 0.25)
        growths.append((1.5 / len(features) * (1 + len(splits) / len(features)) ** len(features)) ** 0.25)
        norms.append(math.sqrt(math.fsum((float(ensemble.value[v, 0]) - common) ** 2 for v in leaves)))
    return counts, ginis, growths, norms


def test_the_bound_is_as_printed(model):
    found = bound_sampling(model.ensemble, 500)
    for feature in range(4):
        counts, ginis, growths, norms = printed(model, feature)
        assert_allclose(found[0, feature], 4 * counts / math.sqrt(500) * max(ginis) * max(growths) * max(norms), rtol=1e-12)
    assert_allclose(bound_sampling(model.ensemble, 2000), found / 2, rtol=1e-12)


@pytest.mark.again
@pytest.mark.slow
def test_the_bound_holds(model):
    """Root mean squared errors over samples of 100 rows, of rows that stand for all."""
    truth, errors = attribute(model, ROWS[:50], background=ROWS).phi, []
    for _ in range(60):
        sample = ROWS[RNG.integers(0, len(ROWS), 100)]
        errors.append((attribute(model, ROWS[:50], background=sample).phi - truth) ** 2)
    measured = np.sqrt(np.mean(errors, axis=0))[:, 0].max(axis=0)
    bound = bound_sampling(model.ensemble, 100)[0]
    assert (measured <= bound).all()
    assert (bound[:3] > 0).all()


@pytest.mark.slow
def test_it_holds_where_no_row_of_the_population_is():
    """Two features that are always equal, and a tree whose value is 1000 where they differ: rows of a coalition are there."""
    ensemble = one_tree(
        feature=[0, 1, 1, -1, -1, -1, -1],
        threshold=[0.5, 0.5, 0.5, 0, 0, 0, 0],
        left=[1, 3, 5, -1, -1, -1, -1],
        right=[2, 4, 6, -1, -1, -1, -1],
        value=[0, 0, 0, 0, 1000, 0, 0],
        cover=[100, 50, 50, 50, 0, 0, 50],
        n_features=2,
    )
    model, errors = Model(ensemble, (Feature("a"), Feature("b")), ("0",), "xgboost", "0" * 64), []
    for _ in range(60):
        sample = np.repeat(RNG.integers(0, 2, 100), 2).reshape(100, 2).astype(float)
        errors.append(attribute(model, np.zeros((1, 2)), background=sample).phi[0, 0])
    measured = np.std(errors, axis=0)
    assert (measured > 10).all()
    assert (measured <= bound_sampling(model.ensemble, 100)[0]).all()


def test_trees_that_are_not_symmetric_have_no_bound():
    made = lightgbm.LGBMRegressor(n_estimators=1, num_leaves=4, verbose=-1).fit(ROWS, LABEL)
    with pytest.raises(InvalidParameters, match="as leaves of symmetric trees do"):
        bound_sampling(load_ensemble(made).ensemble, 10)
