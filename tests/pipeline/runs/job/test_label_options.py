"""Labels are for methods that need them, groups of rows for those that say something of them."""

import pytest

from leafledger.kernels.methods import METHODS
from leafledger.kernels.reductions.summary import IMPORTANCE_BY
from leafledger.pipeline.dataset.columns.labels import LabelColumns
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.methods.parameters import check_by, labelled_methods
from leafledger.pipeline.runs.job.label_options import check_labels
from leafledger.pipeline.runs.job.options import Options

WITHOUT = ("curves", "gap", "gap_greedy")  # methods that write ranks


def test_labels_are_for_methods_that_need_them():
    """And for no others."""
    assert check_labels(METHODS["r2"], Options(label="y", weight="w", missing_labels="refuse")) == LabelColumns("y", "w", "refuse")
    assert check_labels(METHODS["shapley"], Options(by="a")) is None
    for given in ({"label": "y"}, {"weight": "w"}):
        with pytest.raises(UsageError, match=r"^method 'shapley' takes no labels and weights; method 'r2' does, and space 'loss'$"):
            check_labels(METHODS["shapley"], Options(**given))
    with pytest.raises(UsageError, match=r"^missing_labels is 'refuse', but method 'shapley' takes no labels; leave it out$"):
        check_labels(METHODS["shapley"], Options(missing_labels="refuse"))
    with pytest.raises(UsageError, match=r"^method 'r2' needs labels; name their column with --label$"):
        check_labels(METHODS["r2"], Options())
    assert check_labels(METHODS["shapley"], Options(space="loss", label="y")) == LabelColumns("y", None, "count")
    with pytest.raises(UsageError, match=r"^space 'loss' needs labels; name their column with --label$"):
        check_labels(METHODS["shapley"], Options(space="loss"))
    check_by(METHODS["shapley"], ("mean_loss",))
    with pytest.raises(UsageError, match=r"^by has 'mean_loss', as a column of the summary is called; rename it$"):
        check_by(METHODS["shapley"], ("mean_loss",), "loss")
    assert labelled_methods() == "'r2'"


@pytest.mark.parametrize("name", METHODS)
def test_groups_are_for_methods_with_importances(name):
    """Methods that write ranks refuse them while planning, in one line."""
    check_by(METHODS[name], ())
    if name in WITHOUT:
        with pytest.raises(UsageError, match=rf"^by is a, b, but method '{name}' has ranks, and no importances of groups of rows; leave it out$"):
            check_by(METHODS[name], ("a", "b"))
    else:
        check_by(METHODS[name], ("a", "b"))


@pytest.mark.parametrize(("name", "summary"), [("r2", METHODS["r2"].summaries[0]), ("shapley", IMPORTANCE_BY)])
def test_columns_of_groups_are_called_otherwise_than_those_of_the_summary(name, summary):
    """Or two columns of one table would have one name."""
    assert summary.columns
    for column in summary.columns:
        with pytest.raises(UsageError, match=rf"^by has '{column}', as a column of the summary is called; rename it$"):
            check_by(METHODS[name], ("a", column))
