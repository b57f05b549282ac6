"""Methods and options that a model does not support, with reasons."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.marginal.background import check_weights
from leafledger.kernels.method.method import Method
from leafledger.kernels.methods import METHODS
from leafledger.kernels.trees.forest import make_forest

from ...arguments.choices import MODEL
from ...dataset.columns.players import number_players
from ...errors import LeafledgerError, UsageError
from ...methods.tables import check_method, check_shared, refuse_statistics
from ...models.model import Model
from ...models.row_output import choose_among, read_row_output
from ...models.selection import keep_iterations


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request, and why it is unsupported or what else it needs."""

    what: str
    why: str


def check_given(model: Model, method: Method) -> None:
    """Refuse a method that the model does not support, or that needs more than model and rows."""
    check_method(model, method)
    if method.labelled:
        raise UsageError("needs a label of every row")
    if not method.phi.of_groups:
        alone = any(parameter.of_groups for parameter in method.parameters)
        raise UsageError(f"needs {'a sequence' if alone else 'a partition'} of the features")
    if number_players(model, ()).combinations:
        check_shared(method, interactions=False)


def _questions(model: Model) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield possible requests, with functions that raise if unsupported."""
    for method in METHODS.values():
        yield f"method {method.name}", partial(check_given, model, method)
    if number_players(model, ()).combinations:
        yield "interactions", partial(check_shared, METHODS["shapley"], interactions=True)
    yield f"background {MODEL}", lambda: check_weights(make_forest(model.ensemble)[1])
    yield "compare", partial(refuse_statistics, model, "compare")
    yield "effects", partial(refuse_statistics, model, "partial_dependence")
    yield "trees", partial(keep_iterations, model, (0, 1))
    yield "output predicted", partial(choose_among, read_row_output("predicted"), model)


def find_refusals(model: Model) -> tuple[Refusal, ...]:
    """List the unsupported requests of a model."""
    found = []
    for what, ask in _questions(model):
        try:
            ask()
        except (LeafledgerError, InvalidParameters) as error:
            found.append(Refusal(what, str(error)))
    return tuple(found)
