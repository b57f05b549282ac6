"""Parameters that may be left open, to be tuned on rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..slices.buffers import Prepared

Parameters = Mapping[str, Any]
Tried = tuple[Any, Parameters]  # a method and all of its parameters


@dataclass(frozen=True, slots=True)
class Tuning:
    """How an open parameter is tuned."""

    name: str  # of the parameter
    n_rows: int  # sufficient number of rows
    tried: Callable[[Parameters], Tried | None]  # the method to try on rows, with any value for the open parameter; None if none is open
    # ``(prepared, follow) -> value`` from the paths ``(outputs, steps, n)`` of ``follow(prepared)``; None if impossible
    choose: Callable[[Prepared, Callable[[Prepared], np.ndarray]], Any]
    fill: Callable[[Parameters, Any], dict[str, Any]]  # ``(parameters, value) -> parameters`` without open ones


class Tuned(Protocol):
    """A method with a parameter that may be left open."""

    @property
    def tuning(self) -> Tuning | None:
        """The tuning, or None if no parameter can be left open."""


def find_open(method: Tuned, parameters: Parameters) -> Tried | None:
    """Find the method and parameters to try on rows before an open parameter is known.

    Parameters
    ----------
    parameters : mapping
        from the name of each of the method's parameters to its value

    Returns
    -------
    tuple of Method and its parameters, or None
        None where nothing is left open
    """
    tuning = method.tuning
    return None if tuning is None else tuning.tried(parameters)
