"""Prepared tables on their way to workers: plain ``.npy`` files under their content's hash, mapped into memory once by every worker process."""

import hashlib
import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kernels import batch, margin, ranks, semivalue
from kernels.batch import Prepared

from . import storage

FOLDER = "_tables"
INDEX = "index.json"
# Records that tables are made of, by the name under which the index stores them.
_RECORDS: dict[str, Any] = {
    record.__name__: record for record in (batch.Prepared, ranks.RankTables, margin.MarginTables, semivalue.SemivalueTables, semivalue.Walks)
}


def _flatten(tables, path: str, arrays: dict[str, np.ndarray]):
    """The tables as nested ``[record, {field: ...}]``, arrays replaced by their file's name."""
    if isinstance(tables, np.ndarray):
        arrays[path] = tables
        return path
    fields = {name: _flatten(value, f"{path}.{name}" if path else name, arrays) for name, value in tables._asdict().items()}
    return [type(tables).__name__, fields]


def _rebuild(index, load):
    if isinstance(index, str):
        return load(index)
    record, fields = index
    return _RECORDS[record](**{name: _rebuild(entry, load) for name, entry in fields.items()})


def table_bytes(prepared: Prepared) -> int:
    """Bytes of all arrays, which every worker maps."""
    arrays: dict[str, np.ndarray] = {}
    _flatten(prepared, "", arrays)
    return sum(array.nbytes for array in arrays.values())


def broadcast(prepared: Prepared, run: str) -> str:
    """Write the tables below the run's folder, named by their content, and return where; files that are there already stay."""
    arrays: dict[str, np.ndarray] = {}
    index = json.dumps(_flatten(prepared, "", arrays))
    content = hashlib.sha256(index.encode())
    for array in arrays.values():
        content.update(f"{array.dtype.str}{array.shape}".encode())
        content.update(array.tobytes())
    uri = storage.join(run, FOLDER, content.hexdigest())
    with tempfile.TemporaryDirectory() as folder:
        for name, array in arrays.items():
            local = Path(folder) / f"{name}.npy"
            np.save(local, array)
            storage.create(storage.join(uri, local.name), local)
        local = Path(folder) / INDEX
        local.write_text(index)
        storage.create(storage.join(uri, INDEX), local)
    return uri


def _leaves(index):
    return [index] if isinstance(index, str) else [leaf for entry in index[1].values() for leaf in _leaves(entry)]


def _map(folder: Path) -> Prepared:
    index = json.loads((folder / INDEX).read_text())
    return _rebuild(index, lambda name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")))


@lru_cache(maxsize=2)
def open_tables(uri: str) -> Prepared:
    """Map broadcast tables into memory, once per process; tables on an object store are fetched to a temporary folder first."""
    local = storage.local_path(uri)
    if local is not None:
        return _map(local)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        storage.download(storage.join(uri, INDEX), folder / INDEX)
        for array in _leaves(json.loads((folder / INDEX).read_text())):
            storage.download(storage.join(uri, f"{array}.npy"), folder / f"{array}.npy")
        return _map(folder)  # a mapping outlives its file's name, so nothing is left behind
