"""Tables of summaries: the moments of all rows however they were cut, one type for each column, and totals beside them."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.reductions.reduction import MOMENTS, merge_all
from leafledger.kernels.reductions.summary import IMPORTANCE, INTERACTIONS, Subject, Summary, Table
from leafledger.pipeline.methods.summary_tables import read_totals, tabulate

SUBJECT = Subject(("low", "high"), ("a", "b", "c", "d"), np.array([1, 3]), np.array([[1, 3]], np.int32), 0)


@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=20), seed=st.integers(0, 99))
def test_importance_is_the_moments_of_all_rows(sizes, seed):
    """Of every output and player by NumPy, however rows were cut into parts; players that no split asks for have zeros."""
    phi = np.random.default_rng(seed).normal(size=(2, 2, sum(sizes)))
    cuts = np.split(phi, np.cumsum(sizes)[:-1], axis=2)
    states = [MOMENTS.update(MOMENTS.init(2, 2), part, part.shape[2]) for part in cuts]
    table = tabulate(IMPORTANCE, merge_all(MOMENTS, states, 2, 2), SUBJECT)["importance"]
    assert table.column_names == list(IMPORTANCE.columns)
    assert table["output"].to_pylist() == ["low"] * 4 + ["high"] * 4
    assert table["feature"].to_pylist() == ["a", "b", "c", "d"] * 2
    everywhere = np.zeros((2, 4, max(1, phi.shape[2])))
    everywhere[:, [1, 3], : phi.shape[2]] = phi
    expected = {
        "mean_abs": np.abs(everywhere).mean(axis=2),
        "mean": everywhere.mean(axis=2),
        "std": everywhere.std(axis=2),
        "min": everywhere.min(axis=2),
        "max": everywhere.max(axis=2),
    }
    for name, values in expected.items():
        assert_allclose(table[name].to_numpy(), values.reshape(-1), rtol=1e-9, atol=1e-12)
    if phi.size:
        share = expected["mean_abs"] / expected["mean_abs"].sum(axis=1, keepdims=True)
        assert_allclose(table["share"].to_numpy(), share.reshape(-1), rtol=1e-9)
        order = [sorted(range(4), key=lambda j: (-mean[j], j)) for mean in expected["mean_abs"]]
        assert table["rank"].to_pylist() == [found.index(j) + 1 for found in order for j in range(4)]


@pytest.mark.parametrize(("summary", "shape"), [(IMPORTANCE, (2, 2)), (INTERACTIONS, (2, 1))])
def test_columns_have_one_type_each_also_without_rows(summary, shape):
    """Names are texts, ranks whole numbers, the rest doubles, whether or not any part was made."""
    states = [summary.reduction.update(summary.reduction.init(*shape), np.ones((*shape, 3)), 3)]
    whole, empty = (tabulate(summary, some, SUBJECT)[summary.name].schema for some in (*states, None))
    assert whole.equals(empty)
    for field in whole:
        kind = "text" if field.name in {"output", "feature", "first", "second"} else "rank" if field.name == "rank" else "number"
        assert field.type in {"text": (pa.string(),), "rank": (pa.int64(), pa.int32()), "number": (pa.float64(),)}[kind], field


def test_no_number_is_null_and_what_is_said_once_is_kept_beside_the_table():
    """NaN does not get into a file; totals are JSON in the table's metadata, and read back where there are any."""
    said = Table({"x": np.array([1.0, np.nan]), "name": ["a", "b"]}, {"r2": 0.5, "n": 3, "none": None})
    summary = Summary("s", MOMENTS, lambda buffers: buffers.phi, lambda *_: {"s": said, "t": Table({"x": np.zeros(1)})}, (), "")
    tables = tabulate(summary, None, SUBJECT)
    assert tables["s"].to_pylist() == [{"x": 1.0, "name": "a"}, {"x": None, "name": "b"}]
    assert read_totals(tables) == {"s": {"r2": 0.5, "n": 3, "none": None}}
    assert json.loads(tables["s"].schema.metadata[b"leafledger"]) == said.totals
