"""Readers of arguments: each takes a name and a value, and returns the parsed value or raises a one-line error."""

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date as Date
from datetime import datetime, timedelta
from numbers import Integral, Number, Real
from os import PathLike
from typing import Any, cast

from ..display.nearest import did_you_mean
from ..errors import UsageError
from .choices import LOSS, MARGIN, PROBABILITY, RESPONSE, SPACES, Space

ALL = "all"  # all interactions
SHOWN = 80  # characters of a value in a message
DAYS_AGO = {"today": 0, "yesterday": 1}  # words for dates
DATES = f"YYYY-MM-DD, {' or '.join(DAYS_AGO)}"
CALLED = {  # spaces by the words of shap, XGBoost, LightGBM, CatBoost and scikit-learn
    **dict.fromkeys(("raw", "raw_score", "RawFormulaVal", "log_odds", "logit", "output_margin", "decision_function"), MARGIN),
    **dict.fromkeys(("predict_proba", "proba", "Probability"), PROBABILITY),
    **dict.fromkeys(("predict", "value", "output"), RESPONSE),
    "log_loss": LOSS,
}
PLAIN = (str, bytes, Number, list, tuple, dict, set, Date)  # shown by repr


def shorten(given: Any) -> str:
    """Format a value for a one-line message: numbers, texts and lists by repr, anything else by type.

    Returns
    -------
    str
        At most SHOWN characters, unless it is a type's name.
    """
    if given is not None and not isinstance(given, PLAIN):
        name = type(given).__name__
        return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
    text = " ".join(repr(given).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def refuse(name: str, given: Any, expected: str) -> UsageError:
    """Make the error for an unexpected argument.

    Parameters
    ----------
    expected : str
        In words.

    Returns
    -------
    UsageError
        It is something else.
    """
    return UsageError(f"{name} is {shorten(given)}, expected {expected}")


def read_place(name: str, given: Any) -> str:
    """Read a path or URI.

    Returns
    -------
    str
        As it was given, not empty.

    Raises
    ------
    UsageError
        It is something else.
    """
    if not isinstance(given, str | PathLike):
        hint = "; attribute explains rows in memory" if hasattr(given, "__array__") else ""
        if name == "model" and hasattr(given, "predict"):
            hint = ": save it by leafledger.save_model(model, 'model.trees'), or explain rows in memory by leafledger.attribute"
        raise refuse(name, given, f"a path or URI{hint}")
    if not str(given):
        raise refuse(name, given, "a path or URI")
    return str(given)


def read_text(name: str, given: Any) -> str:
    """Read a nonempty name.

    Raises
    ------
    UsageError
        It is something else.
    """
    if not isinstance(given, str) or not given:
        raise refuse(name, given, "a name")
    return given


def read_names(name: str, given: Any, expected: str = "a column's name or several") -> tuple[str, ...]:
    """Read distinct names; a text is one name.

    Parameters
    ----------
    given : str, iterable of str, or None
        None for no names.
    expected : str
        What names they are, in words.

    Raises
    ------
    UsageError
        It is something else, or has a name twice.
    """
    several = isinstance(given, Iterable) and not isinstance(given, str) and getattr(given, "ndim", 1) == 1
    names = () if given is None else tuple(given) if several else (given,)
    if not all(isinstance(each, str) and each for each in names):
        raise refuse(name, given, expected)
    doubled = [each for each in names if names.count(each) > 1]
    if doubled:
        raise UsageError(f"{name} has {doubled[0]!r} twice, expected once")
    return names


def read_flag(name: str, given: Any) -> bool:
    """Read True or False.

    Parameters
    ----------
    given : bool

    Raises
    ------
    UsageError
        It is something else.
    """
    if not isinstance(given, bool):
        raise refuse(name, given, "True or False")
    return given


def read_number(name: str, given: Any, least: int) -> int:
    """Read an integer with a minimum.

    Parameters
    ----------
    given : int
        Or one of NumPy's integers; no bool.
    least : int
        The smallest that is taken.

    Raises
    ------
    UsageError
        It is something else.
    """
    if not isinstance(given, Integral) or isinstance(given, bool) or given < least:
        raise refuse(name, given, f"a number of at least {least}")
    return int(given)


def read_float(name: str, given: Any, expected: str = "a number", least: float = -math.inf, most: float = math.inf) -> float:
    """Read a number.

    Parameters
    ----------
    given : int or float
        Or one of NumPy's; no bool.
    expected : str
        For the message.
    least, most : float
        The smallest and the largest that are taken.

    Raises
    ------
    UsageError
        It is something else, or not finite.
    """
    try:
        if isinstance(given, Real) and not isinstance(given, bool) and math.isfinite(given) and least <= float(given) <= most:
            return float(given)
    except OverflowError:  # a large integer
        pass
    raise refuse(name, given, expected)


def read_numbers(name: str, given: Any, whole: bool = False) -> tuple[Any, ...]:
    """Read numbers; one is a sequence of one.

    Parameters
    ----------
    given : number, sequence of numbers, or array
        An array has one axis.
    whole : bool
        Refuse fractions.

    Returns
    -------
    tuple of int or float
        As Python has them; int where ``whole``.

    Raises
    ------
    UsageError
        It is something else.
    """
    import numpy as np

    expected = f"{'whole ' if whole else ''}numbers"
    try:
        found = np.asarray(given)
    except ValueError:  # sequences of different lengths
        raise refuse(name, given, expected) from None
    numbers = np.atleast_1d(found).tolist()
    masked = isinstance(given, np.ma.MaskedArray)
    if masked or found.ndim > 1 or found.dtype.kind not in "iuf" or (whole and not all(float(number).is_integer() for number in numbers)):
        raise refuse(name, given, expected)
    return tuple(map(int, numbers)) if whole else tuple(numbers)


def read_choice(name: str, given: Any, choices: tuple[str, ...]) -> str:
    """Read one of several words.

    Raises
    ------
    UsageError
        It is something else.
    """
    if not isinstance(given, str) or given not in choices:
        raise refuse(name, given, " or ".join(map(repr, choices)) + did_you_mean(given, choices))
    return given


def read_space(name: str, given: Any) -> Space:
    """Read what numbers are of; a word that other libraries have for it is answered with ours.

    Raises
    ------
    UsageError
        It is something else.
    """
    if isinstance(given, str) and given in CALLED:
        raise refuse(name, given, f"{' or '.join(map(repr, SPACES))}; did you mean {CALLED[given]!r}?")
    return cast(Space, read_choice(name, given, SPACES))


def read_date(name: str, given: Any) -> Date:
    """Read a date.

    Parameters
    ----------
    given : date, datetime or str
        As text YYYY-MM-DD, or "today" or "yesterday", by this machine's clock in its local time zone.

    Returns
    -------
    date
        Without the time of day.

    Raises
    ------
    UsageError
        It is something else.
    """
    if isinstance(given, datetime):
        return given.date()
    if isinstance(given, Date):
        return given
    if isinstance(given, str) and given in DAYS_AGO:
        return Date.today() - timedelta(days=DAYS_AGO[given])
    try:
        return Date.fromisoformat(given)
    except (TypeError, ValueError):
        raise refuse(name, given, DATES) from None


def read_parameters(name: str, given: Any) -> Mapping[str, Any]:
    """Read the parameters of a method, which are validated with it, see `check_parameters`.

    Parameters
    ----------
    given : mapping, list or tuple of str, or None
        Values by name; or NAME=VALUE each, as on a command line; None for no parameters.

    Raises
    ------
    UsageError
        It is something else, or has a name twice.
    """
    if isinstance(given, list | tuple) and all(isinstance(each, str) and "=" in each for each in given):
        pairs = [each.split("=", 1) for each in given]
        read_names(name, [parameter for parameter, _ in pairs], "NAME=VALUE")
        return dict(pairs)
    if given is not None and not (isinstance(given, Mapping) and all(isinstance(key, str) for key in given)):
        raise refuse(name, given, "NAME=VALUE, or in Python {'NAME': VALUE}")
    return dict(given or {})


def read_partition(name: str, given: Any) -> Mapping[str, Iterable[str | int]] | str:
    """Read groups, or where they are; features are validated with the model, see `read_groups`.

    Parameters
    ----------
    given : mapping, str or path

    Raises
    ------
    UsageError
        It is something else.
    """
    if isinstance(given, Mapping):
        return given
    if not isinstance(given, str | PathLike):
        raise refuse(name, given, "groups of features, as {'group': ['feature', …]}, or a path or URI")
    return read_place(name, given)


def read_number_or(word: str) -> Callable[[str, Any], int | str]:
    """Make a reader of a number of at least 1, possibly as text, or a word in its place; it raises UsageError for anything else."""

    def read(name: str, given: Any) -> int | str:
        if isinstance(given, str) and given == word:
            return given
        number = int(given) if isinstance(given, str) and given.isascii() and given.isdecimal() else given
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
            raise refuse(name, given, f"a number of at least 1, or {word!r}")
        return int(number)

    return read


read_interactions = read_number_or(ALL)


def optional(read: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Make a reader that accepts None.

    Parameters
    ----------
    read : callable
        ``read(name, given)``, the reader of anything else.
    """
    return lambda name, given: None if given is None else read(name, given)
