"""What will be done, from footers only: the files matched against the model, their row groups grouped into work items, memory projected."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from kernels.ranks import BATCH, padded

from . import schema, storage
from .config import Job
from .errors import InvalidData, InvalidRun, SchemaMismatch, UsageError
from .models.cityhash import HashedCategory
from .models.model import Feature, Model

ITEM_ROWS = 1 << 18  # rows a work item aims at: seconds of work, an object of tens of megabytes
SLICE_ROWS = 1 << 15  # rows a worker holds at a time,
SLICE_BYTES = 1 << 26  # and at most so many bytes of attributions
WORKER_OVERHEAD = 400 << 20  # a worker process with its imports, before any table or row
FOOTER_READERS = 16
_PARTITION = re.compile(r"([^/=]+)=([^/]*)")
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One deterministic piece of work: some row groups of one file become one part."""

    part: int
    uri: str
    etag: str
    row_groups: tuple[int, ...]
    n_rows: int
    first_row: int  # of the file, for messages
    partition: tuple[tuple[str, str | int | None], ...]  # columns that the path carries


@dataclass(frozen=True, slots=True)
class Plan:
    """A run before it runs: everything that decides its output, and nothing else."""

    version: str
    model: str
    model_digest: str
    method: str
    parameters: tuple[tuple[str, float], ...]
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


@dataclass(frozen=True, slots=True)
class Memory:
    """What a worker is projected to hold at its peak, in bytes."""

    tables: int
    slice: int
    row_group: int

    @property
    def total(self) -> int:
        return WORKER_OVERHEAD + self.tables + self.slice + self.row_group


def to_json(plan: Plan) -> str:
    return json.dumps(dataclasses.asdict(plan), indent=1, sort_keys=True)


def _feature(name, categorical, categories) -> Feature:
    if categories is not None:
        categories = tuple(HashedCategory(**entry) if isinstance(entry, dict) else entry for entry in categories)
    return Feature(name, categorical, categories)


def from_json(text: str | bytes, where: str) -> Plan:
    """The plan that ``to_json`` wrote, or InvalidRun."""
    try:
        fields = json.loads(text)
        fields["features"] = tuple(_feature(**feature) for feature in fields["features"])
        fields["items"] = tuple(
            WorkItem(**{**item, "row_groups": tuple(item["row_groups"]), "partition": tuple(map(tuple, item["partition"]))})
            for item in fields["items"]
        )
        for name in ("parameters", "ids", "outputs"):
            fields[name] = tuple(tuple(entry) if isinstance(entry, list) else entry for entry in fields[name])
        return Plan(**fields)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidRun(f"{where}: not a plan: {type(error).__name__} {' '.join(str(error).split())}") from error


def digest(plan: Plan) -> str:
    """SHA-256 of the plan, which every part and the manifest carry."""
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
        elif field.name == "features":
            said.append("features")
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


def _partition(path: str, types: dict[str, type]) -> tuple[tuple[str, str | int | None], ...]:
    found = {unquote(name): unquote(value) for name, value in _PARTITION.findall(path)}
    return tuple((name, None if value == _NULL_PARTITION else types[name](value)) for name, value in sorted(found.items()))


def _read_footer(file: storage.Object) -> tuple[pq.FileMetaData, pa.Schema]:
    with storage.opened(file.uri) as opened:
        try:
            metadata = pq.read_metadata(opened)
            return metadata, metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            raise InvalidData(f"{file.uri}: not a Parquet file: {' '.join(str(error).split())}") from error


def _group(counts: Sequence[int]) -> list[tuple[int, ...]]:
    """Runs of consecutive row groups of about ITEM_ROWS rows."""
    groups: list[list[int]] = []
    rows = 0
    for i, count in enumerate(counts):
        if not groups or rows + count > ITEM_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(i)
        rows += count
    return [tuple(group) for group in groups]


def _row_group_bytes(metadata: pq.FileMetaData, columns: set[str]) -> int:
    largest = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        chunks = (group.column(c) for c in range(group.num_columns))
        largest = max(largest, sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] in columns))
    return largest


def max_slice_rows(cells: int) -> int:
    """Rows a worker holds at a time, where a row has so many attributions."""
    return max(BATCH, min(SLICE_ROWS, SLICE_BYTES // (8 * cells) // BATCH * BATCH))


def make_plan(job: Job, model: Model) -> tuple[Plan, Memory]:
    """List the input, read its footers, match it against the model. Every refusal of data happens here; writes nothing."""
    files = storage.list_parquet(job.data)
    if not files:
        raise UsageError(f"{job.data}: no Parquet files there")
    schema.output_columns(model.features, model.outputs, job.ids)
    types = _partition_types([file.uri for file in files])
    with ThreadPoolExecutor(FOOTER_READERS) as readers:
        footers = list(readers.map(_read_footer, files))

    wanted = {feature.name for feature in model.features} | set(job.ids)
    items: list[WorkItem] = []
    id_types: dict[str, tuple[pa.DataType, str]] = {}
    largest = 0
    for file, (metadata, found) in zip(files, footers, strict=True):
        partition = _partition(file.uri, types)
        schema.check_columns(model.features, job.ids, found, [name for name, _ in partition], file.uri)
        _check_partition_types(model.features, partition, found, file.uri)
        for name in set(job.ids) & set(found.names):
            first_type, first_uri = id_types.setdefault(name, (found.field(name).type, file.uri))
            if found.field(name).type != first_type:
                raise SchemaMismatch(f"{file.uri}: id column {name!r} is {found.field(name).type}, it is {first_type} in {first_uri}")
        largest = max(largest, _row_group_bytes(metadata, wanted))
        counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        for group in _group(counts):
            n_rows = sum(counts[i] for i in group)
            if n_rows:
                items.append(WorkItem(len(items), file.uri, file.etag, group, n_rows, sum(counts[: group[0]]), partition))

    cells = max(1, len(model.outputs) * len(model.features))
    slice_rows = max_slice_rows(cells)
    plan = Plan(
        version=version("leafledger"),
        model=job.model,
        model_digest=model.digest,
        method=job.method,
        parameters=job.parameters,
        precision=job.precision,
        data=job.data,
        ids=job.ids,
        features=model.features,
        outputs=model.outputs,
        slice_rows=slice_rows,
        items=tuple(items),
    )
    # Values, ranks and attributions of a slice; the columns as read; the columns as written, before and after encoding.
    slice_bytes = padded(slice_rows) * (len(model.features) * (8 + 4 + 8) + cells * (8 + 8 + 8))
    return plan, Memory(tables=0, slice=slice_bytes, row_group=largest)


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
