"""Records from JSON that anybody may have written: every value of the type that its field says, or refused."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

R = TypeVar("R")
SHOWN = 40  # characters of a value in a message
WORDS = {int: "a whole number", float: "a number with a point", str: "a text", bool: "true or false", NoneType: "null"}

_find_hints = cache(get_type_hints)  # models and plans have a record of each of a hundred thousand features


def as_tuples(entry: Any) -> Any:
    """Turn nested lists of a JSON text into nested tuples.

    Parameters
    ----------
    entry : Any

    Returns
    -------
    Any
        What is no list is returned as it is.
    """
    return tuple(map(as_tuples, entry)) if isinstance(entry, list) else entry


def _refuse(name: str, entry: Any, expected: str) -> ValueError:
    written = json.dumps(entry)
    return ValueError(f"{name or 'it'} is {written if len(written) <= SHOWN else f'{written[: SHOWN - 1]}…'}, expected {expected}")


def _read_fields(kinds: Mapping[str, Any], entry: Any, name: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise _refuse(name, entry, "an object")
    for key in (*kinds, *entry):
        if key not in kinds or key not in entry:
            raise ValueError(f"{name or 'it'} has {'no' if key in kinds else 'a'} {key[:SHOWN]!r}")
    return {key: _read(kind, entry[key], f"{name}.{key}" if name else key) for key, kind in kinds.items()}


def _read_tuple(kinds: tuple[Any, ...], entry: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(entry, list):
        raise _refuse(name, entry, "a list")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(entry)
    if len(kinds) != len(entry):
        raise _refuse(name, entry, f"{len(kinds)} entries")
    return tuple(_read(kind, each, f"{name}[{i}]") for i, (kind, each) in enumerate(zip(kinds, entry, strict=True)))


def _read_union(kinds: tuple[Any, ...], entry: Any, name: str) -> Any:
    if entry is None and NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not NoneType]
    if len(others) == 1:
        return _read(others[0], entry, name)  # which says best what is wrong
    if type(entry) not in others:
        raise _refuse(name, entry, " or ".join(WORDS[kind] for kind in kinds))
    return entry


def _read(kind: Any, entry: Any, name: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return as_tuples(entry)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = _find_hints(kind)
        return kind(**_read_fields({field.name: hints[field.name] for field in fields(kind)}, entry, name))
    if is_typeddict(kind):
        return _read_fields(_find_hints(kind), entry, name)
    if origin in (Union, UnionType):
        return _read_union(inner, entry, name)
    if origin is Literal:
        if entry not in inner:
            raise _refuse(name, entry, " or ".join(map(repr, inner)))
        return entry
    if origin is tuple:
        return _read_tuple(inner, entry, name)
    if origin is dict:
        if not isinstance(entry, dict):
            raise _refuse(name, entry, "an object")
        return {key: _read(inner[1], value, f"{name}.{key}") for key, value in entry.items()}
    if type(entry) is not kind:  # true is no number, and 1 is not 1.0
        raise _refuse(name, entry, WORDS[kind])
    return entry


def read_record(kind: type[R], text: str | bytes) -> R:
    """Read a JSON text as a record.

    Parameters
    ----------
    kind : type
        A dataclass, a TypedDict, or a tuple of them. Fields are numbers, texts, booleans, tuples (lists in the text), dicts, TypedDicts and
        dataclasses, literals, or one of several of these; ``Any`` takes anything, lists as tuples.
    text : str or bytes

    Returns
    -------
    of that type

    Raises
    ------
    ValueError
        A field is missing, unknown or of another type, or it is no JSON; the message names it in one line.
    """
    try:
        return _read(kind, json.loads(text), "")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(" ".join(str(error).split())) from error
