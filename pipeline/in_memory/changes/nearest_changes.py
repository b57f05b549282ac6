"""The function ``nearest_changes``: of rows in memory, what one feature would have to be for the row to cross a threshold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leafledger.kernels.slices.links import predict
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.margin import add_margins, prepare_margin

from ...arguments.choices import Space
from ...arguments.readers import read_flag, read_names, shorten
from ...changes.asked import Change, Changes, check_changes, check_names, read_change, read_threshold
from ...changes.find import find_changes, find_used, make_tables
from ...changes.threshold import find_link
from ...changes.values import Values, support
from ...changes.words import TEXT, write_change
from ...cluster.threads import do_all
from ...dataset.columns.names import name_at
from ...display.nearest import did_you_mean
from ...display.text import count
from ...errors import UsageError
from ...models import load_ensemble
from ...models.model import Model
from ...runs.columns.change_columns import read_changes
from ...runs.columns.reasons_file import load_settings
from ...runs.job.options import ReasonsFile
from ..rows.arrow_batches import as_batch
from ..rows.given_rows import ROWS, bin_batch, refuse_unknown, spell_features

SLICE_ROWS = 1 << 11
WHERE = "features"  # what messages about features start with
Asked = Iterable[str | int] | Mapping[str | int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class NearestChanges:
    """What one feature would have to be, all others as they are, for a row to be on the other side of a threshold.

    Attributes
    ----------
    features : tuple of str
        Those that may be changed.
    threshold : float
        In units of the predictions.
    space : str
        What the predictions are: "margin", "probability" or "response".
    prediction : (n,) float64
        Of the rows as they are.
    changed : (n, features) float64
        Predictions after the change; NaN where no change of the feature crosses.
    value : (n, features) float64
        What the feature would have to be, the nearest there is: a number, or the code of a category; NaN where no change of it crosses.
    until : (n, features) float64
        All numbers from `value` up to this one cross as well; NaN where all beyond it do, and of categories.
    """

    features: tuple[str, ...]
    threshold: float
    space: Space
    prediction: np.ndarray
    changed: np.ndarray
    value: np.ndarray
    until: np.ndarray
    _told: Mapping[str, Values] = field(repr=False)
    _now: np.ndarray = field(repr=False)  # (n, features) float64, numbers of the rows
    _changes: Changes = field(repr=False)
    _index: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.prediction)

    def __repr__(self) -> str:
        crossing = int(np.isfinite(self.value).any(axis=1).sum())
        return f"NearestChanges({count(len(self), 'row')}, {count(len(self.features), 'feature')}, {crossing:,} can cross {self.threshold:g})"

    def _place(self, feature: str | int) -> int:
        name = name_at(feature, {each: k for k, each in enumerate(self.features)}, WHERE)
        if name not in self.features:
            raise UsageError(f"feature is {shorten(feature)}, which is not among those to be changed{did_you_mean(name, self.features)}")
        return self.features.index(name)

    def _check_row(self, row: int) -> None:
        if not isinstance(row, int | np.integer) or not -len(self) <= row < len(self):
            raise UsageError(f"row is {row!r:.40}, expected a position of {len(self):,} rows")

    def _name(self, found: float, feature: str) -> Any:
        return None if np.isnan(found) else self._told[feature].name(found)

    def at(self, row: int, feature: str | int) -> Any:
        """Say what a feature of a row would have to be.

        Parameters
        ----------
        row : int
            Its position.
        feature : str or int
            By name, or by position among `features`.

        Returns
        -------
        float, int, bool or str
            The nearest value that carries the row to the other side, as its column has values; None where none does.

        Raises
        ------
        UsageError
            The feature is not among those to be changed, or there is no such row.
        """
        place = self._place(feature)
        self._check_row(row)
        return self._name(self.value[row, place], self.features[place])

    def to_frame(self) -> Any:
        """Turn changes into a data frame.

        Returns
        -------
        pandas.DataFrame
            A row for every row, with its index, and a column for every feature: what it would have to be, missing where no change of it crosses.
        """
        import pandas as pd

        columns = {name: pd.Series([self._name(each, name) for each in self.value[:, k]], self._index) for k, name in enumerate(self.features)}
        return pd.DataFrame(columns, self._index)

    def words(self, row: int) -> list[str]:
        """Tell a row's changes in words.

        Parameters
        ----------
        row : int
            Its position.

        Returns
        -------
        list of str
            One for every feature that would do, in their order.
        """
        self._check_row(row)
        told = []
        for k, change in enumerate(self._changes.features):
            value, until = (self._name(each[row, k], change.feature) for each in (self.value, self.until))
            if value is not None:
                numbers = self._told[change.feature].names is None
                now = self._now[row, k] if numbers else None
                told.append(write_change(change.text or self._changes.text, change.feature, now, value, until))
        return told


def _read_features(asked: Asked | None, model: Model, read: np.ndarray) -> tuple[Change, ...]:
    """Read which features may be changed, and how."""
    names = {feature.name: j for j, feature in enumerate(model.features)}
    if asked is None:
        return tuple(Change(model.features[column].name) for column in read.tolist())
    if isinstance(asked, Mapping):
        found = {name_at(each, names, WHERE): given for each, given in asked.items()}
        check_names(read_names(WHERE, tuple(found), "features by name"), model.features, WHERE)
        return tuple(read_change(name, given, f"{WHERE}: {name!r}") for name, given in found.items())
    several = isinstance(asked, Iterable) and not isinstance(asked, str)
    listed = read_names(WHERE, [name_at(each, names, WHERE) for each in asked] if several else asked, "names of features or positions, or a mapping")
    check_names(listed, model.features, WHERE)
    return tuple(map(Change, listed))


def _read_asked(
    threshold: float | None, space: Space | None, features: Asked | None, reasons: ReasonsFile | None, model: Model, read: np.ndarray
) -> Changes:
    """Read what is asked for: arguments before what the file says."""
    said = None
    if reasons is not None:
        found, _, where = load_settings(reasons, "reasons")
        said = read_changes(found, model.features, where)
        if said is None:
            raise UsageError(f"{where}: says nothing of changes; expected a table 'changes' and [[change]] of features")
    number, of = read_threshold(
        said.threshold if said is not None and threshold is None else threshold, said.space if said is not None and space is None else space
    )
    if said is not None and features is None:
        return replace(said, threshold=number, space=of)
    return Changes(number, of, TEXT if said is None else said.text, _read_features(features, model, read))


def nearest_changes(
    model: Model | Any,
    rows: Any,
    *,
    threshold: float | None = None,
    features: Asked | None = None,
    space: Space | None = None,
    reasons: ReasonsFile | None = None,
    output: str | int | None = None,
    allow_unseen: bool = False,
) -> NearestChanges:
    """Find, of every row and feature, the nearest value with which the row would be on the other side of a threshold, all else as it is.

    Exact: the model is asked on all of its thresholds. A value is given that the library's own prediction crosses with, at the nearer end of the
    interval of thresholds that it is in. It says nothing of causes: other features may not stay as they are.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        n rows, as `attribute` takes them.
    threshold : float, optional
        A row is on one side if its prediction is at least this, on the other if it is less. By default that of ``reasons``.
    features : iterable of str or int, or mapping of these to mappings, optional
        Features that may be changed, by name or position; by default all that some split asks for. A mapping also says of each ``direction``, "up",
        "down" or "both"; ``at_least`` and ``at_most``, bounds of the new value; ``step``, of which it has to be a multiple; or of categories ``to``,
        those it may become, the best first.
    space : "margin", "probability" or "response", optional
        What the threshold is of; by default margins, or what ``reasons`` says.
    reasons : mapping, str or path, optional
        A TOML or JSON file of reasons, or such an object, that says which features may be changed, in which words, and the threshold: what else is
        given here comes before.
    output : str or int, optional
        The output that it is of, by name or position; needed where the model has several.
    allow_unseen : bool
        Take rows of which the model knows hardly any category of some feature; by default they are refused.

    Returns
    -------
    NearestChanges

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. UsageError where all of the model's predictions are on one side of the threshold.
    """
    loaded = spell_features(load_ensemble(model, output=output), rows)
    bins, forest = make_forest(loaded.ensemble)
    changes = _read_asked(threshold, space, features, reasons, loaded, bins.read)
    of = changes.space
    tables, link = make_tables(loaded, changes), find_link(loaded, of)
    read, batch = as_batch(loaded, rows, bins.read.tolist())
    refuse_unknown(read, bins, batch, ROWS, read_flag("allow_unseen", allow_unseen))
    check_changes(changes.features, loaded, read, WHERE)
    used = find_used(changes.features, read, bins.read)
    types = [batch.schema.field(changes.features[k].feature).type for k in used]
    of_name = {feature.name: feature for feature in read}
    asked = [changes.features[k] for k in used]
    supported, told = support(asked, [of_name[change.feature] for change in asked], bins, tables, types, WHERE)
    margins = prepare_margin(forest.ensemble, forest.splits, forest.trace, forest.comparisons)
    n, shape = batch.num_rows, (batch.num_rows, len(changes.features))
    prediction, changed, value, until, now = np.zeros(n), *(np.full(shape, np.nan) for _ in range(4))

    def work(first: int) -> None:
        part = batch.slice(first, SLICE_ROWS)
        some, (values, binned) = slice(first, first + part.num_rows), bin_batch(read, bins, part)
        margin = np.zeros((1, binned.shape[1]))
        add_margins(binned, margins, margin)
        prediction[some] = margin[0, : part.num_rows]
        found = find_changes(binned, values, prediction[some], tables, supported)
        for into, each in ((value, found.value), (until, found.until), (changed, found.margin), (now, values[tables.feature, : part.num_rows])):
            into[some, used] = each.T

    do_all(work, range(0, n, SLICE_ROWS))
    if link is not None:
        prediction, changed = predict(link, prediction), predict(link, changed)
    return NearestChanges(
        features=tuple(change.feature for change in changes.features),
        threshold=changes.threshold,
        space=of,
        prediction=prediction,
        changed=changed,
        value=value,
        until=until,
        _told=dict(zip((change.feature for change in asked), told, strict=True)),
        _now=now,
        _changes=changes,
        _index=_index_of(rows, n),
    )


def _index_of(rows: Any, n: int) -> Any:
    """Return labels of the rows: those of a pandas frame, else their numbers."""
    labels = getattr(rows, "index", None)
    return labels if labels is not None and not callable(labels) and len(labels) == n else range(n)
