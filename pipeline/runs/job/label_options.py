"""Options of labels and weights, checked against the method."""

from leafledger.kernels.method.method import Method

from ...arguments.choices import LOSS
from ...dataset.columns.labels import COUNT, LabelColumns
from ...errors import UsageError
from ...methods.parameters import labelled_methods
from .options import Options


def check_labels(method: Method, options: Options) -> LabelColumns | None:
    """Return the columns of labels and weights, for methods that need labels only."""
    if not method.labelled and options.space != LOSS:
        if options.label is not None or options.weight is not None:
            raise UsageError(f"method {method.name!r} takes no labels and weights; method {labelled_methods()} does, and space {LOSS!r}")
        if options.missing_labels != COUNT:
            raise UsageError(f"missing_labels is {options.missing_labels!r}, but method {method.name!r} takes no labels; leave it out")
        return None
    if options.label is None:
        raise UsageError(f"{f'method {method.name!r}' if method.labelled else f'space {LOSS!r}'} needs labels; name their column with --label")
    return LabelColumns(options.label, options.weight, options.missing_labels)
