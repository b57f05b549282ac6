"""CatBoost models that tests train, small and the same every time, and their files."""

import struct

import catboost
import numpy as np
import pandas as pd
import pyarrow as pa

from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.trees.statistics import look_up
from leafledger.pipeline.models.catboost.cityhash import hash_texts
from leafledger.pipeline.models.formats.flatbuffers import root

POLICIES = ("SymmetricTree", "Depthwise", "Lossguide")
SHAPE = {"iterations": 4, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False, "random_seed": 1}
WORDS = ("red", "green", "blue", "", "naïve 色", "a text that is longer than sixteen bytes", "3")


def sample(n=80, seed=0):
    """Four numeric columns, one decisive, with NaN, zeros of both signs and repeats."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4)).round(1)
    rows[::9, 0] = np.nan
    rows[::7, 1] = -0.0
    rows[1::7, 1] = 0.0
    target = np.where(np.isnan(rows[:, 0]), 1.5, rows[:, 0]) + (rows[:, 1] > 0) * rows[:, 2] + rng.normal(size=n) / 10
    return rows, target


def saved(model, tmp_path, form):
    path = tmp_path / f"model.{form}"
    model.save_model(str(path), format=form)
    return path.read_bytes()


def mixed(n=120):
    rng = np.random.default_rng(5)
    words, numbers, codes = rng.choice(WORDS[:5], n), rng.normal(size=n).round(1), rng.integers(-2, 3, n)
    return [[str(w), float(x), int(c), "constant"] for w, x, c in zip(words, numbers, codes, strict=True)], numbers + (words == "red") * 2.0 - (
        words == "naïve 色"
    ) * (codes == 1) * 3.0 + (codes == -2)


def counted(n=400, seed=0, integers=False, missing=False):
    """Two numbers and four categories, of 60, 7, 3 and 2 values, as a frame; a target that needs what they have in common."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 2)).astype(np.float32)
    if missing:
        numbers[rng.random((n, 2)) < 0.15] = np.nan
    codes = np.column_stack([rng.integers(0, most, n) for most in (60, 7, 3, 2)])
    effect = np.random.default_rng(7).normal(size=(60, 7))
    target = effect[codes[:, 0], codes[:, 1]] + (codes[:, 2] == 1) * np.nan_to_num(numbers[:, 0])
    target += (codes[:, 3] == 1) * (np.nan_to_num(numbers[:, 1]) > 0) + rng.normal(size=n) * 0.3
    words = codes * 37 - 50 if integers else [["é" * (code % 50) + str(code) for code in row] for row in codes.tolist()]  # of 1 to 100 bytes
    cats = np.array(words, object)
    frame = {"c0": cats[:, 0], "f0": numbers[:, 0], "c1": cats[:, 1], "c2": cats[:, 2], "f1": numbers[:, 1], "c3": cats[:, 3]}
    return pd.DataFrame(frame), target


def asked(n, seed=9, **options):
    """Other rows; a third of them, and a seventh, have categories that training never saw."""
    frame, _ = counted(n, seed, **options)
    integers = options.get("integers", False)
    frame.loc[::3, "c0"] = 777 if integers else "never seen"
    frame.loc[::7, "c2"] = 778 if integers else ""
    return frame


def counting(task, frame, target, **parameters):
    """A model with target statistics, trained."""
    kind = catboost.CatBoostClassifier if task in ("binary", "classes") else catboost.CatBoostRegressor
    labels = {
        "regression": target,
        "binary": (target > 0.5).astype(int),
        "classes": np.array(["low", "mid", "top"])[np.digitize(target, [0, 1])],
        "several": np.column_stack((target, -target * target)),
        "times": np.column_stack((np.abs(target), np.abs(target) + 1)),
    }[task]
    given = SHAPE | {"depth": 6, "iterations": 30} | parameters
    return kind(**given).fit(frame, labels, cat_features=[name for name in frame if name.startswith("c")])


def looked_up(ensemble, features, frame):
    """Rows with all columns of an ensemble, those of statistics too, ``(n, columns) float64``."""
    statistics, n = ensemble.statistics, len(frame)
    hashes = {name: hash_texts(pa.array(frame[name].astype(str))).astype(float) for name in frame if name.startswith("c")}
    given = [hashes[each.name] if each.categorical else frame[each.name].to_numpy(float) for each in features]
    codes = np.empty((statistics.column.size, n))
    look_up(np.array([given[j] for j in statistics.source]).reshape(-1, n), frozen(statistics), codes, np.empty((statistics.source.size, n), bool))
    columns = []
    for feature, values in zip(features, given, strict=True):
        if feature.categorical:
            place = {category.code: code for code, category in enumerate(feature.categories)}
            columns.append([place.get(int(value), len(place)) for value in values])
        else:
            columns.append(values)
    return np.column_stack((np.array(columns, float).T, codes.T))


def ends(ensemble, rows):
    """The leaf in which every row ends in every tree, ``(trees, n)``, by the words of ``TreeEnsemble``."""
    found = np.repeat(ensemble.root[:, None], len(rows), axis=1).astype(int)
    every = np.arange(len(rows))
    for node in found:
        while (inner := ensemble.feature[node] >= 0).any():
            value, number = rows[every, np.maximum(ensemble.feature[node], 0)], ensemble.category_set[node]
            left = np.where(np.isnan(value), ensemble.missing_left[node], value <= ensemble.threshold[node])
            chosen = np.flatnonzero(inner & (number >= 0))
            code = value[chosen].astype(np.int64)
            left[chosen] = ensemble.set_words[ensemble.set_start[number[chosen]] + code // 32] >> (code % 32).astype(np.uint32) & 1
            node[:] = np.where(inner, np.where(left, ensemble.left[node], ensemble.right[node]), node)
    return found


def sums(ensemble, found):
    """Margins ``(n, outputs)`` of rows that end there."""
    margins = np.tile(ensemble.base, (found.shape[1], 1))
    for tree, leaves in enumerate(found):
        margins[:, ensemble.output[tree] : ensemble.output[tree] + ensemble.value.shape[1]] += ensemble.value[leaves]
    return margins


class Editable:
    """A cbm file with target statistics, whose numbers can be written over."""

    def __init__(self, data):
        self.data = bytearray(data)
        end = 8 + int.from_bytes(data[4:8], "little")
        model = root(data[8:end]).table(1)
        self.floats, self.columns = ([(8, each) for each in model.tables(field)] for field in (5, 7))
        self.tables, self.n_tables_at = [], end
        at = end + 4
        for _ in range(int.from_bytes(data[end : end + 4], "little")):
            size = int.from_bytes(data[at : at + 4], "little")
            self.tables.append((at + 4, root(data[at + 4 : at + 4 + size])))
            at += 4 + size

    @staticmethod
    def within(found, *fields):
        """The table that is reached by fields, and where its buffer starts."""
        start, table = found
        for field in fields:
            table = table.table(field)
        return start, table

    def put(self, found, field, form, value):
        """Write a number that the file has over."""
        start, table = found
        struct.pack_into(form, self.data, start + table._place(field), value)

    def leave_out(self, found, field):
        """Let a table have a field no more, nor others that share its list of fields."""
        start, table = found
        vtable = table.position - int(table.buffer.scalar(table.position, "<i"))
        struct.pack_into("<H", self.data, start + vtable + 4 + 2 * field, 0)

    def vector(self, found, field):
        """Where the length of a vector stands."""
        start, table = found
        return start + table.buffer.offset(table._place(field))

    def resize(self, found, field, length):
        """Say that a vector is so long."""
        struct.pack_into("<I", self.data, self.vector(found, field), length)

    def put_item(self, found, field, at, form, value):
        """Write a number so many bytes behind the length of a vector."""
        struct.pack_into(form, self.data, self.vector(found, field) + 4 + at, value)
