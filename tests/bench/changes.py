"""Nearest changes of five features beside one prediction, on one thread."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.table import Table

from leafledger.kernels.trees.binning import bin_dtype, bin_rows, padded
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.margin import add_margins, prepare_margin
from leafledger.pipeline.changes.asked import Change, Changes
from leafledger.pipeline.changes.find import find_changes, make_tables
from leafledger.pipeline.changes.values import support
from leafledger.pipeline.models import load_ensemble
from tests.bench.models import CASES, Case, trained
from tests.bench.timing import Contender, Speed, race
from tests.bench.vendors import VENDORS

KEYS = ("xgboost-100x6", "xgboost-500x8", "xgboost-100x3", "lightgbm-100x1024", "catboost-500x6")
FEATURES, ROWS = 5, 4096
CHANGES, PREDICT = "nearest changes", "predict"
MOST = 30  # predictions that the changes of five features may take


@dataclass(frozen=True, slots=True)
class Changed:
    """What was measured of a model."""

    case: str
    model: str
    changes: Speed  # bins, margins and changes
    predict: Speed  # the library's own
    share: float  # of rows that a change of one of the features would carry across

    @property
    def times(self) -> float:
        """Predictions that changes take."""
        return self.changes.seconds / self.predict.seconds


def _measure(case: Case, folder: Path, repeats: int) -> Changed:
    path, rows = trained(case, folder), case.draw(ROWS, 2, case.n_features)
    model, vendor = load_ensemble(path), VENDORS[case.library]
    bins, forest = make_forest(model.ensemble)
    margins = prepare_margin(forest.ensemble, forest.splits, forest.trace, forest.comparisons)
    values, margin = np.zeros((bins.column.size, padded(ROWS))), np.zeros((1, padded(ROWS)))
    values[:, :ROWS] = rows.T[bins.column]
    binned = np.zeros(values.shape, bin_dtype(bins))
    bin_rows(values.copy(), bins, binned)
    add_margins(binned, margins, margin)
    asked = tuple(Change(model.features[column].name) for column in bins.column[:FEATURES].tolist())
    tables = make_tables(model, Changes(float(np.median(margin[0, :ROWS])), "margin", "", asked))
    known = [model.features[column] for column in bins.column[:FEATURES].tolist()]
    supported, _ = support(asked, known, bins, tables, [pa.float32()] * FEATURES, case.key)

    def find() -> np.ndarray:
        seen = values.copy()
        margin[:] = 0.0
        bin_rows(seen, bins, binned)
        add_margins(binned, margins, margin)
        return find_changes(binned, seen, margin[0, :ROWS], tables, supported).value

    booster, wrapped = vendor.load(path), vendor.wrap(rows)
    calls = {CHANGES: find, PREDICT: partial(vendor.predict, booster, wrapped, 1)}
    changes, predict = race([Contender(name, 1, ROWS, call) for name, call in calls.items()], repeats)
    return Changed(case.key, case.name, changes, predict, float(np.isfinite(find()).any(axis=0).mean()))


def measure_changes(folder: Path, repeats: int, keys: Sequence[str] = KEYS) -> Iterator[Changed]:
    """Time every model."""
    for case in (case for case in CASES if case.key in keys):
        yield _measure(case, folder, repeats)


def show_changes(found: Sequence[Changed]) -> Table:
    """A line for each model."""
    table = Table(title=f"Nearest changes of {FEATURES} features, one thread, rows/s", title_justify="left")
    for head in ("", CHANGES, PREDICT, "predictions that changes take", "rows with one"):
        table.add_column(head, justify="right" if head else "left")
    for each in found:
        table.add_row(each.model, f"{each.changes.rate:,.0f}", f"{each.predict.rate:,.0f}", f"{each.times:.1f}", f"{each.share:.0%}")
    return table
