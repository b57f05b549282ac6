"""Text columns decoded in bounded memory: a long text is stored once in a file, but repeated in rows."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .row_groups import columns_of, has_dictionary

TEXTS = {kind.id for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())}
DICTIONARY = pa.dictionary(pa.int32(), pa.string()).id
DIFFERENCES = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
FEW_ROWS = 256  # rows read at a time of such columns, since long texts repeat
TEXT_BYTES = 1 << 26  # bytes of texts decoded at a time, unless a single row has more


def find_texts(parquet: pq.ParquetFile, schema: pa.Schema, row_groups: Sequence[int], names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Choose the text columns to read as dictionaries."""
    texts = {name for name, kind in zip(schema.names, schema.types, strict=True) if kind.id in TEXTS}
    found = [name for name in names if name in texts]
    if not found:
        return [], []
    chunks = [parquet.metadata.row_group(group).column(c) for group in row_groups for c in columns_of(parquet.metadata, found)]
    differing = {chunk.path_in_schema for chunk in chunks if not DIFFERENCES.isdisjoint(chunk.encodings)}
    return [name for name in found if name not in differing], [name for name in found if name in differing]


def _to_decode(batch: pa.RecordBatch, schema: pa.Schema) -> list[str]:
    """Return the columns that were read as dictionaries but are texts."""
    return [field.name for field in batch.schema if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(schema.field(field.name).type)]


def _lengths(texts: pa.Array) -> np.ndarray:
    """Return the bytes of every text, ``(n,) int64``."""
    if pa.types.is_string_view(texts.type) or pa.types.is_binary_view(texts.type):  # Arrow computes no lengths of these types
        texts = texts.cast(pa.large_binary())
    return pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def _text_bytes(batch: pa.RecordBatch, names: list[str]) -> np.ndarray:
    """Return the bytes of every row's texts, ``(n,) int64``."""
    found = np.zeros(batch.num_rows, np.int64)
    for name in names:
        column = batch.column(name)
        if not pa.types.is_dictionary(column.type):
            found += _lengths(column)
            continue
        lengths = _lengths(column.dictionary)
        found += np.append(lengths, 0)[pc.fill_null(column.indices, len(lengths)).to_numpy(zero_copy_only=False)]
    return found


def _cut(batch: pa.RecordBatch, names: list[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Split a batch into pieces whose texts fit, with their bytes."""
    if not names:
        yield batch, 0
        return
    ends = np.cumsum(_text_bytes(batch, names))
    start, done = 0, 0
    while start < batch.num_rows:
        end = max(start + 1, int(np.searchsorted(ends, done + TEXT_BYTES, side="right")))
        yield batch.slice(start, end - start), int(ends[end - 1]) - done
        start, done = end, int(ends[end - 1])


def _decode_columns(batch: pa.RecordBatch, names: list[str], schema: pa.Schema) -> pa.RecordBatch:
    for name in names:
        column = batch.column(name)
        values = column.dictionary.take(column.indices).cast(schema.field(name).type)
        batch = batch.set_column(batch.schema.get_field_index(name), name, values)
    return batch


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def decode(batches: Iterable[pa.RecordBatch], schema: pa.Schema, slice_rows: int) -> Iterator[pa.RecordBatch]:
    """Decode texts that were read as dictionaries."""
    held: list[pa.RecordBatch] = []
    n_rows = n_bytes = 0
    for batch in batches:
        kinds = {kind.id for kind in batch.schema.types}
        names = _to_decode(batch, schema) if DICTIONARY in kinds else []
        apart = any(has_dictionary(schema.field(name).type) for name in batch.schema.names)
        texts = [] if kinds.isdisjoint(TEXTS) else [field.name for field in batch.schema if field.type.id in TEXTS]
        for piece, size in _cut(batch, names + texts):
            while piece.num_rows:
                if held and (apart or n_rows == slice_rows or n_bytes + size > TEXT_BYTES):
                    yield _join(held)
                    held, n_rows, n_bytes = [], 0, 0
                some = piece.slice(0, slice_rows - n_rows)
                held.append(_decode_columns(some, names, schema))
                n_rows, n_bytes, piece = n_rows + some.num_rows, n_bytes + size, piece.slice(some.num_rows)
    if held:
        yield _join(held)
