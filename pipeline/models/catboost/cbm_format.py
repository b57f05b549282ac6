"""Parser of CatBoost's binary format (FlatBuffers), independent of CatBoost, which aborts on damaged files.

Field numbers follow ``model.fbs``, ``features.fbs`` and ``ctr_data.fbs`` in CatBoost's ``catboost/libs/model/flatbuffers``.
"""

import itertools
import json
import struct

import numpy as np

from ...errors import InvalidModel, UnsupportedModel
from ..formats.flatbuffers import MAX_ITEMS, Table, TooMuchError, root
from ..formats.json_fields import parse
from .assemble import MAX_SYMMETRIC_DEPTH, MAX_TREES, Contents, Tree, free_tree, loss_name, symmetric_tree
from .cityhash import HASH_MASK
from .classes import THRESHOLD, Classes, read_classes, read_threshold
from .columns import Column
from .ctr import COUNTERS, EMPTY, KINDS, MEANS, Counts, CtrCounts, Projection, Statistic, make_counts

MAGIC = b"CBM1"
FORMAT = b"FlabuffersModel_v1"  # CatBoost's spelling
AS_TRUE = 2  # ENanValueTreatment
NO_LEAF = 0xFFFFFFFF
STEP = np.dtype([("left", "<u2"), ("right", "<u2")])
COUNTS_PART = b"static_provider_v1"  # name of the part with counts, after the core
ABOVE, EQUAL = np.dtype([("index", "<i4"), ("border", "<f4")]), np.dtype([("index", "<i4"), ("value", "<i4")])
BUCKET = np.dtype([("key", "<u8"), ("row", "<u4")])
MEAN = np.dtype([("sum", "<f4"), ("rows", "<i4")])


def _name(feature: Table, field: int) -> str:
    return feature.text(field).decode() or str(feature.integer(1, -1))


def _refuse(model: Table, where: str) -> None:
    """Refuse features that are computed from others, as of texts and embeddings."""
    for field, kind in ((12, "text"), (18, "embedding")):
        for feature in model.tables(field):
            raise UnsupportedModel(
                f"{where}: feature {_name(feature, 2)!r} is of kind {kind}, expected numbers and categories: train it without, or on numbers "
                "that you compute of it yourself"
            )
    if model.tables(13):
        raise UnsupportedModel(f"{where}: the model computes features of its own (estimated features)")


def _columns(model: Table) -> tuple[Column, ...]:
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
            named=bool(feature.text(4)),
        )
        for feature in model.tables(5)
    ]
    # Splits are numbered in the order of one-hot features; other categories have none.
    categories = {feature.integer(0, -1): feature for feature in model.tables(4)}
    one_hot = {feature.integer(0, -1): feature for feature in model.tables(6)}
    for index in (*one_hot, *(index for index in categories if index not in one_hot)):
        values = tuple((one_hot[index].array(1, "<i4").astype(np.int64) & HASH_MASK).tolist()) if index in one_hot else ()
        texts = tuple(text.decode() for text in one_hot[index].texts(2)) if index in one_hot else ()
        feature = categories[index]
        flat, named = feature.integer(1, -1), bool(feature.text(2))
        columns.append(Column(True, index, flat, _name(feature, 2), False, nothing, values, texts or None, named))
    return tuple(columns)


def _within(table: Table | None, field: int, where: str) -> Table:
    found = table.table(field) if table else None
    if found is None:
        raise InvalidModel(f"{where} does not say what it is of")
    return found


def _counted(base: Table, known: dict[int, Projection], where: str) -> CtrCounts:
    """Read projections; files share equal ones, which are read once."""
    combination = _within(base, 0, where)
    if combination.position not in known:
        equal = combination.array(2, EQUAL)
        known[combination.position] = Projection(
            tuple(combination.array(0, "<i4").tolist()),
            tuple(combination.array(1, ABOVE).tolist()),
            tuple(zip(equal["index"].tolist(), (equal["value"].astype(np.int64) & HASH_MASK).tolist(), strict=True)),
        )
    kind = int(base.number(1, "<b", 0))
    if not 0 <= kind < len(KINDS):
        raise InvalidModel(f"{where} is of kind {kind}, expected 0..{len(KINDS) - 1}")
    return CtrCounts(known[combination.position], KINDS[kind], base.integer(2, 0))


def _statistics(model: Table, where: str) -> tuple[Statistic, ...]:
    found, known = [], dict[int, Projection]()
    for number, feature in enumerate(model.tables(7)):
        label = f"{where}: target statistic {number}"
        ctr = _within(feature, 0, label)
        found.append(
            Statistic(
                counted=_counted(_within(ctr, 0, label), known, label),
                target_border=ctr.integer(1, 0),
                prior=(ctr.number(2, "<f", 0.0), ctr.number(3, "<f", 1.0)),
                shift=ctr.number(4, "<f", 0.0),
                scale=ctr.number(5, "<f", 1.0),
                borders=feature.array(1, "<f4"),
            )
        )
    return tuple(found)


def _buckets(table: Table, where: str) -> np.ndarray:
    """Read the entries of a hash table, checking that CatBoost would find each: at its key's place, or after others without a gap."""
    stored = table.array(1, "u1")
    size = stored.size // BUCKET.itemsize
    if stored.size % BUCKET.itemsize or size & (size - 1) or not size:
        raise InvalidModel(f"{where} has {stored.size} bytes of buckets, expected {BUCKET.itemsize} times a power of two")
    buckets = stored.view(BUCKET)
    empty = buckets["key"] == EMPTY
    if not empty.any():
        raise InvalidModel(f"{where} has no empty bucket, in which a search would end")
    gaps = np.concatenate(([0], np.cumsum(empty)))
    at = np.flatnonzero(~empty)
    home = (buckets["key"][at] & np.uint64(size - 1)).astype(np.int64)
    before = gaps[at] - gaps[home] + np.where(at < home, gaps[-1], 0)
    lost = at[before != 0]
    if lost.size:
        raise InvalidModel(f"{where} has key {buckets['key'][lost[0]]} in bucket {lost[0]}, where no search finds it")
    return buckets[at]


def _counts(table: Table, kind: str, where: str) -> Counts:
    buckets, blob = _buckets(table, where), table.array(2, "u1")
    width = 1 if kind in COUNTERS else table.integer(4, 0)
    item = MEAN if kind in MEANS else np.dtype("<i4")
    if kind in MEANS:
        width = 1
    if width < 1 or blob.size % (width * item.itemsize):
        raise InvalidModel(f"{where} has {blob.size} bytes of counts, expected {width} times {item.itemsize} for every key")
    rows = blob.view(item).reshape(-1, width)
    number = buckets["row"].astype(np.int64)
    if number.size and (number.max() >= len(rows) or np.bincount(number).max() > 1):
        raise InvalidModel(f"{where} has {number.size} keys for {len(rows)} counts, expected counts of its own for each")
    if kind in MEANS:
        pairs = rows[number, 0]
        counts = np.column_stack((pairs["sum"], pairs["rows"].astype(np.float32)))
    else:
        counts = rows[number].astype(np.int64)
    return make_counts(buckets["key"].astype(np.uint64), counts, table.integer(3, 0), kind, where)


def _tables(data: bytes, at: int, parts: list[bytes], statistics: tuple[Statistic, ...], where: str) -> dict[CtrCounts, Counts]:
    """Read the tables that statistics need, each a FlatBuffer of its own after the core."""
    needed, found = {statistic.counted for statistic in statistics}, dict[CtrCounts, Counts]()
    if not needed or not parts or parts[0] != COUNTS_PART:
        return found
    (n_tables,) = struct.unpack_from("<I", data, at)
    if n_tables > MAX_ITEMS:
        raise UnsupportedModel(f"{where}: {n_tables} tables of counts, expected at most {MAX_ITEMS}")
    at += 4
    for number in range(n_tables):
        (size,) = struct.unpack_from("<I", data, at)
        at += 4
        if size > len(data) - at:
            raise InvalidModel(f"{where}: table {number} of counts has {size} bytes, but {len(data) - at} are left")
        label = f"{where}: table {number} of counts"
        table = root(data[at : at + size])
        counted = _counted(_within(table, 0, label), {}, label)
        if counted in found:
            raise InvalidModel(f"{label} is of what another one is of")
        if counted in needed:
            found[counted] = _counts(table, counted.kind, label)
        at += size
    if at != len(data) and len(parts) == 1:
        raise InvalidModel(f"{where}: {len(data)} bytes, but its tables of counts end after {at}")
    return found


def _trees(model: Table, n_outputs: int, where: str) -> tuple[Tree, ...]:
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
    """Read a tree of steps; a step of 0 to a side ends in the starting node's leaf."""
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
    holder = {}  # node of the new array -> node of the file that holds its leaf
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
    if len(split) != 2 * len(holder) - 1:  # also bounds the arrays below by the file's size
        raise InvalidModel(f"{where} has {len(split)} nodes and {len(holder)} leaves, expected {2 * len(holder) - 1} nodes")
    row = np.array([leaf[node] // n_outputs for node in holder.values()], np.int64)
    value, weight = np.zeros((len(split), n_outputs)), np.zeros(len(split))
    value[list(holder)], weight[list(holder)] = values[row], weights[row]
    return free_tree(split, left, right, value, weight, where)


def _classes(core: Table, where: str) -> Classes:
    found = next((entry.text(1) for entry in core.tables(2) if entry.text(0) == b"class_params"), b"null")
    return read_classes(parse(found, where), where)


def _threshold(core: Table, where: str) -> float | None:
    found = next((entry.text(1) for entry in core.tables(2) if entry.text(0) == THRESHOLD.encode()), None)
    return read_threshold(None if found is None else found.decode(), where)


def _loss(core: Table) -> str:
    return next((loss_name(entry.text(1)) for entry in core.tables(2) if entry.text(0) == b"params"), "")


def _core(data: bytes, where: str) -> Table:
    size = int.from_bytes(data[4:8], "little")
    if len(data) < 8 or data[:4] != MAGIC or size > len(data) - 8:
        raise InvalidModel(f"{where}: {len(data)} bytes, expected {MAGIC!r} and {size + 8} bytes in all")
    core = root(data[8 : 8 + size])
    if core.text(0) != FORMAT:
        raise InvalidModel(f"{where}: format {core.text(0)[:40]!r}, expected {FORMAT!r}")
    if len(data) != 8 + size and not core.texts(3):
        raise InvalidModel(f"{where}: {len(data)} bytes, expected {8 + size}")
    return core


def read_cbm(data: bytes, where: str) -> Contents:
    """Parse the bytes of a ``.cbm`` file."""
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
        if not bias.size:  # older files have a single bias
            bias = np.zeros(n_outputs)
            bias[0] = model.number(15, "<d", 0.0)
            if n_outputs > 1 and bias[0]:
                raise InvalidModel(f"{where}: one bias, expected {n_outputs}")
        if bias.size != n_outputs:
            raise InvalidModel(f"{where}: {bias.size} biases, expected {n_outputs}")
        statistics, behind = _statistics(model, where), 8 + int.from_bytes(data[4:8], "little")
        return Contents(
            columns=_columns(model),
            trees=_trees(model, n_outputs, where),
            scale=model.number(14, "<d", 1.0),
            bias=bias,
            classes=_classes(core, where),
            loss=_loss(core),
            statistics=statistics,
            tables=_tables(data, behind, core.texts(3), statistics, where),
            threshold=_threshold(core, where),
        )
    except struct.error as error:
        raise InvalidModel(f"{where}: an offset points outside the file ({error})") from error
    except TooMuchError as error:
        raise InvalidModel(f"{where}: {error}") from error
    except KeyError as error:
        raise InvalidModel(f"{where}: one-hot feature {error} is not among the categorical features") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InvalidModel(f"{where}: a text is damaged ({error})") from error
