"""Records as JSON: writing, and strict reading that checks every value against its field's type.

A text may hold a hundred thousand records. So it is written, digested and compared piece by piece, and entries are freed once read: nothing holds all
of it twice.
"""

import hashlib
import json
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

R = TypeVar("R")
Path = tuple[Any, str | int] | None  # of an entry: the path above it, and its key or index; None for the whole text
Reader = Callable[[Any, Path], Any]
EMPTY = "left out where empty"  # metadata of fields that are omitted if empty
UNWRITTEN = "never written"  # metadata of fields that are no part of the text
SHOWN = 40  # characters of a value in a message
PIECES = 10_000  # tokens that are joined into one piece
WORDS = {int: "a whole number", float: "a number with a point", str: "a text", bool: "true or false", NoneType: "null"}


class OtherFields(ValueError):
    """A record lacks a field, or has one more."""


def as_tuples(entry: Any) -> Any:
    """Convert nested lists of a JSON text into nested tuples.

    Returns
    -------
    Any
        What is no list is returned as it is.
    """
    return tuple(map(as_tuples, entry)) if isinstance(entry, list) else entry


def written_fields(record: Any) -> list[Field[Any]]:
    """List the fields of a record, or of its type, that its text has."""
    return [field for field in fields(record) if UNWRITTEN not in field.metadata]


def as_fields(record: Any) -> dict[str, Any]:
    """List the JSON fields of a record for ``json.dumps``, one record at a time: nested dicts of a hundred thousand take hundreds of megabytes.

    Parameters
    ----------
    record : dataclass
        Fields whose metadata has EMPTY are left out where they are empty, those of UNWRITTEN always.

    Returns
    -------
    dict of str to Any
        Values by the names of fields.
    """
    values = ((field, getattr(record, field.name)) for field in written_fields(record))
    return {field.name: value for field, value in values if not (EMPTY in field.metadata and _is_empty(value))}


def _is_empty(value: Any) -> bool:
    """Return whether a value is empty; the number 0 is not."""
    return value is None or value is False or (isinstance(value, tuple | dict) and not value)


def iterate_text(record: Any, sort_keys: bool = False) -> Iterator[str]:
    """Yield a record's JSON text, a line per value: ``json.dumps`` holds all tokens, ten times the text, until the end.

    Parameters
    ----------
    record : dataclass
        See `as_fields`.
    sort_keys : bool
        Names in alphabetical order, instead of that of the fields.

    Yields
    ------
    str
        Some lines.
    """
    pieces = json.JSONEncoder(indent=1, sort_keys=sort_keys, default=as_fields).iterencode(record)
    while piece := "".join(islice(pieces, PIECES)):
        yield piece


def as_text(record: Any, sort_keys: bool = False) -> str:
    """Write a record as JSON.

    Parameters
    ----------
    record, sort_keys
        See `iterate_text`.
    """
    return "".join(iterate_text(record, sort_keys))


def digest_text(record: Any, sort_keys: bool = False) -> str:
    """Digest a record's text.

    Parameters
    ----------
    record, sort_keys
        See `iterate_text`.

    Returns
    -------
    str
        SHA-256, hexadecimal.
    """
    digest = hashlib.sha256()
    for piece in iterate_text(record, sort_keys):
        digest.update(piece.encode())
    return digest.hexdigest()


def refuse_other_text(record: Any, text: str | bytes, sort_keys: bool = False) -> None:
    """Refuse a text that differs from the record's canonical text.

    Parameters
    ----------
    record : dataclass
        See `iterate_text`.
    text : str or bytes
        That it was read from.
    sort_keys : bool
        See `iterate_text`.

    Raises
    ------
    ValueError
        Spaces, the order of names, or how numbers or letters are written differ.
    """
    at = 0
    for piece in iterate_text(record, sort_keys):
        expected: Any = piece if isinstance(text, str) else piece.encode()
        if not text.startswith(expected, at):
            break
        at += len(expected)
    else:
        if at == len(text):
            return
    raise ValueError("it is written otherwise than leafledger writes it")


def _say(path: Path) -> str:
    """Format a path in a text: ``items[3].uri``."""
    if path is None:
        return ""
    above, key = path
    if isinstance(key, int):
        return f"{_say(above)}[{key}]"
    return key if above is None else f"{_say(above)}.{key}"


def _refuse(path: Path, entry: Any, expected: str) -> ValueError:
    written = json.dumps(entry)
    return ValueError(f"{_say(path) or 'it'} is {written if len(written) <= SHOWN else f'{written[: SHOWN - 1]}…'}, expected {expected}")


def _fields_reader(kinds: Mapping[str, Any], optional: Container[str] = ()) -> Callable[[Any, Path], dict[str, Any]]:
    readers = {key: _reader(kind) for key, kind in kinds.items()}

    def read(entry: Any, path: Path) -> dict[str, Any]:
        if not isinstance(entry, dict):
            raise _refuse(path, entry, "an object")
        if entry.keys() != readers.keys():
            for key in (*readers, *entry):
                if key not in readers or (key not in entry and key not in optional):
                    raise OtherFields(f"{_say(path) or 'it'} has {'no' if key in readers else 'a'} {key[:SHOWN]!r}")
        found = {key: reader(entry[key], (path, key)) for key, reader in readers.items() if key in entry}
        if optional:
            for key in found:
                if key in optional and _is_empty(found[key]):
                    raise _refuse((path, key), entry[key], "something, or to be left out")
        return found

    return read


def _tuple_reader(kinds: tuple[Any, ...]) -> Reader:
    readers, any_number = [_reader(kind) for kind in kinds if kind is not Ellipsis], kinds[-1] is Ellipsis

    def read(entry: Any, path: Path) -> tuple[Any, ...]:
        if not isinstance(entry, list):
            raise _refuse(path, entry, "a list")
        if any_number:
            entry.reverse()  # entries are popped from the end, and freed as soon as they are read
            return tuple([readers[0](entry.pop(), (path, i)) for i in range(len(entry))])
        if len(readers) != len(entry):
            raise _refuse(path, entry, f"{len(readers)} entries")
        return tuple([reader(each, (path, i)) for i, (reader, each) in enumerate(zip(readers, entry, strict=True))])

    return read


def _union_reader(kinds: tuple[Any, ...]) -> Reader:
    others = [kind for kind in kinds if kind is not NoneType]
    only = _reader(others[0]) if len(others) == 1 else None  # gives the best error message

    def read(entry: Any, path: Path) -> Any:
        if entry is None and NoneType in kinds:
            return None
        if only is not None:
            return only(entry, path)
        if type(entry) not in others:
            raise _refuse(path, entry, " or ".join(WORDS[kind] for kind in kinds))
        return entry

    return read


def _dict_reader(kind: Any) -> Reader:
    reader = _reader(kind)

    def read(entry: Any, path: Path) -> dict[str, Any]:
        if not isinstance(entry, dict):
            raise _refuse(path, entry, "an object")
        return {key: reader(value, (path, key)) for key, value in entry.items()}

    return read


def _plain_reader(kind: Any) -> Reader:
    def read(entry: Any, path: Path) -> Any:
        if type(entry) is not kind:  # true is not a number, and 1 is not 1.0
            raise _refuse(path, entry, WORDS[kind])
        return entry

    return read


def _literal_reader(allowed: tuple[Any, ...]) -> Reader:
    def read(entry: Any, path: Path) -> Any:
        if entry not in allowed:
            raise _refuse(path, entry, " or ".join(map(repr, allowed)))
        return entry

    return read


@cache
def _reader(kind: Any) -> Reader:
    """Return the reader of a type, cached, since a text may have a hundred thousand entries."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda entry, path: as_tuples(entry)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        written = written_fields(kind)
        optional = [field.name for field in written if EMPTY in field.metadata]
        read_fields = _fields_reader({field.name: hints[field.name] for field in written}, optional)
        return lambda entry, path: kind(**read_fields(entry, path))
    if is_typeddict(kind):
        return _fields_reader(get_type_hints(kind))
    if origin in (Union, UnionType):
        return _union_reader(inner)
    if origin is Literal:
        return _literal_reader(inner)
    if origin is tuple:
        return _tuple_reader(inner)
    return _dict_reader(inner[1]) if origin is dict else _plain_reader(kind)


def parse_text(text: str | bytes) -> Any:
    """Parse a JSON text.

    Raises
    ------
    ValueError
        It is none; the message is one line.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(" ".join(str(error).split())) from error


def read_entry(kind: type[R], entry: Any) -> R:
    """Read what was parsed from JSON as a record.

    Parameters
    ----------
    kind : type
        A dataclass, a TypedDict, or a tuple of them. Fields are numbers, texts, booleans, tuples (lists in the text), dicts, TypedDicts and
        dataclasses, literals, or one of several of these; ``Any`` takes anything, lists as tuples.
    entry : Any
        Its lists are emptied, so that nothing holds all of it twice.

    Raises
    ------
    OtherFields
        A field is missing, or unknown.
    ValueError
        One is of another type; the message names it in one line.
    """
    asked: Any = kind
    try:
        return _reader(asked)(entry, None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:  # names of fields may have line ends
        raise type(error)(" ".join(str(error).split())) from error


def read_record(kind: type[R], text: str | bytes) -> R:
    """Read a JSON text as a record, see `read_entry`.

    Raises
    ------
    ValueError
        A field is missing, unknown or of another type, or it is no JSON; the message names it in one line.
    """
    return read_entry(kind, parse_text(text))
