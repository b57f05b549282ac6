"""A-priori bound of the error of values against a sampled background."""

from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.marginal.sampling_bound import bound_sampling

from ...arguments.readers import read_number, shorten
from ...errors import UsageError
from ...methods.tables import refuse_statistics
from ...models import load_ensemble
from ...models.model import Model


def sampling_bound(model: Model | str | PathLike | Any, n_rows: int) -> np.ndarray:
    """Bound the root mean squared error of marginal Shapley values, if a background is a random sample (Filom et al. 2024, Theorem 3.15).

    It holds for every row, takes the model's own leaf weights for the population, and is far above what ``attribute(…, background_errors=True)``
    measures: it says how fast errors fall, not how large they are. The theorem is of single features: values of groups have no such bound.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes, of symmetric trees.
    n_rows : int
        Of the background.

    Returns
    -------
    (outputs, features) float64
        Margin units; 0 where no split asks for a feature.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. UsageError where trees are not symmetric.
    """
    return _bound(model, read_number("n_rows", n_rows, 1))


def _bound(model: Any, n_rows: int) -> np.ndarray:
    loaded = load_ensemble(model)
    refuse_statistics(loaded, "the bound")
    try:
        return bound_sampling(loaded.ensemble, n_rows)
    except InvalidParameters as error:
        raise UsageError(
            f"the bound is of symmetric trees with leaf weights, as CatBoost's are by default: {str(error).partition(';')[0]}; "
            "attribute(…, background_errors=True) measures errors of any model's values"
        ) from None


def sampling_rows(model: Model | str | PathLike | Any, error: float, miss: float | None = None) -> np.ndarray:
    """Compute how many rows of a background keep `sampling_bound` below an error, or errors below it on nearly every sample.

    Parameters
    ----------
    model : Model, str, path or model object
        As for `sampling_bound`.
    error : float
        Margin units, above 0: the root mean squared error that is allowed.
    miss : float, optional
        Above 0 and at most 1: then ``error`` is one that a value exceeds with at most this probability over samples (Filom et al. 2024, Eq. 3.30, by
        Chebyshev's inequality).

    Returns
    -------
    (outputs, features) float64
        Whole numbers of rows; 0 where no split asks for a feature. Their largest is what all values need.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    for name, given, most in (("error", error, np.inf), ("miss", 1.0 if miss is None else miss, 1.0)):
        if isinstance(given, bool) or not isinstance(given, Real) or not 0 < given <= most or given == np.inf:
            raise UsageError(f"{name} is {shorten(given)}, expected a number above 0{'' if most == np.inf else ' and at most 1'}")
    return np.ceil(_bound(model, 1) ** 2 / (float(error) ** 2 * (1.0 if miss is None else float(miss))))
