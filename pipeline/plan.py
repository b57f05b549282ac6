"""What will be done, from footers only: the files matched against the model, their row groups grouped into work items, memory projected."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.batch import Prepared
from kernels.methods import METHODS
from kernels.ranks import BATCH, padded

from . import schema, storage
from .config import Job
from .errors import InvalidData, InvalidRun, SchemaMismatch, UsageError
from .interactions import count_kept
from .models.cityhash import HashedCategory
from .models.model import Feature, Model
from .players import Groups, player_names
from .tables import table_bytes

ITEM_ROWS = 1 << 18  # rows a work item aims at: seconds of work, an object of tens of megabytes,
ITEM_CHUNKS = 1 << 18  # and at most so many column chunks in it, which a writer holds until it closes the object
CHUNK_BYTES = 2048  # what it, or a reader, holds of each
SLICE_ROWS = 1 << 15  # rows a worker holds at a time,
SLICE_BYTES = 1 << 26  # and at most so many bytes of attributions
WORKER_OVERHEAD = 400 << 20  # a worker process with its imports, before any table or row
FOOTER_READERS = 16
_PARTITION = re.compile(r"([^/=]+)=([^/]*)")
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


Hive = tuple[tuple[str, str | int | None], ...]  # columns that a path carries, as in month=4/


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One deterministic piece of work: some row groups of one file become one part."""

    part: int
    uri: str
    etag: str
    row_groups: tuple[int, ...]
    n_rows: int
    first_row: int  # of the file, for messages
    partition: Hive


@dataclass(frozen=True, slots=True)
class Plan:
    """A run before it runs: everything that decides its output, and nothing else."""

    version: str
    model: str
    model_digest: str
    method: str
    parameters: tuple[tuple[str, Any], ...]  # numbers, and tuples of them
    groups: Groups
    interactions: int | str | None  # kept of every row: a number, "all", or None
    precision: str
    data: str
    ids: tuple[str, ...]
    features: tuple[Feature, ...]
    outputs: tuple[str, ...]
    slice_rows: int
    items: tuple[WorkItem, ...]

    @property
    def n_rows(self) -> int:
        return sum(item.n_rows for item in self.items)

    @property
    def players(self) -> tuple[str, ...]:
        """Whose phi a row has."""
        return player_names(METHODS[self.method], self.groups, self.features)

    @property
    def reductions(self) -> tuple[str, ...]:
        """Summaries that the run keeps."""
        return METHODS[self.method].reductions + (() if self.interactions is None else ("interactions",))


@dataclass(frozen=True, slots=True)
class Survey:
    """What the footers of the input say."""

    files: tuple[tuple[storage.Object, Hive, tuple[int, ...]], ...]  # with the columns that the path carries, and the rows of every row group
    row_group: int  # bytes of the largest, in columns that are read
    n_chunks: int  # column chunks that a file has at most


@dataclass(frozen=True, slots=True)
class Memory:
    """What a worker is projected to hold at its peak, in bytes."""

    tables: int
    slice: int
    row_group: int  # of the input
    footer: int  # of the input's file and the output's

    @property
    def total(self) -> int:
        return WORKER_OVERHEAD + self.tables + self.slice + self.row_group + self.footer


@lru_cache(maxsize=2)
def to_json(plan: Plan) -> str:
    """The text of plan.json, the same for the same plan."""
    return json.dumps(dataclasses.asdict(plan), indent=1, sort_keys=True)


def _feature(name, categorical, categories) -> Feature:
    if categories is not None:
        categories = tuple(HashedCategory(**entry) if isinstance(entry, dict) else entry for entry in categories)
    return Feature(name, categorical, categories)


def as_tuples(entry: Any) -> Any:
    """Nested lists of a JSON text as nested tuples."""
    return tuple(map(as_tuples, entry)) if isinstance(entry, list) else entry


def from_json(text: str | bytes, where: str) -> Plan:
    """The plan that ``to_json`` wrote, or InvalidRun."""
    try:
        fields = json.loads(text)
        fields["features"] = tuple(_feature(**feature) for feature in fields["features"])
        fields["items"] = tuple(
            WorkItem(**{**item, "row_groups": tuple(item["row_groups"]), "partition": tuple(map(tuple, item["partition"]))})
            for item in fields["items"]
        )
        for name in ("parameters", "groups", "ids", "outputs"):
            fields[name] = as_tuples(fields[name])
        return Plan(**fields)
    except KeyError as error:
        raise InvalidRun(f"{where}: not a plan of this version, it has no {error}; choose another output or remove it") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidRun(f"{where}: not a plan: {type(error).__name__} {' '.join(str(error).split())}") from error


def digest(plan: Plan) -> str:
    """SHA-256 of plan.json, which every part and the manifest carry."""
    return hashlib.sha256(to_json(plan).encode()).hexdigest()


def differences(old: Plan, new: Plan) -> str:
    """What two plans do not agree on, in a few words."""
    said = []
    for field in dataclasses.fields(Plan):
        was, now = getattr(old, field.name), getattr(new, field.name)
        if was == now:
            continue
        if field.name == "items":
            files_was, files_now = ({(item.uri, item.etag) for item in items} for items in (was, now))
            changed = sorted({uri for uri, _ in files_was ^ files_now})
            said.append(f"input files ({', '.join(changed[:3])}{' …' if len(changed) > 3 else ''})" if changed else "work items")
        elif field.name in ("features", "groups"):
            said.append(field.name)
        else:
            said.append(f"{field.name} (was {was!r}, is {now!r})")
    return ", ".join(said)


def _partition_types(paths: Sequence[str]) -> dict[str, type]:
    """Columns that the paths carry as ``name=value``: integers where every value is one, else strings."""
    values: dict[str, set[str]] = {}
    for path in paths:
        for name, value in _PARTITION.findall(path):
            values.setdefault(unquote(name), set()).add(unquote(value))
    return {name: int if all(re.fullmatch(r"-?\d{1,18}", value) for value in found - {_NULL_PARTITION}) else str for name, found in values.items()}


def _partition(path: str, types: dict[str, type]) -> Hive:
    found = {unquote(name): unquote(value) for name, value in _PARTITION.findall(path)}
    return tuple((name, None if value == _NULL_PARTITION else types[name](value)) for name, value in sorted(found.items()))


def _group(counts: Sequence[int], item_rows: int) -> list[tuple[int, ...]]:
    """Runs of consecutive row groups of about ``item_rows`` rows."""
    groups: list[list[int]] = []
    rows = 0
    for i, count in enumerate(counts):
        if not groups or rows + count > item_rows:
            groups.append([])
            rows = 0
        groups[-1].append(i)
        rows += count
    return [tuple(group) for group in groups]


def _row_group_bytes(metadata: pq.FileMetaData, columns: set[str]) -> int:
    """Bytes of the largest row group in the columns named."""
    read = [c for c in range(metadata.num_columns) if metadata.schema.column(c).path.split(".")[0] in columns]
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return max((sum(group.column(c).total_uncompressed_size for c in read) for group in groups), default=0)


@dataclass(frozen=True, slots=True)
class _Footer:
    """What a file's footer says, matched against the model; footers of wide files are too large to keep."""

    rows: tuple[int, ...]  # of every row group
    row_group: int  # bytes of the largest
    n_chunks: int
    id_types: dict[str, pa.DataType]


def _read_footer(file: storage.Object, partition, model: Model, ids: Sequence[str], read: set[str]) -> _Footer:
    with storage.opened(file.uri) as opened:
        try:
            metadata = pq.read_metadata(opened)
            found = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            raise InvalidData(f"{file.uri}: not a Parquet file: {' '.join(str(error).split())}") from error
    schema.check_columns(model.features, ids, found, [name for name, _ in partition], file.uri)
    _check_partition_types(model.features, partition, found, file.uri)
    return _Footer(
        rows=tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)),
        row_group=_row_group_bytes(metadata, read),
        n_chunks=metadata.num_row_groups * metadata.num_columns,
        id_types={name: found.field(name).type for name in ids if name in found.names},
    )


def survey(job: Job, model: Model) -> Survey:
    """List the input, read its footers, match it against the model: every refusal of data happens here."""
    files = storage.list_parquet(job.data)
    if not files:
        raise UsageError(f"{job.data}: no Parquet files there")
    types = _partition_types([file.uri for file in files])
    partitions = [_partition(file.uri, types) for file in files]
    read = {model.features[column].name for column in np.unique(model.ensemble.feature) if column >= 0} | set(job.ids)
    id_types: dict[str, tuple[pa.DataType, str]] = {}
    rows, row_group, n_chunks = [], 0, 0
    with ThreadPoolExecutor(FOOTER_READERS) as readers:
        footers = readers.map(lambda file, partition: _read_footer(file, partition, model, job.ids, read), files, partitions)
        for file, footer in zip(files, footers, strict=True):
            for name, found in footer.id_types.items():
                first_type, first_uri = id_types.setdefault(name, (found, file.uri))
                if found != first_type:
                    raise SchemaMismatch(f"{file.uri}: id column {name!r} is {found}, it is {first_type} in {first_uri}")
            rows.append(footer.rows)
            row_group, n_chunks = max(row_group, footer.row_group), max(n_chunks, footer.n_chunks)
    return Survey(tuple(zip(files, partitions, rows, strict=True)), row_group, n_chunks)


def _make_items(found: Survey, item_rows: int) -> tuple[WorkItem, ...]:
    items: list[WorkItem] = []
    for file, partition, rows in found.files:
        for group in _group(rows, item_rows):
            n_rows = sum(rows[i] for i in group)
            if n_rows:
                items.append(WorkItem(len(items), file.uri, file.etag, group, n_rows, sum(rows[: group[0]]), partition))
    return tuple(items)


def max_slice_rows(cells: int) -> int:
    """Rows a worker holds at a time, where a row has so many numbers."""
    return max(BATCH, min(SLICE_ROWS, SLICE_BYTES // (8 * max(1, cells)) // BATCH * BATCH))


def make_plan(job: Job, model: Model, groups: Groups, found: Survey, prepared: Prepared) -> tuple[Plan, Memory]:
    """Decide all that the output depends on, and project what a worker needs of memory besides the tables."""
    players = player_names(METHODS[job.method], groups, model.features)
    columns = schema.output_columns(players, model.outputs, job.ids, job.interactions is not None)
    n_outputs, n_used, n_pairs = len(model.outputs), prepared.ranks.column.size, len(prepared.pairs.players)
    n_kept = count_kept(n_pairs, job.interactions)
    cells = n_outputs * (len(prepared.players) + n_pairs + n_kept)
    slice_rows, n_columns = max_slice_rows(cells), len(job.ids) + sum(map(len, columns))
    items = _make_items(found, min(ITEM_ROWS, slice_rows * max(1, ITEM_CHUNKS // n_columns)))
    n_slices = max((-(-item.n_rows // slice_rows) for item in items), default=0)
    plan = Plan(
        version=version("leafledger"),
        model=job.model,
        model_digest=model.digest,
        method=job.method,
        parameters=job.parameters,
        groups=groups,
        interactions=job.interactions,
        precision=job.precision,
        data=job.data,
        ids=job.ids,
        features=model.features,
        outputs=model.outputs,
        slice_rows=slice_rows,
        items=items,
    )
    # Values, ranks, and the columns as read; attributions, before and after rounding, and encoded; interactions, and entries as they are written.
    entry = 2 * 8 + 2 * (4 + _mean_length(prepared, players))
    row_bytes = n_used * (8 + 4 + 8) + n_outputs * (8 + len(prepared.players) * (8 + 8 + 8) + n_pairs * 8 + n_kept * entry)
    return plan, Memory(
        tables=table_bytes(prepared),
        slice=padded(slice_rows) * row_bytes,
        row_group=found.row_group,
        footer=(n_slices * n_columns + found.n_chunks) * CHUNK_BYTES,
    )


def _mean_length(prepared: Prepared, players: Sequence[str]) -> int:
    """Bytes of the name of a pair's player."""
    numbers = prepared.pairs.players.reshape(-1)
    lengths = np.array([len(player.encode()) for player in players])
    return int(np.ceil(lengths[numbers].mean())) if numbers.size else 0


def _check_partition_types(features: Sequence[Feature], partition, found: pa.Schema, where: str) -> None:
    values = {name: value for name, value in partition if name not in found.names}
    for feature in features:
        if feature.name in values:
            value = values[feature.name]
            schema.check_column(
                feature,
                pa.null() if value is None else pa.int64() if isinstance(value, int) else pa.string(),
                f"{where} (its path)",
            )
