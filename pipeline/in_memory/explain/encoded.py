"""Rows of a scikit-learn Pipeline: what its last step sees of them, grouped by the columns that it was made of, whose own values are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS

from ...arguments.readers import read_partition
from ...dataset.columns.partition import Groups, Partition, read_groups
from ...errors import SchemaMismatch, UnsupportedModel, UsageError
from ...models.model import Feature
from ...models.sklearn.encoder_groups import encoder_groups
from ...models.sklearn.loader import find_kinds, unwrap
from ..rows.given_rows import BACKGROUND, ROWS, as_rows
from ..rows.named_column import take_column
from .attributions import Attributions

YOURSELF = "transform rows yourself, and explain what the last step sees: leafledger.attribute(model[-1], model[:-1].transform(rows))"
REFUSALS = (ValueError, TypeError, KeyError, IndexError, AttributeError)  # by which transformers refuse rows


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the last step of a Pipeline is asked."""

    last: Any  # the model
    rows: Any  # as it sees them
    partition: Mapping[str, list[str | int]]  # of its columns
    background: Any
    label: Any
    weight: Any
    given: Any  # the rows, before the first step
    features: tuple[str, ...]  # their columns, as the first step takes them
    groups: Groups  # of these; empty where none were asked for

    def show(self, found: Attributions) -> Attributions:
        """Return attributions of the last step with the values and the groups of the rows as they were given."""
        return replace(found, rows=self.given, features=self.features, groups=self.groups)


def _as_given(rows: Any, named: bool, where: str) -> Any:
    """Return rows as transformers of named columns take them: a data frame; otherwise a matrix."""
    import pandas as pd

    rows = as_rows(rows, where)
    if isinstance(rows, np.ndarray):
        return rows
    if not isinstance(rows, pd.DataFrame):
        try:
            rows = pd.DataFrame(dict(rows)) if isinstance(rows, Mapping) else _as_table(rows).to_pandas()
        except (*REFUSALS, pa.ArrowException) as error:
            raise SchemaMismatch(f"{where} are a {type(rows).__name__}, expected a data frame: {' '.join(str(error).split())}") from error
    return rows if named else rows.set_axis([str(j) for j in range(rows.shape[1])], axis=1)


def _as_table(rows: Any) -> pa.Table:
    return pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else pa.table(rows)


def _transform(steps: Any, rows: Any, names: Sequence[str] | None, where: str) -> Any:
    """Transform rows, of which a frame may have more columns than the steps were fitted on."""
    try:
        if not isinstance(rows, np.ndarray):
            rows = rows.to_numpy() if names is None else rows[[name for name in names if name in rows]]
        made = steps.transform(rows)
    except REFUSALS as error:
        raise SchemaMismatch(f"{where}: the Pipeline cannot transform them: {' '.join(str(error).split())}") from error
    return made.toarray() if hasattr(made, "toarray") else made


def encode(model: Any, rows: Any, method: Any, partition: Partition | None, background: Any, label: Any, weight: Any) -> Encoded | None:
    """Ask the last step of a Pipeline what is asked of the whole; None where the model is none."""
    model = unwrap(model)
    if "Pipeline" not in find_kinds(model):
        return None
    try:
        made = encoder_groups(model)
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{error}; {YOURSELF}") from error
    chosen = METHODS.get(method) if isinstance(method, str) else None  # others are refused later
    if chosen is not None and not chosen.phi.of_groups:
        raise UsageError(f"method {method!r} has no values of groups, which columns of a Pipeline are: use another one, or {YOURSELF}")
    names, steps = getattr(model, "feature_names_in_", None), model[:-1]
    features = tuple(map(str, range(model.n_features_in_) if names is None else names))
    groups = read_groups(None if partition is None else read_partition("partition", partition), tuple(map(Feature, made)))
    of_steps = {name: [column for member in members for column in made[member]] for name, members in groups} if groups else made
    given = _as_given(rows, names is not None, ROWS)
    seen = background if background is None or isinstance(background, str) else _as_given(background, names is not None, BACKGROUND)
    return Encoded(
        last=model[-1],
        rows=_transform(steps, given, names, ROWS),
        partition=of_steps,
        background=seen if seen is None or isinstance(seen, str) else _transform(steps, seen, names, BACKGROUND),
        label=take_column(given, label, "label is").to_numpy() if isinstance(label, str) else label,
        weight=take_column(given, weight, "weight is").to_numpy() if isinstance(weight, str) else weight,
        given=given,
        features=features,
        groups=groups,
    )
