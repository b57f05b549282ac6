"""Output space of a run: margins, or predictions by the model's link."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from leafledger.kernels.method.method import Method
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.slices.links import Link, predict

from ..arguments.choices import MARGIN, PROBABILITY, SPACES, Space
from ..errors import UnsupportedModel, UsageError
from ..models.model import Model
from ..models.objectives import OF_CLASSES

TOTALS = {space: MARGIN if space == MARGIN else "prediction" for space in SPACES}  # sums of base value and attributions


def choose_link(space: Space, model: Model, method: Method, parameters: Mapping[str, Any], interactions: bool) -> Link | None:
    """Find the link that attributions are transformed by.

    Parameters
    ----------
    space : "margin", "probability" or "response"
    parameters : mapping of str to Any
        Of the method, all of them.
    interactions : bool
        Interactions are asked for.

    Returns
    -------
    Link or None
        None for margins.

    Raises
    ------
    UsageError
        Attributions do not add up to margins, interactions are asked for, or one of several classes alone.
    UnsupportedModel
        Predictions are no function of margins that is known, or no probabilities.
    """
    if space == MARGIN:
        return None
    check, objective = method.check_of(parameters), model.objective
    if check is None or not check.of_margins:
        additive = ", ".join(name for name, each in METHODS.items() if each.check is not None and each.check.of_margins)
        raise UsageError(f"space {space!r} shares out predictions, but what method {method.name!r} finds need not add up; expected one of {additive}")
    if interactions:
        raise UsageError(f"space {space!r} has no interactions, which are of margins; leave out one or the other")
    if objective.link is None:
        raise UnsupportedModel(f"space {space!r}: predictions of objective {objective.name!r} are no known function of its margins")
    if space == PROBABILITY and objective.margin not in OF_CLASSES:
        raise UnsupportedModel(f"space {space!r} is of classifiers, got objective {objective.name!r}; its predictions are space 'response'")
    link = objective.probability if space == PROBABILITY and objective.probability else objective.link
    if link.joint and len(model.outputs) == 1:
        raise UsageError(f"space {space!r}: a class's probability depends on the margins of all classes; leave out the output, or give 'predicted'")
    return link


def find_base(link: Link | None, prepared: Prepared) -> np.ndarray:
    """Return the prediction with every feature absent.

    Parameters
    ----------
    link : Link or None
        None for margins.

    Returns
    -------
    (outputs,) float64
    """
    return prepared.base if link is None else predict(link, prepared.base)
