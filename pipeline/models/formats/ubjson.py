"""Readers of JSON and Universal Binary JSON (ubjson.org, draft 12) as XGBoost writes it, with checked access."""

import json
import re
import struct
from collections import Counter
from typing import Any

import numpy as np

from ...errors import InvalidModel

MAX_DEPTH = 32
_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_SCALARS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}
_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}
_INTEGERS = frozenset((b"i", b"U", b"I", b"l", b"L"))


class _Cursor:
    """A position in the bytes; every read is checked against the rest, whatever length is stated."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, n_bytes: int) -> bytes:
        if not 0 <= n_bytes <= len(self.data) - self.at:
            raise ValueError(f"byte {self.at}: {n_bytes} bytes are announced, {len(self.data) - self.at} are left")
        self.at += n_bytes
        return self.data[self.at - n_bytes : self.at]

    def peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def scalar(self, marker: bytes) -> Any:
        form = _SCALARS[marker]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def length(self) -> int:
        marker = self.take(1)
        if marker not in _INTEGERS:
            raise ValueError(f"byte {self.at - 1}: {marker!r} opens a length, expected an integer")
        return self.scalar(marker)

    def count(self) -> int | None:
        """Return the announced number of elements, None for containers closed by a bracket; each takes at least a byte."""
        if self.peek() != b"#":
            return None
        self.at += 1
        n_elements = self.length()
        if not 0 <= n_elements <= len(self.data) - self.at:
            raise ValueError(f"byte {self.at}: {n_elements} elements are announced, {len(self.data) - self.at} bytes are left")
        return n_elements

    def text(self) -> str:
        return self.take(self.length()).decode()

    def value(self, depth: int) -> Any:
        marker = self.take(1)
        if marker in _SCALARS:
            return self.scalar(marker)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == b"S":
            return self.text()
        if marker not in (b"[", b"{"):
            raise ValueError(f"byte {self.at - 1}: {marker!r} opens a value, expected a UBJSON type")
        if depth == MAX_DEPTH:
            raise ValueError(f"byte {self.at - 1}: containers are nested more than {MAX_DEPTH} deep")
        return self.array(depth + 1) if marker == b"[" else self.object(depth + 1)

    def array(self, depth: int) -> Any:
        if self.peek() == b"$":
            self.at += 1
            return self.packed(self.take(1))
        n_elements = self.count()
        if n_elements is not None:
            return [self.value(depth) for _ in range(n_elements)]
        elements = []
        while self.peek() != b"]":
            elements.append(self.value(depth))
        self.at += 1
        return elements

    def packed(self, marker: bytes) -> np.ndarray:
        if marker not in _NUMBERS or self.peek() != b"#":
            raise ValueError(f"byte {self.at - 1}: a packed array of {marker!r}, expected counted numbers")
        self.at += 1
        dtype = np.dtype(_NUMBERS[marker])
        return np.frombuffer(self.take(self.length() * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))

    def object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        n_members = self.count()
        while n_members is None or n_members > 0:
            if n_members is None and self.peek() == b"}":
                self.at += 1
                break
            key = self.text()
            if key in members:
                raise ValueError(f"byte {self.at}: key {key[:40]!r} is given twice")
            members[key] = self.value(depth)
            n_members = None if n_members is None else n_members - 1
        return members


def read_ubjson(data: bytes) -> Any:
    """Read one UBJSON document."""
    cursor = _Cursor(data)
    document = cursor.value(0)
    if cursor.at != len(data):
        raise ValueError(f"byte {cursor.at}: the document ends, {len(data) - cursor.at} bytes follow")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"key {key[:40]!r} is given twice")
    return members


def shown(value: Any) -> str:
    """Describe a value for a message; containers by size, as they may be as large as the file."""
    return f"{len(value)} elements" if isinstance(value, list | dict | np.ndarray) else repr(value[:40] if isinstance(value, str) else value)


def member(parent: dict[str, Any], key: str, kind: type, where: str) -> Any:
    """Return a member of an object.

    Parameters
    ----------
    kind : type
        Of the member.
    where : str
        Name of the file and the object, for messages.

    Returns
    -------
    Any
        Of type ``kind``.

    Raises
    ------
    InvalidModel
        There is none, or it is of another type.
    """
    if not isinstance(parent.get(key), kind):
        got = f"is {shown(parent[key])}" if key in parent else "is missing"
        raise InvalidModel(f"{where}: {key!r} {got}, expected {_KINDS[kind]}")
    return parent[key]


def integer(parent: dict[str, Any], key: str, low: int, high: int, where: str, default: str | None = None) -> int:
    """Return an integer parameter, which XGBoost stores as text.

    Parameters
    ----------
    low, high : int
        The least and the largest number that is accepted.
    where : str
        Name of the file and the object, for messages.
    default : str or None
        What stands for a missing member; without one it is refused.

    Raises
    ------
    InvalidModel
        There is none, or it is no integer from ``low`` to ``high``.
    """
    value = parent.get(key, default)
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not re.fullmatch("-?[0-9]{1,18}", text) or not low <= int(text) <= high:
        raise InvalidModel(f"{where}: {key!r} is {shown(value)}, expected {low}..{high}")
    return int(text)


def numbers(parent: dict[str, Any], key: str, kind: type, count: int | None, where: str) -> np.ndarray:
    """Return a list of numbers.

    Parameters
    ----------
    kind : type
        int or float.
    count : int or None
        Its length, None for any.
    where : str
        Name of the file and the object, for messages.

    Returns
    -------
    (count,) int64 or float64

    Raises
    ------
    InvalidModel
        There is none, it has another length, or something else in it.
    """
    raw = parent.get(key)
    array: np.ndarray | None = None
    if isinstance(raw, np.ndarray) and (kind is float or raw.dtype.kind in "iu"):
        array = raw.astype(kind)
    elif isinstance(raw, list) and set(map(type, raw)) <= ({int, bool} if kind is int else {int, bool, float}):
        try:
            array = np.array(raw, kind)
        except OverflowError:
            array = None
    if array is None:
        got = f"is {shown(raw)}" if key in parent else "is missing"
        raise InvalidModel(f"{where}: {key!r} {got}, expected a list of {'integers' if kind is int else 'numbers'}")
    if count is not None and array.size != count:
        raise InvalidModel(f"{where}: {key!r} has {array.size} numbers, expected {count}")
    return array


def read_document(data: bytes, where: str) -> Any:
    """Read JSON or UBJSON, distinguished by the byte after the first brace.

    Parameters
    ----------
    where : str
        Name of the file, for messages.

    Raises
    ------
    InvalidModel
        The bytes are neither, or an object gives a key twice.
    """
    try:
        if re.match(rb'\s*\{\s*["}]', data):
            return json.loads(data.decode(), object_pairs_hook=_unique)
        return read_ubjson(data)
    except RecursionError:
        raise InvalidModel(f"{where}: objects are nested too deep for a model") from None
    except ValueError as error:
        raise InvalidModel(f"{where}: not a whole document: {str(error).splitlines()[0]}") from None
