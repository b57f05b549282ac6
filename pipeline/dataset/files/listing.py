"""Listing of a data set: files, footers matched against the model, and their division into work items."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

import pyarrow as pa

from ...errors import InvalidData, NotThere, SchemaMismatch
from ...json_records import EMPTY
from ...models.model import Model
from ...stores import storage
from ...stores.parquet_files import list_parquet
from ...stores.uris import folders_of
from ...tables.live_files import Hive, LiveFile, Snapshot
from ...tables.reading import read_snapshot
from ..columns import schema
from ..columns.names import call
from .footers import ReadFooters, read_footers
from .matching import ExtraColumns, Matching, list_used

NOTHING = ExtraColumns()
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Joined:
    """A further small file of a work item."""

    uri: str
    etag: str
    row_groups: tuple[int, ...]
    n_rows: int


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A deterministic unit of work: row groups of one file, rows of a large one, or several small files."""

    part: int
    uri: str
    etag: str  # identity of the file, see identity
    row_groups: tuple[int, ...]
    skip: int  # rows in the row groups before the item's first row
    n_rows: int  # number of rows of all files
    first_row: int  # number of its first row in the file, for messages
    partition: Hive
    joined: tuple[Joined, ...] = dataclasses.field(default=(), metadata={EMPTY: True})  # further files

    def __str__(self) -> str:
        return f"{self.uri}: row groups {list(self.row_groups)}"

    @property
    def pieces(self) -> tuple["WorkItem", ...]:
        """The item split by file."""
        if not self.joined:
            return (self,)
        first = replace(self, n_rows=self.n_rows - sum(file.n_rows for file in self.joined), joined=())
        others = (WorkItem(self.part, file.uri, file.etag, file.row_groups, 0, file.n_rows, 0, self.partition) for file in self.joined)
        return (first, *others)


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that cannot be explained, with the reason."""

    part: int | None  # of the work item; null for a file with an unreadable footer
    uri: str  # of the file
    row_groups: tuple[int, ...]  # of the file; none for a file with an unreadable footer
    n_rows: int | None  # of the work item, or of the file where it has several; null for a file with an unreadable footer
    reason: str  # the error, in one line


@dataclass(frozen=True, slots=True)
class Listing:
    """Footers of a data set."""

    uri: str  # the data set as listed: a table with its version
    files: tuple[tuple[storage.Object, Hive, tuple[int, ...]], ...]  # with their etags; columns from the path, rows of row groups
    row_group: int  # bytes of the largest in the columns that are read
    n_chunks: int  # largest number of column chunks of a file
    rejected: tuple[Rejected, ...]  # files with unreadable footers
    model: Model  # with features named as the columns
    types: Mapping[str, pa.DataType]  # types of passed-through columns of files, and of grouping columns
    alike: bool = True  # passed-through columns are in all files, or in all paths

    @property
    def n_rows(self) -> int:
        """Rows of all files with readable footers."""
        return sum(sum(rows) for _, _, rows in self.files)

    @property
    def digest(self) -> str:
        """SHA-256 of the files' identities, which changes with their bytes."""
        return hashlib.sha256(json.dumps(sorted([file.uri, file.etag, sum(rows)] for file, _, rows in self.files)).encode()).hexdigest()


def _partition(path: str) -> Hive:
    """Return the columns ``name=value`` from a file's nested folders, ending at the first other folder."""
    found: dict[str, str | None] = {}
    for folder in reversed(folders_of(path)):
        name, equals, value = folder.partition("=")
        if not name or not equals:
            break
        found.setdefault(unquote(name), None if value == _NULL_PARTITION else unquote(value))
    return tuple(sorted(found.items()))


def _differ(names: Sequence[str], others: Sequence[str]) -> str:
    """Return the first feature that two files spell differently."""
    mine, theirs = next((a, b) for a, b in zip(names, others, strict=True) if a != b)
    return f"has column {mine!r}, it is {theirs!r}"


def _list_files(uri: str) -> Snapshot:
    """List files by a table's log, or by name."""
    return read_snapshot(uri) or Snapshot(uri, tuple(LiveFile(file, _partition(file.uri)) for file in list_parquet(uri)))


def list_data(uri: str, model: Model, asked: ExtraColumns = NOTHING, read: ReadFooters = read_footers) -> Listing:
    """List the files of a data set, read their footers, and match them against the model.

    Data are refused here, except for single unreadable files among readable ones, which are returned as rejected.

    Parameters
    ----------
    uri : str
        A Parquet file, a folder, a glob, or a Hive-partitioned data set; or a table of Delta Lake or Iceberg, see `read_snapshot`.
    asked : ExtraColumns
        By default no column but the features.
    read : callable
        Reads footers as `read_footers` does, perhaps elsewhere.

    Returns
    -------
    Listing
        Files in the order of their names.

    Raises
    ------
    NotThere
        There are no Parquet files.
    SchemaMismatch
        A column is missing, stands twice, is called otherwise than in its table, has a type that does not fit, or has another type than in another
        file.
    InvalidData
        No file can be read; it says why the first cannot.
    """
    snapshot = _list_files(uri)
    if not snapshot.files:
        raise NotThere(f"{uri}: no Parquet files there")
    schema.check_categories(list_used(model), uri)
    matching = Matching.of(model, asked)
    types_of: dict[str, tuple[pa.DataType, str]] = {}
    found: list[tuple[storage.Object, Hive, tuple[int, ...]]] = []
    rejected, row_group, n_chunks, last, alike = list[Rejected](), 0, 0, None, True
    for live, footer in zip(snapshot.files, read(snapshot.files, matching), strict=True):
        file = live.file
        if isinstance(footer, InvalidData):
            rejected.append(Rejected(None, file.uri, (), None, str(footer)))
            continue
        matched = footer.matched
        if matched is not last:  # files matched together agree
            alike = alike and not (found and matched.types.keys() != types_of.keys())
            for name, is_type in matched.types.items():
                first_type, first_uri = types_of.setdefault(name, (is_type, file.uri))
                if is_type != first_type:
                    raise SchemaMismatch(
                        f"{file.uri}: {'id ' if name in asked.ids else ''}column {name!r} is {is_type}, it is {first_type} in {first_uri}"
                    )
            if last is not None and matched.names != last.names:
                raise SchemaMismatch(f"{file.uri}: {_differ(matched.names, last.names)} in {found[0][0].uri}")
            last = matched
        found.append((replace(file, etag=footer.identity), live.partition, footer.rows))
        row_group, n_chunks = max(row_group, footer.row_group), max(n_chunks, footer.n_chunks)
    if last is None:
        raise InvalidData(rejected[0].reason)
    types = {name: is_type for name, (is_type, _) in types_of.items()}
    return Listing(snapshot.uri, tuple(found), row_group, n_chunks, tuple(rejected), call(model, last.names, last.by_position), types, alike)


def _group(counts: Sequence[int], item_rows: int) -> list[tuple[int, ...]]:
    """Split into runs of consecutive row groups of about ``item_rows`` rows."""
    groups: list[list[int]] = []
    rows = 0
    for i, count in enumerate(counts):
        if not groups or rows + count > item_rows:
            groups.append([])
            rows = 0
        groups[-1].append(i)
        rows += count
    return [tuple(group) for group in groups]


def make_items(found: Listing, item_rows: int) -> tuple[WorkItem, ...]:
    """Divide the rows of a data set into work items of one file each, in order.

    Parameters
    ----------
    item_rows : int
        Rows that an item aims at. Row groups are put together up to it; only what has more than twice as many rows is cut.

    Returns
    -------
    tuple of WorkItem
        Every row is in exactly one of them, and item i has part number i. They depend on the arguments alone.
    """
    items, alike = list[WorkItem](), dict[tuple[int, ...], tuple[int, ...]]()  # row groups; most files share them
    for file, partition, rows in found.files:
        for group in (alike.setdefault(each, each) for each in _group(rows, item_rows)):
            n_rows, first_row = sum(rows[i] for i in group), sum(rows[: group[0]])
            piece = item_rows if n_rows > 2 * item_rows else max(1, n_rows)
            for skip in range(0, n_rows, piece):
                taken = min(piece, n_rows - skip)
                items.append(WorkItem(len(items), file.uri, file.etag, group, skip, taken, first_row + skip, partition))
    return tuple(items)
