"""FlatBuffers reader with bounds checks: fields of tables by number."""

import struct
from dataclasses import dataclass

import numpy as np

MAX_ITEMS = 100_000  # tables or texts of a list, at most


class TooMuchError(ValueError):
    """A vector is longer than a model needs, or vectors exceed the file's size in total, which means that they overlap."""


@dataclass(slots=True)
class Buffer:
    """A buffer whose vectors may be read up to its size in total, so that a small file stays small in memory."""

    data: bytes
    left: int

    def scalar(self, position: int, form: str) -> float:
        """Read a number.

        Parameters
        ----------
        form : str
            As ``struct`` has it.

        Raises
        ------
        struct.error
            It is not all inside.
        """
        if position < 0:  # Python would count negative positions from the end
            raise struct.error(f"position {position}")
        return struct.unpack_from(form, self.data, position)[0]

    def offset(self, position: int) -> int:
        """Follow an offset.

        Parameters
        ----------
        position : int
            Where the offset stands.

        Returns
        -------
        int
            Where it leads to.
        """
        return position + int(self.scalar(position, "<I"))

    def vector(self, position: int, width: int) -> tuple[int, int]:
        """Return the position and length of a vector, and charge its bytes to the total."""
        count = int(self.scalar(position, "<I"))
        if position + 4 + count * width > len(self.data):
            raise struct.error(f"{count} items")
        self.left -= count * width
        if self.left < 0:
            raise TooMuchError("vectors lie on top of each other")
        return position + 4, count


@dataclass(frozen=True, slots=True)
class Table:
    """A FlatBuffers table; omitted fields have their default, empty for vectors."""

    buffer: Buffer
    position: int

    def _place(self, field: int) -> int | None:
        vtable = self.position - int(self.buffer.scalar(self.position, "<i"))
        if 4 + 2 * field + 2 > self.buffer.scalar(vtable, "<H"):
            return None
        offset = int(self.buffer.scalar(vtable + 4 + 2 * field, "<H"))
        return self.position + offset if offset else None

    def number(self, field: int, form: str, default: float) -> float:
        """Read a number.

        Parameters
        ----------
        form : str
            As ``struct`` has it.
        default : float
        """
        place = self._place(field)
        return default if place is None else self.buffer.scalar(place, form)

    def integer(self, field: int, default: int) -> int:
        """Read a signed integer of 32 bits."""
        return int(self.number(field, "<i", default))

    def table(self, field: int) -> "Table | None":
        """Return a nested table."""
        place = self._place(field)
        return None if place is None else Table(self.buffer, self.buffer.offset(place))

    def array(self, field: int, dtype: str | np.dtype) -> np.ndarray:
        """Read a vector of numbers, or of structs.

        Returns
        -------
        (n,) of that dtype
            A view of the bytes.
        """
        place, kind = self._place(field), np.dtype(dtype)
        if place is None:
            return np.empty(0, kind)
        start, count = self.buffer.vector(self.buffer.offset(place), kind.itemsize)
        return np.frombuffer(self.buffer.data, kind, count, start)

    def text(self, field: int) -> bytes:
        """Read a text."""
        return self.array(field, "u1").tobytes()

    def _items(self, field: int) -> list[int]:
        place = self._place(field)
        if place is None:
            return []
        start, count = self.buffer.vector(self.buffer.offset(place), 4)
        if count > MAX_ITEMS:
            raise TooMuchError(f"a list of {count} tables or texts, expected at most {MAX_ITEMS}")
        return [self.buffer.offset(start + 4 * i) for i in range(count)]

    def tables(self, field: int) -> list["Table"]:
        """Return the tables of a list."""
        return [Table(self.buffer, position) for position in self._items(field)]

    def texts(self, field: int) -> list[bytes]:
        """Read the texts of a list."""
        found = []
        for position in self._items(field):
            start, count = self.buffer.vector(position, 1)
            found.append(self.buffer.data[start : start + count])
        return found


def root(data: bytes) -> Table:
    """Return the root table of a buffer."""
    buffer = Buffer(data, len(data))
    return Table(buffer, buffer.offset(0))
