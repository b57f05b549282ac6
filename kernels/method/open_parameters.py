"""A parameter that may be left open, for rows to choose."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..slices.buffers import Prepared

Parameters = Mapping[str, Any]
Tried = tuple[Any, Parameters]  # a method and all of its parameters


@dataclass(frozen=True, slots=True)
class Tuning:
    """How what is left open is found.

    name : of what is chosen
    n_rows : so many rows are enough
    tried : ``parameters -> (method, parameters)`` that is tried on rows, with any value in the place of what is open; None where nothing is
    choose : ``(prepared, follow) -> value``, by the paths ``(outputs, steps, n)`` that ``follow(prepared)`` finds of rows; None where none will do
    fill : ``(parameters, value) -> parameters``, with nothing open
    """

    name: str
    n_rows: int
    tried: Callable[[Parameters], Tried | None]
    choose: Callable[[Prepared, Callable[[Prepared], np.ndarray]], Any]
    fill: Callable[[Parameters, Any], dict[str, Any]]


class Tuned(Protocol):
    """A method, of which a parameter may be left open."""

    @property
    def tuning(self) -> Tuning | None:
        """None where nothing can be left open."""


def find_open(method: Tuned, parameters: Parameters) -> Tried | None:
    """Find what has to be tried on rows before parameters can be used.

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
