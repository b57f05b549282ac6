"""Output space of a run: margins, predictions by the model's link, or the loss of its objective."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from leafledger.kernels.marginal.query import MarginalUse
from leafledger.kernels.method.method import Method
from leafledger.kernels.methods import METHODS
from leafledger.kernels.quotients.quantities import Quantity, QuantityName
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.slices.links import IDENTITY, Link, LinkName, predict
from leafledger.kernels.weighted.rows import find_mean

from ..arguments.choices import LOSS, MARGIN, MODEL, PROBABILITY, RESPONSE, SPACES, Space
from ..errors import UnsupportedModel, UsageError
from ..models.model import Model
from ..models.objectives import LOSSES, OF_CLASSES

TOTALS = {space: space if space in (MARGIN, LOSS) else "prediction" for space in SPACES}  # sums of base value and attributions
BY_ROW: dict[LinkName, QuantityName] = {"sigmoid": "sigmoid", "exp": "exp"}  # links of one margin, and no straight line, as quantities


def _find_link(space: Space, model: Model) -> Link:
    """Find the link of predictions."""
    objective = model.objective
    if objective.link is None:
        raise UnsupportedModel(f"space {space!r}: predictions of objective {objective.name!r} are no known function of its margins")
    if space == PROBABILITY and objective.margin not in OF_CLASSES:
        raise UnsupportedModel(f"space {space!r} is of classifiers, got objective {objective.name!r}; its predictions are space 'response'")
    link = objective.probability if space == PROBABILITY and objective.probability else objective.link
    if link.joint and len(model.outputs) == 1:
        reason = "a class's probability depends on the margins of all classes"
        raise UsageError(f"space {space!r}: {reason}; expected all outputs, output 'predicted', or space {MARGIN!r}")
    return link


def _choose_loss(model: Model) -> Quantity:
    """Find the loss of the model's objective."""
    objective = model.objective
    name, link = LOSSES.get(objective.name), objective.probability or objective.link
    if name is None or link is None or link.joint:
        got = f"the loss of objective {objective.name!r}" if objective.name else "the loss of a model that names no objective"
        raise UnsupportedModel(
            f"space {LOSS!r}: {got} is no known function of one margin; expected a squared error, a log loss of two classes, or a Poisson or gamma "
            f"deviance"
        )
    if len(model.outputs) != 1:
        raise UnsupportedModel(f"space {LOSS!r} is of models of one output, got {len(model.outputs)}: {', '.join(model.outputs)}"[:200])
    return Quantity(name, link.scale)


def choose_space(
    space: Space, model: Model, method: Method, parameters: Mapping[str, Any], interactions: bool, background: Any
) -> tuple[Link | None, Quantity | None]:
    """Find what attributions are carried to: along a line by a link, or background row by background row to a quantity.

    Parameters
    ----------
    space : "margin", "probability", "response" or "loss"
    parameters : mapping of str to Any
        Of the method, all of them.
    interactions : bool
        Interactions are asked for.
    background : Any
        Rows of a background, or "model", or None.

    Returns
    -------
    Link or None
    Quantity or None
        One of both; neither for margins.

    Raises
    ------
    UsageError
        Attributions do not add up to margins, interactions are asked for, one of several classes alone, or a loss without rows of a background.
    UnsupportedModel
        Predictions are no function of margins that is known, or no probabilities; or there is no loss.
    """
    if space == MARGIN:
        return None, None
    check, by_row = method.check_of(parameters), background is not None and not (isinstance(background, str) and background == MODEL)
    if check is None or not check.of_margins:
        additive = ", ".join(name for name, each in METHODS.items() if each.check is not None and each.check.of_margins)
        what = "losses" if space == LOSS else "predictions"
        raise UsageError(f"space {space!r} shares out {what}, but what method {method.name!r} finds need not add up; expected one of {additive}")
    if space == LOSS:
        quantity = _choose_loss(model)
        if not by_row:
            raise UsageError(
                f"space {space!r} compares with the loss of a background's rows; give a background of rows by --background, in Python background="
            )
        return None, quantity
    link = _find_link(space, model)
    if by_row and link.name in BY_ROW and isinstance(method.games.background, MarginalUse):
        return None, Quantity(BY_ROW[link.name], link.scale)
    if interactions and link != IDENTITY:
        raise UsageError(
            f"space {space!r} has interactions only background row by background row: expected rows of a background and a prediction that is a "
            f"function of one margin, got {'several classes' if link.joint else f'link {link.name!r}'} {'with' if by_row else 'without'} such rows"
        )
    return link, None


def choose_link(space: Space, model: Model) -> Link | None:
    """Find the link of predictions themselves, for what is no attribution.

    Parameters
    ----------
    space : "margin", "probability" or "response"

    Returns
    -------
    Link or None
        None for margins.

    Raises
    ------
    UsageError
        One of several classes alone, or losses, which only attributions are of.
    UnsupportedModel
        Predictions are no function of margins that is known, or no probabilities.
    """
    if space == LOSS:
        raise UsageError(f"space {space!r} is of attributions alone; expected {MARGIN!r}, {PROBABILITY!r} or {RESPONSE!r}")
    return None if space == MARGIN else _find_link(space, model)


def say_carried(space: Space, link: Link | None, quantity: Quantity | None) -> str:
    """Say how attributions get into a space.

    Parameters
    ----------
    space : "margin", "probability", "response" or "loss"
    link : Link or None
    quantity : Quantity or None
        As `choose_space` returned them.

    Returns
    -------
    str
        Empty for margins.
    """
    carried = quantity or link
    if carried is None:
        return ""
    way = ", background row by background row" if quantity is not None else "" if link == IDENTITY else ", along the line from the mean margin"
    return f"{space}, by {carried.name} of {'' if carried.scale == 1 else f'{carried.scale:g} times '}the margin{way}"


def find_scale(link: Link | None, quantity: Quantity | None) -> Link:
    """Return the link by which the size of predictions bounds their errors of rounding: that of a line, or of a quantity that is a prediction.

    Parameters
    ----------
    link : Link or None
    quantity : Quantity or None
        As `choose_space` returned them.
    """
    by_row = next((name for name, known in BY_ROW.items() if quantity is not None and quantity.name == known), None)
    return link or (IDENTITY if by_row is None or quantity is None else Link(by_row, quantity.scale))


def find_base(link: Link | None, prepared: Prepared) -> np.ndarray:
    """Return the prediction with every feature absent: of the mean margin, or, background row by background row, the mean prediction.

    Parameters
    ----------
    link : Link or None
        None for margins, and for what is carried background row by background row.

    Returns
    -------
    (outputs,) float64
        NaN for a loss, which has a base value for every row
    """
    if prepared.weighted.tables:
        return find_mean(prepared.weighted)
    return prepared.base if link is None else predict(link, prepared.base)
