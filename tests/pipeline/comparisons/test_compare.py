"""Rankings compared on a data set: the same bytes for any number of workers, equal to means of what the same rows give in memory."""

import json

import lightgbm
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import leafledger
from leafledger.pipeline.comparisons.compare import compare
from leafledger.pipeline.errors import InvalidLabel, RunConflict, UnsupportedModel, UsageError
from leafledger.pipeline.in_memory.rankings.prediction_gap import rank_players
from tests import naive
from tests.pipeline.conftest import FEATURES, TRAINING, train, write_data

METHODS = ("shapley", "banzhaf:0.25", "beta:4:1", "ranker:3:0.1:ascent")
SOME = {"scales": (0.1, 1.0), "gap_rows": 100}


@pytest.fixture(scope="module")
def several(example, tmp_path_factory):
    """A model of three classes, and the example's rows in more row groups."""
    folder = tmp_path_factory.mktemp("compare")
    train(example.frame, objective="multiclass", num_class=3).save_model(folder / "model.txt")
    return str(folder / "model.txt"), write_data(example.frame, folder / "data", row_group_size=100)


def pick(found, measure, ranking, other, output):
    """The row of a comparison that is about these."""
    same = found["other"].isna() if other is None else found["other"] == other
    return found[(found["measure"] == measure) & (found["ranking"] == ranking) & same & (found["output"] == output)].iloc[0]


def inputs(frame):
    return frame[FEATURES].assign(month=frame["month"].astype(int))


@pytest.mark.slow
def test_workers_change_no_byte(example, several, tmp_path, two_workers):
    """Serially, and on a cluster of two: the same files, of several outputs, and of labels and rankings without values."""
    asked = {"several": (*several, METHODS, {}), "labels": (example.model, several[1], ("shapley", "gap_greedy:2", "banzhaf"), {"label": "delay"})}
    for name, (model, data, methods, given) in asked.items():
        tables = [
            compare(model, data, tmp_path / f"{name}-{who}.parquet", methods=methods, ids=("name", "month"), **SOME, **given, **where)
            for who, where in {"serial": {"scheduler": "serial"}, "two": {"scheduler": two_workers}}.items()
        ]
        assert tables[0].equals(tables[1])
        for what in ("", ".features", ".rows"):
            found = [(tmp_path / f"{name}-{who}{what}.parquet").read_bytes() for who in ("serial", "two")]
            assert found[0] == found[1]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("_")] == []


@pytest.mark.slow
def test_numbers_are_those_of_the_rows(example, several, tmp_path):
    """Areas are means of the curves' of rows in memory with their standard errors, correlations SciPy's, for every output."""
    model, data = several
    found = compare(model, data, tmp_path / "out.parquet", methods=METHODS, top=(1, 2), scales=(), scheduler="serial").to_pandas()
    rows = inputs(example.frame)
    given = {"banzhaf:0.25": {"p": 0.25}, "beta:4:1": {"alpha": 4, "beta": 1}, METHODS[3]: {"steps": 3, "rate": 0.1, "optimizer": "ascent"}}
    scores = {name: leafledger.attribute(model, rows, name.split(":")[0], parameters=given.get(name, {})).phi for name in METHODS}
    used = np.abs(np.stack(list(scores.values()))).sum(axis=(0, 1, 2)) > 0
    assert len(found) == 3 * (3 * 4 + 3 * 6 + 10 * 6)
    assert (found["rows"] == len(rows)).all()
    for name, phi in scores.items():
        curves = leafledger.curves(model, rows, phi)
        for measure, area in {"insertion": curves.insertion_area, "deletion": curves.deletion_area}.items():
            for k in range(3):
                row = pick(found, measure, name, None, str(k))
                assert_allclose(row["mean"], area[:, k].mean(), rtol=1e-12)
                assert_allclose(row["standard_error"], stats.sem(area[:, k]), rtol=1e-9)
    areas = [leafledger.curves(model, rows, scores[name]).insertion_area[:, 2] for name in METHODS[2:]]
    row = pick(found, "insertion", *METHODS[2:], "2")
    assert_allclose(row["mean"], (areas[0] - areas[1]).mean(), rtol=0, atol=1e-12)
    assert_allclose(row["standard_error"], stats.sem(areas[0] - areas[1]), rtol=1e-6, atol=1e-15)
    a, b = (scores[name][:, 1][:, used] for name in METHODS[:2])
    order = [np.argsort(np.argsort(-some, axis=1, kind="stable"), axis=1) for some in (a, b)]
    expected = [stats.spearmanr(*pair).statistic for pair in zip(*order, strict=True)]
    assert_allclose(pick(found, "correlation", METHODS[0], METHODS[1], "1")["mean"], np.mean(expected), rtol=1e-12)
    top = [np.argsort(-np.abs(some), axis=1, kind="stable")[:, :2] for some in (a, b)]
    expected = [len(set(x) & set(y)) / 2 for x, y in zip(*top, strict=True)]
    assert_allclose(pick(found, "top 2", METHODS[0], METHODS[1], "1")["mean"], np.mean(expected), rtol=1e-12)
    expected = [set(x) == set(y) for x, y in zip(*top, strict=True)]
    assert_allclose(pick(found, "same 2", METHODS[0], METHODS[1], "1")["mean"], np.mean(expected), rtol=1e-12)
    expected = [naive.swaps(x, naive.sort_by(x, y)) for x, y in zip(*(each.tolist() for each in top), strict=True)]
    assert_allclose(pick(found, "swaps 2", METHODS[0], METHODS[1], "1")["mean"], np.mean(expected), rtol=1e-12)
    expected = [naive.swaps(*naive.lengthen(x, y)) for x, y in zip(*(each.tolist() for each in top), strict=True)]
    assert_allclose(pick(found, "list swaps 2", METHODS[0], METHODS[1], "1")["mean"], np.mean(expected), rtol=1e-12)


@pytest.mark.slow
def test_features_have_both_impacts_and_how_far_values_are_apart(example, several, tmp_path):
    """By the definitions, for every output and two rankings; null where there are ranks alone, and 0 for a feature that no split asks for."""
    model, data = several
    names = ("shapley", "banzhaf:0.25", "curves")
    compare(model, data, tmp_path / "out.parquet", methods=names, scales=(), scheduler="serial")
    found = pd.read_parquet(tmp_path / "out.features.parquet")
    rows = inputs(example.frame)
    shapley, banzhaf = (leafledger.attribute(model, rows, name, parameters=given).phi for name, given in (("shapley", {}), ("banzhaf", {"p": 0.25})))
    assert len(found) == 3 * 3 * 4
    for row in found.to_dict("records"):
        k, j = int(row["output"]), FEATURES.index(row["feature"])
        a, b = shapley[:, k, j], banzhaf[:, k, j]
        assert_allclose(row["impact"], np.abs(a if row["ranking"] == "shapley" else b).mean(), rtol=1e-12)
        assert row["rows"] == 3000
        if row["other"] == "curves":
            assert np.isnan([row["other_impact"], row["mae"], row["rmse"]]).all()
        else:
            assert_allclose(row["other_impact"], np.abs(b).mean(), rtol=1e-12)
            assert_allclose(row["mae"], np.abs(a - b).mean(), rtol=1e-10)
            assert_allclose(row["rmse"], np.sqrt(((a - b) ** 2).mean()), rtol=1e-10)
    types = {field.name: field.type for field in pq.read_schema(tmp_path / "out.features.parquet")}
    assert pq.read_table(tmp_path / "out.features.parquet")["mae"].null_count == 2 * 3 * 4
    assert types["mae"] == "double"


@pytest.mark.slow
def test_rows_on_which_rankings_differ_most(example, several, tmp_path):
    """Of all rows, with ids from the file and from its path, and the features on top as in memory."""
    model, data = several
    given = {"methods": ("shapley", "banzhaf:0.25"), "top": (1, 2), "scales": (), "ids": ("flight", "month"), "differing_rows": 7}
    compare(model, data, tmp_path / "out.parquet", scheduler="serial", **given)
    found = pd.read_parquet(tmp_path / "out.rows.parquet")
    frame = example.frame.set_index("flight", drop=False)
    phi = [leafledger.attribute(model, inputs(example.frame), name, parameters=given) for name, given in (("shapley", {}), ("banzhaf", {"p": 0.25}))]
    order = [np.argsort(-np.abs(each.phi), axis=2, kind="stable") for each in phi]
    first = [each[:, :, :2].tolist() for each in order]
    swaps = np.array([[naive.swaps(*naive.lengthen(*pair)) for pair in zip(*rows, strict=True)] for rows in zip(*first, strict=True)])
    position = {flight: i for i, flight in enumerate(example.frame["flight"])}
    for k in range(3):
        mine = found[found["output"] == str(k)]
        assert mine["place"].tolist() == list(range(1, 8))
        assert mine["list_swaps"].tolist() == sorted(swaps[:, k].tolist(), reverse=True)[:7]
        for row in mine.to_dict("records"):
            i = position[row["flight"]]
            assert row["month"] == str(frame.loc[row["flight"], "month"])
            assert f"month={row['month']}/" in row["file"]
            assert pd.read_parquet(row["file"])["flight"].iloc[row["row"]] == row["flight"]
            assert swaps[i, k] == row["list_swaps"]
            for each, name in zip(order, ("first", "other_first"), strict=True):
                assert list(row[name]) == [FEATURES[j] for j in each[i, k, :2]]
            assert_allclose(row["first_values"], phi[0].phi[i, k, order[0][i, k, :2]], rtol=1e-12)
            assert_allclose(row["difference"], np.abs(phi[0].phi[i, k] - phi[1].phi[i, k]).sum(), rtol=1e-9)


@pytest.fixture(scope="module")
def wide(example, tmp_path_factory):
    """A model with features that no split asks for, before and between the others, and its rows."""
    folder = tmp_path_factory.mktemp("wide")
    frame = example.frame.assign(constant=1.0, empty=np.nan)
    columns = ["constant", "distance", "empty", "delay", "carrier", "month"]
    training = frame[columns].assign(carrier=frame["carrier"].astype("category"))
    target = frame["delay"].fillna(0) + 70 * (frame["carrier"] == "UA") + frame["month"] * 3
    lightgbm.train(TRAINING, lightgbm.Dataset(training, target), 8).save_model(folder / "model.txt")
    return str(folder / "model.txt"), write_data(frame, folder / "data"), frame[columns].assign(month=frame["month"].astype(int))


@pytest.mark.slow
def test_rankings_place_features_that_no_split_asks_for(wide, tmp_path):
    """As they say themselves: the curves of a ranking by Shapley values are those of Shapley values, and the greedy ranking is worth what it is in
    memory, computed here or read from a run."""
    model, data, rows = wide
    for method, background in (("curves", None), ("gap_greedy", data)):
        leafledger.explain(model, data, tmp_path / method, method=method, background=background, scheduler="serial", precision="float64")
    names = ("shapley", "curves", f"run:{tmp_path}/curves", "gap_greedy", f"run:{tmp_path}/gap_greedy")
    found = compare(model, data, tmp_path / "out.parquet", methods=names, scales=(1.0,), gap_rows=50, scheduler="serial").to_pandas()
    for measure in ("insertion", "deletion"):
        assert len({pick(found, measure, name, None, "0")["mean"] for name in names[:3]}) == 1
    at = np.arange(3000)
    some = rows[(at + 1) * 50 // 3000 > at * 50 // 3000]
    order, gaps = leafledger.rank_by_gap(model, some, data=rows)
    assert (order.argsort(axis=2)[:, 0, [0, 2]] < 5).any()  # some of these come before others
    row = pick(found, "pgi2 1", names[4], None, "0")
    assert_allclose(row["mean"], gaps.mean(), rtol=1e-9)
    alone, _ = leafledger.rank_by_gap(model, some)
    expected = leafledger.prediction_gap(model, some, ranking=alone, scale=1.0, data=rows)
    assert_allclose(pick(found, "pgi2 1", "gap_greedy", None, "0")["mean"], expected.mean(), rtol=1e-9)


GROUPS = {"who": ["carrier", "constant"], "when": ["delay", "empty"]}  # a feature of splits and one of none each
SEQUENCE = ["when", "month", "who", "distance"]


@pytest.mark.slow
def test_every_method_can_be_compared(wide, tmp_path):
    """By its parameters' names, with a partition where it needs one, and rows that rank as they do in memory: areas, and impacts of features.

    Two-step values share what a group gets with features that no split asks for. These are null, of a run as well.
    """
    model, data, rows = wide
    sizes = "0.1,0.2,0.3,0.2,0.1,0.1"
    asked = {
        "shapley": ("shapley", {}),
        "semivalue(atoms=0.25:1,0.75:3,density=0:1,1:2)": ("semivalue", {"atoms": "0.25:1,0.75:3", "density": "0:1,1:2"}),
        f"probabilistic(sizes={sizes})": ("probabilistic", {"sizes": sizes}),
        "owen(within=beta:4:1)": ("owen", {"within": "beta:4:1"}),
        "two_step": ("two_step", {}),
        f"asymmetric(sequence={','.join(SEQUENCE)})": ("asymmetric", {"sequence": SEQUENCE}),
    }
    grouped = {name: {"partition": GROUPS} if method in ("owen", "two_step", "asymmetric") else {} for name, (method, _) in asked.items()}
    phi = {name: leafledger.attribute(model, rows, method, parameters=given, **grouped[name]).phi for name, (method, given) in asked.items()}
    leafledger.explain(model, data, tmp_path / "run", method="two_step", partition=GROUPS, scheduler="serial", precision="float64")
    names = (*asked, "curves(ranking=semivalue(atoms=0:1,1:1))", f"run:{tmp_path}/run")
    found = compare(model, data, tmp_path / "out.parquet", methods=names, partition=GROUPS, scales=(), scheduler="serial").to_pandas()
    features = pd.read_parquet(tmp_path / "out.features.parquet")
    used = [rows.columns.get_loc(column) for column in ("delay", "carrier")]
    v = leafledger.coalition_values(model, rows, [[], ["delay"], ["carrier"], ["delay", "carrier"]])[:, 0]
    for name in asked:
        place = np.argsort(np.argsort(-phi[name][:, 0], axis=1, kind="stable"), axis=1)[:, used]
        for measure, ranks in (("insertion", place), ("deletion", 5 - place)):
            there = ranks[:, :, None] < np.arange(1, 7)  # is a feature among the first one, two, …
            area = np.take_along_axis(v, there[:, 0] + 2 * there[:, 1], axis=1).mean()
            assert_allclose(pick(found, measure, name, None, "0")["mean"], area, rtol=1e-9)
        mine = features[(features["ranking"] == name) & (features["other"] == names[-1])]
        impacts = np.abs(phi[name][:, 0]).mean(axis=0)
        unused = np.array([column in ("constant", "empty") for column in rows.columns])
        if name == "two_step":
            assert (impacts[unused] > 0).all()
            assert mine["impact"].isna().tolist() == unused.tolist()
        else:
            assert (impacts[unused] == 0).all()
            assert_allclose(mine["impact"], impacts, rtol=1e-9)
        assert_allclose(mine["impact"][~unused], impacts[~unused], rtol=1e-9)
        assert mine["mae"].isna().tolist() == unused.tolist()
    assert_allclose(pick(found, "insertion", names[-1], None, "0")["mean"], pick(found, "insertion", "two_step", None, "0")["mean"], rtol=1e-12)
    assert pick(found, "swaps 3", "two_step", names[-1], "0")["mean"] == 0


def test_a_partition_is_for_methods_that_take_groups(example, tmp_path):
    """The others rank features without it."""
    asked = {"scales": (), "scheduler": "serial"}
    with pytest.raises(UsageError, match="method 'owen' needs a partition of the features"):
        compare(example.model, example.data, tmp_path / "out.parquet", methods=("shapley", "owen"), **asked)
    with pytest.raises(UsageError, match="partition is given, and no method takes groups of features, expected owen or two_step or asym"):
        compare(example.model, example.data, tmp_path / "out.parquet", methods=("shapley",), partition={"where": ["distance"]}, **asked)


@pytest.mark.slow
def test_what_a_ranking_does_not_tell_is_null(example, tmp_path):
    """A ranking by signed score has no order by magnitude, and the other way round: computed here or read from a run, alone or beside another."""
    data = write_data(example.frame.iloc[::100], tmp_path / "data")
    scored = {"insertion", "deletion", "insertion - deletion", "correlation"}
    sized = {"pgi2 1", "removal", "top", "same", "swaps", "list swaps", "size correlation"}
    told = {
        "shapley": {*scored, *sized},
        "curves": scored,
        "gap": sized,
        "gap_greedy": sized,
    }
    names = {
        "shapley": "shapley",
        **{f"run:{tmp_path}/{method}": method for method in ("curves", "gap", "gap_greedy")},
        "curves": "curves",
        "gap": "gap",
    }
    for method in ("curves", "gap", "gap_greedy"):
        leafledger.explain(example.model, data, tmp_path / method, method=method, scheduler="serial")
    given = {"methods": tuple(names), "scales": (1.0,), "gap_rows": 5, "label": "delay", "scheduler": "serial"}
    found = compare(example.model, data, tmp_path / "out.parquet", **given).to_pandas()
    for row in found.to_dict("records"):
        kind = row["measure"] if row["measure"] in told["shapley"] else row["measure"].rpartition(" ")[0]
        known = all(kind in told[names[name]] for name in (row["ranking"], row["other"]) if isinstance(name, str))
        assert known == np.isfinite(row["mean"]) == np.isfinite(row["standard_error"]), row
    rows = pd.read_parquet(tmp_path / "out.rows.parquet")
    pairs = set(zip(rows["ranking"], rows["other"], strict=True))
    assert pairs
    assert "curves" not in {names[name] for pair in pairs for name in pair}
    assert pq.read_table(tmp_path / "out.parquet")["mean"].null_count == found["mean"].isna().sum() > 0


@pytest.mark.slow
def test_removal_is_the_error_of_the_mean_prediction(example, tmp_path):
    """By the library's own predictions for all values that the first features have in the data, each with each; rows without a label do not count,
    but are among the data."""
    some = example.frame.iloc[::75].reset_index(drop=True)
    data = write_data(some, tmp_path / "data")
    given = {"methods": ("shapley", "gap_greedy:0:normal:100"), "top": (1, 2), "scales": (), "label": "delay", "scheduler": "serial"}
    found = compare(example.model, data, tmp_path / "out.parquet", **given).to_pandas()
    carriers = example.frame["carrier"].astype("category").cat.categories

    def predict(frame):
        return example.booster.predict(frame[FEATURES].assign(carrier=pd.Categorical(frame["carrier"], carriers)), raw_score=True)

    rows, label = inputs(some), some["delay"].to_numpy()
    shapley = rank_players(leafledger.attribute(example.model, rows, "shapley").phi)
    greedy, _ = leafledger.rank_by_gap(example.model, rows, scale=100.0)
    there = np.flatnonzero(~np.isnan(label))
    assert 0 < there.size < len(some)
    errors = {}
    for name, order in zip(given["methods"], (shapley, greedy), strict=True):
        for k in (0, 1, 2):
            missed = []
            for i in there:
                drawn = [FEATURES[j] for j in order[i, 0, :k]]
                grid = np.stack(np.meshgrid(*[np.arange(len(some))] * k, indexing="ij"), axis=-1).reshape(-1, k) if k else np.zeros((1, 0), int)
                moved = some.iloc[np.full(len(grid), i)].reset_index(drop=True)
                for column, values in enumerate(drawn):
                    moved[values] = some[values].to_numpy()[grid[:, column]]
                missed.append(label[i] - predict(moved).mean())
            errors[name, k] = np.array(missed) ** 2
            row = pick(found, f"removal {k}", name, None, "0")
            assert row["rows"] == there.size
            assert_allclose(row["mean"], np.sqrt(errors[name, k].mean()), rtol=1e-9)
            assert_allclose(row["standard_error"], stats.sem(errors[name, k]) / (2 * np.sqrt(errors[name, k].mean())), rtol=1e-7)
    row = pick(found, "removal 1", *given["methods"], "0")
    assert_allclose(row["mean"], np.sqrt(errors["shapley", 1].mean()) - np.sqrt(errors[given["methods"][1], 1].mean()), rtol=1e-7, atol=1e-12)


def test_labels_without_a_meaning_are_refused(example, several, tmp_path):
    """A classifier's margin predicts no label, and a label that no row has says nothing."""
    model, data = several
    given = {"methods": ("shapley",), "scales": (), "scheduler": "serial"}
    with pytest.raises(UnsupportedModel, match="label 'flight' is compared with the margin, expected a regression of it, got objective 'multiclass'"):
        compare(model, data, tmp_path / "out.parquet", label="flight", **given)
    empty = write_data(example.frame.iloc[:50].assign(y=np.nan), tmp_path / "data")
    with pytest.raises(InvalidLabel, match="label 'y' is missing on every row, expected numbers"):
        compare(example.model, empty, tmp_path / "out.parquet", label="y", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.slow
def test_gaps_are_those_of_rows_in_memory(example, tmp_path):
    """PGI² in standard deviations of the data, on a sample spread evenly over it; categories are drawn; a greedy ranking's is the largest."""
    names = ("shapley", "gap_greedy:0:normal:100")
    found = compare(example.model, example.data, tmp_path / "out.parquet", methods=names, noise="uniform", scheduler="serial", **SOME).to_pandas()
    rows = inputs(example.frame)
    at = np.arange(3000)
    some = rows[(at + 1) * 100 // 3000 > at * 100 // 3000]
    shapley = rank_players(leafledger.attribute(example.model, some, "shapley").phi)
    greedy, _ = leafledger.rank_by_gap(example.model, some, scale=100.0)
    for scale in ("0.1", "1"):
        gaps = [
            leafledger.prediction_gap(example.model, some, ranking=order, noise="uniform", scale=float(scale), data=rows)[:, 0]
            for order in (shapley, greedy)
        ]
        for name, gap in zip(names, gaps, strict=True):
            row = pick(found, f"pgi2 {scale}", name, None, "0")
            assert row["rows"] == 100
            assert_allclose(row["mean"], gap.mean(), rtol=1e-10)
            assert_allclose(row["standard_error"], stats.sem(gap), rtol=1e-8)
        assert_allclose(pick(found, f"pgi2 {scale}", *names, "0")["mean"], (gaps[0] - gaps[1]).mean(), rtol=1e-6, atol=1e-10)
    assert (found[~found["measure"].str.startswith("pgi2")]["rows"] == 3000).all()


@pytest.mark.slow
def test_gaps_beyond_the_budget_are_estimated(example, tmp_path):
    """With the mean of the rows' standard errors, within which the exact ones lie; within the budget they are exact, and have none. Some of the work
    items have none of the rows."""
    given = {"methods": ("shapley", "banzhaf"), "scheduler": "serial", "approximate": True, "scales": (0.1, 1.0), "gap_rows": 3}
    exact, found = (compare(example.model, example.data, tmp_path / f"{budget}.parquet", budget=budget, **given).to_pandas() for budget in (1e8, 1))
    assert not exact["measure"].str.contains("error").any()
    for scale in ("0.1", "1"):
        for name in given["methods"]:
            gap, error = (pick(found, f"pgi2 {scale}{what}", name, None, "0")["mean"] for what in ("", " error"))
            wanted = pick(exact, f"pgi2 {scale}", name, None, "0")["mean"]
            assert 0 < error < 0.1 * wanted
            assert abs(gap - wanted) < 5 * error


@pytest.mark.slow
def test_columns_of_earlier_runs(several, tmp_path):
    """A run's own attributions rank as its method does, marginal values among them; its parts are read along with the rows."""
    model, data = several
    leafledger.explain(model, data, tmp_path / "run", precision="float64", scheduler="serial")
    leafledger.explain(model, data, tmp_path / "marginal", background=data, scheduler="serial")
    runs = tuple(f"run:{tmp_path}/{name}" for name in ("run", "marginal"))
    found = compare(model, data, tmp_path / "out.parquet", methods=("shapley", *runs), scales=(), scheduler="serial").to_pandas()
    for output in "012":
        assert pick(found, "correlation", "shapley", runs[0], output)["mean"] == 1.0
        assert pick(found, "insertion", runs[0], None, output)["mean"] == pick(found, "insertion", "shapley", None, output)["mean"]
        assert 0 < pick(found, "correlation", "shapley", runs[1], output)["mean"] < 1


def test_a_comparison_is_written_once(example, tmp_path):
    """The same again changes nothing, another one is refused; the file says what was compared."""
    out = tmp_path / "out.parquet"
    for _ in range(2):
        compare(example.model, example.data, out, methods=("shapley",), scales=(), scheduler="serial")
    with pytest.raises(RunConflict, match="exists already and differs from this comparison"):
        compare(example.model, example.data, out, methods=("banzhaf",), scales=(), scheduler="serial")
    facts = json.loads(pq.read_schema(out).metadata[b"leafledger"])
    assert [ranking["name"] for ranking in facts["rankings"]] == ["shapley"]


def test_other_rows_are_refused(example, several, tmp_path):
    """A run on other files, or with other outputs, says nothing of these rows."""
    model, data = several
    leafledger.explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    with pytest.raises(UsageError, match="is about other rows"):
        compare(example.model, data, tmp_path / "out.parquet", methods=(f"run:{tmp_path}/run",), scheduler="serial")
    with pytest.raises(UsageError, match="has outputs 0; expected those"):
        compare(model, data, tmp_path / "out.parquet", methods=(f"run:{tmp_path}/run",), scheduler="serial")
