"""Typed access to members of JSON objects, with errors that name the place."""

import json
from typing import Any

import numpy as np

from ...errors import InvalidModel

KINDS = {dict: "an object", list: "a list", str: "a string", int: "an integer", bool: "true or false"}
NUMERIC = {int, float}
MOST = 1 << 53  # of an integer that CatBoost accepts as a number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError(f"a key of {[key for key, _ in pairs][:9]} is given twice")
    return record


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def parse(text: str | bytes, where: str) -> Any:
    """Parse JSON without duplicate keys, NaN or infinity.

    Parameters
    ----------
    where : str
        Place, for messages.

    Raises
    ------
    InvalidModel
        It is none.
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # ValueError also covers undecodable bytes and oversized integers
        raise InvalidModel(f"{where}: not sound JSON: {error}") from error


def get(record: Any, key: str, kind: type, where: str) -> Any:
    """Return a member of exactly one type.

    Parameters
    ----------
    record : Any
        An object, or else it is refused.
    kind : type
        Of KINDS.
    where : str
        Place, for messages.

    Raises
    ------
    InvalidModel
        It is not there, or is of another type.
    """
    if not isinstance(record, dict) or key not in record:
        raise InvalidModel(f"{where} has no {key!r}")
    if type(record[key]) is not kind:
        raise InvalidModel(f"{where}: {key!r} is {repr(record[key])[:40]}, expected {KINDS[kind]}")
    return record[key]


def list_of(record: Any, key: str, where: str) -> list[Any]:
    """Return a list; omitted and null lists are empty.

    Parameters
    ----------
    where : str
        Place, for messages.

    Raises
    ------
    InvalidModel
        There is something else.
    """
    return [] if not isinstance(record, dict) or record.get(key) is None else get(record, key, list, where)


def numbers(found: Any, where: str) -> np.ndarray:
    """Read a list of numbers.

    Parameters
    ----------
    where : str
        Place, for messages.

    Returns
    -------
    (n,) float64

    Raises
    ------
    InvalidModel
        It is something else.
    """
    if not isinstance(found, list) or not NUMERIC.issuperset(map(type, found)):
        raise InvalidModel(f"{where}: got {repr(found)[:40]}, expected a list of numbers")
    large = next((number for number in found if type(number) is int and abs(number) > MOST), None)
    if large is not None:
        raise InvalidModel(f"{where}: {repr(large)[:40]} is an integer of more than 53 bits, which CatBoost takes for 0; write a point")
    return np.array(list(map(float, found)))


def single(record: Any, key: str, where: str) -> float:
    """Read a number in single precision.

    Parameters
    ----------
    where : str
        Place, for messages.

    Returns
    -------
    float
        Infinite where single precision has no such number.

    Raises
    ------
    InvalidModel
        There is something else.
    """
    with np.errstate(over="ignore"):
        return float(np.float32(numbers([record.get(key)], f"{where}, {key}")[0]))
