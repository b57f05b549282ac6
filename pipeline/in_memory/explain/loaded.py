"""Attributions read back from the Parquet file that they were saved in, which is refused unless it has the bytes that were written."""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...arguments.readers import read_place
from ...errors import InvalidRun, OtherVersion
from ...json_records import as_tuples
from ...stores import storage
from ...stores.uris import normalise
from .attributions import Attributions
from .saved import CONTENT, DIGEST, FORMAT, NAMES, NO_DIGEST, OUTPUT, VALUES, sign


def _as_array(column: pa.ChunkedArray, shape: Sequence[int]) -> np.ndarray:
    return column.combine_chunks().flatten().to_numpy(zero_copy_only=False).copy().reshape(shape)


def _as_table(text: str) -> pa.Table:
    return pa.ipc.open_stream(b64decode(text)).read_all()


def _as_matrix(table: pa.Table) -> np.ndarray:
    columns = [column.to_numpy() for column in table.columns]
    return np.stack(columns, axis=1) if columns else np.zeros((table.num_rows, 0))


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "none": lambda _: None,
    "frame": lambda table: table.to_pandas(),
    "matrix": _as_matrix,
    "table": lambda table: table,
}


def _restore(table: pa.Table, content: Mapping[str, Any]) -> Attributions:
    arrays = {name: _as_array(table[name], shape) if name in table.schema.names else np.zeros(shape) for name, shape in content["shapes"].items()}
    if "base" in content:
        arrays["base"] = np.array(content["base"], np.float64)
    if "output_type" in content:
        arrays["output"] = np.array(table[OUTPUT].to_pylist(), content["output_type"])
    names = {name: as_tuples(content[name]) for name in NAMES}
    names["parameters"] = {name: as_tuples(value) for name, value in content["parameters"].items()}
    summaries = {name: _as_table(text) for name, text in content["summaries"].items()}
    schema = pa.ipc.read_schema(pa.BufferReader(b64decode(content["schema"])))
    given = [table[VALUES + str(number)].cast(field.type) for number, field in enumerate(schema)]
    rows = pa.table(given, schema.names, metadata=schema.metadata)
    return Attributions(**(names | arrays), rows=KINDS[content["kind"]](rows), summaries=summaries)


def load_attributions(path: str | PathLike) -> Attributions:
    """Load attributions that ``Attributions.save`` wrote.

    Parameters
    ----------
    path : str or path
        Or a URI.

    Returns
    -------
    Attributions
        As they were saved, to the last bit; of the rows, those that were explained.

    Raises
    ------
    InvalidRun
        It is no such file, or it was damaged or changed since.
    OtherVersion
        A later version of leafledger wrote it.
    NotThere
        There is no such file.
    StorageError
        The store does not answer.
    """
    uri = normalise(read_place("path", path))
    data = storage.read(uri)
    try:
        told = pq.read_metadata(pa.BufferReader(data)).metadata or {}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidRun(f"{uri}: is no Parquet file, expected one that Attributions.save wrote") from error
    if CONTENT not in told or DIGEST not in told:
        raise InvalidRun(f"{uri}: holds no attributions, expected a file that Attributions.save wrote")
    if len(told[DIGEST]) != len(NO_DIGEST) or sign(data.replace(told[DIGEST], NO_DIGEST)) != data:
        raise InvalidRun(f"{uri}: was damaged or changed since it was saved")
    content = json.loads(told[CONTENT])
    if content["format"] > FORMAT:
        raise OtherVersion(f"{uri}: attributions of format {content['format']}, and formats up to {FORMAT} are known here; use a later leafledger")
    return _restore(pq.read_table(pa.BufferReader(data)), content)
