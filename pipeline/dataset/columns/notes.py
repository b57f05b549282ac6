"""What a person should know of how columns are read: by position, as codes, with a number for missing values."""

import sys
import warnings

from ...display.text import printable
from ...models.model import Model
from .categories import say_codes
from .names import say_positions

PACKAGE = "leafledger."


def say_missing(model: Model) -> str:
    """Say which number stands for missing values, as the model or the user has it; empty where none does."""
    return "" if model.missing is None else f"{model.missing:g}, besides null and NaN"


def note_columns(model: Model) -> tuple[str, ...]:
    """Say what is not as a reader would expect, a line each.

    Parameters
    ----------
    model : Model
        Its features called as the columns.

    Returns
    -------
    tuple of str
        Features by position, codes of categories, and a number for missing values; what there is of them.
    """
    positions, codes, missing = say_positions(model), say_codes(model), say_missing(model)
    said = (f"features {positions}" * bool(positions), f"columns hold {codes}" * bool(codes), f"missing values are {missing}" * bool(missing))
    return tuple(filter(None, said))


def warn_user(line: str) -> None:
    """Warn, as of the line of the user's program that called this package."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(line, UserWarning, stacklevel=depth)


def warn_positions(model: Model, where: str) -> None:
    """Warn that features are matched by position, where they are, and columns have names, not only numbers in their order.

    Parameters
    ----------
    model : Model
        As `call` returns it.
    where : str
        Whose columns they are.
    """
    names = [feature.name for feature in model.features]
    if model.by_position and names != [*map(str, range(len(names)))]:
        warn_user(printable(f"{where}: features {say_positions(model)}"))
