"""A-priori bound of the error of values against a sampled background."""

from os import PathLike
from typing import Any

import numpy as np

from leafledger.kernels.marginal.sampling_bound import bound_sampling

from ...arguments.readers import read_number
from ...methods.tables import refuse_statistics, refused
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
    loaded = load_ensemble(model)
    refuse_statistics(loaded, "the bound")
    with refused():
        return bound_sampling(loaded.ensemble, read_number("n_rows", n_rows, 1))
