"""Tuning of open parameters on sample rows."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.method.method import Method
from leafledger.kernels.method.open_parameters import find_open
from leafledger.kernels.slices.buffers import Buffers, Prepared

from ..errors import UsageError


def tune(
    method: Method,
    parameters: Mapping[str, Any],
    prepare: Callable[[Method, Mapping[str, Any]], Prepared],
    read: Callable[[Prepared, int], tuple[Buffers, int]],
) -> dict[str, Any]:
    """Choose the values of open parameters.

    Parameters
    ----------
    parameters : mapping of str to Any
        All of the method's.
    prepare : callable
        ``(method, parameters) -> tables``.
    read : callable
        ``(tables, n_rows) -> (buffers, n)`` with the values of the first n rows, at most so many. Not called where nothing is open.

    Returns
    -------
    dict of str to Any
        With nothing left open.

    Raises
    ------
    UsageError
        None of the candidates will do.
    """
    tuning, tried = method.tuning, find_open(method, parameters)
    if tuning is None or tried is None:
        return dict(parameters)
    prepared = prepare(*tried)
    buffers, n = read(prepared, tuning.n_rows)

    def follow(some: Prepared) -> np.ndarray:
        attribute_batch(tried[0], some, buffers)
        return buffers.path[:, :, :n]

    value = tuning.choose(prepared, follow)
    if value is None:
        raise UsageError(f"{tuning.name} is left open, but by every candidate the objective falls on the first {n} rows; give a number")
    return tuning.fill(parameters, value)
