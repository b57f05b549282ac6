"""Rankings compared on a data set: the same bytes for any number of workers, equal to means of what the same rows give in memory."""

import inspect
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import leafledger
from pipeline.command import cli
from pipeline.comparisons.compare import compare
from pipeline.errors import ClusterLost, LeafledgerError, RunConflict, UsageError
from pipeline.in_memory.prediction_gap import rank_players
from tests.pipeline.conftest import FEATURES, WRONG, train, write_data

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


def test_workers_change_no_byte(several, tmp_path):
    """Serially, and on a cluster of two: one file."""
    model, data = several
    tables = [
        compare(model, data, tmp_path / f"{who}.parquet", methods=METHODS, **SOME, **where)
        for who, where in {"serial": {"scheduler": "serial"}, "two": {"workers": 2}}.items()
    ]
    assert tables[0].equals(tables[1])
    assert (tmp_path / "serial.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("_")] == []


def test_numbers_are_those_of_the_rows(example, several, tmp_path):
    """Areas are means of the curves' of rows in memory with their standard errors, correlations SciPy's, for every output."""
    model, data = several
    found = compare(model, data, tmp_path / "out.parquet", methods=METHODS, top=(1, 2), scales=(), scheduler="serial").to_pandas()
    rows = inputs(example.frame)
    given = {"banzhaf:0.25": {"p": 0.25}, "beta:4:1": {"alpha": 4, "beta": 1}, METHODS[3]: {"steps": 3, "rate": 0.1, "optimizer": "ascent"}}
    scores = {name: leafledger.attribute(model, rows, name.split(":")[0], parameters=given.get(name, {})).phi for name in METHODS}
    used = np.abs(np.stack(list(scores.values()))).sum(axis=(0, 1, 2)) > 0
    assert len(found) == 3 * (3 * 4 + 3 * 6 + 4 * 6)
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


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"scales": (0.0,)}, "scales are 0.0, expected different numbers above 0"),
        ({"scales": (0.5, 0.5)}, "scales are 0.5, 0.5, expected different numbers"),
        ({"noise": "pink"}, "noise is 'pink', expected one of normal, uniform, laplace"),
        ({"gap_rows": 0}, "gap_rows is 0, expected a number of at least 1"),
        ({"seed": -1}, "parameter 'seed' is -1, expected a whole number from 0"),
        ({"budget": 10}, r"PGI² of 1 rankings at 3 scales takes up to .* pairs of leaves per row, the budget is 10; raise it, have it approximate"),
    ],
)
def test_gaps_that_cannot_be_measured_are_refused(example, tmp_path, given, says):
    """Before any row is read."""
    with pytest.raises(UsageError, match=says):
        compare(example.model, example.data, tmp_path / "out.parquet", methods=("shapley",), scheduler="serial", **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("methods", "top", "says"),
    [
        (("shapley", "shapley"), (1,), "methods has 'shapley' twice, expected once"),
        (("beta:4:1:1",), (1,), "expected at most 2 parameters: beta:alpha:beta"),
        (("beta:none",), (1,), "'beta:none': expected a number for 'alpha'"),
        (("lime",), (1,), "'lime': expected one of shapley"),
        (("owen",), (1,), "method 'owen' needs a partition"),
        (("shapley",), (0,), "top is 0, expected different numbers of features"),
        (("run:nowhere",), (1,), "nowhere: not a finished run"),
    ],
)
def test_what_cannot_be_compared_is_refused(example, tmp_path, methods, top, says):
    """Before any row is read."""
    with pytest.raises(UsageError, match=says):
        compare(example.model, example.data, tmp_path / "out.parquet", methods=methods, top=top, scheduler="serial")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in inspect.signature(compare).parameters if name != "progress"])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_a_wrong_type_is_told_in_one_line(example, tmp_path, name, wrong):
    """Whatever stands in the place of an argument: a refusal of one line, no traceback, and nothing is written."""
    if isinstance(wrong, {"top": list, "scales": float | list}.get(name, ())):
        return  # numbers are what is asked for
    given = {"model": example.model, "data": example.data, "out": tmp_path / "out.parquet", "methods": "shapley", "scheduler": "serial"}
    with pytest.raises(LeafledgerError) as error:
        compare(**(given | {name: wrong}))
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_elsewhere_needs_tls_or_leave(example, tmp_path, monkeypatch):
    """As a run does."""
    monkeypatch.setattr("pipeline.runs.cluster.CONNECT_SECONDS", 1)
    given = {"methods": ("shapley",), "scales": (), "scheduler": "tcp://192.0.2.1:8786"}
    with pytest.raises(UsageError, match="is another host without TLS"):
        compare(example.model, example.data, tmp_path / "out.parquet", **given)
    with pytest.raises(ClusterLost, match="no Dask scheduler answers there"):
        compare(example.model, example.data, tmp_path / "out.parquet", plain_tcp=True, **given)


def test_other_rows_are_refused(example, several, tmp_path):
    """A run on other files, or with other outputs, says nothing of these rows."""
    model, data = several
    leafledger.explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    with pytest.raises(UsageError, match="is about other rows"):
        compare(example.model, data, tmp_path / "out.parquet", methods=(f"run:{tmp_path}/run",), scheduler="serial")
    with pytest.raises(UsageError, match="has outputs 0; expected those"):
        compare(model, data, tmp_path / "out.parquet", methods=(f"run:{tmp_path}/run",), scheduler="serial")


def test_the_command_shows_a_table(example, tmp_path, capsys):
    """A row per ranking with its areas and how far it agrees with the first; mistakes get a line."""
    out = tmp_path / "out.parquet"
    arguments = ["compare", example.model, example.data, "--methods", "shapley,banzhaf,beta:4:1,ranker", "--scheduler", "serial"]
    assert cli.main([*arguments, "--out", str(out), "--top", "1,2", "--scales", "0.5", "--gap-rows", "20"]) == 0
    said = capsys.readouterr()
    for text in (
        "ranking",
        "insertion",
        "deletion",
        "top 2",
        "correlation",
        "│ shapley",
        "│ beta:4:1",
        "│ ranker",
        "pgi2 0.5",
        "means of 3,000, of PGI² 20 rows",
    ):
        assert text in said.out
    assert said.err.count("comparing: part") == 4
    assert pq.read_table(out).num_rows == 3 * 4 + 3 * 6 + 4 * 6 + 4 + 6
    some = ["--out", str(tmp_path / "estimated.parquet"), "--scales", "0.5", "--gap-rows", "2", "--budget", "10"]
    assert cli.main([*arguments, *some]) == 2
    assert "raise it, have it approximate" in capsys.readouterr().err
    assert cli.main([*arguments, *some, "--approximate"]) == 0
    assert "pgi2 0.5 error" in capsys.readouterr().out
    assert cli.main([*arguments, "--out", str(out), "--top", "few"]) == 2
    assert "top is 'few', expected numbers with commas between them" in capsys.readouterr().err
