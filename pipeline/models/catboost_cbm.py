"""CatBoost's binary format, a FlatBuffer behind a magic and a length; read by hand, for CatBoost aborts on damaged files.

Field numbers are those of ``model.fbs``, ``features.fbs`` and ``ctr_data.fbs`` in CatBoost's ``catboost/libs/model/flatbuffers``.
"""

import itertools
import json
import struct
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidModel, UnsupportedModel
from .catboost_trees import MAX_FEATURES, MAX_SYMMETRIC_DEPTH, MAX_TREES, Column, Contents, Tree, free_tree, loss_name, symmetric_tree
from .cityhash import HASH_MASK

MAGIC = b"CBM1"
FORMAT = b"FlabuffersModel_v1"  # spelt so
AS_TRUE = 2  # ENanValueTreatment
NO_LEAF = 0xFFFFFFFF
STEP = np.dtype([("left", "<u2"), ("right", "<u2")])


class _TooMuchError(ValueError):
    """A vector is longer than a model can need, or vectors add up to more than the file, so that some lie on top of others."""


@dataclass(slots=True)
class _Reader:
    """A buffer whose vectors, all together, may not be read for more than its size (a small file must stay small in memory)."""

    data: bytes
    left: int

    def scalar(self, position: int, form: str) -> float:
        if position < 0:  # Python would count from the end
            raise struct.error(f"position {position}")
        return struct.unpack_from(form, self.data, position)[0]

    def offset(self, position: int) -> int:
        return position + int(self.scalar(position, "<I"))

    def vector(self, position: int, width: int) -> tuple[int, int]:
        """Where the items of a vector begin, and how many there are."""
        count = int(self.scalar(position, "<I"))
        if position + 4 + count * width > len(self.data):
            raise struct.error(f"{count} items")
        self.left -= count * width
        if self.left < 0:
            raise _TooMuchError("vectors lie on top of each other")
        return position + 4, count


@dataclass(frozen=True, slots=True)
class _Table:
    """A FlatBuffers table; a field that the file leaves out is its default, empty for vectors."""

    reader: _Reader
    position: int

    def _place(self, field: int) -> int | None:
        vtable = self.position - int(self.reader.scalar(self.position, "<i"))
        if 4 + 2 * field + 2 > self.reader.scalar(vtable, "<H"):
            return None
        offset = int(self.reader.scalar(vtable + 4 + 2 * field, "<H"))
        return self.position + offset if offset else None

    def number(self, field: int, form: str, default: float) -> float:
        place = self._place(field)
        return default if place is None else self.reader.scalar(place, form)

    def integer(self, field: int, default: int) -> int:
        return int(self.number(field, "<i", default))

    def table(self, field: int) -> "_Table | None":
        place = self._place(field)
        return None if place is None else _Table(self.reader, self.reader.offset(place))

    def array(self, field: int, dtype: str | np.dtype) -> np.ndarray:
        place, kind = self._place(field), np.dtype(dtype)
        if place is None:
            return np.empty(0, kind)
        start, count = self.reader.vector(self.reader.offset(place), kind.itemsize)
        return np.frombuffer(self.reader.data, kind, count, start)

    def text(self, field: int) -> bytes:
        return self.array(field, "u1").tobytes()

    def _items(self, field: int) -> list[int]:
        place = self._place(field)
        if place is None:
            return []
        start, count = self.reader.vector(self.reader.offset(place), 4)
        if count > MAX_FEATURES:
            raise _TooMuchError(f"a list of {count} tables or texts, expected at most {MAX_FEATURES}")
        return [self.reader.offset(start + 4 * i) for i in range(count)]

    def tables(self, field: int) -> list["_Table"]:
        return [_Table(self.reader, position) for position in self._items(field)]

    def texts(self, field: int) -> list[bytes]:
        found = []
        for position in self._items(field):
            start, count = self.reader.vector(position, 1)
            found.append(self.reader.data[start : start + count])
        return found


def _name(feature: _Table, field: int) -> str:
    return feature.text(field).decode() or str(feature.integer(1, -1))


def _refuse(model: _Table, where: str) -> None:
    """Refuse features that are computed from others."""
    categories = {feature.integer(0, -1): _name(feature, 2) for feature in model.tables(4)}
    for ctr in model.tables(7):
        source = ctr.table(0)
        for field in (0, 0):  # TModelCtr.Base, then its FeatureCombination
            source = source.table(field) if source else None
        index = source.array(0, "<i4") if source else np.empty(0, np.int32)
        names = ", ".join(repr(categories.get(i, str(i))) for i in index.tolist())
        raise UnsupportedModel(
            f"{where}: feature {names} is used through target statistics (CTR), expected one-hot splits only: "
            "train with a larger one_hot_max_size or encode it before"
        )
    for field, kind in ((12, "text"), (18, "embedding")):
        for feature in model.tables(field):
            raise UnsupportedModel(f"{where}: feature {_name(feature, 2)!r} is of kind {kind}, expected numbers and categories")
    if model.tables(13):
        raise UnsupportedModel(f"{where}: the model computes features of its own (estimated features)")


def _columns(model: _Table) -> tuple[Column, ...]:
    nothing = np.empty(0, np.float32)
    columns = [
        Column(
            categorical=False,
            index=feature.integer(1, -1),
            flat=feature.integer(2, -1),
            name=feature.text(4).decode() or str(feature.integer(2, -1)),
            nan_right=bool(feature.number(0, "<b", 0)) and feature.number(5, "<b", 0) == AS_TRUE,
            borders=feature.array(3, "<f4"),
            values=(),
            texts=None,
        )
        for feature in model.tables(5)
    ]
    # Splits are numbered by the order of the one-hot features, the other categories have none.
    categories = {feature.integer(0, -1): feature for feature in model.tables(4)}
    one_hot = {feature.integer(0, -1): feature for feature in model.tables(6)}
    for index in (*one_hot, *(index for index in categories if index not in one_hot)):
        values = tuple((one_hot[index].array(1, "<i4").astype(np.int64) & HASH_MASK).tolist()) if index in one_hot else ()
        texts = tuple(text.decode() for text in one_hot[index].texts(2)) if index in one_hot else ()
        feature = categories[index]
        columns.append(Column(True, index, feature.integer(1, -1), _name(feature, 2), False, nothing, values, texts or None))
    return tuple(columns)


def _trees(model: _Table, n_outputs: int, where: str) -> tuple[Tree, ...]:
    splits, sizes = model.array(1, "<i4"), model.array(2, "<i4").astype(np.int64)
    values, weights = model.array(8, "<f8"), model.array(9, "<f8")
    if sizes.size > MAX_TREES:
        raise UnsupportedModel(f"{where}: {sizes.size} trees, expected at most {MAX_TREES}")
    starts = np.concatenate(([0], np.cumsum(sizes)))
    declared = model.array(3, "<i4")
    if (sizes < 0).any() or starts[-1] != splits.size or (declared.size and not np.array_equal(declared, starts[:-1])):
        raise InvalidModel(f"{where}: tree sizes and offsets do not add up to the {splits.size} splits that there are")
    if values.size % n_outputs:
        raise InvalidModel(f"{where}: {values.size} leaf values, expected a multiple of the {n_outputs} outputs")
    values = values.reshape(-1, n_outputs)
    if sizes.size and not weights.size:
        raise UnsupportedModel(f"{where}: the model has no leaf weights, path-dependent attributions need them")
    if weights.size != len(values):
        raise InvalidModel(f"{where}: {weights.size} leaf weights for {len(values)} leaves")
    steps, leaf_of = model.array(10, STEP), model.array(11, "<u4")
    if not steps.size:
        return _symmetric(splits, sizes, values, weights, where)
    if steps.size != splits.size or leaf_of.size != splits.size:
        raise InvalidModel(f"{where}: {steps.size} steps and {leaf_of.size} leaf numbers for {splits.size} nodes")
    n_ends = int(((steps["left"] == 0) | (steps["right"] == 0)).sum())
    if n_ends > len(values):
        raise InvalidModel(f"{where}: {n_ends} nodes end in one of {len(values)} leaves, expected each leaf once")
    return tuple(
        _free(splits[a:b], steps[a:b], leaf_of[a:b], values, weights, f"{where}: tree {t}") for t, (a, b) in enumerate(itertools.pairwise(starts))
    )


def _symmetric(splits: np.ndarray, sizes: np.ndarray, values: np.ndarray, weights: np.ndarray, where: str) -> tuple[Tree, ...]:
    if sizes.size and sizes.max() > MAX_SYMMETRIC_DEPTH:
        tree = int(sizes.argmax())
        raise UnsupportedModel(f"{where}: tree {tree} is {sizes[tree]} deep, expected at most {MAX_SYMMETRIC_DEPTH}")
    n_leaves = 1 << sizes
    if n_leaves.sum() != len(values):
        raise InvalidModel(f"{where}: {len(values)} leaves, expected {n_leaves.sum()} of trees {sizes[:9].tolist()}... deep")
    if (splits < 0).any():
        raise InvalidModel(f"{where}: split {splits.min()}, expected a number >= 0")
    trees, node, leaf = [], 0, 0
    for depth, count in zip(sizes.tolist(), n_leaves.tolist(), strict=True):
        trees.append(symmetric_tree(splits[node : node + depth].tolist(), values[leaf : leaf + count], weights[leaf : leaf + count]))
        node, leaf = node + depth, leaf + count
    return tuple(trees)


def _free(splits: np.ndarray, steps: np.ndarray, leaf_of: np.ndarray, values: np.ndarray, weights: np.ndarray, where: str) -> Tree:
    """A tree of steps: a step of 0 to a side ends there, in the leaf of the node that it starts from."""
    n_outputs = values.shape[1]
    split, leaf = splits.tolist(), leaf_of.tolist()
    step = np.column_stack((steps["left"], steps["right"])).astype(np.int64)
    if not split:
        raise InvalidModel(f"{where} has no nodes, expected at least one")
    ends = (step == 0).any(axis=1)
    if (leaf_of[ends] % n_outputs).any() or (leaf_of[ends] // n_outputs >= len(values)).any():
        raise InvalidModel(f"{where} has leaf numbers up to {leaf_of[ends].max()}, expected multiples of {n_outputs} below {values.size}")
    children = step + np.arange(len(split))[:, None]
    left, right = children[:, 0].tolist(), children[:, 1].tolist()
    holder = {}  # node of the new array -> node of the file whose leaf it is
    for node, (to_left, to_right) in enumerate(step.tolist()):
        if not to_left and not to_right:
            split[node] = left[node] = right[node] = -1
            holder[node] = node
            continue
        if split[node] < 0:
            raise InvalidModel(f"{where}: node {node} has split {split[node]}, expected a number >= 0")
        for side, diff in ((left, to_left), (right, to_right)):
            if not diff:
                holder[len(split)] = node
                side[node] = len(split)
                for part in (split, left, right):
                    part.append(-1)
    if len(split) != 2 * len(holder) - 1:  # also keeps the arrays below as small as the file
        raise InvalidModel(f"{where} has {len(split)} nodes and {len(holder)} leaves, expected {2 * len(holder) - 1} nodes")
    row = np.array([leaf[node] // n_outputs for node in holder.values()], np.int64)
    value, weight = np.zeros((len(split), n_outputs)), np.zeros(len(split))
    value[list(holder)], weight[list(holder)] = values[row], weights[row]
    return free_tree(split, left, right, value, weight, where)


def _class_names(core: _Table, where: str) -> tuple[str, ...]:
    for entry in core.tables(2):
        if entry.text(0) == b"class_params":
            found = json.loads(entry.text(1))
            names = found.get("class_names") if isinstance(found, dict) else None
            if not isinstance(names, list):
                raise InvalidModel(f"{where}: class_params is {entry.text(1)[:40]!r}, expected an object with class_names")
            return tuple(map(str, names))
    return ()


def _loss(core: _Table) -> str:
    return next((loss_name(entry.text(1)) for entry in core.tables(2) if entry.text(0) == b"params"), "")


def _core(data: bytes, where: str) -> _Table:
    size = int.from_bytes(data[4:8], "little")
    if len(data) < 8 or data[:4] != MAGIC or size > len(data) - 8:
        raise InvalidModel(f"{where}: {len(data)} bytes, expected {MAGIC!r} and {size + 8} bytes in all")
    reader = _Reader(data[8 : 8 + size], size)
    core = _Table(reader, reader.offset(0))
    if core.text(0) != FORMAT:
        raise InvalidModel(f"{where}: format {core.text(0)[:40]!r}, expected {FORMAT!r}")
    if len(data) != 8 + size and not core.texts(3):
        raise InvalidModel(f"{where}: {len(data)} bytes, expected {8 + size}")
    return core


def read_cbm(data: bytes, where: str) -> Contents:
    """Read a model from the bytes of a ``.cbm`` file.

    Parameters
    ----------
    data : bytes
    where : str
        Name of the file, for messages.

    Returns
    -------
    Contents

    Raises
    ------
    InvalidModel
        The bytes are cut off, or are no such file.
    UnsupportedModel
        The model has no leaf weights, computes features of its own, or is too large.
    """
    try:
        core = _core(data, where)
        model = core.table(1)
        if model is None:
            raise InvalidModel(f"{where}: has no trees table")
        _refuse(model, where)
        n_outputs = model.integer(0, 0)
        if not 1 <= n_outputs <= len(data):
            raise InvalidModel(f"{where}: {n_outputs} outputs, expected at least 1")
        bias = model.array(16, "<f8")
        if not bias.size:  # files from before there were several biases
            bias = np.zeros(n_outputs)
            bias[0] = model.number(15, "<d", 0.0)
            if n_outputs > 1 and bias[0]:
                raise InvalidModel(f"{where}: one bias, expected {n_outputs}")
        if bias.size != n_outputs:
            raise InvalidModel(f"{where}: {bias.size} biases, expected {n_outputs}")
        return Contents(_columns(model), _trees(model, n_outputs, where), model.number(14, "<d", 1.0), bias, _class_names(core, where), _loss(core))
    except struct.error as error:
        raise InvalidModel(f"{where}: an offset points outside the file ({error})") from error
    except _TooMuchError as error:
        raise InvalidModel(f"{where}: {error}") from error
    except KeyError as error:
        raise InvalidModel(f"{where}: one-hot feature {error} is not among the categorical features") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InvalidModel(f"{where}: a text is damaged ({error})") from error
