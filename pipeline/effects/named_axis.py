"""The named axis: a feature, or a group of one-hot columns, with everything it can be in words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.effects.axes import Axis, feature_axis, find_states, hot_axis
from leafledger.kernels.trees.binning import BinTables
from leafledger.kernels.trees.forest import Forest
from leafledger.kernels.trees.statistics import NO_STATISTICS

from ..arguments.readers import read_names, shorten
from ..dataset.columns.names import name_at
from ..dataset.columns.partition import Groups
from ..display.nearest import did_you_mean
from ..errors import UsageError
from ..in_memory.rows.arrow_batches import as_batch
from ..in_memory.rows.given_rows import bin_batch
from ..models.catboost.cityhash import HashedCategory
from ..models.model import Feature, Model

INTERVAL, CATEGORY, OTHER, MISSING, ANY = "interval", "category", "other", "missing", "any"
NONE = "none of them"  # of a group's columns is 1
EVERYTHING = Axis(np.zeros(0, np.int64), np.zeros((0, 1), np.uint16))  # of a feature in no split


@dataclass(frozen=True, slots=True)
class NamedAxis:
    """A feature or a group, and its states in words.

    Attributes
    ----------
    name : str
    axis : Axis
        Of the kernels.
    player : int
        Among the forest's players; -1 where no split asks for it.
    kinds : tuple of str
        Of every state: "interval", "category", "other" (categories that the model does not know, or no split asks for), "missing", or "any" where
        no split asks.
    lower, upper : (states,) float64
        Of an interval, which has its upper end and not its lower one; NaN of others.
    categories : tuple
        Values of categories, or names of a group's columns; None of others. Of a category whose hash alone is known that, see ``spelled``.
    features : tuple of Feature
        One, or the columns of the group that are in splits.
    bins : BinTables or None
        Of that one feature; None of groups, and where no split asks for it.
    """

    name: str
    axis: Axis
    player: int
    kinds: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    categories: tuple[Any, ...]
    features: tuple[Feature, ...]
    bins: BinTables | None

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.kinds)

    @property
    def ordered(self) -> bool:
        """Whether its values are numbers."""
        return INTERVAL in self.kinds

    def spelled(self, values: Iterable[Any]) -> "NamedAxis":
        """Spell categories whose hash alone is known as the values that have it."""
        if not any(isinstance(each, HashedCategory) for each in self.categories):
            return self
        names = {HashedCategory.of(value): value for value in values if isinstance(value, str | int)}
        return replace(self, categories=tuple(names.get(each, each) for each in self.categories))

    def find(self, values: Any) -> np.ndarray:
        """Find the state of every value.

        Parameters
        ----------
        values : sequence
            As a column of rows has them; of a group the name of the column that is 1, or None.

        Returns
        -------
        (n,) int64

        Raises
        ------
        LeafledgerError
            They are no values of the feature, or none of the group's columns.
        """
        column = [values] if isinstance(values, str) or not hasattr(values, "__len__") else values
        if self.player < 0:
            return np.zeros(len(column), np.int64)
        if self.bins is None:
            known = {**{name: place for place, name in enumerate(self.categories)}, None: len(self.categories) - 1}
            for value in column:
                if value not in known:
                    raise UsageError(f"{self.name} has no column {shorten(value)}{did_you_mean(value, self.categories)}")
            return np.array([known[value] for value in column], np.int64)
        alone = Model(NO_TREES, self.features, (), "", "")
        features, batch = as_batch(alone, {self.name: column}, [0], f"values of {self.name}")
        values, binned = bin_batch(features, self.bins, batch)
        self._refuse_unknown(values[0, : batch.num_rows], column)
        return find_states(Axis(np.zeros(1, np.int64), self.axis.bins), binned)[: batch.num_rows]

    def _refuse_unknown(self, codes: np.ndarray, column: Any) -> None:
        """Refuse a category that the model does not know; one that no split asks for is known."""
        known = self.features[0].categories
        if known is None or self.features[0].partial or not (wrong := codes >= len(known)).any():
            return
        value = [*column][int(np.argmax(wrong))]
        raise UsageError(f"{self.name} has {shorten(value)}, expected categories that the model knows, or None{did_you_mean(value, known)}")


NO_TREES: Any = None  # a model that only names its feature


def _one(tables: BinTables, used: int) -> BinTables:
    """Return the binning of one feature alone."""
    some = slice(used, used + 1)
    return tables._replace(
        column=np.zeros(1, np.int32),
        start=np.array([0, tables.start[used + 1] - tables.start[used]]),
        threshold=tables.threshold[tables.start[used] : tables.start[used + 1]],
        n_codes=tables.n_codes[some],
        zero_missing=tables.zero_missing[some],
        statistics=NO_STATISTICS,
    )


def _name_states(tables: BinTables, used: int, feature: Feature) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, tuple[Any, ...]]:
    """Describe the states of a used feature: kinds, ends and categories."""
    n_codes, thresholds = int(tables.n_codes[used]), tables.threshold[tables.start[used] : tables.start[used + 1]]
    if n_codes:
        named = tuple(feature.categories or ())[:n_codes]
        nothing = np.full(n_codes + 2, np.nan)
        return (CATEGORY,) * n_codes + (OTHER, MISSING), nothing, nothing, (*named, *range(len(named), n_codes), None, None)
    ends = thresholds[np.isfinite(thresholds)]
    lower, upper = np.concatenate(([-np.inf], ends, [np.nan])), np.concatenate((ends, [np.inf, np.nan]))
    return (INTERVAL,) * (ends.size + 1) + (MISSING,), lower, upper, (None,) * (ends.size + 2)


def name_axis(model: Model, tables: BinTables, forest: Forest, groups: Groups, name: str) -> NamedAxis:
    """Name a feature's or a group's axis, which ``choose_names`` has found."""
    columns = {feature.name: j for j, feature in enumerate(model.features)}
    members = dict(groups).get(name, (name,))
    used = [int(np.searchsorted(forest.column, columns[each])) for each in members if columns[each] in forest.column]
    if not used:
        ends = np.array([np.inf])
        features = tuple(model.features[columns[each]] for each in members)
        return NamedAxis(name, EVERYTHING, -1, (ANY,), -ends, ends, (None,), features, None)
    features = tuple(model.features[forest.column[j]] for j in used)
    player = int(forest.player[used[0]])
    if len(members) == 1:
        kinds, lower, upper, categories = _name_states(tables, used[0], features[0])
        return NamedAxis(name, feature_axis(tables, used[0]), player, kinds, lower, upper, categories, features, _one(tables, used[0]))
    wrong = next((each.name for each in features if each.categorical), None)
    if wrong is not None:
        raise UsageError(f"group {name!r} has the categorical feature {wrong!r}, expected one-hot columns, of which one at most is 1")
    nothing = np.full(len(used) + 1, np.nan)
    categories = (*(each.name for each in features), NONE)
    return NamedAxis(name, hot_axis(tables, np.array(used)), player, (CATEGORY,) * len(categories), nothing, nothing, categories, features, None)


def list_states(axis: NamedAxis) -> np.ndarray:
    """List the states that rows can be in: not the missing value of a feature whose library predicts no such row."""
    kept = [state for state, kind in enumerate(axis.kinds) if kind != MISSING or not axis.features[0].refuses_missing]
    return np.array(kept, np.int64)


def describe(axes: Sequence[NamedAxis], states: Sequence[np.ndarray], outputs: Sequence[str]) -> dict[str, Any]:
    """Make the columns that say which states of one axis, or two, the rows of a table are of; all of them for every output."""
    found: dict[str, Any] = {"output": np.repeat(np.array(outputs, object), states[0].size)}
    for k, (axis, some) in enumerate(zip(axes, states, strict=True), 1):
        suffix, of_all = "" if len(axes) == 1 else f"_{k}", np.tile(some, len(outputs))
        found[f"kind{suffix}"] = np.array(axis.kinds, object)[of_all]
        found |= {f"lower{suffix}": axis.lower[of_all], f"upper{suffix}": axis.upper[of_all]}
        words = [axis.categories[state] for state in of_all]
        found[f"category{suffix}"] = pa.array([None if word is None else str(word) for word in words], pa.string())
    return found


def choose_names(given: Any, model: Model, groups: Groups) -> tuple[str, ...]:
    """Read which features and groups are asked for; all where none is said. Refuse what is none, or is a feature of a group."""
    known = tuple(group for group, _ in groups) or tuple(feature.name for feature in model.features)
    if given is None:
        return known
    places = {name: j for j, name in enumerate(known)}
    listed = [given] if isinstance(given, str) or not hasattr(given, "__iter__") else [*given]
    return read_names("features", [_find(name_at(each, places, "features"), known, groups, "features") for each in listed], "names of features")


def _find(name: Any, known: Sequence[str], groups: Groups, what: str) -> str:
    if name in known:
        return name
    inside = next((group for group, members in groups if name in members), None)
    if inside is not None:
        raise UsageError(f"{what} name {name!r}, which is in group {inside!r}; ask for the group")
    kind = "feature or group" if groups else "feature"
    raise UsageError(f"{what} name {shorten(name)}, which is no {kind} of the model{did_you_mean(name, known)}")


def choose_pairs(given: Any, model: Model, groups: Groups) -> tuple[tuple[str, str], ...]:
    """Read which pairs of different features or groups are asked for."""
    known, found = choose_names(None, model, groups), list[tuple[str, str]]()
    places = {name: j for j, name in enumerate(known)}
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise UsageError(f"pairs are {shorten(given)}, expected a list of two features each, as [('a', 'b')]")
    for pair in given:
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise UsageError(f"pairs have {shorten(pair)}, expected two features each, as [('a', 'b')]")
        first, second = (_find(name_at(each, places, "pairs"), known, groups, "pairs") for each in pair)
        if first == second:
            raise UsageError(f"pairs have {first!r} with itself, expected two different features")
        if {first, second} in [{*each} for each in found]:
            raise UsageError(f"pairs have {first!r} and {second!r} twice, expected once")
        found.append((first, second))
    return tuple(found)
