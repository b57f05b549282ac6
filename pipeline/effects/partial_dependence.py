"""The function ``partial_dependence``: what a model predicts on average as one feature changes, or two, exact at every threshold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leafledger.kernels.effects.curves import Curve
from leafledger.kernels.trees.binning import read_columns

from ..arguments.choices import MODEL
from ..arguments.readers import optional, read_flag, read_partition, shorten
from ..cluster.resources import table_budget
from ..cluster.threads import do_all
from ..dataset.columns.partition import Partition, read_groups
from ..dataset.columns.values import read_features
from ..display.nearest import did_you_mean
from ..display.text import count, list_some
from ..errors import UsageError
from ..in_memory.explain.explainer import say_compiling
from ..in_memory.rows.arrow_batches import as_batch
from ..in_memory.rows.given_rows import BACKGROUND, SLICE_ROWS, fill_columns, spell_features
from ..methods.unseen_categories import refuse_counted
from ..models import load_ensemble
from .asked import AskedEffects, ask_effects
from .counted import Margins, ask_background, count_values, draw_counted, draw_covered, draw_weighed
from .named_axis import MISSING, NamedAxis

INITIAL = "the model's initial prediction is in here, which scikit-learn's method 'recursion' leaves out"
Name = str | tuple[str, str]  # of a feature or group, or of two


@dataclass(frozen=True, slots=True)
class PartialDependence:
    """What a model predicts on average as one feature changes, or two, and all else stays as it is in the background.

    Attributes
    ----------
    axes : tuple of NamedAxis
        Features and groups with their states: the model tells no two values of a state apart.
    curves : tuple of Curve
        Of every axis, ``(outputs, states)``.
    pairs : tuple of (int, int)
        Positions of two axes.
    surfaces : tuple of Curve
        Of every pair, ``(outputs, states of the first, states of the second)``.
    shares : tuple of array
        Share of the background's rows in every state of every axis; empty where there are no rows.
    outputs : tuple of str
    game : str
        What absent features are averaged over, in words.
    notes : tuple of str
        What is flat, which pairs never meet, what a number leaves out.
    """

    axes: tuple[NamedAxis, ...]
    curves: tuple[Curve, ...]
    pairs: tuple[tuple[int, int], ...]
    surfaces: tuple[Curve, ...]
    shares: tuple[np.ndarray, ...]
    outputs: tuple[str, ...]
    game: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = count(len(self.axes), "feature"), count(len(self.pairs), "pair"), count(len(self.outputs), "output")
        return "\n".join((f"PartialDependence({', '.join(counts)}, {self.game})", *self.notes))

    @property
    def names(self) -> tuple[Name, ...]:
        """Names of features and groups, then pairs of them."""
        return (*(each.name for each in self.axes), *((self.axes[a].name, self.axes[b].name) for a, b in self.pairs))

    def _find(self, name: Any) -> tuple[tuple[NamedAxis, ...], Curve]:
        """Find one axis and its curve, or two and their surface."""
        wanted = tuple(name) if isinstance(name, list | tuple) else name
        if wanted not in self.names:
            hint = did_you_mean(name, self.names) or f", expected one of {list_some(list(map(str, self.names)))}"
            raise UsageError(f"{shorten(name)} was not asked for{hint}")
        place = self.names.index(wanted)
        if place < len(self.axes):
            return (self.axes[place],), self.curves[place]
        pair = self.pairs[place - len(self.axes)]
        return tuple(self.axes[each] for each in pair), self.surfaces[place - len(self.axes)]

    def at(self, name: Name, values: Any) -> np.ndarray:
        """Read partial dependence off at some values.

        Parameters
        ----------
        name : str, or two of them
            Of a feature or a group, or of a pair.
        values : sequence
            As a column of rows has them, NaN or None where missing; of a group the name of the column that is 1, or None. Of a pair two such
            sequences of the same length.

        Returns
        -------
        (n, outputs) float64

        Raises
        ------
        LeafledgerError
            It was not asked for, or values are none of the feature's.
        """
        axes, curve = self._find(name)
        columns = [values] if len(axes) == 1 else list(values)
        if len(columns) != len(axes):
            raise UsageError(f"values of a pair are {count(len(columns), 'sequence')}, expected two")
        states = [axis.find(column) for axis, column in zip(axes, columns, strict=True)]
        if len({each.size for each in states}) > 1:
            raise UsageError(f"values of a pair are {states[0].size} and {states[1].size}, expected as many of each")
        return np.stack([each[tuple(states)] for each in curve.value], axis=1)

    def to_frame(self, name: Name) -> Any:
        """Turn a curve or a surface into a data frame.

        Parameters
        ----------
        name : str, or two of them
            Of a feature or a group, or of a pair.

        Returns
        -------
        pandas.DataFrame
            A row for every output and state, of a pair for every two: output, kind, lower and upper (an interval has its upper end, not its lower
            one), category, value, standard_error (NaN where the background has no rows, or fewer than 40), and of a single feature the share of its
            rows; of a pair kind, lower, upper and category have the suffixes _1 and _2.
        """
        import pandas as pd

        axes, curve = self._find(name)
        grid = np.meshgrid(*(_told(axis) for axis in axes), indexing="ij")
        states = [each.reshape(-1) for each in grid]
        found: dict[str, Any] = {"output": np.repeat(np.array(self.outputs, object), states[0].size)}
        for k, (axis, some) in enumerate(zip(axes, states, strict=True), 1):
            suffix, of_all = ("" if len(axes) == 1 else f"_{k}"), np.tile(some, len(self.outputs))
            found |= {
                f"kind{suffix}": np.array(axis.kinds, object)[of_all],
                f"lower{suffix}": axis.lower[of_all],
                f"upper{suffix}": axis.upper[of_all],
            }
            found[f"category{suffix}"] = [axis.categories[state] for state in of_all]
        found |= {
            "value": np.concatenate([each[tuple(states)] for each in curve.value]),
            "standard_error": np.concatenate([each[tuple(states)] for each in curve.error]),
        }
        if len(axes) == 1 and self.shares:
            found["share"] = np.tile(self.shares[self.names.index(name)][states[0]], len(self.outputs))
        return pd.DataFrame(found)


def _told(axis: NamedAxis) -> np.ndarray:
    """Return the states that rows can be in: not the missing value of a feature whose library predicts no such row."""
    kept = [state for state, kind in enumerate(axis.kinds) if kind != MISSING or not axis.features[0].refuses_missing]
    return np.array(kept, np.int64)


def _count(asked: AskedEffects, background: Any, allow_unseen: bool) -> tuple[AskedEffects, Margins]:
    """Count background rows, slice by slice, and draw; categories are spelled as in the rows."""
    features, batch = as_batch(asked.model, background, read_columns(asked.model.ensemble).tolist(), BACKGROUND)
    if not batch.num_rows:
        raise UsageError("the background has no rows, expected at least one")
    query, named = ask_background(asked, batch.num_rows, table_budget()), [(each.name, each.axis) for each in asked.axes]

    def work(first: int) -> Any:
        part = batch.slice(first, SLICE_ROWS)
        values = np.zeros((query.bins.column.size, part.num_rows))
        fill_columns(features, query.bins, part, values)
        return count_values(query, named, values, first)

    first, *others = do_all(work, range(0, batch.num_rows, SLICE_ROWS))
    counted = first.merge(others) if others else first
    if not allow_unseen:
        some = batch.slice(0, SLICE_ROWS)
        refuse_counted(counted.leaves.seen, read_features(features, query.bins), BACKGROUND, lambda name: some.column(name).to_pylist())
    spelled = [each if each.bins is None or each.ordered else each.spelled(batch.column(each.name).unique().to_pylist()) for each in asked.axes]
    return replace(asked, axes=tuple(spelled)), draw_counted(asked, query, counted)


def partial_dependence(
    model: Any,
    background: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    pairs: Sequence[tuple[str | int, str | int]] = (),
    partition: Partition | None = None,
    allow_unseen: bool = False,
    output: str | int | None = None,
) -> PartialDependence:
    """Compute what a model predicts on average as one feature changes, or two, exact at every threshold.

    Margins come from the background's counts, in time that grows with its rows and the model's leaves, and not with the number of values.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    background : data frame, Arrow table, array or "model", optional
        Rows, as `attribute` takes them, that all other features come from; or "model" for those behind the model's own leaf weights, where its trees
        are symmetric. By default other features are averaged by the trees' own covers, as scikit-learn's method "recursion" does.
    features : sequence of str or int, optional
        Features by name or position, or groups by name; by default all.
    pairs : sequence of two names each, optional
        Features or groups that change together.
    partition : mapping, str or path, optional
        Groups of one-hot columns, as `attribute` takes them: such a group changes as one feature, which is one of its columns, or none.
    allow_unseen : bool
        Take a background of which the model knows hardly any category of some feature; by default it is refused.
    output : str or int, optional
        The only output, by its name or position; by default all.

    Returns
    -------
    PartialDependence
        In margin units.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    say_compiling()
    loaded, unseen = load_ensemble(model, output=output), read_flag("allow_unseen", allow_unseen)
    rows = None if background is None or isinstance(background, str) else background
    known = loaded if rows is None else spell_features(loaded, rows, where=BACKGROUND)
    groups = read_groups(optional(read_partition)("partition", partition), known.features)
    asked = ask_effects(known, groups, features, pairs, "partial_dependence")
    notes = asked.notes()
    if background is None:
        found, game = draw_covered(asked), "averaged by covers"
        notes = (*notes, INITIAL) if known.ensemble.base.any() else notes
    elif rows is None:
        if background != MODEL:
            raise UsageError(f"background is {background!r}, expected rows or {MODEL!r}")
        found, game = draw_weighed(asked, table_budget()), "background of the model's leaf weights"
    else:
        asked, found = _count(asked, rows, unseen)
        game = f"background of {count(found.n_rows or 0, 'row')}"
    return PartialDependence(asked.axes, found.curves, asked.pairs, found.surfaces, found.shares, known.outputs, game, notes)
