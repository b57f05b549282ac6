"""One work item from Parquet to Parquet: what a Dask task does. May run twice; the object it makes is created once."""

import base64
import hashlib
import io
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.batch import ADDITIVITY_TOLERANCE, Buffers, Prepared, attribute_batch, loss_residuals, make_buffers, residuals
from kernels.methods import METHODS, Method
from kernels.reductions import REDUCTIONS, Reduction
from kernels.trees.binning import padded

from ..dataset import schema
from ..dataset.labels import check_groups, read_labels
from ..dataset.listing import Rejected, WorkItem
from ..dataset.rows import carried_types, located, miscounted, read_slices
from ..errors import AdditivityBreach, InvalidData, InvalidLabel, InvalidRun
from ..stores import commit, storage
from ..stores.arrays import open_tables
from .interactions import FIRST, SECOND, VALUE, column_type, count_kept, leaves, make_column
from .plan import Plan, read_plan
from .prepare import pair_names

FOOTER = b"leafledger"
PARTS = "attributions"


@dataclass(frozen=True, slots=True)
class Part:
    """A published part: what its footer says, and the object's own size and digest."""

    part: int
    uri: str
    n_rows: int
    size: int
    sha256: str
    residual: float | None  # largest of any row, as a fraction of the margin bound; None where the method is not additive
    seconds: float  # 0 where an earlier run made it
    states: dict[str, str]  # reduction -> its state, as text


def part_uri(run: str, part: int) -> str:
    return storage.join(run, PARTS, f"part-{part:05d}.parquet")


def init_state(name: str, buffers: Buffers) -> Any:
    """The state of a reduction before any row."""
    return REDUCTIONS[name].init(*getattr(buffers, REDUCTIONS[name].reduces).shape[:2])


def update_state(name: str, state: Any, buffers: Buffers, n_rows: int) -> Any:
    """The state with the first rows of the buffers in it."""
    return REDUCTIONS[name].update(state, getattr(buffers, REDUCTIONS[name].reduces), n_rows, buffers.labels)


def _arrays(record: Any) -> list[np.ndarray]:
    """Those of nested records."""
    return [record] if isinstance(record, np.ndarray) else [array for part in record for array in _arrays(part)]


def _fill(template: Any, arrays: Iterator[np.ndarray]) -> Any:
    """Records nested like the template."""
    return next(arrays) if isinstance(template, np.ndarray) else type(template)(*(_fill(part, arrays) for part in template))


def pack_state(state: Any) -> str:
    """A reduction's state, nested records of arrays, as text."""
    buffer = io.BytesIO()
    np.savez(buffer, *_arrays(state))
    return base64.b64encode(buffer.getvalue()).decode()


def unpack_state(reduction: Reduction, text: str) -> Any:
    """The state again; InvalidRun where it is not as it was packed, which its checksum tells."""
    template = reduction.init(1, 0)
    try:
        with np.load(io.BytesIO(base64.b64decode(text))) as arrays:
            return _fill(template, (arrays[f"arr_{i}"] for i in range(len(arrays))))
    except (ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InvalidRun(f"a part's state of {reduction.name!r} is damaged: {' '.join(str(error).split())}") from error


def fill_values(plan_features, prepared: Prepared, batch: pa.RecordBatch, buffers: Buffers) -> None:
    """Put the columns that some split asks for into ``buffers.values``."""
    for j, column in enumerate(prepared.bins.column):
        feature = plan_features[column]
        buffers.values[j, : batch.num_rows] = schema.column_values(feature, batch.column(feature.name))
        buffers.values[j, batch.num_rows :] = 0.0


def check_additivity(method: Method, prepared: Prepared, buffers: Buffers, n_rows: int, where: str, first_row: int) -> float | None:
    """The largest residual of the slice's rows, None where attributions need not add up to margins; refuse what does not add up to what it should."""
    if not method.additive and not method.labelled:
        return None
    if not n_rows:
        return 0.0
    found = (loss_residuals if method.labelled else residuals)(prepared, buffers, n_rows)
    breaches = np.flatnonzero(~(found <= ADDITIVITY_TOLERANCE).all(axis=0))
    if breaches.size:
        row = breaches[0]
        what = (
            ("losses miss what trees take off the squared error", "its")
            if method.labelled
            else ("attributions miss margin - base value", "the margin's")
        )
        raise AdditivityBreach(
            f"{where}row {first_row + row}: {what[0]} by {found[:, row].max():.3g} of {what[1]} bound, expected at most {ADDITIVITY_TOLERANCE:g}"
        )
    return float(found.max()) if method.additive else None


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a part, and what they are called in it."""

    schema: pa.Schema
    ids: tuple[str, ...]
    numbers: tuple[str, ...]  # leaves of Parquet's schema that hold numbers,
    names: tuple[str, ...]  # and those that hold names
    dtype: np.dtype
    types: tuple[np.dtype, ...]  # of a row's attributions
    interactions: bool
    labelled: bool  # a row without a label has no attributions
    n_kept: int  # interactions of a row, at most
    pair_names: tuple[pa.Array, pa.Array]  # of every pair's first and second player


def _output_columns(plan: Plan, prepared: Prepared, batch: pa.Schema) -> _Columns:
    """Id columns, margins, attributions, interactions."""
    number = pa.float32() if plan.precision == "float32" else pa.float64()
    players, n_pairs = plan.players, len(prepared.pairs.players)
    n_scores = len(METHODS[plan.method].scores)
    margins, phi, pairs = plan.columns
    types = [pa.int32() if METHODS[plan.method].whole else number] * (len(players) - n_scores) + [number] * n_scores
    fields = [batch.field(name) for name in plan.ids] + [pa.field(name, number, nullable=False) for name in margins]
    fields += [pa.field(name, kind, nullable=plan.labels is not None) for name, kind in zip(phi, types * len(plan.outputs), strict=True)]
    fields += [pa.field(name, column_type(number), nullable=False) for name in pairs]
    named = pair_names(prepared, players)
    return _Columns(
        schema=pa.schema(fields),
        ids=plan.ids,
        numbers=(*margins, *phi, *(leaf for name in pairs for leaf in leaves(name, VALUE))),
        names=tuple(leaf for name in pairs for leaf in leaves(name, FIRST, SECOND)),
        dtype=np.dtype(plan.precision),
        types=tuple(np.dtype(kind.to_pandas_dtype()) for kind in types),
        interactions=plan.interactions is not None,
        labelled=plan.labels is not None,
        n_kept=count_kept(n_pairs, plan.interactions),
        pair_names=(pa.array([first for first, _ in named], pa.string()), pa.array([second for _, second in named], pa.string())),
    )


def _open_part(local: Path, columns: _Columns) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        local,
        columns.schema,
        compression="zstd",
        use_dictionary=[*columns.ids, *columns.names],
        use_byte_stream_split=list(columns.numbers),
        write_page_checksum=True,
        store_schema=True,
    )


def _make_batch(columns: _Columns, prepared: Prepared, batch: pa.RecordBatch, buffers: Buffers) -> pa.RecordBatch:
    n = batch.num_rows
    missing = buffers.labels.missing[:n] if columns.labelled else None
    unused = {kind: pa.array(np.zeros(n, kind), mask=missing) for kind in set(columns.types)}
    arrays = [batch.column(name) for name in columns.ids]
    arrays += [pa.array(margin[:n].astype(columns.dtype)) for margin in buffers.margin]
    for phi in buffers.phi:
        attributions = [unused[kind] for kind in columns.types]
        for row, player in enumerate(prepared.players):
            attributions[player] = pa.array(phi[row, :n].astype(columns.types[player]), mask=missing)
        arrays += attributions
    if columns.interactions:
        arrays += [make_column(pairs[:, :n], columns.n_kept, columns.dtype, columns.pair_names) for pairs in buffers.pairs]
    return pa.record_batch(arrays, schema=columns.schema)


def explain_item(plan: Plan, plan_digest: str, item: WorkItem, prepared: Prepared, local: Path) -> None:
    """Attribute every row of the item and write the part to a local file, reduction states and digests in its footer; no rows where summaries are all
    that is asked for."""
    method = METHODS[plan.method]
    buffers = make_buffers(prepared, min(plan.slice_rows, item.n_rows))
    states = {name: init_state(name, buffers) for name in plan.reductions}
    labels = () if plan.labels is None else plan.labels.names
    wanted = list(dict.fromkeys((*(plan.features[column].name for column in prepared.bins.column), *plan.ids, *labels)))
    residual, done, writer = (0.0 if method.additive else None), 0, None
    try:
        for batch in read_slices(item, wanted, carried_types(plan.items), plan.slice_rows):
            n = batch.num_rows
            if padded(n) != buffers.values.shape[1]:  # kernels take all of a buffer, so the last slice gets a smaller one
                buffers = make_buffers(prepared, n)
            with located(item):
                fill_values(plan.features, prepared, batch, buffers)
                if plan.labels is not None:
                    buffers = buffers._replace(labels=read_labels(plan.labels, batch, item.uri, item.first_row + done))
                    check_groups(plan.labels, buffers.labels.names.size, len(plan.players))
            attribute_batch(method, prepared, buffers)
            found = check_additivity(method, prepared, buffers, n, f"{item.uri}: ", item.first_row + done)
            residual = found if residual is None or found is None else max(residual, found)
            states = {name: update_state(name, state, buffers, n) for name, state in states.items()}
            if writer is None:
                columns = _output_columns(plan, prepared, batch.schema)
                writer = _open_part(local, columns)
            if not plan.global_only:
                writer.write_batch(_make_batch(columns, prepared, batch, buffers))
            done += n
        if done != item.n_rows or writer is None:
            raise miscounted(item, done)
        footer = {
            "plan": plan_digest,
            "item": asdict(item),
            "n_rows": done,
            "stored": 0 if plan.global_only else done,
            "residual": residual,
            "states": {name: pack_state(state) for name, state in states.items()},
        }
        writer.add_key_value_metadata({FOOTER.decode(): json.dumps(footer)})
    finally:
        if writer is not None:
            writer.close()


def sha256(path: Path) -> str:
    """Hex digest of a local file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Footer:
    """What a part says of itself."""

    n_rows: int
    residual: float | None
    states: dict[str, str]


def read_footer(uri: str, part: int, file: Any, plan_digest: str) -> Footer:
    """The footer of a part, in a local path or an open file; refuse one that another plan made."""
    try:
        metadata = pq.read_metadata(file)
        footer = json.loads((metadata.metadata or {}).get(FOOTER, b"{}"))
        if footer.get("plan") != plan_digest or footer["item"]["part"] != part or footer["stored"] != metadata.num_rows:
            raise InvalidRun(f"{uri}: a part of another plan ({str(footer.get('plan'))[:12]}), expected {plan_digest[:12]}")
        return Footer(footer["n_rows"], footer["residual"], footer["states"])
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRun(f"{uri}: not a part of a run: {type(error).__name__} {' '.join(str(error).split())}") from error


def read_part(uri: str, part: int, local: Path, plan_digest: str, seconds: float) -> Part:
    """What a part's own bytes say; refuse one that another plan made."""
    footer = read_footer(uri, part, local, plan_digest)
    return Part(part, uri, footer.n_rows, local.stat().st_size, sha256(local), footer.residual, seconds, footer.states)


def _check_bytes(uri: str, local: Path, states: dict[str, str]) -> None:
    """InvalidRun where bytes of a part are not those that were written: every page has a checksum, and so has every state."""
    try:
        for name, state in states.items():
            unpack_state(REDUCTIONS[name], state)
        with pq.ParquetFile(local, page_checksum_verification=True) as parquet:
            for group in range(parquet.num_row_groups):
                parquet.read_row_group(group)
    except (pa.ArrowException, OSError, InvalidRun) as error:
        said = " ".join(str(error).split())
        raise InvalidRun(f"{uri}: damaged, or arrived damaged, remove it if it stays so, and the next run makes it again: {said}") from error


def fetch_part(run: str, part: int, plan_digest: str) -> Part | None:
    """The part as published, verified against its footer and page by page; None if it is not there."""
    uri = part_uri(run, part)
    if not storage.exists(uri):
        return None
    with storage.scratch() as folder:
        local = folder / "part.parquet"
        storage.download(uri, local)
        found = read_part(uri, part, local, plan_digest, 0.0)
        _check_bytes(uri, local, found.states)
        return found


def make_part(run: str, plan_digest: str, tables: str, item: WorkItem) -> Part:
    """Do a work item, or find it done. Names and a small record come in, a small record goes out."""
    found = fetch_part(run, item.part, plan_digest)
    if found is not None:
        return found
    started = time.perf_counter()
    plan, prepared = read_plan(run, plan_digest), open_tables(tables)
    uri = part_uri(run, item.part)
    with storage.scratch() as folder:
        local = folder / "part.parquet"
        explain_item(plan, plan_digest, item, prepared, local)
        if commit.create(uri, local):
            return read_part(uri, item.part, local, plan_digest, time.perf_counter() - started)
    found = fetch_part(run, item.part, plan_digest)  # another attempt was faster, or a lost acknowledgement was ours
    if found is None:
        raise InvalidRun(f"{uri}: exists and does not")
    return found


def try_part(run: str, plan_digest: str, tables: str, item: WorkItem) -> Part | Rejected:
    """``make_part``, or why the item's rows cannot be read: twice, since bytes may also be damaged on their way."""
    with suppress(InvalidData):
        return make_part(run, plan_digest, tables, item)
    try:
        return make_part(run, plan_digest, tables, item)
    except InvalidLabel:
        raise
    except InvalidData as error:
        return Rejected(item.part, item.uri, item.row_groups, item.n_rows, str(error))


def warm(tables: str, method: str) -> None:
    """Compile, or read from the cache, every kernel that parts of this method will call."""
    prepared = open_tables(tables)
    buffers = make_buffers(prepared, 1)
    attribute_batch(METHODS[method], prepared, buffers)
    for name in (*METHODS[method].reductions, "interactions"):
        update_state(name, init_state(name, buffers), buffers, 1)
