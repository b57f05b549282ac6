"""Nested records of arrays in one ``.npy`` file, mapped once per process, such as a method's tables."""

import hashlib
import json
import math
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidRun
from . import commit, storage
from .failures import reported
from .system.files import MAPPING

FOLDER = "_tables"
INDEX, BYTES = "index.json", "tables.npy"
NUMBER, FORMAT = "format_version", 1  # of the index; tables of another format are made again, since who looks for them asks by version
ALIGNMENT = 64  # bytes, a cache line
SOUND = 64  # places that a process remembers to have verified
FETCHES = 2  # of what arrives damaged
RECORDS = "leafledger.kernels."  # what the names of tables' types start with, module first
SEVERAL = "tuple"  # in the place of a record's name
KINDS = "biuf"  # of numbers, which no bytes make into anything else
_HEADERS = threading.Lock()
_MODULE = re.compile(r"leafledger\.kernels(\.[a-z0-9_]+)+")


def _lay_out(tables: Any, arrays: list[np.ndarray], end: int = 0) -> tuple[Any, int]:
    """Say where each array will lie: ``[record, {field: ...}]`` down to ``{dtype, shape, offset}``, and the end of the last in bytes."""
    if isinstance(tables, np.ndarray):
        arrays.append(tables)
        return {"dtype": tables.dtype.str, "shape": tables.shape, "offset": end}, -(-(end + tables.nbytes) // ALIGNMENT) * ALIGNMENT
    named = tables._asdict() if hasattr(tables, "_fields") else {str(k): value for k, value in enumerate(tables)}
    fields = {}
    for name, value in named.items():
        fields[name], end = _lay_out(value, arrays, end)
    if not hasattr(tables, "_fields"):
        return [SEVERAL, fields], end
    return [f"{type(tables).__module__}.{type(tables).__qualname__}", fields], end


@cache
def _record_type(name: str) -> Any:
    """Find the type of a record by its name: whatever the method, its tables are records that a module in kernels defines, and nothing else there."""
    module, _, record = name.rpartition(".")
    found = None
    with suppress(ImportError):
        found = getattr(import_module(module), record, None) if _MODULE.fullmatch(module) else None
    if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields") and found.__module__ == module):
        raise InvalidRun(f"tables are a {name}, expected a record of {RECORDS}")
    return found


def _rebuild(index: Any, mapped: np.ndarray) -> Any:
    """Make nested records again, their arrays views of the mapped bytes."""
    if isinstance(index, dict):
        dtype, shape, start = np.dtype(index["dtype"]), index["shape"], index["offset"]
        if dtype.kind not in KINDS or min([start, *shape]) < 0:
            raise ValueError(f"an array of {dtype} and shape {shape} at {start}")
        size = dtype.itemsize * math.prod(shape)
        return mapped[start : start + size].view(dtype).reshape(shape)
    record, fields = index
    if record == SEVERAL:
        return tuple(_rebuild(fields[str(k)], mapped) for k in range(len(fields)))
    return _record_type(record)(**{name: _rebuild(entry, mapped) for name, entry in fields.items()})


def load_numpy(file: Any, **options: Any) -> Any:
    """Load an ``.npy`` file, or all arrays of an ``.npz`` file by name, one thread at a time.

    NumPy reads headers with ``ast``, and of two threads that CPython builds syntax trees for at once one may fail (cpython#106905).
    """
    with _HEADERS:
        found = np.load(file, **options)
        if not isinstance(found, np.lib.npyio.NpzFile):
            return found
        with found:
            return dict(found)


def table_bytes(record: NamedTuple) -> int:
    """Count the bytes that every worker maps of tables, which are records of arrays, and of such records."""
    return _lay_out(record, [])[1]


def _write(record: NamedTuple, folder: Path) -> str:
    """Write both files into a local folder and return the content's digest. Not through a mapping: a full disk would end the process."""
    arrays: list[np.ndarray] = []
    layout, n_bytes = _lay_out(record, arrays)
    content = _begin_digest(layout)
    with (folder / BYTES).open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (n_bytes,)})
        for piece in _pieces(arrays):
            file.write(piece)
            content.update(piece)
    (folder / INDEX).write_bytes(json.dumps({NUMBER: FORMAT, "sha256": content.hexdigest(), "layout": layout}).encode())
    return content.hexdigest()


def pack_tables(record: Any) -> tuple[Any, bytes]:
    """Lay tables out as one run of bytes, for a process that maps no file.

    Returns
    -------
    layout : list
        Which records they are, and where each array lies.
    data : bytes
    """
    arrays: list[np.ndarray] = []
    layout, _ = _lay_out(record, arrays)
    return layout, b"".join(_pieces(arrays))


def unpack_tables(layout: Any, data: bytes) -> Any:
    """Make tables again of what `pack_tables` returned, their arrays views of the bytes: read-only, as they are when mapped from files."""
    return _rebuild(layout, np.frombuffer(data, np.uint8))


def _pieces(arrays: Iterable[np.ndarray]) -> Iterator[Any]:
    """Bytes of arrays, each up to where the next one starts."""
    for array in arrays:
        yield array.reshape(-1).view(np.uint8).data
        yield bytes(-array.nbytes % ALIGNMENT)


def _begin_digest(layout: Any) -> Any:
    return hashlib.sha256(json.dumps(layout).encode())


def _digest(layout: Any, mapped: np.ndarray) -> str:
    content = _begin_digest(layout)
    content.update(mapped.data)
    return content.hexdigest()


def _publish(uri: str, folder: Path) -> bool:
    """Publish both files, the index last; what is there already stays. Whether neither was there."""
    created = [commit.create(storage.join(uri, file), folder / file) for file in (BYTES, INDEX)]
    return all(created)


def broadcast_tables(record: Any, folder: str) -> str:
    """Write tables below a folder where workers read them.

    Returns
    -------
    str
        URI of the tables, named by the SHA-256 of their content.
    """
    with storage.scratch() as local:
        content = _write(record, local)
        uri = storage.join(folder, content)
        if not _publish(uri, local):
            _forget()
            if not _is_sound(uri) or not _has_its_name(uri):
                raise InvalidRun(f"{uri}: the tables of an earlier attempt are damaged there; remove this folder")
    return uri


@lru_cache(maxsize=2)
def _open(uri: str) -> tuple[dict, np.ndarray]:
    """Read the index and map the bytes; those of an object store are downloaded and verified first."""
    local = storage.local_path(uri)
    if local is not None:
        return json.loads(storage.read(storage.join(uri, INDEX))), _map_bytes(local)
    for _ in range(FETCHES):
        with storage.scratch() as folder:
            storage.download(storage.join(uri, BYTES), folder / BYTES)
            with suppress(ValueError, EOFError, LookupError, TypeError, RecursionError):
                index, mapped = json.loads(storage.read(storage.join(uri, INDEX))), _map_bytes(folder)
                if _digest(index["layout"], mapped) == index["sha256"]:
                    return index, mapped  # a mapping outlives its file's name, so nothing is left behind
    raise InvalidRun(f"{uri}: the tables there are damaged, or arrive damaged")


def _map_bytes(folder: Path) -> np.ndarray:
    with reported("read", str(folder / BYTES)):
        mapped = np.asarray(load_numpy(folder / BYTES, mmap_mode=MAPPING))
    mapped.flags.writeable = False
    return mapped


def open_tables(uri: str) -> Any:
    """Map tables, as they were broadcast or stored, into memory, once per process."""
    if not _is_sound(uri) or not _has_its_name(uri):
        raise InvalidRun(f"{uri}: the tables there are damaged, or others than were broadcast")
    return _records(uri)


@lru_cache(maxsize=2)
def _records(uri: str) -> Any:
    index, mapped = _open(uri)
    return _rebuild(index["layout"], mapped)


def _has_its_name(uri: str) -> bool:
    """Whether the tables are those that were broadcast, which their name says; whoever sent it here is trusted, and a folder is not."""
    return _open(uri)[0]["sha256"] == uri.rpartition("/")[2]


@lru_cache(maxsize=SOUND)
def _is_sound(uri: str) -> bool:
    """Whether every byte is as the index says, and makes records; a process looks once."""
    try:
        index, mapped = _open(uri)
        _rebuild(index["layout"], mapped)
        return index[NUMBER] == FORMAT and _digest(index["layout"], mapped) == index["sha256"]
    except (ValueError, EOFError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, InvalidRun):
        return False


def _forget() -> None:
    """What was read of places whose files may have been replaced."""
    _open.cache_clear()
    _records.cache_clear()
    _is_sound.cache_clear()


def open_stored_tables(uri: str) -> Any | None:
    """Open tables that an earlier run stored, every byte of them verified; None where there are none. Anybody may have written them."""
    if not storage.exists(storage.join(uri, INDEX)):
        return None
    _forget()
    if storage.exists(storage.join(uri, BYTES)) and _is_sound(uri):
        return _records(uri)
    _forget()
    raise InvalidRun(f"{uri}: the tables of an earlier run are damaged there; remove this folder")


def store_tables(record: Any, uri: str) -> Any:
    """Write tables where later runs look for them, and open what is there: of several runs that write the same tables, one does."""
    with storage.scratch() as folder:
        _write(record, folder)
        _publish(uri, folder)
    return open_stored_tables(uri)
