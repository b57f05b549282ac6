"""Tables of a comparison: moments of items become impacts and errors of features, whatever the features that no split asks for."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

import leafledger
from leafledger.kernels.reductions.reduction import MEANS
from leafledger.pipeline.comparisons.compare import compare
from leafledger.pipeline.comparisons.compare_item import Compared
from leafledger.pipeline.comparisons.comparison import Comparison, Gaps, Ranking, Removal, Sample, name_values
from leafledger.pipeline.comparisons.measures import Measures
from leafledger.pipeline.comparisons.tables import tabulate
from leafledger.pipeline.dataset.columns.labels import LabelColumns
from leafledger.pipeline.errors import InvalidLabel
from leafledger.pipeline.methods.reduction_states import pack_state

SEEN = np.zeros((2, 2), np.int64)  # of two features


@pytest.fixture
def parts(example):
    """A comparison of two rankings with values and one without, of the model's second feature and its third; two items' states; what they are of."""
    model = leafledger.load_ensemble(example.model)
    rankings = tuple(Ranking(method, method, "", None, (), (1, 2)) for method in ("shapley", "gap_greedy", "banzhaf"))
    removal = Removal("", LabelColumns("y", None, "count"), (0, 1))
    gaps = Gaps((), "normal", -1, Sample(0, 0, ()))
    comparison = Comparison(rankings, "", "", gaps, removal, (1,), model.features[1:3], ("0",), None, (), 5, 64)
    rng, items, everything = np.random.default_rng(0), [], []
    for n in (5, 9):
        arrays = [rng.normal(size=(1, len(values), n)) ** 2 for values in name_values(comparison, ())]
        arrays.append(rng.normal(size=(1, 3 * 2, n)))  # two rankings and a difference, of two features
        everything.append(arrays)
        items.append(Compared(tuple(pack_state(MEANS.update(MEANS.init(*each.shape[:2]), each, n)) for each in arrays), "", SEEN))
    return comparison, model, items, [np.concatenate(each, axis=2) for each in zip(*everything, strict=True)]


def test_states_become_tables(parts):
    """Means of all items together; roots of squared errors; mean magnitudes, and roots of mean squares."""
    comparison, model, items, everything = parts
    found = tabulate(comparison, model, Measures(top=(1,), scales=(), label="y"), items)
    measures, values = found.measures.to_pandas(), name_values(comparison, ())
    n_areas = len(values[0])
    assert_allclose(measures["mean"][:n_areas], everything[0][0].mean(axis=1))
    alone = [j for j, value in enumerate(values[2]) if value.other is None]
    assert_allclose(measures["mean"][n_areas:].to_numpy()[alone], np.sqrt(everything[2][0].mean(axis=1))[alone])
    assert (measures["rows"] == 14).all()
    shapley, banzhaf, apart = (everything[3][0, 2 * j : 2 * j + 2] for j in range(3))
    rows = found.features.to_pylist()
    names = [feature.name for feature in model.features]
    assert [(row["ranking"], row["other"], row["feature"]) for row in rows] == [
        (a, b, name) for a, b in (("shapley", "gap_greedy"), ("shapley", "banzhaf"), ("gap_greedy", "banzhaf")) for name in names
    ]
    of_both = rows[len(names) : 2 * len(names)]
    for j, row in enumerate(of_both):
        used = j - 1
        for column, numbers in {"impact": np.abs(shapley), "other_impact": np.abs(banzhaf), "mae": np.abs(apart), "rmse": apart**2}.items():
            expected = numbers[used].mean() if used in (0, 1) else 0.0
            assert_allclose(row[column], np.sqrt(expected) if column == "rmse" else expected, rtol=1e-12)
    assert {row["impact"] for row in rows[2 * len(names) :]} == {row["mae"] for row in rows[: len(names)]} == {None}
    assert all(row["other_impact"] is not None for row in rows[2 * len(names) :])
    assert found.rows.num_rows == 0


def test_no_label_at_all_is_refused(parts):
    """An error of no rows would be 0."""
    comparison, model, items, _ = parts
    nobody = pack_state(MEANS.init(1, len(name_values(comparison, ())[2])))
    items = [Compared((*item.states[:2], nobody, item.states[3]), item.rows, SEEN) for item in items]
    with pytest.raises(InvalidLabel, match="label 'y' is missing on every row, expected numbers"):
        tabulate(comparison, model, Measures(top=(1,), scales=(), label="y"), items)


def test_data_without_rows_have_tables_of_no_rows(parts):
    """As many lines as of any other data, and each is of 0 rows."""
    comparison, model, items, _ = parts
    asked = replace(comparison, removal=None), model, Measures(top=(1,), scales=())
    without = [Compared((*item.states[:2], pack_state(MEANS.init(1, 0)), item.states[3]), "", SEEN) for item in items]
    found, some = tabulate(*asked, []), tabulate(*asked, without)
    for name in ("measures", "features"):
        empty, full = (getattr(tables, name).to_pandas() for tables in (found, some))
        assert (empty["rows"] == 0).all()
        assert (full["rows"] == 14).all()
        texts = list(full.select_dtypes(exclude="number"))
        assert empty[texts].equals(full[texts])
    assert found.measures["mean"].null_count == found.measures["standard_error"].null_count == found.measures.num_rows


def test_a_single_row_tells_no_error(example, tmp_path):
    """It was NaN in the file, and on the screen."""
    example.frame.iloc[:1].to_parquet(tmp_path / "one.parquet")
    found = compare(example.model, tmp_path / "one.parquet", tmp_path / "out.parquet", methods=["shapley", "banzhaf"], scales=(), scheduler="serial")
    assert found["mean"].null_count == 0
    assert found["standard_error"].null_count == found.num_rows


def test_one_ranking_has_nobody_to_differ_from(example, tmp_path):
    """Tables of two rankings have columns and no rows."""
    compare(example.model, example.data, tmp_path / "out.parquet", methods="shapley", scales=(), scheduler="serial")
    features, rows = (pq.read_table(tmp_path / f"out.{name}.parquet") for name in ("features", "rows"))
    assert features.num_rows == rows.num_rows == 0
    assert features.schema.field("mae").type == pa.float64()
    assert rows.schema.field("row").type == pa.int64()
