"""Rows of a scikit-learn Pipeline: what its last step sees of them, grouped by the columns that it was made of, whose own values are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS

from ...arguments.readers import read_partition
from ...dataset.columns.partition import Groups, Partition, read_groups
from ...display.nearest import did_you_mean
from ...display.text import list_some
from ...errors import SchemaMismatch, UnsupportedModel, UsageError
from ...models.model import Feature
from ...models.sklearn.encoder_groups import encoder_groups
from ...models.sklearn.loader import find_kinds, unwrap
from ...models.sklearn.missing_texts import Spelling, find_spellings
from ..rows.given_rows import BACKGROUND, ROWS, as_rows, refuse_turned
from ..rows.named_column import take_column
from .attributions import Attributions

YOURSELF = "transform rows yourself, and explain what the last step sees: leafledger.attribute(model[-1], model[:-1].transform(rows))"
REFUSALS = (ValueError, TypeError, KeyError, IndexError, AttributeError)  # by which transformers refuse rows


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows of a Pipeline as its last step sees them, and as they were given."""

    rows: Any
    given: Any
    label: Any
    weight: Any


@dataclass(frozen=True, slots=True)
class Encoder:
    """The steps of a Pipeline before its last, and which columns that sees are made of which."""

    last: Any  # the model
    steps: Any
    names: tuple[str, ...] | None  # of columns, where the first step knows them
    used: tuple[str, ...]  # those that something is made of
    features: tuple[str, ...]  # all columns, as the first step takes them
    groups: Groups  # of these; empty where none were asked for
    spellings: tuple[frozenset[Spelling], ...]  # of missing values, by column
    partition: Mapping[str, list[str | int]]  # of what the last step sees

    def encode(self, rows: Any, label: Any, weight: Any) -> EncodedRows:
        """Transform rows; a label or weight that names one of their columns is taken from there."""
        given = self._spell(rows, ROWS)
        label, weight = (_take(name, each, given) for name, each in (("label", label), ("weight", weight)))
        return EncodedRows(self._transform(given, ROWS), given, label, weight)

    def encode_background(self, rows: Any) -> Any:
        """Transform the rows of a background; None, or a word for one, stays as it is."""
        if rows is None or isinstance(rows, str):
            return rows
        return self._transform(self._spell(rows, BACKGROUND), BACKGROUND)

    def show(self, found: Attributions, given: Any) -> Attributions:
        """Return attributions of the last step with the values and the groups of the rows as they were given."""
        return replace(found, rows=given, features=self.features, groups=self.groups)

    def _spell(self, rows: Any, where: str) -> Any:
        """Return rows as the first step takes them; where they come as no data frame, with missing texts as the steps know them."""
        import pandas as pd

        given = _as_given(rows, self.names is not None, where)
        if isinstance(rows, pd.DataFrame) or not isinstance(given, pd.DataFrame):
            return given
        for name, known in zip(self.features, self.spellings, strict=True):
            if not known or name not in given or not (lacking := given[name].isna()).any():
                continue
            if len(known) > 1:
                raise SchemaMismatch(f"{where}: column {name!r} has missing values, which the Pipeline knows as None and as NaN; give a data frame")
            texts = given[name].to_numpy(object, copy=True)
            texts[lacking.to_numpy()] = next(iter(known))
            given = given.assign(**{name: pd.Series(texts, given.index, object)})
        return given

    def _transform(self, rows: Any, where: str) -> Any:
        """Transform rows, of which a frame may have more columns than the steps were fitted on."""
        if not isinstance(rows, np.ndarray):
            rows = rows.to_numpy() if self.names is None else self._choose(rows, self.names, where)
        try:
            made = self.steps.transform(rows) if len(rows) else self._see_nothing()
        except REFUSALS as error:
            raise SchemaMismatch(f"{where}: the Pipeline cannot transform them: {' '.join(str(error).split())}") from error
        return _fill_out(made, self.last) if hasattr(made, "toarray") else made

    def _choose(self, rows: Any, names: Sequence[str], where: str) -> Any:
        missing = [name for name in self.used if name not in rows]
        if missing:
            meant = did_you_mean(missing[0], [name for name in rows if name not in names])
            raise SchemaMismatch(f"{where}: the Pipeline takes {list_some([*map(repr, missing)])}, got {list_some(list(rows))}{meant}")
        return rows[[name for name in names if name in rows]]

    def _see_nothing(self) -> Any:
        """Return what the last step sees of no rows, which scikit-learn's steps refuse."""
        import pandas as pd

        known, empty = getattr(self.last, "feature_names_in_", None), np.zeros((0, self.last.n_features_in_))
        return empty if known is None else pd.DataFrame(empty, columns=known)


def _fill_out(made: Any, last: Any) -> np.ndarray:
    """Write a sparse matrix out: what it does not store is missing to XGBoost, and 0 to others."""
    if "XGBModel" not in find_kinds(unwrap(last)):
        return np.asarray(made.toarray())
    stored = made.tocoo()
    rows = np.full(made.shape, np.nan)
    rows[stored.row, stored.col] = stored.data
    return rows


def _take(name: str, numbers: Any, given: Any) -> Any:
    """Take labels or weights of rows while these still have their columns and an index."""
    refuse_turned(name, numbers, given)
    return take_column(given, numbers, f"{name} is").to_numpy() if isinstance(numbers, str) else numbers


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


def follow(model: Any, method: Any, partition: Partition | None) -> Encoder | None:
    """Follow the columns through a Pipeline, to ask its last step what is asked of the whole; None where the model is none."""
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
    names = getattr(model, "feature_names_in_", None)
    groups = read_groups(None if partition is None else read_partition("partition", partition), tuple(map(Feature, made)))
    return Encoder(
        last=model[-1],
        steps=model[:-1],
        names=None if names is None else tuple(map(str, names)),
        used=tuple(made),
        features=tuple(map(str, range(model.n_features_in_) if names is None else names)),
        groups=groups,
        spellings=find_spellings(model[:-1], model.n_features_in_),
        partition={name: [column for member in members for column in made[member]] for name, members in groups} if groups else made,
    )
