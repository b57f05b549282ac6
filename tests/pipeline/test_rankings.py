"""Rankings of rows in memory: curves and gradients by name, for frames and matrices, with the refusals that users see."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import pipeline
from pipeline.errors import UsageError
from tests import naive
from tests.pipeline.conftest import FEATURES

N = 40
ATOL = 1e-9  # margins reach some hundreds


@pytest.fixture(scope="module")
def rows(example):
    return example.frame[FEATURES].assign(month=example.frame["month"].astype(int))[:N]


def coded(model, frame):
    """Rows as the definitions take them."""
    categories = list(model.features[FEATURES.index("carrier")].categories)
    return frame.assign(carrier=[categories.index(name) if isinstance(name, str) else np.nan for name in frame["carrier"]]).to_numpy(float)


def test_curves_of_any_scores(example, rows):
    """Every set of the ranking, from a model file and a frame, with features in no split in their places."""
    model = pipeline.load_ensemble(example.model)
    phi = pipeline.attribute(model, rows).phi
    found = pipeline.curves(example.model, rows, phi)
    matrix = coded(model, rows)
    for i in range(5):
        for curve, area, definition in (
            (found.insertion, found.insertion_area, naive.insertion),
            (found.deletion, found.deletion_area, naive.deletion),
        ):
            expected = np.array(definition(model.ensemble, matrix[i], phi[i, 0], 0), float)
            assert_allclose(curve[i, 0], expected, rtol=0, atol=ATOL)
            assert_allclose(area[i, 0], expected[1:].mean(), rtol=0, atol=ATOL)


def test_gradients_in_the_middle_are_banzhaf_values(example, rows):
    """At any other point they are not, and a point per row is as good as one for all."""
    found = pipeline.gradient(example.model, rows)
    assert_allclose(found.phi, pipeline.attribute(example.model, rows, "banzhaf").phi, rtol=0, atol=ATOL)
    z = np.random.default_rng(0).random((N, 1, len(FEATURES)))
    whole = pipeline.gradient(example.model, rows, z)
    assert_allclose(pipeline.gradient(example.model, rows[:1], z[0]).phi, whole.phi[:1], rtol=0, atol=ATOL)
    assert_allclose(pipeline.gradient(example.model, rows, 1.0).margin, pipeline.attribute(example.model, rows).margin, rtol=0, atol=ATOL)


def test_the_path_of_the_objective(example, rows):
    """Scores come with it: from 0 upwards, in small steps."""
    found = pipeline.attribute(example.model, rows, "ranker", steps=5, rate=0.05)
    assert found.path.shape == (N, 1, 5)
    assert (found.path[:, :, 0] == 0).all()
    assert (np.diff(found.path, axis=2) >= -ATOL).all()
    assert pipeline.attribute(example.model, rows).path is None


def test_a_run_keeps_the_path_of_the_objective(example, tmp_path):
    """Scores and a summary per step, found sound by the verifier, and the same bytes on two workers."""
    parts = []
    for who, where in {"serial": {"scheduler": "serial"}, "two": {"workers": 2}}.items():
        run = tmp_path / who
        pipeline.explain(example.model, example.data, run, method="ranker", parameters={"steps": 3}, precision="float64", **where)
        assert pipeline.check_run(str(run)).residual is None
        parts.append([path.read_bytes() for path in sorted(run.glob("*/*.parquet"))])
    assert parts[0] == parts[1]
    frame = example.frame[FEATURES].assign(month=example.frame["month"].astype(int))
    path = pipeline.attribute(example.model, frame, "ranker", steps=3).path
    summary = pd.read_parquet(run / "summary" / "objective.parquet")
    assert summary["step"].tolist() == ["1", "2", "3"]
    assert_allclose(summary["mean"], path[:, 0].mean(axis=0), rtol=1e-12, atol=1e-12)


def test_groups(example, rows):
    """Players are groups: curves have a point for each."""
    groups = {"flight": ["distance", "delay"]}
    phi = pipeline.attribute(example.model, rows, "ranker", partition=groups).phi
    found = pipeline.curves(example.model, rows, phi, partition=groups)
    assert found.insertion.shape == (N, 1, 4)
    assert_allclose(found.insertion[:, :, -1], found.deletion[:, :, -1], rtol=0, atol=ATOL)
    assert pipeline.gradient(example.model, rows, [0.1, 0.5, 0.9], partition=groups).phi.shape == (N, 1, 3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda model, rows: pipeline.gradient(model, rows, 1.5), "probabilities are expected to lie between 0 and 1"),
        (lambda model, rows: pipeline.gradient(model, rows, np.zeros(3)), r"probabilities have shape \(3,\), expected \(40, 1, 4\)"),
        (lambda model, rows: pipeline.curves(model, rows, np.nan), "scores are expected to be finite"),
        (lambda model, rows: pipeline.curves(model, rows, np.arange(4.0) + 1), "scores are expected to be 0 for features that no split asks for"),
    ],
)
def test_refusals(example, rows, call, says):
    with pytest.raises(UsageError, match=says):
        call(example.model, rows)
