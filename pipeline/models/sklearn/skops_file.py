"""Reader of scikit-learn and LightGBM estimators in skops files, as data: no class is imported, nothing is run.

A file is a zip of ``schema.json``, with the attributes of every object, and of arrays in NumPy's format.
"""

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...errors import InvalidModel, UnsupportedModel
from .loader import unwrap
from .skops_types import find_family

MAGIC = b"PK\x03\x04"
SCHEMA = "schema.json"
MAX_BYTES = 1 << 30  # total size of members that are read
HEADER_BYTES = 10_000  # largest header of an array
_HEADER = re.compile(r"\{'descr': (.*), 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n")
_NUMBER = re.compile(r"'[<>|][biufU]\d+'")
_FIELD = r"\('(\w*)', '([<>|][biufV]\d+)'\)"
_RECORD = re.compile(rf"\[{_FIELD}(, {_FIELD})*\]")
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    EOFError,
    OSError,
    NotImplementedError,  # of zipfile, for unsupported compression
    RecursionError,
    RuntimeError,
    SyntaxError,
)  # exceptions raised by malformed files


class _Archive:
    """Members of a file, each read once, with a bound on their total size."""

    def __init__(self, data: bytes):
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self._held: dict[str, bytes] = {}
        self._left = MAX_BYTES

    def read(self, name: str) -> bytes:
        if name not in self._held:
            self._left -= self._zip.getinfo(name).file_size
            if self._left < 0:
                raise ValueError(f"more than {MAX_BYTES} bytes when unpacked")
            self._held[name] = self._zip.read(name)
        return self._held[name]


class Nodes(NamedTuple):
    """Arrays of a fitted tree, named as in scikit-learn."""

    children_left: np.ndarray
    children_right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_go_to_left: np.ndarray | None  # of versions that handle missing values
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray
    value: np.ndarray

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return self.feature.size


def _check_children(left: np.ndarray, right: np.ndarray, leaf: np.ndarray, feature: np.ndarray, n_features: int) -> None:
    """Refuse invalid or cyclic children: a node precedes its children, in files of every version."""
    number, inner = np.arange(leaf.size), ~leaf
    for child in (left, right):
        if (inner & ((child <= number) | (child >= leaf.size))).any():
            raise ValueError("a node's child is no node behind it")
    if (inner & ((feature < 0) | (feature >= n_features))).any():
        raise ValueError(f"a node asks for a feature that is none of {n_features}")


def _read_tree(archive: _Archive, node: dict[str, Any]) -> Nodes:
    n_features, n_classes, n_outputs = _read(archive, node["__reduce__"]["args"])
    state = _read(archive, node["content"])
    nodes, values = state["nodes"], state["values"]
    if nodes.ndim != 1 or not nodes.size or state["node_count"] != nodes.size or np.asarray(n_classes).size != n_outputs:
        raise ValueError(f"a tree says it has {state['node_count']} nodes, it has {nodes.size}")
    if values.shape != (nodes.size, n_outputs, max(n_classes)):
        raise ValueError(f"a tree's values have shape {values.shape}, expected {nodes.size}, {n_outputs}, {max(n_classes)}")
    left, right = nodes["left_child"].astype(np.int64), nodes["right_child"].astype(np.int64)
    leaf = left == -1
    if (leaf != (right == -1)).any():
        raise ValueError("a node has one child")
    _check_children(left, right, leaf, nodes["feature"], n_features)
    missing = nodes["missing_go_to_left"] if "missing_go_to_left" in nodes.dtype.names else None
    counts = nodes["n_node_samples"], nodes["weighted_n_node_samples"]
    return Nodes(left, right, nodes["feature"], nodes["threshold"].astype(float), missing, *counts, values.astype(float))


def _read_type(written: str) -> np.dtype:
    """Parse a dtype of numbers, texts, or records of numbers with padding."""
    if _RECORD.fullmatch(written):
        return np.lib.format.descr_to_dtype(re.findall(_FIELD, written))
    if _NUMBER.fullmatch(written):
        return np.dtype(written.strip("'"))
    raise ValueError(f"an array has type {written[:40]}, expected numbers")


def _read_array(data: bytes) -> np.ndarray:
    """Read an array in NumPy's format, without objects."""
    size_bytes = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4}[data[:8]]
    start = 8 + size_bytes + int.from_bytes(data[8 : 8 + size_bytes], "little")
    header = _HEADER.fullmatch(data[8 + size_bytes : start].decode("latin-1"))
    if header is None or start > min(len(data), HEADER_BYTES):
        raise ValueError(f"an array of {len(data)} bytes has no header that NumPy writes")
    dtype, shape = _read_type(header[1]), tuple(int(size) for size in header[3].split(",") if size.strip())
    n, held = math.prod(shape), len(data) - start
    if n * dtype.itemsize != held:
        raise ValueError(f"an array of shape {shape} has {held} bytes, expected {n * dtype.itemsize}")
    return np.frombuffer(data, dtype, offset=start).reshape(shape, order="F" if header[2] == "True" else "C") if n else np.zeros(shape, dtype)


def _read_objects(archive: _Archive, node: dict[str, Any]) -> np.ndarray:
    """Read an array of objects, which are stored one by one."""
    shape = tuple(_read(archive, node["shape"]))
    items = [_read(archive, each) for each in node["content"]]
    for _ in shape[1:]:
        items = [each for inner in items for each in inner]
    found = np.empty(len(items), object)
    for i, each in enumerate(items):
        found[i] = each
    return found.reshape(shape)


def _read(archive: _Archive, node: dict[str, Any]) -> Any:
    """Read the value of a schema node."""
    loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
    if loader == "JsonNode":
        return json.loads(node["content"])
    if loader in ("ListNode", "TupleNode"):
        return [_read(archive, each) for each in node["content"]]
    if loader == "DictNode":
        return {key: _read(archive, each) for key, each in node["content"].items()}
    if loader == "NdArrayNode":
        if node["type"] == "json":
            return _read_objects(archive, node)
        found = _read_array(archive.read(node["file"]))
        return found if name == "numpy.ndarray" else found[()]
    if loader == "TreeNode":
        return _read_tree(archive, node)
    if loader == "ObjectNode":
        content = node.get("content")
        attributes = {} if content is None or content["__loader__"] != "DictNode" else content["content"]
        return find_family(node["__module__"], node["__class__"])(partial(_read, archive), attributes)
    raise ValueError(f"a {name[:40]} ({loader[:40]}) is nothing that a model is made of")


def _share(node: Any, known: dict[Any, Any]) -> Any:
    """Return the first node of an identity for all its copies, as skops does; refuse different plain values."""
    if isinstance(node, list):
        return [_share(each, known) for each in node]
    if not isinstance(node, dict):
        return node
    first = known.setdefault(node["__id__"], node) if "__id__" in node else node
    if first is not node:
        if "JsonNode" in (first["__loader__"], node["__loader__"]) and first["content"] != node["content"]:
            raise ValueError(f"two nodes have the identity {str(node['__id__'])[:40]}, but are not the same")
        return first
    for name, value in node.items():
        node[name] = _share(value, known)
    return node


def _check_predictor(tree: Any, n_features: int) -> None:
    """Refuse a binned tree with invalid children."""
    nodes = tree.nodes
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    _check_children(left, right, nodes["is_leaf"] != 0, nodes["feature_idx"], n_features)


def _check_estimator(model: Any) -> None:
    """Refuse an estimator that violates assumptions of the loaders."""
    for stage in getattr(model, "_predictors", ()):
        for tree in stage:
            _check_predictor(tree, model.n_features_in_)


def is_stored(data: bytes) -> bool:
    """Return whether bytes are a skops file."""
    return data.startswith(MAGIC) and SCHEMA.encode() in data


@contextmanager
def sound(where: str) -> Iterator[None]:
    """Name the file in errors raised while an estimator's attributes are read.

    Parameters
    ----------
    where : str
        Name of the file, for messages.

    Raises
    ------
    InvalidModel
        The file is damaged, or its estimator not fitted.
    UnsupportedModel
        The estimator has something that cannot be represented.
    """
    try:
        yield
    except (InvalidModel, UnsupportedModel) as error:
        raise type(error)(str(error) if str(error).startswith(where) else f"{where}: {error}") from error
    except DAMAGE as error:
        raise InvalidModel(f"{where}: no sound skops file: {' '.join(str(error).split())[:200]}") from error


def read_estimator(data: bytes) -> Any:
    """Read the estimator of a file as an object with its attributes, without its code.

    Returns
    -------
    Stored
        Of a search for parameters its best estimator.

    Raises
    ------
    Exception
        It is no such file, or damaged, see `sound`; attributes are read when they are asked for.
    """
    archive = _Archive(data)
    model = unwrap(_read(archive, _share(json.loads(archive.read(SCHEMA)), {})))
    _check_estimator(model)
    return model
