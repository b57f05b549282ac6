"""FlatBuffers written by hand are read back, and never beyond their end."""

import struct

import pytest

from leafledger.pipeline.models.formats.flatbuffers import MAX_ITEMS, TooMuchError, root


def buffer(*fields, left_out=()):
    """A table of fields of four bytes each, and behind it what their offsets lead to: of numbers the bytes, of vectors count and items."""
    vtable = struct.pack("<HH", 4 + 2 * len(fields), 4 + 4 * len(fields))
    vtable += b"".join(struct.pack("<H", 0 if i in left_out else 4 + 4 * i) for i in range(len(fields)))
    vtable += bytes(-len(vtable) % 4)
    start = 4 + len(vtable)
    table, behind = struct.pack("<i", len(vtable)), b""
    for i, field in enumerate(fields):
        place, end = start + 4 + 4 * i, start + 4 + 4 * len(fields)
        table += field if len(field) == 4 and not isinstance(field, Vector) else struct.pack("<I", end + len(behind) - place)
        behind += field if isinstance(field, Vector) else b""
    return struct.pack("<I", start) + vtable + table + behind


class Vector(bytes):
    """Count and items."""


def vector(items, form="<i"):
    return Vector(struct.pack("<I", len(items)) + b"".join(struct.pack(form, item) for item in items))


def test_fields_are_read_by_their_numbers():
    """Numbers, vectors and texts; what is left out is its default, and so is a field that the table has never heard of."""
    found = root(buffer(struct.pack("<i", -5), vector([1, 2, 3]), vector(b"abc", "<B"), struct.pack("<f", 0.5), left_out=(3,)))
    assert (found.integer(0, 1), found.array(1, "<i4").tolist(), found.text(2)) == (-5, [1, 2, 3], b"abc")
    assert (found.number(3, "<f", 7.0), found.integer(9, 8)) == (7.0, 8)
    assert (found.array(9, "<i4").size, found.text(9), found.table(9), found.tables(9), found.texts(9)) == (0, b"", None, [], [])


def test_tables_and_texts_lie_within():
    """Each is found by its offset from where that stands."""
    inner = buffer(struct.pack("<i", 6))
    text = struct.pack("<I", 2) + b"hi"
    for content, offset in ((inner, struct.unpack("<I", inner[:4])[0]), (text, 0)):
        found = root(buffer(Vector(struct.pack("<II", 1, 4 + offset) + content)))
        assert (found.texts(0) if content is text else [table.integer(0, 0) for table in found.tables(0)]) == ([b"hi"] if content is text else [6])
    found = root(buffer(Vector(inner)))
    assert found.table(0).position == found.position + 4 + 4


@pytest.mark.parametrize("size", range(0, 40, 3))
def test_what_is_cut_off_is_an_error(size):
    """Not a smaller table."""
    data = buffer(vector(range(5)))[:size]
    with pytest.raises(struct.error):
        root(data).array(0, "<i4")


def test_positions_before_the_beginning_are_errors():
    """Python would count them from the end."""
    with pytest.raises(struct.error):
        root(struct.pack("<Ii", 4, 100)).integer(0, 0)


def test_vectors_may_be_read_as_often_as_there_are_bytes():
    """A small file with lists that lie on top of each other stays small."""
    found = root(buffer(vector(range(50))))
    found.array(0, "<i4")
    with pytest.raises(TooMuchError, match="vectors lie on top of each other"):
        found.array(0, "<i4")
    with pytest.raises(TooMuchError, match=f"a list of {MAX_ITEMS + 1} tables or texts"):
        root(buffer(vector([0] * (MAX_ITEMS + 1)))).tables(0)
