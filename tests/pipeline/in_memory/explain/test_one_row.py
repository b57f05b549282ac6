"""A row's waterfall goes to the class that is predicted for it, unless another one is asked for."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from leafledger import attribute
from leafledger.pipeline.errors import UsageError

RNG = np.random.default_rng(7)
ROWS = RNG.normal(size=(60, 3))
LABELS = np.digitize(ROWS[:, 0] + ROWS[:, 1], [-0.5, 0.5])
FOREST = RandomForestClassifier(5, max_depth=4, random_state=0).fit(ROWS, LABELS)


@pytest.mark.parametrize("space", ["margin", "probability"])
def test_a_waterfall_takes_the_predicted_class(space):
    found = attribute(FOREST, ROWS, space=space)
    for row, label in enumerate(FOREST.predict(ROWS)):
        way = found.waterfall(row)
        assert way.title == f"row {row}, output {label}"
        assert way.total == found.prediction[row, label]
        assert way.base + sum(step.phi for step in way.steps) == pytest.approx(way.total)
    assert found.waterfall(0, 2).title == "row 0, output 2"


def test_the_title_names_the_class_that_was_explained():
    """Also where rows were explained for one class each, and have no other."""
    found = attribute(FOREST, ROWS, output="predicted")
    for row, label in enumerate(FOREST.predict(ROWS)):
        assert found.waterfall(row).title == f"row {row}, output {label}"
    assert found.plot.waterfall(5).title == f"Row 5, output {FOREST.predict(ROWS)[5]}"


def test_a_row_goes_by_its_label_where_that_is_no_number():
    """As the title says it; a number is always a position, and a label of several rows none of them."""
    labels = [f"p{i}" for i in range(59)] + ["p0"]
    found = attribute(FOREST, pd.DataFrame(ROWS, index=labels))
    assert str(found.waterfall("p3")) == str(found.waterfall(3))
    assert found.plot.waterfall("p3").svg == found.plot.waterfall(3).svg
    dates = attribute(FOREST, pd.DataFrame(ROWS, index=pd.date_range("2026-01-01", periods=60)))
    assert str(dates.waterfall(pd.Timestamp("2026-01-05"))) == str(dates.waterfall(4))
    numbered = attribute(FOREST, pd.DataFrame(ROWS, index=range(100, 160)))
    assert numbered.waterfall(1).title.startswith("row 101, ")
    for row, line in (
        ("p0", "row is 'p0', which is the label of 2 rows, expected one of their positions, such as 0"),
        ("P8", "row is 'P8', expected a position of 60 rows, or a label of one; did you mean 'p8'?"),
        (60, "row is 60, expected a position of 60 rows, or a label of one"),
        (True, "row is True, expected a position of 60 rows, or a label of one"),
        ([1], "row is [1], expected a position of 60 rows, or a label of one"),
    ):
        with pytest.raises(UsageError) as refusal:
            found.waterfall(row)
        assert str(refusal.value) == line


def test_labels_may_be_missing():
    """Rows without one go by position; others by theirs as before."""
    found = attribute(FOREST, pd.DataFrame(ROWS[:4], index=pd.Index(["a", pd.NA, None, "b"], dtype=object)))
    assert str(found.waterfall("b")) == str(found.waterfall(3))
    with pytest.raises(UsageError, match=r"^row is <NA>, expected a position of 4 rows, or a label of one$"):
        found.waterfall(pd.NA)


def test_of_several_targets_none_is_predicted():
    targets = RandomForestRegressor(3, max_depth=3, random_state=0).fit(ROWS, ROWS[:, :2])
    with pytest.raises(UsageError, match=r"^output is None, expected one of 0, 1, or a position$"):
        attribute(targets, ROWS).waterfall()


def test_a_notebook_shows_the_predicted_class_with_the_values_beside():
    """Of every row its own; of several targets the first."""
    html = attribute(FOREST, ROWS)._repr_html_()
    assert "of the predicted class; values in brackets" in html
    for row, label in enumerate(FOREST.predict(ROWS[:5])):
        assert f"<tr><td>{row}</td><td>{label}</td>" in html
        assert f"({ROWS[row, 0]:.5g})" in html
    targets = RandomForestRegressor(3, max_depth=3, random_state=0).fit(ROWS, ROWS[:, :2])
    assert ", first output; values in brackets" in attribute(targets, ROWS)._repr_html_()
