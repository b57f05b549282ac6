"""Search of objects for a value: Parquet decoded, JSON by its texts, pages by what they show, and all of them by their bytes."""

import html
import json
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..display.text import count
from ..errors import NotThere, UsageError
from ..runs.lookup.row_lookup import as_plain, keep_rows, opened_part, read_condition
from ..stores import storage
from ..stores.failures import published

READERS = 4  # objects that are searched at a time, each of which is held whole
DISTINCTIVE = 6  # characters from which on a value is looked for anywhere, not beside its column's name alone
MAGIC = b"PAR1"
TAGS = re.compile(r"<[^>]*>")
NAMES, LOG = "names it", ".json"
LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view, pa.types.is_large_list_view)
BINARIES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
VALUE = "value_"  # what columns of features' values begin with


@dataclass(frozen=True, slots=True)
class Holding:
    """An object that holds the value.

    Attributes
    ----------
    uri : str
    what : str
        What it has of it, in words.
    """

    uri: str
    what: str


@dataclass(frozen=True, slots=True)
class Sought:
    """A value of an id column, and how it is found in texts.

    Attributes
    ----------
    column : str
    value : Any
        Of the column's type, or its text.
    written : frozenset of str
        The value as columns of the runs have it, such as 17 for a given 017.
    """

    column: str
    value: Any
    written: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The value as it was given."""
        return str(self.value)

    @property
    def texts(self) -> list[str]:
        """All texts of the value."""
        return sorted({self.text, *self.written})

    @property
    def distinctive(self) -> list[str]:
        """Texts that are long enough to be told from other texts and numbers wherever they stand."""
        return [text for text in self.texts if len(text) >= DISTINCTIVE]

    @property
    def anywhere(self) -> bool:
        """The value is looked for anywhere."""
        return bool(self.distinctive)

    def is_in(self, text: str) -> bool:
        """Tell whether a text has the value, as a word: anywhere, or beside the column's name."""
        return any(written in text and self._is_word(written, text) for written in self.texts)

    def _is_word(self, written: str, text: str) -> bool:
        before = "(?<![0-9A-Za-z_])" if len(written) >= DISTINCTIVE else rf"{re.escape(self.column)}\W{{1,8}}"
        return re.search(rf"{before}{re.escape(written)}(?![0-9A-Za-z_])", text) is not None

    def written_in(self, uri: str) -> str | None:
        """Write the value as a part's column has it; None where it has no such column or value."""
        with opened_part(uri) as (parquet, _), suppress(UsageError):
            if self.column in parquet.schema_arrow.names:
                return str(read_condition("", parquet.schema_arrow, self.column, self.value).value.as_py())
        return None


def list_objects(place: str) -> Iterator[str]:
    """List all objects below a folder, also those whose names begin with "_" or "."."""
    try:
        here = storage.list_folder(place)
    except NotThere:  # removed meanwhile
        return
    yield from (storage.join(place, name) for name, size in here.files.items() if size)
    for name in here.folders:
        yield from list_objects(storage.join(place, name))


def _texts_in(column: Any) -> Iterator[Any]:
    """Give the texts that a column of any depth holds, as bytes too, dictionaries of values that no row has among them."""
    kind = column.type
    if isinstance(column, pa.ChunkedArray):
        for chunk in column.chunks:
            yield from _texts_in(chunk)
    elif pa.types.is_dictionary(kind):
        yield from _texts_in(column.dictionary)
    elif pa.types.is_struct(kind):
        for child in column.flatten():
            yield from _texts_in(child)
    elif any(is_kind(kind) for is_kind in LISTS):
        yield from _texts_in(column.flatten())
    elif pa.types.is_map(kind):
        yield from _texts_in(column.keys)
        yield from _texts_in(column.items)
    elif isinstance(kind, pa.BaseExtensionType):
        yield from _texts_in(column.storage)
    elif pa.types.is_string_view(kind):
        yield column.cast(pa.string())
    elif any(is_kind(kind) for is_kind in BINARIES):
        yield from _texts_in(pa.array([each if each is None else each.decode(errors="replace") for each in column.to_pylist()], pa.large_string()))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield column


def _has_texts(kind: pa.DataType) -> bool:
    return next(_texts_in(pa.array([], kind)), None) is not None


def _count_rows(parquet: pq.ParquetFile, sought: Sought) -> int:
    """Count the rows of a Parquet object that have the value, in the column itself or one that has a feature's values by its name."""
    schema, n = parquet.schema_arrow, 0
    for name in {sought.column, f"{VALUE}{sought.column}"} & {*schema.names}:
        with suppress(UsageError):  # of a type that has no such value
            condition = read_condition("", schema, name, sought.value)
            for group in range(parquet.num_row_groups):
                n += keep_rows(as_plain(parquet.read_row_group(group, [name])), [condition]).num_rows
    return n


def _has_text(parquet: pq.ParquetFile, sought: Sought) -> bool:
    names = [field.name for field in parquet.schema_arrow if _has_texts(field.type)]
    for group in range(parquet.num_row_groups if names and sought.anywhere else 0):
        for column in parquet.read_row_group(group, names).columns:
            for texts in _texts_in(column):
                for written in sought.distinctive:
                    near = texts.filter(pc.fill_null(pc.match_substring(texts, written), False))
                    if any(sought.is_in(each) for each in near.unique().to_pylist()):
                        return True
    return False


def is_in_dictionaries(uri: str, sought: Sought) -> bool:
    """Tell whether a part has the value in a dictionary of a column, as of a file that had it in other rows."""
    with opened_part(uri) as (parquet, _):
        names = [field.name for field in parquet.schema_arrow if pa.types.is_dictionary(field.type)]
        for group in range(parquet.num_row_groups if names else 0):
            table = parquet.read_row_group(group, names)
            for name in names:
                texts = {str(each) for chunk in table[name].chunks for each in chunk.dictionary.to_pylist()}
                if (name == sought.column and not texts.isdisjoint(sought.texts)) or (sought.anywhere and any(map(sought.is_in, texts))):
                    return True
    return False


def _search_parquet(data: bytes, sought: Sought) -> str | None:
    with pq.ParquetFile(pa.BufferReader(data)) as parquet:
        n_rows = _count_rows(parquet, sought)
        if n_rows:
            return count(n_rows, "row")
        if _has_text(parquet, sought):
            return NAMES
        said = [text for key, text in (parquet.metadata.metadata or {}).items() if key != b"ARROW:schema"]
    return next(filter(None, (_search_text(text, sought) for text in said)), None)


def _is_named(entry: Any, sought: Sought, key: str = "") -> bool:
    """Tell whether parsed JSON has the value: under the column's name, beside it, or in a text; numbers elsewhere are others."""
    if isinstance(entry, dict):
        return any((sought.anywhere and sought.is_in(name)) or _is_named(each, sought, name) for name, each in entry.items())
    if isinstance(entry, list):
        if len(entry) == 2 and entry[0] == sought.column and str(entry[1]) in sought.texts:
            return True
        return any(_is_named(each, sought, key) for each in entry)
    if key == sought.column and str(entry) in sought.texts:
        return True
    return isinstance(entry, str) and sought.is_in(entry)


def _parse(text: str) -> Any:
    """Parse JSON, or JSON line by line, as the log of a Delta table has it; None of anything else."""
    for lines in ([text], text.splitlines()):
        with suppress(ValueError, RecursionError):
            return [json.loads(line) for line in lines if line]
    return None


def _search_text(data: bytes, sought: Sought) -> str | None:
    text = data.decode(errors="replace")
    parsed = _parse(text) if text[:1] in ("{", "[") else None
    if parsed is not None:
        return NAMES if _is_named(parsed, sought) else None
    shown = html.unescape(TAGS.sub(" ", text)) if "<" in text[:1000] else text
    return NAMES if sought.is_in(shown) or (sought.anywhere and sought.is_in(html.unescape(text))) else None


def search_object(uri: str, sought: Sought) -> Holding | None:
    """Search an object, decoded and byte by byte; None where it does not hold the value, or is gone."""
    with published():
        data = storage.read_if_exists(uri)
    if data is None:
        return None
    what = None
    if data.startswith(MAGIC):
        try:
            what = _search_parquet(data, sought)
        except (pa.ArrowException, OSError):  # damaged: its bytes are searched
            what = _search_text(data, sought)
        if what is None and any(written.encode() in data for written in sought.distinctive):
            what = NAMES
    else:
        what = _search_text(data, sought)
    return None if what is None else Holding(uri, what)


def search(uris: Iterable[str], sought: Sought) -> tuple[int, list[Holding]]:
    """Search objects, each once: return how many, and those that hold the value, in the order of the URIs."""
    uris = list(dict.fromkeys(uris))
    with ThreadPoolExecutor(READERS) as readers:
        found = list(readers.map(lambda uri: search_object(uri, sought), uris))
    return len(uris), [each for each in found if each is not None]
