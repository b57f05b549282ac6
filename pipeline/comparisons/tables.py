"""Result tables of a comparison: measures, features and rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from leafledger.kernels.comparison.agreement import Value, root_means
from leafledger.kernels.prediction_gap.rankings import PGI2
from leafledger.kernels.reductions.reduction import MEANS, Moments, merge_all

from ..errors import InvalidLabel
from ..methods.reduction_states import unpack_state
from ..models.model import Model
from .compare_item import Compared
from .comparison import Comparison, name_values
from .differing import merge_rows
from .measures import Measures


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables of a comparison."""

    measures: pa.Table
    features: pa.Table
    rows: pa.Table


def _merge(items: Sequence[Compared], which: int, n_outputs: int, n_values: int) -> Moments:
    return merge_all(MEANS, (unpack_state(MEANS, item.states[which]) for item in items), n_outputs, n_values)


def _list_measures(comparison: Comparison, values: Sequence[Value], found: dict[str, np.ndarray], n_rows: int) -> pa.Table:
    """Tabulate measures by output and ranking or pair from ``found (outputs, values)``; unknown ones are null."""
    names, outputs = [ranking.name for ranking in comparison.rankings], comparison.outputs
    known = {name: pa.array(each.reshape(-1), mask=(np.isnan(each + found["mean"]) | (n_rows == 0)).reshape(-1)) for name, each in found.items()}
    return pa.table(
        {
            "output": pa.array([output for output in outputs for _ in values], pa.string()),
            "measure": pa.array([value.measure for value in values] * len(outputs), pa.string()),
            "ranking": pa.array([names[value.ranking] for value in values] * len(outputs), pa.string()),
            "other": pa.array([None if value.other is None else names[value.other] for value in values] * len(outputs), pa.string()),
            **known,
            "rows": pa.array([n_rows] * len(values) * len(outputs), pa.int64()),
        }
    )


def _tabulate_measures(comparison: Comparison, measures: Measures, items: Sequence[Compared]) -> pa.Table:
    tables, n_outputs = [], len(comparison.outputs)
    named = name_values(comparison, [f"{PGI2} {scale:g}" for scale in measures.scales])
    for which, values in enumerate(named):
        merged = _merge(items, which, n_outputs, len(values))
        found = MEANS.finalize(merged, np.arange(len(values)), len(values))
        found = root_means(found, values) if which == len(named) - 1 else found  # of squared errors
        tables.append(_list_measures(comparison, values, found, int(merged.rows[0])))
    removal = tables[-1]
    if removal.num_rows and not removal["rows"][0].as_py():
        raise InvalidLabel(f"label {measures.label!r} is missing on every row, expected numbers")
    return pa.concat_tables(tables)


def _of_all(found: np.ndarray, model: Model, comparison: Comparison, about: Sequence[int]) -> pa.Array:
    """Concatenate numbers of features, ``(outputs, used)``, with 0 for features in no split, or null for those of them that a ranking values."""
    place = {feature.name: j for j, feature in enumerate(model.features)}
    everywhere = np.zeros((found.shape[0], len(model.features)))
    for r in about:
        everywhere[:, list(comparison.rankings[r].numbers)] = np.nan
    everywhere[:, [place[feature.name] for feature in comparison.features]] = found
    return pa.array(everywhere.reshape(-1), from_pandas=True)


def _tabulate_features(comparison: Comparison, model: Model, items: Sequence[Compared]) -> pa.Table:
    """Tabulate features by output and pair of rankings."""
    n_outputs, n_used, n_rows = len(comparison.outputs), len(comparison.features), len(comparison.outputs) * len(model.features)
    about = [*((r,) for r in comparison.valued), *comparison.valued_pairs]
    state = _merge(items, -1, n_outputs, len(about) * n_used)
    mean_abs, mean, spread = (each.reshape(n_outputs, len(about), n_used) for each in (state.mean_abs, state.mean, state.spread))
    squared = mean**2 + spread / max(state.rows[0], 1.0)
    tables = []
    for a, b in comparison.pairs:
        numbers = {"impact": (mean_abs, (a,)), "other_impact": (mean_abs, (b,)), "mae": (mean_abs, (a, b)), "rmse": (np.sqrt(squared), (a, b))}
        tables.append(
            pa.table(
                {
                    "output": pa.array([output for output in comparison.outputs for _ in model.features], pa.string()),
                    "feature": pa.array([feature.name for feature in model.features] * n_outputs, pa.string()),
                    "ranking": pa.array([comparison.rankings[a].name] * n_rows, pa.string()),
                    "other": pa.array([comparison.rankings[b].name] * n_rows, pa.string()),
                    **{
                        name: _of_all(found[:, about.index(key)], model, comparison, key) if key in about else pa.nulls(n_rows, pa.float64())
                        for name, (found, key) in numbers.items()
                    },
                    "rows": pa.array([int(state.rows[0])] * n_rows, pa.int64()),
                }
            )
        )
    types = {**dict.fromkeys(("output", "feature", "ranking", "other"), pa.string())}
    types |= {**dict.fromkeys(("impact", "other_impact", "mae", "rmse"), pa.float64()), "rows": pa.int64()}
    return pa.concat_tables([pa.schema(types).empty_table(), *tables])


def tabulate(comparison: Comparison, model: Model, measures: Measures, items: Sequence[Compared]) -> Tables:
    """Merge the results of all items into tables."""
    return Tables(
        _tabulate_measures(comparison, measures, items),
        _tabulate_features(comparison, model, items),
        merge_rows([item.rows for item in items], comparison.named, comparison.pairs),
    )
