"""Lists of the largest attributions: those of a sorted list, with the features' values, of every kind of column, beside wide columns or alone."""

import duckdb
import lightgbm
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import attribute, check_run, compare, explain
from leafledger.pipeline.errors import SchemaMismatch, UsageError
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.runs.columns.top_attributions import Top, feature_of, make_column, read_top
from leafledger.pipeline.runs.job.options import Options
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import attributions

RNG = np.random.default_rng(2)


class _Prepared:
    """What is read of Prepared."""

    def __init__(self, players):
        self.players = np.array(players, np.int32)


def naive(phi, players, names, values, most, sign):
    """By sorting every row's own list."""
    rows = []
    for i in range(phi.shape[1]):
        entries = [(names[p], phi[r, i], p) for r, p in enumerate(players) if phi[r, i] != 0]
        kept = [entry for entry in entries if sign == "both" or (entry[1] > 0) == (sign == "raises")]
        kept.sort(key=lambda entry: (-abs(entry[1]), entry[2]))
        rows.append([{"feature": name, "phi": value, "value": values.get(name, [None] * 99)[i]} for name, value, _ in kept[:most]])
    return rows


def features_of(values):
    """Features whose values these are."""
    return {name: Feature(name) for name in values}


@pytest.mark.parametrize("sign", ["both", "raises", "lowers"])
@pytest.mark.parametrize("most", [1, 2, 9])
def test_lists_are_those_of_a_sorted_list(sign, most):
    """Ties by the order of players, zeros left out, values as texts, none where missing."""
    names, players = list("abcde"), [3, 0, 4]
    phi = RNG.choice([0.0, 1.0, -1.0, 2.0, -2.5], size=(3, 40))
    number = [None if i % 7 == 0 else float(i) / 2 for i in range(40)]
    text = [None if i % 5 == 0 else f"city {i}" for i in range(40)]
    values = {"d": pa.array(number), "a": pa.array(text).dictionary_encode()}
    shown = {"d": [None if each is None else f"{each:g}" for each in number], "a": text}
    found = make_column(phi, Top(most, sign, True), _Prepared(players), names, features_of(values), values, np.float64)
    assert found.to_pylist() == naive(phi, players, names, shown, most, sign)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (pa.array([3, 4]), ["3", "4"]),
        (pa.array([True, None]), ["true", None]),
        (pa.array([0.1, float("nan")]), ["0.1", None]),
        (pa.array([1.5, None], pa.float32()), ["1.5", None]),
        (pa.array(["ü", ""]), ["ü", ""]),
    ],
)
def test_values_are_written_as_people_write_them(given, shown):
    values = {"x": given}
    found = make_column(np.ones((1, 2)), Top(1, "both", False), _Prepared([0]), ["x"], features_of(values), values, np.float32)
    assert [row[0]["value"] for row in found.to_pylist()] == shown


def test_a_number_that_stands_for_missing_is_no_value():
    features, values = {"x": Feature("x", missing=-99.9)}, {"x": pa.array([-99.9, 3, None], pa.float32())}
    found = make_column(np.ones((1, 3)), Top(1, "both", False), _Prepared([0]), ["x"], features, values, np.float32)
    assert [row[0]["value"] for row in found.to_pylist()] == [None, "3", None]


def test_no_rows_and_no_players_make_empty_lists():
    for shape, players in (((2, 0), [0, 1]), ((0, 3), [])):
        found = make_column(np.ones(shape), Top(2, "both", False), _Prepared(players), ["x", "y"], {}, {}, np.float32)
        assert found.to_pylist() == [[]] * shape[1]


def test_a_group_of_one_has_its_feature_s_values():
    assert feature_of("x", ()) == "x"
    assert feature_of("g", (("g", ("x",)), ("h", ("y", "z")))) == "x"
    assert feature_of("h", (("g", ("x",)), ("h", ("y", "z")))) == ""


@pytest.mark.parametrize(
    ("given", "attributes", "says"),
    [
        ({"columns": "top"}, True, "say how many with top"),
        ({"sign": "raises"}, True, "say how many with top"),
        ({"top": 3, "columns": "wide"}, True, "columns are 'wide' alone"),
        ({"top": 3, "global_only": True}, True, "rows that are not published with global_only"),
        ({"top": 3, "method": "r2"}, False, "of which method 'r2' has none"),
    ],
)
def test_what_does_not_fit_together_is_refused(given, attributes, says):
    with pytest.raises(UsageError, match=says):
        read_top(Options(**given), attributes)


def test_by_default_the_list_stands_beside_wide_columns():
    assert read_top(Options(), True) is None
    assert read_top(Options(columns="wide"), True) is None
    assert read_top(Options(top=3), True) == Top(3, "both", True)
    assert read_top(Options(top=3, columns="top", sign="lowers"), True) == Top(3, "lowers", False)
    for top in (0, -1, 1.5, "3 "):
        with pytest.raises(UsageError, match="top is"):
            Options(top=top)


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    """Both kinds of columns; and the lists alone."""
    out = tmp_path_factory.mktemp("top")
    for name in ("both", "top"):
        explain(example.model, example.data, out / name, ids="flight", top=2, columns=name, scheduler="serial")
    explain(example.model, example.data, out / "wide", ids="flight", scheduler="serial")
    return out


@pytest.mark.slow
def test_a_run_s_lists_are_those_of_its_wide_columns(run, example):
    """As stored, with the values of the data; wide columns and summaries are those of a run without lists."""
    both, wide = attributions(run / "both"), attributions(run / "wide")
    assert both.drop_columns(["top"]).equals(wide)
    assert attributions(run / "top").column_names == ["flight", "margin", "top"]
    assert attributions(run / "top")["top"].equals(both["top"])
    for name in ("importance", "inputs"):
        assert (run / "top" / "summary" / f"{name}.json").read_bytes() == (run / "wide" / "summary" / f"{name}.json").read_bytes()
    for i, entries in enumerate(both["top"].to_pylist()):
        phi = {name: wide[f"phi_{name}"][i].as_py() for name in FEATURES}
        expected = sorted((name for name in FEATURES if phi[name]), key=lambda name: -abs(phi[name]))[:2]
        assert [(each["feature"], each["phi"]) for each in entries] == [(name, phi[name]) for name in expected]
        if i < 200:
            for each in entries:
                held = example.frame.iloc[i][each["feature"]]
                assert (each["value"] is None) == bool(pd.isna(held))
                assert each["value"] is None or each["value"] == held or float(each["value"]) == held


def test_runs_with_lists_are_sound(run):
    """Where lists stand alone, attributions do not add up as stored, but the rows explained again are compared."""
    assert check_run(run / "both", all_rows=True).as_stored
    report = check_run(run / "top", all_rows=True)
    assert report.sound
    assert (report.as_stored, report.n_again) == (False, 3000)
    assert report.residual < 1e-12


def test_readers_of_lists_need_nothing_special(run):
    """DuckDB and Polars."""
    path = str(run / "top" / "attributions" / "*.parquet")
    wanted = [row[0]["feature"] for row in attributions(run / "top")["top"].to_pylist() if row]
    query = f"select top[1].feature as first, count(*) as n from '{path}' where len(top) > 0 group by 1"
    counted = dict(duckdb.sql(query).fetchall())
    assert counted == pd.Series(wanted).value_counts().to_dict()
    firsts = polars.read_parquet(path).filter(polars.col("top").list.len() > 0)["top"].list.first().struct.field("feature")
    assert firsts.to_list() == wanted


def test_a_comparison_reads_wide_columns_alone(run, example, tmp_path):
    with pytest.raises(UsageError, match="has the largest attributions of a row alone; expected a column for every feature"):
        compare(example.model, example.data, tmp_path / "x.parquet", methods=["shapley", f"run:{run}/top"])


def test_an_id_called_top_is_refused(example, tmp_path):
    data = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(example.frame[FEATURES].assign(top=1), preserve_index=False), data)
    with pytest.raises(SchemaMismatch, match="output column 'top' would stand twice"):
        explain(example.model, data, tmp_path / "run", ids="top", top=1, scheduler="serial")


def test_several_classes_have_a_list_each(tmp_path):
    """Named as the outputs are; and one of the row's own class, in probabilities."""
    rows = pd.DataFrame(RNG.normal(size=(200, 4)).round(2), columns=list("abcd"))
    label = np.digitize(rows["a"] + rows["b"], [-0.5, 0.5])
    model = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1).fit(rows, label)
    model.booster_.save_model(tmp_path / "model.txt")
    rows.to_parquet(tmp_path / "rows.parquet")
    given = tmp_path / "model.txt", tmp_path / "rows.parquet"
    explain(*given, tmp_path / "all", top=1, columns="top", sign="raises", outputs=["low", "mid", "high"], scheduler="serial")
    found, phi = attributions(tmp_path / "all"), attribute(model, rows).phi
    for k, name in enumerate(("low", "mid", "high")):
        best = [(max(range(4), key=lambda j, i=i, k=k: phi[i, k, j])) for i in range(200)]
        assert [entry[0]["feature"] if entry else None for entry in found[f"top_{name}"].to_pylist()] == [
            "abcd"[j] if phi[i, k, j] > 0 else None for i, j in enumerate(best)
        ]
    explain(*given, tmp_path / "own", top=4, columns="top", output="predicted", space="probability", precision="float64", scheduler="serial")
    odds = attribute(model, rows, output="predicted", space="probability")
    total = [sum(entry["phi"] for entry in row) for row in attributions(tmp_path / "own")["top"].to_pylist()]
    assert total == pytest.approx((odds.prediction - odds.base)[:, 0].tolist(), abs=1e-12)
