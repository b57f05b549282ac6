"""Parameters of methods: numbers, names, lists and points, read from text or Python values."""

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

LARGEST = 1e300  # largest number in a list, so that sums stay finite


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a method.

    Attributes
    ----------
    name : str
    default : Any
        the value if none is given
    read : callable
        converts text or a Python value, or raises ValueError with what was expected
    meaning : str
        for the command's help
    of_groups : bool
        the value is a sequence of all groups of a partition, by name; methods take their numbers
    by_feature : Any
        what a feature has that needs none, where values may be given by name, as a mapping of features to them; None where they may not
    """

    name: str
    default: Any
    read: Callable[[Any], Any]
    meaning: str
    of_groups: bool = False
    by_feature: Any = None


def _float(given: Any, instead: str = "") -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise ValueError(f"expected a number{instead}") from None


def number(name: str, default: float, lower: float, upper: float, meaning: str, closed: bool = False, word: str | None = None) -> Parameter:
    """Declare a number between two bounds.

    Parameters
    ----------
    name, default : str and float, of the Parameter
    lower, upper : float
    meaning : str, of the Parameter
    closed : bool
        the bounds themselves are allowed
    word : str, optional
        stands for a number that is found later

    Returns
    -------
    Parameter
        of float, or of the word
    """
    instead = "" if word is None else f", or {word!r}"

    def read(given: Any) -> float | str:
        if word is not None and isinstance(given, str) and given == word:
            return word
        value = _float(given, instead)
        if not (lower < value < upper or (closed and value in (lower, upper))):
            raise ValueError(f"expected a number between {lower:g} and {upper:g}{instead}")
        return value

    return Parameter(name, default, read, meaning)


def whole(name: str, default: int, lower: int, upper: int, meaning: str) -> Parameter:
    """Declare an integer between two bounds, both allowed.

    Parameters
    ----------
    name, default : str and int, of the Parameter
    meaning : str, of the Parameter

    Returns
    -------
    Parameter
        of int
    """

    def read(given: Any) -> int:
        value = _float(given)
        if not (lower <= value <= upper and value == int(value)):
            raise ValueError(f"expected a whole number from {lower} to {upper}")
        return int(value)

    return Parameter(name, default, read, meaning)


def choice(name: str, default: str, names: tuple[str, ...], meaning: str) -> Parameter:
    """Declare a choice of names.

    Parameters
    ----------
    name, default : str, of the Parameter
    meaning : str, of the Parameter

    Returns
    -------
    Parameter
        of str
    """

    def read(given: Any) -> str:
        if given not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return given

    return Parameter(name, default, read, meaning)


def is_json(given: Any) -> bool:
    """Tell a text that holds an object or a list from others."""
    return isinstance(given, str) and given.lstrip()[:1] in ("{", "[")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name twice")
    return found


def read_json(text: str, expected: str) -> Any:
    """Read an object, without a name twice, or a list.

    Raises
    ------
    ValueError
        with ``expected``: it is none
    """
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise ValueError(expected) from None


def _entries(given: Any, expected: str) -> list:
    if hasattr(given, "keys"):  # a mapping, or a pandas Series, would be read as its keys, or in another order
        raise ValueError(expected)
    try:
        return given.split(",") if isinstance(given, str) else list(given)
    except TypeError:
        raise ValueError(expected) from None


def numbers(name: str, meaning: str, by_feature: float | None = None) -> Parameter:
    """Declare a list of finite numbers: a sequence, or text with commas; empty by default.

    Parameters
    ----------
    name, meaning : str, of the Parameter
    by_feature : float, optional
        of the Parameter: numbers may be given by name, or one for all

    Returns
    -------
    Parameter
        of tuple of float, or of a dict of names to float
    """
    expected = "expected finite numbers, as text with commas between them" + (', or as {"age": 0.5, "*": 1}' if by_feature is not None else "")

    def read(given: Any) -> Any:
        if by_feature is not None:
            given = read_json(given, expected) if is_json(given) else given
            if isinstance(given, Mapping):
                return {key: listed([value])[0] for key, value in given.items()}
            if isinstance(given, Real) and not isinstance(given, bool):  # one for all features
                return listed([given])
        return listed(given)

    def listed(given: Any) -> tuple[float, ...]:
        try:
            values = tuple(float(entry) for entry in _entries(given, expected))
        except (TypeError, ValueError):
            raise ValueError(expected) from None
        if any(abs(value) > LARGEST or value != value for value in values):
            raise ValueError(expected)
        return values

    return Parameter(name, (), read, meaning, by_feature=by_feature)


def sequence_of_groups(name: str, meaning: str) -> Parameter:
    """Declare a sequence of all groups of a partition: a list of names, or text with commas, or a JSON list where names have commas.

    Returns
    -------
    Parameter
        of tuple of str
    """
    expected = "expected names of groups, as text with commas between them, or a JSON list"

    def read(given: Any) -> tuple[str, ...]:
        try:
            if isinstance(given, str):
                names = json.loads(given) if given.lstrip().startswith("[") else [entry.strip() for entry in given.split(",")]
            else:
                names = _entries(given, expected)
        except (ValueError, RecursionError):
            raise ValueError(expected) from None
        if isinstance(given, set | frozenset) or not all(isinstance(each, str) and each for each in names):
            raise ValueError(expected)
        return tuple(str(each) for each in names)

    return Parameter(name, (), read, meaning, of_groups=True)


def points(name: str, meaning: str) -> Parameter:
    """Declare points (t, height) with t in [0, 1], ascending, and heights of either sign; empty by default.

    Returns
    -------
    Parameter
        of tuple of pairs of float: a sequence of pairs, or text such as ``0:1,0.5:2``; a callable is taken as it is
    """
    expected = "expected points t:height with t ascending in [0, 1] and finite heights that are not all zero"

    def read(given: Any) -> Any:
        if callable(given):
            return given
        try:
            pairs = [entry.split(":") if isinstance(entry, str) else entry for entry in _entries(given, expected)]
            values = tuple((float(t), float(height)) for t, height in pairs)
        except (TypeError, ValueError):
            raise ValueError(expected) from None
        ascending = all(a[0] <= b[0] for a, b in itertools.pairwise(values))
        if values and not (ascending and all(0 <= t <= 1 and abs(height) <= LARGEST for t, height in values) and any(h != 0 for _, h in values)):
            raise ValueError(expected)
        return values

    return Parameter(name, (), read, meaning)
