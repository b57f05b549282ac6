"""Attributions in a Parquet file of their own: every array to the last bit, signed by a digest of all bytes."""

import hashlib
import io
import json
from base64 import b64encode
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...arguments.readers import read_place
from ...errors import UnusablePlace, UsageError
from ...stores import commit, storage
from ...stores.uris import normalise

FORMAT, SUFFIX = 1, ".parquet"
CONTENT, DIGEST = b"leafledger_attributions", b"leafledger_sha256"  # keys of the file's metadata
NO_DIGEST = b"0" * 64
ARRAYS = ("margin", "prediction", "phi", "interactions", "path", "errors", "base")  # lists of numbers, row by row
NAMES = ("players", "method", "groups", "pairs", "n_kept", "outputs", "space", "by_row", "features", "parameters", "sets", "of_classes")
VALUES, OUTPUT = "rows.", "output"  # columns: of the rows, by their numbers; and of what each was explained for


def save_attributions(found: Any, path: str | PathLike) -> None:
    """Write attributions, once."""
    uri = normalise(read_place("path", path))
    if not uri.lower().endswith(SUFFIX):
        raise UsageError(f"path is {str(path)!r:.80}, expected one that ends in {SUFFIX}; found.to_frame() is a table for other formats")
    local = storage.local_path(uri)
    if local is not None and not local.parent.is_dir():
        raise UnusablePlace(f"{uri}: cannot write: {local.parent} is no folder; make it, or choose another place")
    arrays = {name: held for name in ARRAYS if (held := getattr(found, name)) is not None}
    content: dict[str, Any] = {"format": FORMAT} | {name: getattr(found, name) for name in NAMES}
    if found.base.ndim == 1:
        content["base"] = arrays.pop("base").tolist()
    content["shapes"] = {name: held.shape for name, held in arrays.items()}
    columns = {name: _as_lists(held) for name, held in arrays.items() if held.size}
    if found.output is not None:
        columns[OUTPUT] = pa.array(found.output.tolist(), pa.string())
        content["output_type"] = found.output.dtype.str
    content["kind"], given = _write_rows(found)
    content["schema"] = b64encode(given.schema.serialize()).decode()
    content["summaries"] = {name: _as_text(table) for name, table in found.summaries.items()}
    table = pa.table(columns | {VALUES + str(number): column for number, column in enumerate(given.columns)})
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({CONTENT.decode(): json.dumps(content, default=_as_number), DIGEST.decode(): NO_DIGEST.decode()})
    with storage.scratch() as folder:
        written = folder / "attributions"
        written.write_bytes(sign(sink.getvalue()))
        commit.create_once(uri, written)


def sign(data: bytes) -> bytes:
    """Write the digest of all bytes in the place of the zeros that it was taken with."""
    at = data.rindex(DIGEST)
    at = data.index(NO_DIGEST, at)
    return data[:at] + hashlib.sha256(data).hexdigest().encode() + data[at + len(NO_DIGEST) :]


def _as_lists(values: np.ndarray) -> pa.Array:
    flat = np.ascontiguousarray(values, np.float64).reshape(len(values), -1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), flat.shape[1])


def _as_text(table: pa.Table) -> str:
    """Write a table of a summary as a text."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return b64encode(sink.getvalue()).decode()


def _as_number(value: Any) -> Any:
    """Convert a number of NumPy's, or its array, for JSON."""
    return value.tolist()


def _write_rows(found: Any) -> tuple[str, pa.Table]:
    """Return the rows that were explained as a table, and what they were."""
    import pandas as pd

    rows = found.rows
    if rows is None:
        return "none", pa.table({})
    if isinstance(rows, pd.DataFrame):
        rows = rows if found.places is None else rows.iloc[found.places]
    elif found.places is not None:  # whose numbers are the rows' names
        names = found.features if isinstance(rows, np.ndarray) else [name for name in found.features if name in _columns(rows)]
        rows = pd.DataFrame({name: found.values(name) for name in names}, index=found.places)
    try:
        if isinstance(rows, pd.DataFrame):
            return "frame", pa.Table.from_pandas(rows, preserve_index=True)
        if isinstance(rows, np.ndarray):
            return "matrix", pa.table({str(j): pa.array(rows[:, j], from_pandas=False) for j in range(rows.shape[1])})
        return "table", _without_views(pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else pa.table(rows))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"save: the rows have a column that Arrow cannot hold: {' '.join(str(error).split())}") from error


def _without_views(table: pa.Table) -> pa.Table:
    """Write categories of Polars as texts: Parquet does not bring them back."""
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and field.type.value_type == pa.string_view():
            table = table.set_column(number, field.name, pa.array(table.column(number).to_pylist(), pa.string()))
    return table


def _columns(rows: Any) -> Any:
    return rows.schema.names if isinstance(rows, pa.Table | pa.RecordBatch) else rows if isinstance(rows, Mapping) else rows.columns
