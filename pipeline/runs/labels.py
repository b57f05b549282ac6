"""Which labels and groups of rows a run asks for, and which methods take them."""

from collections.abc import Sequence

from kernels.method import Method
from kernels.methods import METHODS
from kernels.summaries import list_grouped

from ..dataset.labels import COUNT, LabelColumns
from ..errors import UsageError
from .options import Options


def labelled_methods() -> str:
    """Name the methods that take labels, for messages.

    Returns
    -------
    str
    """
    return " or ".join(repr(method.name) for method in METHODS.values() if method.labelled)


def check_labels(method: Method, options: Options) -> LabelColumns | None:
    """Choose the columns of labels and weights, for a method that needs labels and for no other.

    Parameters
    ----------
    method : Method
    options : Options

    Returns
    -------
    LabelColumns or None
        None where the method takes no labels.

    Raises
    ------
    UsageError
        Labels are missing or not taken.
    """
    if not method.labelled:
        if options.label is not None or options.weight is not None:
            raise UsageError(f"method {method.name!r} takes no labels and weights; method {labelled_methods()} does")
        if options.missing_labels != COUNT:
            raise UsageError(f"missing_labels is {options.missing_labels!r}, but method {method.name!r} takes no labels; leave it out")
        return None
    if options.label is None:
        raise UsageError(f"method {method.name!r} needs labels; name their column with --label")
    return LabelColumns(options.label, options.weight, options.missing_labels)


def check_by(method: Method, by: Sequence[str]) -> None:
    """Refuse groups of rows where there is nothing to say of them, or where their summary would have two columns of one name.

    Parameters
    ----------
    method : Method
    by : sequence of str
        Columns whose values make groups; may be empty.

    Raises
    ------
    UsageError
        The method has no summary of groups, or a column is called as one of it.
    """
    grouped = list_grouped(method.summaries)
    if by and not grouped:
        raise UsageError(f"by is {', '.join(by)}, but method {method.name!r} has ranks, and no importances of groups of rows; leave it out")
    columns = {column for summary in grouped for column in summary.columns}
    taken = [name for name in by if name in columns]
    if taken:
        raise UsageError(f"by has {taken[0]!r}, as a column of the summary is called; rename it")
