"""JSON records in a run's folder: parsed with one-line refusals, and created once."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ...display.text import printable
from ...errors import InvalidRun
from ...json_records import read_record
from ...stores import commit, storage

R = TypeVar("R")


def _take_any(record: Any, data: bytes) -> None:
    """Accept any record of the right types."""


@dataclass(frozen=True, slots=True)
class JsonFile(Generic[R]):
    """A kind of JSON record, with the words of its refusal.

    Attributes
    ----------
    kind : type
        As `read_record` takes it.
    refusal : str
        What the object then is, as "not a manifest".
    cure : str
        What to do about it.
    check : callable
        ``check(record, data)`` raises ValueError where the record makes no sense, or was written otherwise.
    """

    kind: type[R]
    refusal: str
    cure: str = ""
    check: Callable[[R, bytes], None] = _take_any

    def parse(self, data: bytes, uri: str) -> R:
        """Make the record of an object's bytes, or raise InvalidRun."""
        try:
            found = read_record(self.kind, data)
            self.check(found, data)
        except ValueError as error:
            raise InvalidRun(f"{uri}: {self.refusal}: {error}{self.cure}") from error
        return found

    def read(self, uri: str) -> R | None:
        """Read an object; None where there is none."""
        data = storage.read_if_exists(uri)
        return None if data is None else self.parse(data, uri)


def create_same(uri: str, text: Iterable[str]) -> bytes | None:
    """Create an object, or find the same bytes there; return None, or the different bytes."""
    with storage.scratch() as folder:
        local = folder / "record.json"
        with local.open("w") as file:
            file.writelines(text)
        if commit.create(uri, local):
            return None
        held = storage.read(uri)
        return None if hashlib.sha256(held).hexdigest() == storage.sha256(local) else held


def refuse_other(uri: str, of: str, found: str, expected: str) -> None:
    """Refuse a record of another plan or manifest than the run's, by SHA-256."""
    if found != expected:
        raise InvalidRun(f"{uri}: is of a {of} with SHA-256 {printable(found[:12])}, the run's has {expected[:12]}; remove it")
