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
from tests.pipeline.in_memory.rankings.coded import coded

N = 40
ATOL = 1e-9  # margins reach some hundreds


@pytest.fixture(scope="module")
def rows(example):
    return example.frame[FEATURES].assign(month=example.frame["month"].astype(int))[:N]


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


def test_curves_against_a_background(example, rows):
    """Every set of the ranking in the marginal game, as a run's curves have it."""
    model, background = leafledger.load_ensemble(example.model), rows[::8]
    phi = leafledger.attribute(model, rows, background=background).phi
    found, matrix, others = leafledger.curves(model, rows, phi, background=background), coded(model, rows), coded(model, background)
    for i in range(3):
        for curve, definition in ((found.insertion, naive.insertion), (found.deletion, naive.deletion)):
            assert_allclose(curve[i, 0], np.array(definition(model.ensemble, matrix[i], phi[i, 0], 0, others), float), rtol=0, atol=ATOL)
    same = leafledger.attribute(model, rows, "curves", background=background)
    assert_allclose(same.path, np.concatenate((found.insertion, found.deletion), axis=2), rtol=0, atol=ATOL)


def test_the_features_that_raise_and_lower_the_margin_most(example, rows):
    """As many as there are at the highest point of insertion and at the lowest of deletion, the fewest of equals; the numbers of the method."""
    found = leafledger.curves(example.model, rows, leafledger.attribute(example.model, rows).phi)
    scores = leafledger.attribute(example.model, rows, "curves").phi[:, :, len(FEATURES) + 2 :]
    ours = (found.positive_features, found.positive_margin, found.negative_features, found.negative_margin)
    for j, mine in enumerate(ours):
        assert_allclose(mine, scores[:, :, j], rtol=0, atol=ATOL)
    assert_array_equal(found.positive_margin, np.take_along_axis(found.insertion, found.positive_features[..., None], axis=2)[..., 0])
    assert (found.insertion <= found.positive_margin[..., None] + ATOL).all()
    assert (found.deletion >= found.negative_margin[..., None] - ATOL).all()
    assert found.positive_features.dtype == np.int64
    falling = leafledger.curves(example.model, rows, -leafledger.attribute(example.model, rows).phi)
    assert (falling.positive_features == 0).any()  # where every feature on top lowers the margin, nobody is positive
    assert (falling.positive_margin >= falling.insertion[:, :, 0] - ATOL).all()


@pytest.mark.slow
def test_curves_of_the_predicted_class(several, rows):
    """Each row's own class, which is named; the scores may be those of that class alone. Another class is drawn as ``attribute`` draws it."""
    every = leafledger.curves(several, rows, leafledger.attribute(several, rows).phi)
    for output in ("predicted", "other:3"):
        asked = leafledger.attribute(several, rows, output=output)
        found = leafledger.curves(several, rows, asked.phi, output=output)
        assert_array_equal(found.output, asked.output)
        chosen = [leafledger.load_ensemble(several).outputs.index(name) for name in found.output]
        for name in ("insertion", "deletion", "insertion_area", "deletion_area", "positive_features", "negative_margin"):
            assert_allclose(getattr(found, name), getattr(every, name)[np.arange(N), chosen][:, None], rtol=0, atol=ATOL)
        assert_allclose(found.insertion[:, 0, -1], asked.margin[:, 0], rtol=0, atol=ATOL)
    assert every.output is None
    one = leafledger.curves(several, rows, leafledger.attribute(several, rows, output=1).phi, output=1)
    assert_allclose(one.insertion, every.insertion[:, 1:2], rtol=0, atol=ATOL)


@pytest.mark.parametrize("against", [False, True])
def test_values_of_coalitions_are_those_of_the_game(example, rows, against):
    """Of every set of four features, by name, by position and as an array, in exact fractions of either game."""
    model, background = leafledger.load_ensemble(example.model), rows[::8] if against else None
    sets = [[j for j in range(4) if code >> j & 1] for code in range(16)]
    found = leafledger.coalition_values(model, rows[:4], sets, background=background)
    matrix, others = coded(model, rows), None if background is None else coded(model, background)
    for i in range(4):
        expected = [float(naive.game(model.ensemble, matrix[i], 0, others)(members)) for members in sets]
        assert_allclose(found[i, 0], expected, rtol=0, atol=ATOL)
    names = [[FEATURES[j] for j in members] for members in sets]
    there = np.array([[j in members for j in range(4)] for members in sets])
    for same in (names, there):
        assert_array_equal(leafledger.coalition_values(model, rows[:4], same, background=background), found)
    groups = {"flight": ["distance", "delay"]}
    grouped = leafledger.coalition_values(model, rows[:4], [["flight"], []], partition=groups, background=background)
    assert_allclose(grouped, leafledger.coalition_values(model, rows[:4], [["distance", "delay"], []], background=background), rtol=0, atol=ATOL)


@pytest.mark.parametrize(
    ("coalitions", "says"),
    [
        ("delay", "coalitions are no list of lists of features or groups"),
        (["delay"], "coalition 0 is 'delay', expected a list of features or groups"),
        ([["price"]], "coalitions name 'price', which is no feature or group of the model"),
        ([["delay", "delay"]], "coalitions has 'delay' twice, expected once"),
        (np.ones((2, 3), bool), r"coalitions have shape \(2, 3\), expected a line for each, and in it 4 players"),
    ],
)
def test_coalitions_of_nobody_known_are_refused(example, rows, coalitions, says):
    """In one line."""
    with pytest.raises(UsageError, match=says):
        leafledger.coalition_values(example.model, rows, coalitions)


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
def test_a_run_keeps_the_path_of_the_objective(example, tmp_path, two_workers):
    """Scores and a summary per step, found sound by the verifier, and the same bytes on two workers."""
    parts = []
    for who, where in {"serial": {"scheduler": "serial"}, "two": {"scheduler": two_workers}}.items():
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
def test_a_run_writes_the_curves_that_python_gives(example, tmp_path, two_workers):
    """Ranks and areas of every row, means of both curves in a summary; found sound by the verifier, and the same bytes on two workers."""
    parts = []
    for who, where in {"serial": {"scheduler": "serial"}, "two": {"scheduler": two_workers}}.items():
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
    [
        (function, name)
        for function in (leafledger.gradient, leafledger.curves, leafledger.coalition_values)
        for name in inspect.signature(function).parameters
    ],
)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_a_wrong_type_is_told_in_one_line(example, rows, function, name, wrong):
    """Whatever stands in the place of an argument: a refusal of one line, no traceback."""
    if name == "z" and isinstance(wrong, list):
        return  # a probability, which spreads
    needed = {leafledger.curves: {"scores": 0.0}, leafledger.coalition_values: {"coalitions": [[0]]}}
    given = {"model": example.model, "rows": rows, **needed.get(function, {}), name: wrong}
    with pytest.raises(LeafledgerError) as error:
        function(**given)
    assert "\n" not in str(error.value)
