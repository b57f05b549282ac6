"""Interactions of sets of features, of models as libraries write them: in memory, in runs, and in the command; and what is refused."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost

from leafledger import LeafledgerError, attribute, check_run, explain, prepare, read_run
from leafledger.kernels.set_indices import INDICES
from leafledger.kernels.trees import player_sets
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import AdditivityBreach, UsageError
from leafledger.pipeline.methods import interaction_lists
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.records.plan_file import FILE
from tests import naive_sets

FEATURES = list("abcde")
ADD_UP = [index for index, said in INDICES.items() if said.adds_up]
ROUNDED = 1e-12  # of margins of twenty trees
SINGLE = 2e-5  # of XGBoost's interactions, single precision, summed over trees


def make_rows(n, seed):
    """Numbers, a tenth of them missing."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 5))
    rows[rng.random((n, 5)) < 0.1] = np.nan
    return pd.DataFrame(rows, columns=FEATURES)


TRAIN, PROBE, BACKGROUND = make_rows(600, 0), make_rows(12, 1), make_rows(30, 2)
TARGET = TRAIN.fillna(0).eval("a * b + c * d * e + a")


@pytest.fixture(scope="module")
def model():
    return xgboost.XGBRegressor(max_depth=4, n_estimators=20, n_jobs=1).fit(TRAIN, TARGET)


@pytest.fixture(scope="module")
def classes():
    return xgboost.XGBClassifier(max_depth=3, n_estimators=4, n_jobs=1).fit(TRAIN, pd.qcut(TARGET, 3, labels=False))


def total(found):
    """What all sets of a row add up to, with the base value."""
    return found.interactions.sum(axis=2) + found.base


@pytest.mark.parametrize("index", ADD_UP)
@pytest.mark.parametrize("background", [None, BACKGROUND], ids=["covers", "background"])
def test_all_sets_add_up_to_the_margin(model, classes, index, background):
    """Of one output and of several, and of orders up to all features."""
    for asked, order in ((model, 1), (model, 3), (model, 5), (classes, 2)):
        found = attribute(asked, PROBE, interactions="all", order=order, index=index, background=background)
        assert found.pairs is None
        assert max(map(len, found.sets)) == min(order, 4)  # players of a path
        assert found.interactions.shape == (len(PROBE), len(found.outputs), len(found.sets))
        assert np.abs(total(found) - found.margin).max() < ROUNDED


@pytest.mark.parametrize("index", INDICES)
def test_interactions_are_those_of_the_definition(model, index):
    """Of the library's model as it was loaded, in both games, by enumeration in exact fractions."""
    ensemble, row = load_ensemble(model).ensemble, PROBE.to_numpy()[0]
    for background in (None, BACKGROUND.to_numpy()[:3]):
        known = None if background is None else BACKGROUND[:3]
        found = attribute(model, PROBE[:1], interactions="all", order=3, index=index, background=known)
        expected = naive_sets.by_index(naive_sets.play(ensemble, row, 0, background), 5, index, 3)
        for members, value in zip(found.sets, found.interactions[0, 0], strict=True):
            assert abs(value - float(expected.pop(frozenset(map(FEATURES.index, members))))) < ROUNDED
        assert not any(expected.values())


def test_pairs_are_the_library_s_own(model):
    """XGBoost's Shapley interactions, of which each entry is half; ours of two features with the Shapley interaction index."""
    found = attribute(model, PROBE, interactions="all", order=2, index="SII")
    theirs = model.get_booster().predict(xgboost.DMatrix(PROBE), pred_interactions=True)
    for s, members in enumerate(found.sets):
        if len(members) == 2:
            i, j = map(FEATURES.index, members)
            assert np.abs(found.interactions[:, 0, s] - 2 * theirs[:, i, j]).max() < SINGLE


@pytest.mark.slow
def test_without_an_order_they_are_pairs(model):
    """And have the names that they had."""
    found = attribute(model, PROBE, interactions="all")
    assert found.pairs == found.sets
    assert {*map(len, found.pairs)} == {2}


def test_players_are_groups_where_there_is_a_partition(model):
    """Named by them."""
    found = attribute(model, PROBE, interactions="all", order=3, partition={"both": ["a", "b"]})
    assert {*sum(found.sets, ())} == {"both", "c", "d", "e"}
    assert np.abs(total(found) - found.margin).max() < ROUNDED


def test_methods_with_a_measure_of_their_own_have_larger_sets(model):
    """Banzhaf interactions are index BII of Shapley's method, where all others are there with probability one half."""
    banzhaf, bii = attribute(model, PROBE, "banzhaf", interactions="all", order=3), attribute(model, PROBE, interactions="all", order=3, index="BII")
    assert banzhaf.sets == bii.sets
    assert np.abs(banzhaf.interactions - bii.interactions).max() < ROUNDED
    single = [s for s, members in enumerate(banzhaf.sets) if len(members) == 1]
    assert np.abs(banzhaf.interactions[:, :, single] - banzhaf.phi).max() < ROUNDED


def test_shapley_s_own_index_is_k_sii(model):
    """Of order 1 its sets are Shapley values."""
    default, named = (attribute(model, PROBE, interactions="all", order=3, **index) for index in ({}, {"index": "k-SII"}))
    assert np.array_equal(default.interactions, named.interactions)
    assert np.abs(attribute(model, PROBE, interactions="all", order=1).interactions - default.phi).max() < ROUNDED


def test_an_explainer_gives_the_bits_of_a_call(model):
    """Made once, for many calls."""
    explainer = prepare(model, interactions=4, order=3, index="STII")
    found = explainer(PROBE)
    assert np.array_equal(found.interactions, attribute(model, PROBE, interactions=4, order=3, index="STII").interactions)
    assert (found.interactions != 0).sum(axis=2).max() == 4


def test_a_row_s_sums_are_checked(model, monkeypatch):
    """A set that is wrong is found where it is computed."""
    explainer = prepare(model, interactions="all", order=2)
    add = type(explainer._prepared.pairs.tables).add

    def wrong(self, bins, out, n_rows):
        add(self, bins, out, n_rows)
        out[0, 0, 3] += 1e-3

    monkeypatch.setattr(type(explainer._prepared.pairs.tables), "add", wrong)
    with pytest.raises(AdditivityBreach, match=r"row 3: interactions miss margin - base value by .* of the margin's bound, expected at most 1e-09"):
        explainer(PROBE)


@pytest.mark.parametrize(
    ("method", "asked", "says"),
    [
        ("shapley", {"order": 0}, "order is 0, expected a number of at least 1"),
        ("shapley", {"order": 2.5}, "order is 2.5, expected a number of at least 1"),
        ("shapley", {"order": 6}, "order is 6, expected at most 5, as there are 5 features"),
        ("shapley", {"order": 5, "partition": {"g": ["a", "b"]}}, "order is 5, expected at most 4, as there are 4 groups"),
        ("shapley", {"order": 2, "index": "SIX"}, "index is 'SIX', expected 'SII' or 'k-SII' or 'STII' or 'FSII' or 'BII' or 'FBII' or 'Moebius' or"),
        ("shapley", {"index": "SII"}, "index is 'SII', and there is no order, the largest size of a set; give one, as 2"),
        ("shapley", {"order": 2, "interactions": None}, "order is 2, but no interactions are asked for; say how many, or 'all'"),
        ("ranker", {"order": 2}, "method 'ranker' has no interactions"),
        (
            "banzhaf",
            {"order": 2, "index": "STII"},
            "index is 'STII', but method 'banzhaf' weighs sets by its own measure; leave it out",
        ),
    ],
)
@pytest.mark.parametrize("background", [None, BACKGROUND], ids=["covers", "background"])
def test_mistakes_are_refused_in_one_line(model, method, asked, says, background):
    """What was got, and what is expected."""
    with pytest.raises(UsageError) as caught:
        attribute(model, PROBE, method, background=background, **({"interactions": "all"} | asked))
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_sets_that_do_not_fit_are_refused(model, monkeypatch):
    """So many sets, or so many numbers in memory."""
    monkeypatch.setattr(player_sets, "MOST_SETS", 20)
    with pytest.raises(UsageError, match=r"interactions of up to 3 players have more than 20 sets; ask for a lower order"):
        attribute(model, PROBE, interactions="all", order=3)
    monkeypatch.setattr(player_sets, "MOST_SETS", 1000)
    monkeypatch.setattr(interaction_lists, "table_budget", lambda: 1000)
    with pytest.raises(UsageError, match=r"25 sets of 12 rows and 1 output take 0\.0 GiB, expected at most 0\.0, half of the memory"):
        attribute(model, PROBE, interactions="all", order=3)


@pytest.fixture(scope="module")
def place(model, tmp_path_factory):
    """A model and rows as files."""
    folder = tmp_path_factory.mktemp("sets")
    model.save_model(folder / "model.ubj")
    (folder / "rows").mkdir()
    PROBE.assign(id=range(len(PROBE))).to_parquet(folder / "rows" / "part.parquet")
    return folder


@pytest.fixture(scope="module")
def run(place):
    """A run that keeps four sets of a row."""
    out = place / "out"
    explain(place / "model.ubj", place / "rows", out=out, ids="id", interactions=4, order=3, index="FSII", precision="float64", scheduler="serial")
    return out


def test_a_run_keeps_the_largest_of_a_row_as_lists(model, run):
    """The same as in memory, the largest first; the run can be checked by computing rows again."""
    found = attribute(model, PROBE, interactions=4, order=3, index="FSII")
    stored = pq.read_table(run / "attributions")["interactions"].to_pylist()
    assert found.to_arrow()["interactions"].to_pylist() == stored
    for i, entries in enumerate(stored):
        expected = {members: value for members, value in zip(found.sets, found.interactions[i, 0], strict=True) if value}
        assert {tuple(entry["features"]): entry["value"] for entry in entries} == expected
        sizes = [abs(entry["value"]) for entry in entries]
        assert sizes == sorted(sizes, reverse=True)
    assert check_run(run, deep=True).sound


def test_a_run_ranks_sets_and_says_what_was_asked(model, run):
    """In its summary, plan and manifest; of all sets, not of those kept."""
    found = attribute(model, PROBE, interactions="all", order=3, index="FSII")
    summary = pq.read_table(run / "summary" / "interactions.parquet").to_pylist()
    assert [tuple(row["features"]) for row in summary] == [*found.sets]
    mean = np.abs(found.interactions[:, 0]).mean(axis=0)
    assert np.allclose([row["mean_abs"] for row in summary], mean, rtol=1e-12)
    assert [row["rank"] for row in summary] == (np.argsort(np.argsort(-mean, kind="stable")) + 1).tolist()
    for name in ("plan.json", "manifest.json"):
        assert json.loads((run / name).read_text())["sets"] == {"order": 3, "index": "FSII"}
    assert read_run(run).manifest.sets.order == 3


def test_a_run_of_pairs_has_the_records_that_it_had(place):
    """Absence means pairs."""
    out = place / "pairs"
    explain(place / "model.ubj", place / "rows", out=out, interactions=4, scheduler="serial")
    for name in ("plan.json", "manifest.json"):
        assert "sets" not in json.loads((out / name).read_text())
    assert pq.read_table(out / "attributions")["interactions"][0].as_py()[0].keys() == {"first", "second", "value"}


def test_a_plan_that_says_what_nobody_asks_is_damaged(run, tmp_path):
    """A set of no players."""
    wrong = tmp_path / "plan.json"
    wrong.write_text((run / "plan.json").read_text().replace('"order": 3', '"order": 0'))
    with pytest.raises(LeafledgerError, match="order is 0, expected a number of at least 1"):
        FILE.read(str(wrong))


def test_a_run_against_a_background_has_sets_too(place, model):
    """And is checked by counting it again."""
    BACKGROUND.to_parquet(place / "background.parquet")
    out, options = place / "against", {"interactions": "all", "order": 2, "index": "STII", "background": place / "background.parquet"}
    explain(place / "model.ubj", place / "rows", out=out, precision="float64", scheduler="serial", **options)
    found = attribute(model, PROBE, **(options | {"background": BACKGROUND}))
    for i, entries in enumerate(pq.read_table(out / "attributions")["interactions"].to_pylist()):
        expected = {members: value for members, value in zip(found.sets, found.interactions[i, 0], strict=True) if value}
        assert {tuple(entry["features"]): entry["value"] for entry in entries} == pytest.approx(expected, rel=1e-9, abs=1e-14)
    assert check_run(out, deep=True).sound


@pytest.mark.slow
def test_the_command_shows_sets(place, run, capsys):
    """What is planned, a row, and the summary."""

    def say(*words):
        assert main([str(word) for word in words]) == 0
        return capsys.readouterr().out

    files = place / "model.ubj", place / "rows", "--out", place / "new"
    assert "sets    25 of up to 3 interact, index STII, 20 kept of a row" in say(
        "plan", *files, "--interactions", 20, "--order", 3, "--index", "STII"
    )
    assert "sets    25 of up to 3 interact, all kept of a row" in say("plan", *files, "--method", "banzhaf", "--interactions", "all", "--order", 3)
    first = pq.read_table(run / "attributions")["interactions"][0].as_py()
    assert " and ".join(first[0]["features"]) in say("show", run, "--where", "id=0")
    told = json.loads(say("show", run, "--where", "id=0", "--json"))
    assert told["rows"][0]["outputs"][0]["interactions"] == first
    said = say("explain", *files, "--interactions", 20, "--order", 3)
    assert " × " in said
    assert "features" in said
