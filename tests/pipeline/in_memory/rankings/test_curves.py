"""Rankings of rows in memory: curves and gradients by name, for frames and matrices, with the refusals that users see."""

import inspect

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import leafledger
from leafledger.pipeline.errors import LeafledgerError, UsageError
from tests import naive
from tests.pipeline.conftest import FEATURES, WRONG

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
    model = leafledger.load_ensemble(example.model)
    phi = leafledger.attribute(model, rows).phi
    found = leafledger.curves(example.model, rows, phi)
    matrix = coded(model, rows)
    for i in range(5):
        for curve, area, definition in (
            (found.insertion, found.insertion_area, naive.insertion),
            (found.deletion, found.deletion_area, naive.deletion),
        ):
            expected = np.array(definition(model.ensemble, matrix[i], phi[i, 0], 0), float)
            assert_allclose(curve[i, 0], expected, rtol=0, atol=ATOL)
            assert_allclose(area[i, 0], expected[1:].mean(), rtol=0, atol=ATOL)


@pytest.mark.parametrize("partition", [None, {"when": ["month", "delay"]}])
def test_what_pandas_names_goes_by_its_names(example, rows, partition):
    """Scores and probabilities in another order, by position too, of features and groups; other names are refused."""
    given = {"partition": partition}
    players = leafledger.attribute(example.model, rows[:1], partition=partition).players
    z = np.linspace(0.1, 0.9, len(players))
    expected = leafledger.gradient(example.model, rows, z, **given)
    for named in (pd.Series(z, players), pd.Series(z), pd.DataFrame([z], columns=players)):
        turned = named.iloc[::-1] if named.ndim == 1 else named.iloc[:, ::-1]
        for some in (named, turned):
            assert_array_equal(leafledger.gradient(example.model, rows, some, **given).phi, expected.phi)
    one = leafledger.attribute(example.model, rows[:1], **given)
    area = leafledger.curves(example.model, rows[:1], one.phi, **given).insertion_area
    assert_array_equal(leafledger.curves(example.model, rows[:1], one.to_frame().iloc[:, ::-1], **given).insertion_area, area)
    for wrong in (pd.Series(z, [*players[:-1], "other"]), pd.Series(z[1:], players[1:]), pd.Series(z, [players[0]] * len(z))):
        with pytest.raises(UsageError, match=r"^(probabilities|scores) are named \[.*, expected names or positions of \["):
            leafledger.gradient(example.model, rows, wrong, **given)
        with pytest.raises(UsageError, match=r"^(probabilities|scores) are named \[.*, expected names or positions of \["):
            leafledger.curves(example.model, rows, wrong, **given)


def test_gradients_in_the_middle_are_banzhaf_values(example, rows):
    """At any other point they are not, and a point per row is as good as one for all."""
    found = leafledger.gradient(example.model, rows)
    assert_allclose(found.phi, leafledger.attribute(example.model, rows, "banzhaf").phi, rtol=0, atol=ATOL)
    z = np.random.default_rng(0).random((N, 1, len(FEATURES)))
    whole = leafledger.gradient(example.model, rows, z)
    assert_allclose(leafledger.gradient(example.model, rows[:1], z[0]).phi, whole.phi[:1], rtol=0, atol=ATOL)
    assert_allclose(leafledger.gradient(example.model, rows, 1.0).margin, leafledger.attribute(example.model, rows).margin, rtol=0, atol=ATOL)


def test_the_path_of_the_objective(example, rows):
    """Scores come with it: from 0 upwards, in small steps."""
    found = leafledger.attribute(example.model, rows, "ranker", parameters={"steps": 5, "rate": 0.05})
    assert found.path.shape == (N, 1, 5)
    assert (found.path[:, :, 0] == 0).all()
    assert (np.diff(found.path, axis=2) >= -ATOL).all()
    assert leafledger.attribute(example.model, rows).path is None


@pytest.mark.slow
def test_a_run_keeps_the_path_of_the_objective(example, tmp_path):
    """Scores and a summary per step, found sound by the verifier, and the same bytes on two workers."""
    parts = []
    for who, where in {"serial": {"scheduler": "serial"}, "two": {"workers": 2}}.items():
        run = tmp_path / who
        leafledger.explain(example.model, example.data, run, method="ranker", parameters={"steps": 3}, precision="float64", **where)
        assert leafledger.check_run(str(run)).residual is None
        parts.append([path.read_bytes() for path in sorted(run.glob("*/*.parquet"))])
    assert parts[0] == parts[1]
    frame = example.frame[FEATURES].assign(month=example.frame["month"].astype(int))
    path = leafledger.attribute(example.model, frame, "ranker", parameters={"steps": 3}).path
    summary = pd.read_parquet(run / "summary" / "objective.parquet")
    assert summary["step"].tolist() == [1, 2, 3]
    assert_allclose(summary["mean"], path[:, 0].mean(axis=0), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_a_run_writes_the_curves_that_python_gives(example, tmp_path):
    """Ranks and areas of every row, means of both curves in a summary; found sound by the verifier, and the same bytes on two workers."""
    parts = []
    for who, where in {"serial": {"scheduler": "serial"}, "two": {"workers": 2}}.items():
        run, given = tmp_path / who, {"parameters": {"ranking": "beta:4:1"}, "precision": "float64", "ids": ["flight"]}
        leafledger.explain(example.model, example.data, run, method="curves", **given, **where)
        assert leafledger.check_run(str(run), deep=True).residual is None
        parts.append([path.read_bytes() for path in sorted(run.glob("*/*.parquet"))])
    assert parts[0] == parts[1]
    frame = example.frame[FEATURES].assign(month=example.frame["month"].astype(int))
    scores = leafledger.attribute(example.model, frame, "beta", parameters={"alpha": 4, "beta": 1}).phi
    curves = leafledger.curves(example.model, frame, scores)
    rows = pd.read_parquet(run / "attributions").sort_values("flight")
    order = np.argsort(example.frame["flight"].to_numpy())
    assert_allclose(rows["insertion"], curves.insertion_area[order, 0], rtol=0, atol=ATOL)
    assert_allclose(rows["deletion"], curves.deletion_area[order, 0], rtol=0, atol=ATOL)
    ranked = np.argsort(np.argsort(-scores[order, 0], axis=1, kind="stable"), axis=1) + 1
    model = leafledger.load_ensemble(example.model)
    used = [name for j, name in enumerate(FEATURES) if (model.ensemble.feature == j).any()]
    assert_array_equal(rows[[f"rank_{name}" for name in used]], ranked[:, [FEATURES.index(name) for name in used]])
    summary = pd.read_parquet(run / "summary" / "curves.parquet")
    for kind in ("insertion", "deletion"):
        mine = summary[summary["curve"] == kind]
        assert mine["present"].tolist() == list(range(len(FEATURES) + 1))
        assert_allclose(mine["mean"], getattr(curves, kind)[:, 0].mean(axis=0), rtol=0, atol=ATOL)
    areas = pd.read_parquet(run / "summary" / "areas.parquet").set_index("feature")["mean"]
    assert_allclose(areas[["insertion", "deletion"]], rows[["insertion", "deletion"]].mean(), rtol=0, atol=ATOL)
    found = leafledger.attribute(example.model, frame[:N], "curves", parameters={"ranking": "beta:4:1"})
    both = np.concatenate((curves.insertion, curves.deletion), axis=2)
    assert_allclose(found.path, both[:N], rtol=0, atol=ATOL)


def test_groups(example, rows):
    """Players are groups: curves have a point for each."""
    groups = {"flight": ["distance", "delay"]}
    phi = leafledger.attribute(example.model, rows, "ranker", partition=groups).phi
    found = leafledger.curves(example.model, rows, phi, partition=groups)
    assert found.insertion.shape == (N, 1, 4)
    assert_allclose(found.insertion[:, :, -1], found.deletion[:, :, -1], rtol=0, atol=ATOL)
    assert leafledger.gradient(example.model, rows, [0.1, 0.5, 0.9], partition=groups).phi.shape == (N, 1, 3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda model, rows: leafledger.gradient(model, rows, 1.5), "probabilities are expected to lie between 0 and 1"),
        (lambda model, rows: leafledger.gradient(model, rows, np.zeros(3)), r"probabilities have shape \(3,\), expected \(40, 1, 4\)"),
        (lambda model, rows: leafledger.curves(model, rows, np.nan), "scores are expected to be finite"),
        (lambda model, rows: leafledger.curves(model, rows, np.arange(4.0) + 1), "scores are expected to be 0 for features that no split asks for"),
    ],
)
def test_refusals(example, rows, call, says):
    with pytest.raises(UsageError, match=says):
        call(example.model, rows)


@pytest.mark.parametrize(
    ("function", "name"),
    [(function, name) for function in (leafledger.gradient, leafledger.curves) for name in inspect.signature(function).parameters],
)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_a_wrong_type_is_told_in_one_line(example, rows, function, name, wrong):
    """Whatever stands in the place of an argument: a refusal of one line, no traceback."""
    if name == "z" and isinstance(wrong, list):
        return  # a probability, which spreads
    given = {"model": example.model, "rows": rows} | ({"scores": 0.0} if function is leafledger.curves else {}) | {name: wrong}
    with pytest.raises(LeafledgerError) as error:
        function(**given)
    assert "\n" not in str(error.value)
