"""How a Pipeline of scikit-learn knows missing texts: its encoders tell None from NaN, while Arrow has one null for both."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .encoder_groups import find_owners
from .loader import find_kinds

Spelling = float | None  # NaN or None


def _spell(values: Iterable[Any]) -> set[Spelling]:
    return {None if value is None else math.nan for value in values if value is None or (isinstance(value, float) and math.isnan(value))}


def _list_known(step: Any) -> Sequence[Iterable[Any]]:
    """List the values that an encoder knows of each of its columns, or those that an imputer fills; nothing of columns of numbers."""
    if "SimpleImputer" in find_kinds(step):
        return [[step.missing_values]] * step.n_features_in_ if step.statistics_.dtype == object else ()
    return [values if values.dtype == object else () for values in getattr(step, "categories_", ())]


def _follow(step: Any, given: list[int], found: Mapping[int, set[Spelling]]) -> None:
    """Note what a step knows of the columns that it sees, ``given`` by their numbers in the data."""
    kinds = find_kinds(step)
    if "Pipeline" in kinds:
        for _, inner in step.steps:
            _follow(inner, given, found)
            given = [given[j] for j in find_owners(inner, len(given))]
    elif "ColumnTransformer" in kinds:
        for name, inner, _ in step.transformers_:
            _follow(inner, [given[j] for j in step._transformer_to_input_indices[name]], found)
    else:
        for j, values in zip(given, _list_known(step), strict=False):
            found[j].update(_spell(values))


def find_spellings(steps: Any, n_columns: int) -> tuple[frozenset[Spelling], ...]:
    """Find how the fitted steps of a Pipeline know missing values of each column of the data: as None, NaN or both; none of numbers."""
    found = defaultdict[int, set[Spelling]](set)
    _follow(steps, list(range(n_columns)), found)
    return tuple(frozenset(found[j]) for j in range(n_columns))
