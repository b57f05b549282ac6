"""Lists of categories and their columns: margins are LightGBM's own predictions, or the column that may be another is refused."""

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import attribute, explain, load_ensemble
from leafledger.pipeline.errors import SchemaMismatch
from leafledger.pipeline.models.lightgbm.categories import Trained, find_doubtful, place_lists

N = 1200
RTOL = ATOL = 1e-9
GIVEN = {"verbosity": -1, "num_threads": 1, "seed": 1, "min_data_per_group": 5, "cat_smooth": 1.0}
NUMBER = r"rows: column '{}' is int64, the model was trained on categories or on their codes, and cannot tell which: give it in memory as the column"
CODES = r"column '{}' is .*, the model was trained on numbers or on a category column's codes, and cannot tell which: give it "


def draw(months=12, origins=(1, 2, 3)):
    """Rows with two columns of integers and one of numbers, and a target on which all of them have effects."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"month": rng.integers(1, months + 1, N), "origin": rng.choice(origins, N), "x": rng.normal(size=N)})
    return rows, rng.permutation(20)[rows["origin"]] + 0.3 * rows["month"] + rows["x"]


def as_category(rows, name, categories=None):
    return rows.assign(**{name: pd.Categorical(rows[name], categories=categories)})


def train(rows, target, categorical="auto"):
    return lightgbm.train(GIVEN, lightgbm.Dataset(rows, target, categorical_feature=categorical), 20)


def doubtful(booster):
    return [feature.name for feature in load_ensemble(booster).features if feature.perhaps_codes]


def margins(booster, rows):
    return attribute(booster, rows).margin[:, 0]


@pytest.mark.parametrize(("months", "origins"), [(12, (1, 2, 3)), (6, (0, 1, 2)), (12, range(12))], ids=str)
def test_a_list_that_may_be_another_columns_is_not_matched_by_value(months, origins):
    """A column of integers was named as categorical, one of categories was not: months 7 to 12 may be lacking, origins may look like codes."""
    rows, target = draw(months, origins)
    frame = as_category(rows, "month", range(1, 13))
    booster = train(frame, target, ["origin"])
    assert doubtful(booster) == ["month", "origin"]
    for given, name in ((rows, "origin"), (as_category(rows, "origin").drop(columns="month").assign(month=frame["month"]), "month")):
        with pytest.raises(SchemaMismatch, match=(NUMBER if name == "origin" else CODES).format(name)):
            attribute(booster, given)
    # A matrix holds codes, whosever list it is.
    matrix = frame.assign(month=frame["month"].cat.codes).to_numpy(float)
    assert_allclose(margins(booster, matrix), booster.predict(frame, raw_score=True), rtol=RTOL, atol=ATOL)


def test_a_path_does_not_hold_what_may_be_codes(tmp_path):
    """Hive folders as pandas reads them are columns of categories."""
    rows, target = draw()
    train(as_category(rows, "month"), target, ["origin"]).save_model(tmp_path / "model.txt")
    folder = tmp_path / "data" / "month=2" / "origin=1"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"x": rows["x"]}), folder / "part.parquet")
    with pytest.raises(
        SchemaMismatch, match=r"part\.parquet \(its path\): column 'month' is '2', .* numbers or on .* codes, and cannot tell which: give"
    ):
        explain(tmp_path / "model.txt", tmp_path / "data", tmp_path / "run", scheduler="serial")


def test_a_list_whose_codes_were_all_seen_is_its_columns_own():
    """An ordinary model with flags and small counts beside: columns of integers and of categories are the same rows."""
    rows, target = draw()
    rows = rows.assign(flag=np.arange(N) % 2, count=np.arange(N) % 7 + 1)
    frame = as_category(rows, "month")
    booster = train(frame, target)
    assert doubtful(booster) == []
    expected = booster.predict(frame, raw_score=True)
    for given in (frame, rows, as_category(frame, "count")):
        assert_allclose(margins(booster, given), expected, rtol=RTOL, atol=ATOL)


def test_a_list_whose_codes_another_column_had_too_is_taken_with_categories():
    """Months are categories, and levels from 0 to 11 may be the codes of such a column."""
    rows, target = draw(origins=range(12))
    frame = as_category(rows, "month")
    booster = train(frame, target)
    assert doubtful(booster) == ["month", "origin"]
    assert_allclose(margins(booster, frame), booster.predict(frame, raw_score=True), rtol=RTOL, atol=ATOL)
    with pytest.raises(SchemaMismatch, match=NUMBER.format("month")):
        attribute(booster, rows)


def test_nothing_hangs_on_a_list_whose_codes_are_its_values():
    """Whichever column it belongs to."""
    rows, target = draw(origins=(0, 1, 2))
    rows = rows.assign(month=rows["month"] - 1)
    frame = as_category(rows, "month")
    booster = train(frame, target, ["origin"])
    assert doubtful(booster) == []
    assert_allclose(margins(booster, rows), booster.predict(frame, raw_score=True), rtol=RTOL, atol=ATOL)


def test_texts_are_matched_but_integers_are_not_where_a_list_of_texts_may_be_anothers():
    """Texts can be no codes."""
    rows, target = draw()
    frame = rows.assign(month=pd.Categorical(rows["month"].map("m{:02}".format)))
    booster = train(frame, target, ["origin"])
    assert doubtful(booster) == ["origin"]
    with pytest.raises(SchemaMismatch, match=r"'month' is dictionary<values=.*string.*, the model was trained on numbers$"):
        attribute(booster, frame.assign(origin=rows["origin"].astype(str)))
    with pytest.raises(SchemaMismatch, match=NUMBER.format("origin")):
        attribute(booster, rows)


def trained(categorical, spare, needed, seen=None):
    return Trained(categorical, spare, np.array(needed), np.array(needed if seen is None else seen))


def test_lists_may_all_be_the_next_columns():
    """Of a, b, c the first may be integers, so that b and c hold the lists."""
    lists = [["p", "q"], [5, 6, 7]]
    found = trained((0, 1), (2,), [2, 2, 3], [1, 2, 3])
    columns = place_lists(lists, found, "f")
    assert columns == {0: 0, 1: 1}
    assert find_doubtful(lists, columns, found) == {0, 1, 2}


def test_a_list_keeps_its_column_where_order_says_so():
    """What may hold the second list stands before the first, which has no other column."""
    lists = [["p", "q"], [5, 6, 7]]
    found = trained((1, 2), (0,), [3, 2, 3])
    assert find_doubtful(lists, place_lists(lists, found, "f"), found) == set()
