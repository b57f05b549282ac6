"""Comparisons that are refused in one line, and data that are taken as they are asked for."""

import inspect

import numpy as np
import pytest

import leafledger
from leafledger.pipeline.comparisons.compare import compare
from leafledger.pipeline.errors import ClusterLost, LeafledgerError, NotFinished, SchemaMismatch, UsageError
from tests.pipeline.conftest import WRONG, write_data


@pytest.mark.slow
def test_data_of_another_column_s_categories_are_refused_unless_allowed(example, tmp_path):
    """As by `explain`: means over rows of which the model knows no carrier are those of other data. Three known ones in a hundred are enough."""
    given = {"methods": ("shapley", "banzhaf"), "scales": (), "scheduler": "serial"}
    foreign, known = (write_data(example.frame.assign(carrier=np.where(np.arange(3000) % 100 < n, "AA", "?")), tmp_path / f"{n}") for n in (0, 3))
    says = f"^{foreign}: column 'carrier': 3,000 of 3,000 values are no category of the model, expected .*; allow_unseen takes them as they are$"
    with pytest.raises(SchemaMismatch, match=says):
        compare(example.model, foreign, tmp_path / "out.parquet", **given)
    assert not list(tmp_path.glob("*out*"))
    assert compare(example.model, foreign, tmp_path / "out.parquet", allow_unseen=True, **given)["rows"][0].as_py() == 3000
    assert compare(example.model, known, tmp_path / "known.parquet", **given)["rows"][0].as_py() == 3000


@pytest.mark.slow
def test_a_number_stands_for_a_missing_value(example, tmp_path):
    """The same table as of rows that lack it; beside a run that took it so, and no other."""
    given, runs = {"scales": (), "scheduler": "serial"}, {}
    lacking = example.frame["distance"].where(np.arange(3000) % 7 > 0)
    frames = {"nan": example.frame.assign(distance=lacking), "number": example.frame.assign(distance=lacking.fillna(-999.0))}
    data = {name: write_data(frame, tmp_path / name) for name, frame in frames.items()}
    for name, missing in (("nan", None), ("number", -999.0)):
        runs[name] = str(tmp_path / f"{name}-run")
        leafledger.explain(example.model, data[name], runs[name], missing=missing, scheduler="serial")
    methods = {name: ("shapley", "banzhaf", f"run:{run}") for name, run in runs.items()}
    expected = compare(example.model, data["nan"], tmp_path / "nan.parquet", methods=methods["nan"], **given)
    found = compare(example.model, data["number"], tmp_path / "number.parquet", methods=methods["number"], missing=-999.0, **given)
    assert found["mean"].equals(expected["mean"])
    taken = compare(example.model, data["number"], tmp_path / "taken.parquet", methods=methods["number"][:2], **given)
    assert not taken["mean"].equals(expected["mean"].slice(0, len(taken)))
    with pytest.raises(UsageError, match=r"-999 stands for a missing value of feature '.*', expected no number, as here"):
        compare(example.model, data["number"], tmp_path / "out.parquet", methods=methods["number"], **given)


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
    with pytest.raises((UsageError, NotFinished), match=says):
        compare(example.model, example.data, tmp_path / "out.parquet", methods=methods, top=top, scheduler="serial")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in inspect.signature(compare).parameters if name != "progress"])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_a_wrong_type_is_told_in_one_line(example, tmp_path, name, wrong):
    """Whatever stands in the place of an argument: a refusal of one line, no traceback, and nothing is written."""
    if isinstance(wrong, {"top": list, "scales": float | list, "wait": float, "missing": float}.get(name, ())):
        return  # numbers are what is asked for
    given = {"model": example.model, "data": example.data, "out": tmp_path / "out.parquet", "methods": "shapley", "scheduler": "serial"}
    with pytest.raises(LeafledgerError) as error:
        compare(**(given | {name: wrong}))
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"label": "carrier"}, "column 'carrier' is large_string, expected numbers"),
        ({"label": "nothing"}, "column 'nothing' missing"),
        ({"ids": "nothing"}, "column 'nothing' missing"),
        ({"ids": "row"}, "ids has 'row', as a column of the rows is called; rename it"),
        ({"differing_rows": 0}, "differing_rows is 0, expected a number of at least 1"),
    ],
)
def test_labels_and_ids_that_cannot_be_used_are_refused(example, tmp_path, given, says):
    """Before any row is read."""
    with pytest.raises(LeafledgerError, match=says):
        compare(example.model, example.data, tmp_path / "out.parquet", methods=("shapley",), scheduler="serial", **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_scheduler_elsewhere_needs_tls_or_leave(example, tmp_path):
    """As a run does."""
    given = {"methods": ("shapley",), "scales": (), "scheduler": "tcp://192.0.2.1:8786"}
    with pytest.raises(UsageError, match="is another host without TLS"):
        compare(example.model, example.data, tmp_path / "out.parquet", **given)
    with pytest.raises(ClusterLost, match="no Dask scheduler answers there"):
        compare(example.model, example.data, tmp_path / "out.parquet", plain_tcp=True, **given)
