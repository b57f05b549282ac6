"""The function ``feature_effects``: quantiles of rows' own curves, accumulated local effects and Friedman's H, from one pass over a background."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.effects.statistics import accumulate, against_all, against_one
from leafledger.kernels.effects.sums import EffectSums, read_quantiles

from ..arguments.choices import MARGIN, Space
from ..arguments.readers import read_choice, read_flag, read_number, read_numbers, read_space, refuse, shorten
from ..dataset.columns.partition import Partition
from ..display.nearest import did_you_mean
from ..display.text import count
from ..errors import UsageError
from ..in_memory.explain.explainer import say_compiling
from ..in_memory.pictures.picture import Picture
from ..methods.output_space import choose_link
from .asked import AskedEffects
from .counted import Margins
from .figure import Spread, picture_curve
from .named_axis import INTERVAL, describe, list_states
from .partial_dependence import PartialDependence, ask_in_memory, show_margins, show_sums
from .passed import prepare_rows

INTERVALS = 40  # of accumulated local effects
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BAND = 0.05, 0.95  # quantiles that a picture's band goes from and to
ROUNDING = 1e-24  # of Friedman's H², below which it is 0


@dataclass(frozen=True, slots=True)
class FeatureEffects:
    """What one pass over a background finds of every feature's effect.

    Attributes
    ----------
    partial_dependence : PartialDependence
        Means of rows' curves, in the space that was asked for.
    margins : PartialDependence
        The same in margin units, from the background's counts.
    sums : EffectSums
        Of all rows.
    edges : tuple of (intervals + 1,) int64
        Of every feature: states between which local effects are taken.
    reach : tuple of (outputs,) float64
        Of every feature: no row's curve is further from its mean.
    """

    partial_dependence: PartialDependence
    margins: PartialDependence
    sums: EffectSums
    edges: tuple[np.ndarray, ...]
    reach: tuple[np.ndarray, ...]

    def __repr__(self) -> str:
        return repr(self.partial_dependence).replace("PartialDependence", "FeatureEffects", 1)

    def bands(self, name: str, quantiles: Sequence[float] = QUANTILES) -> Any:
        """Read quantiles of centred curves: how rows' own curves differ once each is less its mean over the values that the background has.

        Parameters
        ----------
        name : str
            Of a feature or a group.
        quantiles : sequence of float
            From 0 to 1.

        Returns
        -------
        pandas.DataFrame
            A row for every output, state and quantile: those of `PartialDependence.to_frame`, quantile, and value, the middle of the cell that holds
            it, whose ends are at_least and at_most: a 16th of the value apart, or of a thousandth of the curves' reach.
        """
        return tabulate_bands(self, name, quantiles).to_pandas()

    def local_effects(self, name: str) -> Any:
        """Tabulate accumulated local effects of a feature with numbers.

        Parameters
        ----------
        name : str
            Of the feature. Categories have no order, and so no local effects.

        Returns
        -------
        pandas.DataFrame
            A row for every output and edge, ascending: output; lower and upper, the interval of values at the edge; value, the effect accumulated up
            to there, with mean 0 over all rows; rise, from the edge before; rows, whose value lies between the two edges; and standard_error, of the
            rise.
        """
        return tabulate_local_effects(self, name).to_pandas()

    def figure(self, name: str, output: str | None = None) -> Picture:
        """Draw what rows do around the mean: partial dependence, the band of rows' own curves, and accumulated local effects, each less its mean.

        Parameters
        ----------
        name : str
            Of a feature or a group.
        output : str, optional
            By default the first.

        Returns
        -------
        Picture
            Which a notebook shows; its ``save`` writes SVG or PNG. The band holds the middle nine tenths of rows; a dashed line has local effects,
            of features with numbers.
        """
        return draw_effects(self, name, output)

    def interactions(self) -> Any:
        """Tabulate Friedman's H: of every feature with all others, then of every pair.

        Returns
        -------
        pandas.DataFrame
            A row for every output and feature or pair: output, feature, other (None where it is all others), h_squared, the share of the variance of
            their joint effect that is no sum of effects of each, and h, its root. In margins, whatever the space; NaN where nothing varies.
        """
        return tabulate_interactions(self).to_pandas()


def _find(effects: FeatureEffects, name: Any) -> int:
    """Find the position of a single axis."""
    names = effects.partial_dependence.names
    if name not in names:
        raise UsageError(f"{shorten(name)} was not asked for{did_you_mean(name, names)}")
    if not isinstance(name, str):
        raise UsageError(f"{shorten(name)} is a pair, expected one feature or group")
    return names.index(name)


def tabulate_bands(effects: FeatureEffects, name: str, quantiles: Sequence[float] = QUANTILES) -> pa.Table:
    """Make the table of ``FeatureEffects.bands``."""
    asked = np.array(read_numbers("quantiles", quantiles), np.float64)
    if not ((asked >= 0) & (asked <= 1)).all():
        raise refuse("quantiles", quantiles, "numbers from 0 to 1")
    place, shown = _find(effects, name), effects.partial_dependence
    cells, states = effects.sums.axes[place].cells, list_states(shown.axes[place])
    found = [read_quantiles(mine[states], float(reach), asked) for mine, reach in zip(cells, effects.reach[place], strict=True)]
    lower, upper = (np.concatenate([each[side].reshape(-1) for each in found]) for side in (0, 1))
    columns = describe([shown.axes[place]], [np.repeat(states, asked.size)], shown.outputs)
    columns["quantile"] = np.tile(asked, states.size * len(cells))
    return pa.table(columns | {"value": lower / 2 + upper / 2, "at_least": lower, "at_most": upper})


def tabulate_local_effects(effects: FeatureEffects, name: str) -> pa.Table:
    """Make the table of ``FeatureEffects.local_effects``."""
    place, shown = _find(effects, name), effects.partial_dependence
    axis, edges, rises = shown.axes[place], effects.edges[place], effects.sums.axes[place].rises
    if INTERVAL not in axis.kinds:
        raise UsageError(f"{axis.name!r} has no numbers that a split asks for; accumulated local effects are of values that have an order")
    effect, error = accumulate(rises)
    n_outputs, first = len(shown.outputs), np.full((len(shown.outputs), 1), np.nan)
    rows = np.broadcast_to(np.append(0.0, rises.n), effect.shape)
    found: dict[str, Any] = {
        "output": np.repeat(np.array(shown.outputs, object), edges.size),
        "lower": np.tile(axis.lower[edges], n_outputs),
        "upper": np.tile(axis.upper[edges], n_outputs),
        "value": effect.reshape(-1),
        "rise": np.concatenate((first, rises.mean), axis=1).reshape(-1),
        "rows": rows.reshape(-1).astype(np.int64),
        "standard_error": np.concatenate((first, error), axis=1).reshape(-1),
    }
    return pa.table(found)


def draw_effects(effects: FeatureEffects, name: str, output: str | None) -> Picture:
    """Draw the picture of ``FeatureEffects.figure``."""
    place, shown = _find(effects, name), effects.partial_dependence
    chosen = read_choice("output", shown.outputs[0] if output is None else output, shown.outputs)
    k, axis, edges = shown.outputs.index(chosen), shown.axes[place], effects.edges[place]
    found, share = effects.sums.axes[place], shown.shares[place]
    ends = read_quantiles(found.cells[k], float(effects.reach[place][k]), np.array([BAND[0], BAND[1]]))
    band = np.stack((ends[0][:, 0], ends[1][:, 1]))
    local = accumulate(found.rises)[0][k] if INTERVAL in axis.kinds else np.zeros(0)
    curve = shown.curves[place]
    centred = curve._replace(value=(curve.value[k] - share @ curve.value[k])[None], error=curve.error[k : k + 1])
    words = "mean of rows", f"{BAND[0]:.0%} to {BAND[1]:.0%} of rows", "local effects"
    return picture_curve(axis, centred, share, (chosen,), shown.space, Spread(band, edges if local.size else edges[:0], local, words))


def tabulate_interactions(effects: FeatureEffects) -> pa.Table:
    """Make the table of ``FeatureEffects.interactions``."""
    shown, found = effects.margins, list[tuple[str, str | None, np.ndarray]]()
    for axis, sums in zip(shown.axes, effects.sums.axes, strict=True):
        found.append((axis.name, None, against_all(sums, effects.sums.margin)))
    for (a, b), surface, together in zip(shown.pairs, shown.surfaces, effects.sums.together, strict=True):
        squared = against_one(together, surface.value, shown.curves[a].value, shown.curves[b].value)
        found.append((shown.axes[a].name, shown.axes[b].name, squared))
    squared = np.stack([each for _, _, each in found], axis=1)
    squared[squared < ROUNDING] = 0.0
    names, others = ([each[k] for each in found] * len(shown.outputs) for k in (0, 1))
    outputs = np.repeat(np.array(shown.outputs, object), len(found))
    numbers = {"h_squared": squared.reshape(-1), "h": np.sqrt(squared).reshape(-1)}
    return pa.table({"output": outputs, "feature": names, "other": pa.array(others, pa.string()), **numbers})


def gather(asked: AskedEffects, found: Margins, sums: EffectSums, tables: Any, space: Space, game: str, notes: tuple[str, ...]) -> FeatureEffects:
    """Gather what both passes found."""
    margins = show_margins(asked, found, game, notes)
    shown = margins if space == MARGIN else show_sums(asked, found, sums, space, game, notes)
    return FeatureEffects(shown, margins, sums, tuple(each.edges for each in tables.axes), tuple(each.reach for each in tables.axes))


def feature_effects(
    model: Any,
    background: Any,
    *,
    features: Sequence[str | int] | None = None,
    pairs: Sequence[tuple[str | int, str | int]] = (),
    partition: Partition | None = None,
    intervals: int = INTERVALS,
    allow_unseen: bool = False,
    output: str | int | None = None,
    space: Space = MARGIN,
) -> FeatureEffects:
    """Compute features' effects with what means do not show: how rows differ, what correlated features do, and what only acts together.

    Two passes over the background: the first counts it, the second computes every row's own curve of every feature.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    background : data frame, Arrow table or array
        Rows, as `attribute` takes them.
    features : sequence of str or int, optional
        Features by name or position, or groups by name; by default all.
    pairs : sequence of two names each, optional
        Features or groups whose joint effect, and Friedman's H, are asked for.
    partition : mapping, str or path, optional
        Groups of one-hot columns, as `partial_dependence` takes them.
    intervals : int
        Of accumulated local effects: between so many quantiles of a feature's values, at most.
    allow_unseen : bool
        Take a background of which the model knows hardly any category of some feature; by default it is refused.
    output : str or int, optional
        The only output, by its name or position; by default all.
    space : "margin", "probability" or "response"
        What curves, bands and local effects are of. Friedman's H is of margins.

    Returns
    -------
    FeatureEffects

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    say_compiling()
    n_intervals = read_number("intervals", intervals, 1)
    asked, rows = ask_in_memory(model, background, features, pairs, partition, output, "feature_effects")
    read_space("space", space)
    link = choose_link(space, asked.model)
    if rows is None:
        raise UsageError("the background is no rows, each of which has effects of its own; expected rows")
    notes, found = asked.notes(), rows.count(read_flag("allow_unseen", allow_unseen))
    tables = prepare_rows(rows.asked, found, link, n_intervals)
    return gather(rows.asked, found, rows.sum(tables, link), tables, space, f"background of {count(found.n_rows or 0, 'row')}", notes)
