"""Rows of a scikit-learn Pipeline: what its last step sees of them, grouped by the columns that it was made of, whose own values are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.method.method import Method
from leafledger.kernels.methods import METHODS

from ...arguments.readers import read_partition
from ...dataset.columns.names import spell
from ...dataset.columns.notes import warn_user
from ...dataset.columns.partition import Groups, Partition, read_groups
from ...display.nearest import did_you_mean
from ...display.text import list_some, printable
from ...errors import SchemaMismatch, UnsupportedModel, UsageError
from ...models.model import Feature
from ...models.sklearn.encoder_groups import Trace, flatten, trace_columns
from ...models.sklearn.loader import find_kinds, unwrap
from ...models.sklearn.missing_texts import Spelling, find_spellings
from ..rows.given_rows import BACKGROUND, ROWS, as_rows, refuse_turned
from ..rows.named_column import take_column
from .attributions import Attributions

YOURSELF = "transform rows yourself, and explain what the last step sees: leafledger.attribute(model[-1], model[:-1].transform(rows))"
TEXTS = "OUT"  # kinds of matrices that encoders take
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
    features: tuple[str, ...]  # all columns, as the first step takes them
    named: bool  # whether the first step knows their names
    used: tuple[str, ...]  # those that something is made of
    groups: Groups  # of these; empty where none were asked for
    spellings: tuple[frozenset[Spelling], ...]  # of missing values, by column
    players: Mapping[str, Sequence[int]]  # columns, or their groups, and the positions of what the last step sees of each

    def encode(self, rows: Any, label: Any, weight: Any) -> EncodedRows:
        """Transform rows; a label or weight that names one of their columns is taken from there."""
        given = self._spell(rows, ROWS, tuple(each for each in (label, weight) if isinstance(each, str)))
        label, weight = (_take(name, each, given) for name, each in (("label", label), ("weight", weight)))
        # Of Arrow's types, which pandas need not have: integers beside missing ones would be rounded beyond 2**53.
        shown = rows.rename_columns([*given]) if isinstance(rows, pa.Table | pa.RecordBatch) else given
        return EncodedRows(self._transform(given, ROWS), shown, label, weight)

    def encode_background(self, rows: Any) -> Any:
        """Transform the rows of a background; None, or a word for one, stays as it is."""
        if rows is None or isinstance(rows, str):
            return rows
        return self._transform(self._spell(rows, BACKGROUND), BACKGROUND)

    def show(self, found: Attributions, given: Any) -> Attributions:
        """Return attributions of the last step with the values and the groups of the rows as they were given."""
        return replace(found, rows=given, features=self.features, groups=self.groups)

    def _spell(self, rows: Any, where: str, asked: Sequence[str] = ()) -> Any:
        """Return rows as the first step takes them; where they come as no data frame, with missing texts as the steps know them."""
        import pandas as pd

        given = _as_given(rows, where)
        if not isinstance(given, pd.DataFrame):
            return given
        given = given if self.named else self._place(given, where, asked)
        if isinstance(rows, pd.DataFrame):
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

    def _place(self, rows: Any, where: str, asked: Sequence[str]) -> Any:
        """Call the columns of a frame as a Pipeline without names calls them: by position, as scikit-learn takes them, and say so."""
        names, by_position = spell([Feature(name, named=False) for name in self.features], rows.columns, where, asked=asked)
        if not by_position:
            return rows
        if list(names) != [*map(str, range(len(names)))]:
            warn_user(printable(f"{where}: features by position, since the Pipeline has no names: {list_some(names)}"))
        return rows.set_axis([*self.features, *rows.columns[len(names) :]], axis=1)

    def _transform(self, rows: Any, where: str) -> Any:
        """Transform rows, of which a frame may have more columns than the steps were fitted on."""
        if not isinstance(rows, np.ndarray):
            rows = self._choose(rows, where) if self.named else rows[[*self.features]].to_numpy()
        try:
            made = rows if not len(self.steps) else self.steps.transform(rows) if len(rows) else self._see_nothing()
        except REFUSALS as error:
            raise SchemaMismatch(f"{where}: the Pipeline cannot transform them: {' '.join(str(error).split())}") from error
        return _fill_out(made, self.last) if hasattr(made, "toarray") else made

    def _choose(self, rows: Any, where: str) -> Any:
        missing = [name for name in self.used if name not in rows]
        if missing:
            meant = did_you_mean(missing[0], [name for name in rows if name not in self.features])
            raise SchemaMismatch(f"{where}: the Pipeline takes {list_some([*map(repr, missing)])}, got {list_some(list(rows))}{meant}")
        return rows[[name for name in self.features if name in rows]]

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


def _as_given(rows: Any, where: str) -> Any:
    """Return rows as transformers take them: a data frame, or a matrix, also of texts."""
    import pandas as pd

    if isinstance(rows, np.ndarray) and rows.dtype.kind in TEXTS and rows.ndim == 2 and not isinstance(rows, np.ma.MaskedArray):
        return rows
    rows = as_rows(rows, where)
    if isinstance(rows, np.ndarray | pd.DataFrame):
        return rows
    try:
        return pd.DataFrame(dict(rows)) if isinstance(rows, Mapping) else _as_table(rows).to_pandas()
    except (*REFUSALS, pa.ArrowException) as error:
        raise SchemaMismatch(f"{where} are a {type(rows).__name__}, expected a data frame: {' '.join(str(error).split())}") from error


def _as_table(rows: Any) -> pa.Table:
    return pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else pa.table(rows)


def follow(model: Any, method: Any, parameters: Any, partition: Partition | None) -> Encoder | None:
    """Follow the columns through a Pipeline, to ask its last step what is asked of the whole; None where the model is none."""
    if "Pipeline" not in find_kinds(unwrap(model)):
        return None
    model = flatten(model)
    try:
        traced = trace_columns(model)
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{error}; {YOURSELF}") from error
    chosen = METHODS.get(method) if isinstance(method, str) else None  # others are refused later
    if chosen is not None and not chosen.phi.of_groups:
        raise UsageError(f"method {method!r} has no values of groups, which columns of a Pipeline are: use another one, or {YOURSELF}")
    by_feature = _by_feature(chosen, parameters)
    if by_feature:
        raise UsageError(
            f"parameter {by_feature[0]!r} is by feature, of which the last step of a Pipeline sees others: give one for all, or {YOURSELF}"
        )
    groups = _group(partition, traced)
    players = {name: sorted(place for member in members for place in traced.places[member]) for name, members in groups} or traced.places
    return Encoder(
        last=model[-1],
        steps=model[:-1],
        features=traced.names,
        named=traced.named,
        used=tuple(traced.places),
        groups=groups,
        spellings=find_spellings(model[:-1], len(traced.names)),
        players=players,
    )


def _by_feature(chosen: Method | None, parameters: Any) -> list[str]:
    """Name the parameters that have a value for each feature."""
    found = []
    for each in () if chosen is None or not isinstance(parameters, Mapping) else chosen.parameters:
        try:
            value = each.read(parameters[each.name]) if each.by_feature is not None and each.name in parameters else ()
        except ValueError:  # refused later
            continue
        if isinstance(value, Mapping) or (isinstance(value, tuple) and len(value) > 1):
            found.append(each.name)
    return found


def _group(partition: Partition | None, traced: Trace) -> Groups:
    """Group the columns of the data that the last step sees something of."""
    groups = read_groups(None if partition is None else read_partition("partition", partition), [*map(Feature, traced.names)])
    for group, members in groups:
        lost = next((name for name in members if name not in traced.places and (group,) != members), None)
        if lost is not None:
            raise UsageError(f"partition: group {group!r} names {lost!r}, a column that the steps of the Pipeline drop, expected others")
    return tuple((group, members) for group, members in groups if members[0] in traced.places)
