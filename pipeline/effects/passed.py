"""The pass over rows: its tables, what predictions it takes, and what its sums are as curves."""

from functools import partial

import numpy as np

from leafledger.kernels.effects.axes import Axis, both_axes, find_runs
from leafledger.kernels.effects.curves import Curve
from leafledger.kernels.effects.sums import Carry, Moments, PairAxis, RowAxis, RowTables, choose_edges
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.slices.links import Link, predict
from leafledger.kernels.trees.paths import value_range

from ..display.text import count
from ..errors import UsageError
from ..methods.worker_memory import max_slice_rows
from .asked import AskedEffects
from .counted import Margins

MOST_STATES = 1 << 14  # of two features together, whose surface takes a pass over rows
ARRAYS = 4  # of a row's curves that are held at a time


def find_carry(link: Link | None) -> Carry | None:
    """Make the function from margins to predictions."""
    return None if link is None else partial(predict, link)


def _find_reaches(asked: AskedEffects, link: Link | None) -> np.ndarray:
    """Bound how far a row's curve can be from its mean, ``(axes, outputs)``: by the ranges of the trees that ask for the feature."""
    forest, n_outputs = asked.forest, len(asked.model.outputs)
    ensemble, trace, player = forest.ensemble, forest.trace, forest.player_of_node
    reach, low, high = np.zeros((len(asked.axes), n_outputs)), ensemble.base.copy(), ensemble.base.copy()
    for column in range(ensemble.value.shape[1]):
        least, most = value_range(ensemble, trace, column)
        for bound, values in ((low, least), (high, most)):
            np.add.at(bound, ensemble.output + column, values)
        for k, each in enumerate(asked.axes):
            has = np.bincount(trace.tree, (player == each.player) & (player >= 0), minlength=ensemble.root.size) > 0
            np.add.at(reach[k], (ensemble.output + column)[has], (most - least)[has])
    if link is None:
        return reach
    wide = np.ones(n_outputs) if link.joint else np.abs(predict(link, high) - predict(link, low))
    return np.where(reach > 0, np.minimum(wide, 1e300), 0.0)


def take_together(asked: AskedEffects, link: Link | None) -> list[Axis]:
    """Make one axis of every pair whose surface takes a pass over rows: of predictions. Refuse pairs of too many states."""
    found = list[Axis]()
    for a, b in asked.pairs if link is not None else ():
        both = both_axes(asked.axes[a].axis, asked.axes[b].axis)
        if both.n_states > MOST_STATES:
            raise UsageError(
                f"{asked.axes[a].name!r} and {asked.axes[b].name!r} have {count(both.n_states, 'state')} together, of which every row has a "
                f"prediction; expected at most {MOST_STATES:,}: their margins take no such pass"
            )
        found.append(both)
    return found


def prepare_rows(asked: AskedEffects, margins: Margins, link: Link | None, n_intervals: int) -> RowTables:
    """Make the tables of a pass over the background's rows."""
    runs, reaches, base = asked.find_runs(), _find_reaches(asked, link), asked.forest.ensemble.base
    axes = []
    for each, own, curve, share, reach in zip(asked.axes, runs, margins.curves, margins.shares, reaches, strict=True):
        edges = choose_edges(share[:-1], n_intervals) if each.ordered and n_intervals else np.zeros(0, np.int64)
        axes.append(RowAxis(each.axis, own, share, curve.value, edges, reach))
    surfaces = tuple(PairAxis(both, find_runs(asked.nodes, both)) for both in take_together(asked, link))
    tables = RowTables(asked.bins, asked.nodes, base, tuple(axes), np.array(asked.pairs, np.int64).reshape(-1, 2), surfaces)
    return frozen(tables)


def slice_rows(tables: RowTables) -> int:
    """Choose how many rows are passed over at a time."""
    most = max([each.axis.n_states for each in tables.axes] + [each.axis.n_states for each in tables.surfaces])
    return max_slice_rows(ARRAYS * tables.base.size * (most + 1) + 2 * tables.bins.column.size)


def as_curve(found: Moments, shape: tuple[int, ...]) -> Curve:
    """Turn moments into means and their standard errors, of the rows as a sample."""
    n = float(found.n[0])
    error = np.sqrt(found.spread / (n * (n - 1))) if n > 1 else np.full(found.spread.shape, np.nan)
    return Curve(found.mean.reshape(-1, *shape), error.reshape(-1, *shape))
