"""Prepared tables on their way to workers: one ``.npy`` file under its content's hash, mapped into memory once by every worker process."""

import hashlib
import json
import tempfile
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from kernels.batch import Prepared

from . import storage
from .errors import InvalidRun

FOLDER = "_tables"
INDEX, BYTES = "index.json", "tables.npy"
ALIGNMENT = 64  # bytes, a cache line
RECORDS = "kernels."  # what the names of tables' types start with, module first


def _place(tables, arrays: list[np.ndarray], end: int = 0):
    """Where each array of nested records will lie: ``[record, {field: ...}]`` down to ``{dtype, shape, offset}``, and the end of the last."""
    if isinstance(tables, np.ndarray):
        arrays.append(tables)
        return {"dtype": tables.dtype.str, "shape": tables.shape, "offset": end}, -(-(end + tables.nbytes) // ALIGNMENT) * ALIGNMENT
    fields = {}
    for name, value in tables._asdict().items():
        fields[name], end = _place(value, arrays, end)
    return [f"{type(tables).__module__}.{type(tables).__qualname__}", fields], end


@cache
def _record(name: str) -> Any:
    """The type of a record; whatever method was asked for, its tables are records of a module in kernels."""
    module, _, record = name.rpartition(".")
    if not module.startswith(RECORDS):
        raise InvalidRun(f"tables are a {name}, expected a record of {RECORDS}")
    return getattr(import_module(module), record)


def _take(index, mapped: np.ndarray):
    """Nested records again, their arrays views of the mapped bytes."""
    if isinstance(index, dict):
        dtype = np.dtype(index["dtype"])
        size = dtype.itemsize * int(np.prod(index["shape"], dtype=np.int64))
        return mapped[index["offset"] : index["offset"] + size].view(dtype).reshape(index["shape"])
    record, fields = index
    return _record(record)(**{name: _take(entry, mapped) for name, entry in fields.items()})


def table_bytes(prepared: Prepared) -> int:
    """Bytes that every worker maps."""
    return _place(prepared, [])[1]


def broadcast(prepared: Prepared, run: str) -> str:
    """Write the tables below the run's folder, named by their content, and return where; tables that are there already stay."""
    arrays: list[np.ndarray] = []
    index, n_bytes = _place(prepared, arrays)
    text = json.dumps(index)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / INDEX).write_text(text)
        mapped = np.lib.format.open_memmap(folder / BYTES, mode="w+", dtype=np.uint8, shape=(n_bytes,))
        end = 0
        for array in arrays:
            mapped[end : end + array.nbytes] = array.reshape(-1).view(np.uint8)
            end = -(-(end + array.nbytes) // ALIGNMENT) * ALIGNMENT
        mapped.flush()
        content = hashlib.sha256(text.encode())
        content.update(mapped.data)
        uri = storage.join(run, FOLDER, content.hexdigest())
        for file in (BYTES, INDEX):
            storage.create(storage.join(uri, file), folder / file)
    return uri


def _map(folder: Path) -> Prepared:
    mapped = np.asarray(np.load(folder / BYTES, mmap_mode="r"))
    return _take(json.loads((folder / INDEX).read_text()), mapped)


@lru_cache(maxsize=2)
def open_tables(uri: str) -> Prepared:
    """Map broadcast tables into memory, once per process; tables on an object store are fetched to a temporary folder first."""
    local = storage.local_path(uri)
    if local is not None:
        return _map(local)
    with tempfile.TemporaryDirectory() as name:
        for file in (BYTES, INDEX):
            storage.download(storage.join(uri, file), Path(name) / file)
        return _map(Path(name))  # a mapping outlives its file's name, so nothing is left behind
