"""The function ``partial_dependence``: what a model predicts on average as one feature changes, or two, exact at every threshold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.effects.curves import Curve
from leafledger.kernels.effects.sums import EffectSums

from ..arguments.choices import MARGIN, MODEL, Space
from ..arguments.readers import optional, read_flag, read_partition, read_space, shorten
from ..cluster.resources import table_budget
from ..dataset.columns.partition import Partition, read_groups
from ..display.nearest import did_you_mean
from ..display.text import count, list_some
from ..errors import UsageError
from ..in_memory.explain.explainer import say_compiling
from ..in_memory.pictures.picture import Picture
from ..in_memory.rows.given_rows import BACKGROUND, spell_features
from ..methods.output_space import choose_link
from ..models import load_ensemble
from .asked import AskedEffects, ask_effects
from .counted import Margins, draw_covered, draw_weighed
from .figure import picture_curve
from .named_axis import NamedAxis, describe, list_states
from .passed import as_curve, prepare_rows
from .rows_in_memory import Background, read_background

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
    space : str
        "margin", "probability" or "response": what curves are of.
    """

    axes: tuple[NamedAxis, ...]
    curves: tuple[Curve, ...]
    pairs: tuple[tuple[int, int], ...]
    surfaces: tuple[Curve, ...]
    shares: tuple[np.ndarray, ...]
    outputs: tuple[str, ...]
    game: str
    notes: tuple[str, ...] = ()
    space: Space = MARGIN

    def __repr__(self) -> str:
        counts = count(len(self.axes), "feature"), count(len(self.pairs), "pair"), count(len(self.outputs), "output")
        return "\n".join((f"PartialDependence({', '.join(counts)}, {self.space}, {self.game})", *self.notes))

    @property
    def names(self) -> tuple[Name, ...]:
        """Names of features and groups, then pairs of them."""
        return (*(each.name for each in self.axes), *((self.axes[a].name, self.axes[b].name) for a, b in self.pairs))

    def _find(self, name: Any) -> tuple[tuple[int, ...], Curve]:
        """Find one axis and its curve, or two and their surface."""
        wanted = tuple(name) if isinstance(name, list | tuple) else name
        if wanted not in self.names:
            turned = f"; did you mean {wanted[::-1]!r}?" if isinstance(wanted, tuple) and wanted[::-1] in self.names else ""
            hint = turned or did_you_mean(name, self.names) or f", expected one of {list_some(list(map(str, self.names)))}"
            raise UsageError(f"{shorten(name)} was not asked for{hint}")
        place = self.names.index(wanted)
        if place < len(self.axes):
            return (place,), self.curves[place]
        return self.pairs[place - len(self.axes)], self.surfaces[place - len(self.axes)]

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
        places, curve = self._find(name)
        axes = [self.axes[place] for place in places]
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
        return self.to_arrow(name).to_pandas()

    def figure(self, name: str) -> Picture:
        """Draw a curve as a picture: the mean at every value, and below it where the background's values lie.

        Parameters
        ----------
        name : str
            Of a feature or a group.

        Returns
        -------
        Picture
            Which a notebook shows; its ``save`` writes SVG or PNG.
        """
        places, curve = self._find(name)
        if len(places) > 1:
            raise UsageError(f"{shorten(name)} is a pair, expected one feature or group")
        return picture_curve(self.axes[places[0]], curve, self.shares[places[0]] if self.shares else None, self.outputs, self.space)

    def to_arrow(self, name: Name) -> pa.Table:
        """Turn a curve or a surface into a table of Arrow, with the columns of `to_frame`.

        Parameters
        ----------
        name : str, or two of them
            Of a feature or a group, or of a pair.

        Returns
        -------
        pyarrow.Table
        """
        places, curve = self._find(name)
        axes = [self.axes[place] for place in places]
        states = tuple(each.reshape(-1) for each in np.meshgrid(*map(list_states, axes), indexing="ij"))
        found = describe(axes, states, self.outputs)
        for column, numbers in (("value", curve.value), ("standard_error", curve.error)):
            found[column] = np.concatenate([each[states] for each in numbers])
        if len(places) == 1 and self.shares:
            found["share"] = np.tile(self.shares[places[0]][states[0]], len(self.outputs))
        return pa.table(found)


def ask_in_memory(
    model: Any, background: Any, features: Any, pairs: Any, partition: Any, output: Any, what: str
) -> tuple[AskedEffects, Background | None]:
    """Read a model, what is asked of it, and the background, if it is rows."""
    loaded = load_ensemble(model, output=output)
    rows = None if background is None or isinstance(background, str) else background
    if rows is None and background not in (None, MODEL):
        raise UsageError(f"background is {background!r}, expected rows or {MODEL!r}")
    known = loaded if rows is None else spell_features(loaded, rows, where=BACKGROUND)
    groups = read_groups(optional(read_partition)("partition", partition), known.features)
    asked = ask_effects(known, groups, features, pairs, what)
    return asked, None if rows is None else read_background(asked, rows)


def show_margins(asked: AskedEffects, found: Margins, game: str, notes: tuple[str, ...]) -> PartialDependence:
    """Show partial dependence of margins."""
    return PartialDependence(asked.axes, found.curves, asked.pairs, found.surfaces, found.shares, asked.model.outputs, game, notes)


def show_sums(asked: AskedEffects, found: Margins, sums: EffectSums, space: Space, game: str, notes: tuple[str, ...]) -> PartialDependence:
    """Show partial dependence of predictions, as a pass over rows has summed it."""
    curves = tuple(as_curve(each.curve, (axis.n_states,)) for axis, each in zip(asked.axes, sums.axes, strict=True))
    shapes = ((asked.axes[a].n_states, asked.axes[b].n_states) for a, b in asked.pairs)
    surfaces = tuple(as_curve(each, shape) for each, shape in zip(sums.surfaces, shapes, strict=True))
    return PartialDependence(asked.axes, curves, asked.pairs, surfaces, found.shares, asked.model.outputs, game, notes, space)


def partial_dependence(
    model: Any,
    background: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    pairs: Sequence[tuple[str | int, str | int]] = (),
    partition: Partition | None = None,
    allow_unseen: bool = False,
    output: str | int | None = None,
    space: Space = MARGIN,
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
    space : "margin", "probability" or "response"
        What curves are of. The mean of predictions is no sum over trees: it takes a pass over the background's rows, each of which is predicted in
        every state of every feature. Margins take none.

    Returns
    -------
    PartialDependence

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    say_compiling()
    asked, rows = ask_in_memory(model, background, features, pairs, partition, output, "partial_dependence")
    read_space("space", space)
    notes, unseen = asked.notes(), read_flag("allow_unseen", allow_unseen)
    link = choose_link(space, asked.model)
    if rows is not None:
        found = rows.count(unseen)
        game = f"background of {count(found.n_rows or 0, 'row')}"
        if link is None:
            return show_margins(rows.asked, found, game, notes)
        return show_sums(rows.asked, found, rows.sum(prepare_rows(rows.asked, found, link, 0), link), space, game, notes)
    if link is not None:
        raise UsageError(f"space {space!r} takes a background of rows, each of which is predicted; expected rows, or space 'margin'")
    if background is not None:
        return show_margins(asked, draw_weighed(asked, table_budget()), "background of the model's leaf weights", notes)
    return show_margins(asked, draw_covered(asked), "averaged by covers", (*notes, INITIAL) if asked.model.ensemble.base.any() else notes)
