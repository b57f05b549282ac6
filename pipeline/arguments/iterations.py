"""Selections of boosting iterations: the first n, or a range."""

from numbers import Integral
from typing import Any

from ..errors import UsageError

Iterations = tuple[int, int]  # first, and end


def read_iterations(name: str, given: Any) -> Iterations:
    """Read how many iterations to keep, or which.

    Parameters
    ----------
    given : int, str or (int, int)
        A number of the first iterations, or "start:stop", as text too.

    Returns
    -------
    (int, int)
        The first, and that behind the last.

    Raises
    ------
    UsageError
        It is something else.
    """
    parts = given.split(":") if isinstance(given, str) else given if isinstance(given, tuple | list) else (given,)
    lengths = (2,) if isinstance(given, tuple | list) else (1, 2)
    whole = [(isinstance(part, Integral) and not isinstance(part, bool)) or (isinstance(part, str) and part.isdecimal()) for part in parts]
    start, stop = map(int, (0, *parts)[-2:]) if all(whole) and len(whole) in lengths else (0, 0)
    if not 0 <= start < stop:
        shown = repr(given)[:80] if isinstance(given, str | list | tuple | Integral | float) else f"a {type(given).__name__}"
        raise UsageError(f"{name} is {shown}, expected a number of iterations, at least one, or start:stop")
    return start, stop
