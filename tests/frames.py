"""Random data sets, stored in random ways: each is explained as the library itself predicts it, or refused in one line.

``python -m tests.frames`` trains a small model for every number, stores the rows that it shall be explained on in types, orders, folders and under
names that it was not trained with, and compares margins with the library's own on the rows as they were meant.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger import attribute, explain
from leafledger.pipeline.errors import LeafledgerError

LIBRARIES = ("xgboost", "lightgbm", "catboost")
NAMES = ("x", "y", "ä", "_k", "margin", "phi_x", "a.b", "a=b", "1", "X", " a", "mean radius", "%41", "a/b")
TEXTS = ("a", "A", "b ", "01", "1", "1.0", "true", "None", "nan", "ü", "a/b", "a=b", "%41", "-0")
WHOLE = (0, 1, 2, 7, -1, 100, 2**24 + 1, 2**31, 2**53 + 1, -(2**40))
FLOATS = (0.0, -0.0, 0.1, 1.0, -2.5, 1e-36, 1e30, 2.0**-20, 16777217.0)
N_TRAIN, N_ROWS = 120, 40
RTOL = {"xgboost": 1e-5, "lightgbm": 1e-9, "catboost": 1e-9}  # of the largest margin and the sum of leaves: XGBoost adds up in single precision


@dataclass(frozen=True)
class Column:
    """What a feature is, as its model was trained on it."""

    name: str
    kind: str  # number, whole, bool, text or code; the last two are categories
    values: tuple[Any, ...]  # that it takes; of numbers, some of them

    @property
    def categorical(self) -> bool:
        return self.kind in ("text", "code")


@dataclass(slots=True)
class Outcome:
    """What became of the data sets."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def draw_columns(draw: np.random.Generator) -> list[Column]:
    """Two to four features."""
    columns = []
    for name in draw.permutation(NAMES)[: draw.integers(2, 5)].tolist():
        kind = str(draw.choice(["number", "number", "whole", "bool", "text", "code"]))
        pool = {"number": FLOATS, "whole": WHOLE, "bool": (False, True), "text": TEXTS, "code": WHOLE}[kind]
        some = draw.permutation(len(pool))[: draw.integers(2, 1 + len(pool))]
        columns.append(Column(name, kind, tuple(pool[i] for i in some)))
    return columns


def draw_values(column: Column, n: int, draw: np.random.Generator, holes: float) -> list[Any]:
    """Values of a column, None where missing."""
    found = [column.values[i] for i in draw.integers(0, len(column.values), n)]
    if column.kind == "number":
        found = [
            value if rare else float(other) for value, rare, other in zip(found, draw.random(n) < 0.3, draw.normal(0, 3, n).round(2), strict=True)
        ]
    return [None if hole else value for value, hole in zip(found, draw.random(n) < holes, strict=True)]


def as_trained(column: Column, values: list[Any], library: str) -> Any:
    """A column as the library's own users have it in a frame."""
    if column.categorical:
        if library == "catboost":
            return pd.Series(values, dtype=object)
        return pd.Categorical(values, categories=list(column.values))
    if any(value is None for value in values) or column.kind == "number":
        return pd.Series([np.nan if value is None else float(value) for value in values])
    return pd.Series(values, dtype=bool if column.kind == "bool" else np.int64)


def train(library: str, columns: list[Column], frame: pd.DataFrame, label: np.ndarray, path: Path) -> Any:
    """Save a model of a few trees; the function of a frame that is its margins."""
    categorical = [column.name for column in columns if column.categorical]
    if library == "xgboost":
        import xgboost

        matrix = xgboost.DMatrix(frame, label, enable_categorical=True)
        booster = xgboost.train({"max_depth": 3, "nthread": 1, "verbosity": 0, "base_score": 0.5, "min_child_weight": 0}, matrix, 4)
        booster.save_model(path)
        return lambda rows: booster.predict(xgboost.DMatrix(rows, enable_categorical=True), output_margin=True)
    if library == "lightgbm":
        import lightgbm

        fine = {"min_data_per_group": 1, "cat_smooth": 0.0, "cat_l2": 0.0, "min_data_in_leaf": 1, "verbosity": -1, "num_threads": 1, "num_leaves": 6}
        model = lightgbm.train(fine | {"min_data_in_bin": 1}, lightgbm.Dataset(frame, label), 4)
        model.save_model(path)
        return lambda rows: model.predict(rows, raw_score=True)
    import catboost

    fitted = catboost.CatBoostRegressor(iterations=4, depth=3, one_hot_max_size=255, verbose=False, allow_writing_files=False, thread_count=1)
    fitted.fit(frame, label, cat_features=categorical)
    fitted.save_model(path)
    return fitted.predict


def _whole_types(values: list[Any]) -> list[pa.DataType]:
    """Types that hold whole numbers exactly."""
    there = [value for value in values if value is not None]
    low, high = min(there, default=0), max(there, default=0)
    sizes = (8, 16, 32, 64)
    fits = [getattr(pa, f"int{size}")() for size in sizes if -(2 ** (size - 1)) <= low and high < 2 ** (size - 1)]
    fits += [getattr(pa, f"uint{size}")() for size in sizes if low >= 0 and high < 2**size]
    return fits + [pa.decimal128(20)] + ([pa.float64()] if max(-low, high) <= 2**53 else [])


def store(column: Column, values: list[Any], draw: np.random.Generator) -> pa.Array:
    """The values in one of the types that hold them."""
    if column.kind == "text":
        types = [pa.string(), pa.large_string(), pa.string_view()]
    elif column.kind == "number":
        types = [pa.float64()]
        types += [pa.float32()] * all(value is None or float(np.float32(value)) == value for value in values)
        types += [pa.decimal128(38, 10)] * all(value is None or (abs(value) < 1e9 and round(value, 2) == value) for value in values)
    elif column.kind == "bool":
        types = [pa.bool_(), pa.uint8(), pa.float32()]
    else:
        types = _whole_types(values)
    chosen = types[draw.integers(len(types))]
    if pa.types.is_decimal(chosen):
        values = [None if value is None else Decimal(repr(value)) for value in values]
    elif not pa.types.is_boolean(chosen) and column.kind == "bool":
        values = [None if value is None else int(value) for value in values]
    if pa.types.is_floating(chosen) and draw.random() < 0.5:
        values = [np.nan if value is None else value for value in values]
    made = pa.array(values, chosen)
    whole = not any(value != value for value in values)  # NaN is no category
    if draw.random() < 0.3 and whole and not pa.types.is_string_view(chosen) and (column.categorical or column.kind == "whole"):
        known = made.drop_null().unique()
        order = draw.permutation(len(known))
        position = {known[int(k)].as_py(): i for i, k in enumerate(order)}
        codes = pa.array([None if value is None else position[value] for value in made.to_pylist()], pa.int32())
        made = pa.DictionaryArray.from_arrays(codes, known.take(pa.array(order)))
    return made


def write(folder: Path, table: pa.Table, moved: Column | None, values: list[Any], draw: np.random.Generator) -> None:
    """A data set of a few files, or of a folder for each value of the column that was moved to the path."""
    if moved is None:
        cuts = sorted(draw.integers(0, table.num_rows + 1, draw.integers(0, 3)).tolist())
        for i, (start, stop) in enumerate(zip([0, *cuts], [*cuts, table.num_rows], strict=True)):
            pq.write_table(table.slice(start, stop - start), folder / f"{i}.parquet", row_group_size=int(draw.integers(5, 50)))
        return
    for value in dict.fromkeys(values):
        text = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(str(value), safe="")
        below = folder / f"{quote(moved.name, safe='')}={text}"
        below.mkdir()
        chosen = [i for i, other in enumerate(values) if other is value or other == value]
        pq.write_table(pa.concat_tables(table.slice(i, 1) for i in chosen), below / "part.parquet")


def explained(model: str, folder: Path, columns: list[Column], rows: dict[str, list[Any]], draw: np.random.Generator) -> np.ndarray:
    """Our margins of rows that are stored in one of many ways, in their order."""
    stored = {column.name: store(column, rows[column.name], draw) for column in columns} | {"row": pa.array(range(N_ROWS)), "other": pa.nulls(N_ROWS)}
    table = pa.table({name: stored[name] for name in draw.permutation(list(stored)).tolist()})
    way = draw.choice(["arrow", "pandas", "run", "run"])
    if way == "arrow":
        return attribute(model, table).margin[:, 0]
    if way == "pandas":
        rounded = any(pa.types.is_integer(column.type) and column.null_count for column in table.columns)  # pandas' own integers have no null
        return attribute(model, table.to_pandas(types_mapper=pd.ArrowDtype if rounded or draw.random() < 0.3 else None)).margin[:, 0]
    movable = [column for column in columns if column.kind != "number" and "" not in column.values]
    moved = movable[draw.integers(len(movable))] if movable and draw.random() < 0.5 else None
    data, out = folder / "data", folder / "run"
    data.mkdir()
    write(data, table if moved is None else table.drop_columns(moved.name), moved, [] if moved is None else rows[moved.name], draw)
    explain(model, data, out, ids="row", precision="float64", scheduler="serial", allow_unseen=True, max_rejected=0)
    found = pa.concat_tables([pq.read_table(path, partitioning=None) for path in sorted(out.glob("attributions/*"))])
    return found["margin"].to_numpy()[np.argsort(found["row"].to_numpy())]


def _try(number: int, folder: Path, outcome: Outcome) -> None:
    draw = np.random.default_rng(number)
    library, columns = LIBRARIES[number % len(LIBRARIES)], draw_columns(draw)
    holes = {column.name: 0.1 * (draw.random() < 0.5 and not (library == "catboost" and column.categorical)) for column in columns}
    values = {column.name: draw_values(column, N_TRAIN, draw, holes[column.name]) for column in columns}
    effects = [dict(zip(column.values, draw.normal(0, 5, len(column.values)), strict=True)) for column in columns]
    label = sum(np.array([effect.get(value, 0.0) for value in values[column.name]]) for column, effect in zip(columns, effects, strict=True))
    path = folder / {"xgboost": "model.ubj", "lightgbm": "model.txt", "catboost": "model.cbm"}[library]
    rows = {column.name: draw_values(column, N_ROWS, draw, holes[column.name]) for column in columns}
    try:
        margins = train(library, columns, pd.DataFrame({c.name: as_trained(c, values[c.name], library) for c in columns}), label, path)
        meant = np.asarray(margins(pd.DataFrame({c.name: as_trained(c, rows[c.name], library) for c in columns})), float)
    except Exception:  # libraries refuse names, values and constant columns in their own ways
        outcome.counts[f"{library} refused"] += 1
        return
    try:
        found = explained(str(path), folder, columns, rows, draw)
    except LeafledgerError as error:
        outcome.counts[f"refused: {type(error).__name__}"] += 1
        if "\n" in str(error):
            outcome.faults.append(f"{number}: several lines: {error}")
        return
    except Exception as error:
        outcome.faults.append(f"{number}: {library}: {type(error).__name__}: {error}")
        return
    if found.shape != meant.shape:
        outcome.faults.append(f"{number}: {library}: {found.size} rows of {meant.size}; {columns}")
        return
    off = np.abs(found - meant) - RTOL[library] * (np.abs(meant).max() + np.abs(label).max())
    if not (off <= 0).all():
        outcome.faults.append(
            f"{number}: {library}: row {int(off.argmax())}: {found[off.argmax()]:.9g}, predicted {meant[off.argmax()]:.9g}; {columns}"
        )
    else:
        outcome.counts["the same"] += 1


def compare(numbers: range, seconds: float = np.inf) -> Outcome:
    """Try the data sets of these numbers, as long as there is time."""
    outcome, started = Outcome(), time.monotonic()
    for number in numbers:
        if time.monotonic() - started > seconds:
            break
        with tempfile.TemporaryDirectory() as folder:
            _try(number, Path(folder), outcome)
    return outcome


def main() -> int:
    """Try some, and exit with 1 if any margin was another than the library's."""
    parser = argparse.ArgumentParser(prog="python -m tests.frames", description="Random data sets against the libraries' own predictions.")
    parser.add_argument("--runs", type=int, default=10_000, help="data sets")
    parser.add_argument("--first", type=int, default=0, help="number of the first, which is what it is drawn from")
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after so many")
    given = parser.parse_args()
    outcome = compare(range(given.first, given.first + given.runs), given.seconds)
    for what, count in outcome.counts.most_common():
        print(f"{count:6} {what}")
    for fault in outcome.faults:
        print(fault)
    print(f"{len(outcome.faults)} differences and crashes")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
