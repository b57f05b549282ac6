"""Insertion and deletion curves of rankings in memory, and margins of single coalitions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafledger.kernels.ranking.curves import CurveTables
from leafledger.kernels.ranking.ranked_curves import PresentPlayers, draw_curves, find_best

from ...arguments.readers import read_names
from ...dataset.columns.names import name_at
from ...dataset.columns.partition import Partition
from ...display.nearest import did_you_mean
from ...display.text import count
from ...errors import UsageError
from .played_rows import PlayedRows, keep_output, play_rows, read_numbers

RANKS_ANYWAY = "banzhaf"  # tables of curves come with those of a method that ranks, here the smallest ones


@dataclass(frozen=True, slots=True)
class Curves:
    """Margins when features of a ranking are present: those on top (insertion), or those at its bottom (deletion), from none to all.

    The higher insertion's areas, and the lower deletion's, the better is the ranking.

    Attributes
    ----------
    insertion, deletion : (n, outputs, players + 1) float64
        Expected margins, margin units, with 0, 1, … players present.
    insertion_area, deletion_area : (n, outputs) float64
        Means of all points but the first, margin units.
    positive_features, negative_features : (n, outputs) int64
        How many players on top of the ranking raise the margin most, and how many at its bottom lower it most; 0 where every number of them does the
        opposite.
    positive_margin, negative_margin : (n, outputs) float64
        The margins with these, margin units.
    output : (n,) str, or None
        Which of the model's outputs a row's curves are of, where each has one of its own.
    """

    insertion: np.ndarray
    deletion: np.ndarray
    insertion_area: np.ndarray
    deletion_area: np.ndarray
    positive_features: np.ndarray
    positive_margin: np.ndarray
    negative_features: np.ndarray
    negative_margin: np.ndarray
    output: np.ndarray | None = None

    def __repr__(self) -> str:
        n, outputs, points = self.insertion.shape
        return f"Curves({count(n, 'row')}, {count(outputs, 'output')}, {count(points, 'point')})"


def play_curves(found: PlayedRows) -> CurveTables | PresentPlayers:
    """Make the tables of the game."""
    return found.prepare("curves", ranking=RANKS_ANYWAY).method.game


def curves(
    model: Any,
    rows: Any,
    scores: Any,
    *,
    partition: Partition | None = None,
    background: Any = None,
    allow_unseen: bool = False,
    output: str | int | None = None,
) -> Curves:
    """Measure rankings by any scores with insertion and deletion curves, in the game of the whole ensemble.

    A ranking is by descending score; equal scores keep the order of features.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        n rows, as `attribute` takes them.
    scores : array or float
        (n, outputs, players), or what NumPy spreads to it, such as ``attribute(…).phi``. Finite, in any unit, and 0 where a player is in no split.
        Players are all features, or groups; what pandas has names of goes by them.
    partition : mapping, str or path, optional
        Groups of features, as `attribute` takes them.
    background : data frame, Arrow table, array or "model", optional
        As `attribute` takes it: curves of the marginal game. By default of the path-dependent game.
    allow_unseen : bool
        Take rows, and a background, of which the model knows hardly any category of some feature; by default they are refused.
    output : str or int, optional
        As `attribute` takes it. With "predicted" or "other", curves are of each row's own class.

    Returns
    -------
    Curves

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. UsageError where scores are not such numbers.
    """
    found = play_rows(model, rows, partition, background, output, allow_unseen)
    (n, outputs, n_all), given = found.shape, read_numbers(scores, "scores", found.shape, found.players)
    if not np.isfinite(given).all():
        raise UsageError("scores are expected to be finite")
    if given[:, :, np.setdiff1d(np.arange(n_all), found.forest.players)].any():
        raise UsageError("scores are expected to be 0 for features that no split asks for")
    game, points, areas = play_curves(found), np.zeros((outputs, 2, n, n_all + 1)), np.zeros((outputs, 2, n))

    def work(part: slice, bins: np.ndarray) -> None:
        some = found.to_kernel(given[part], bins.shape[1])
        area, curve = draw_curves(bins, game, found.forest.players, n_all, some)
        points[:, :, part], areas[:, :, part] = curve[:, :, : part.stop - part.start], area[:, :, : part.stop - part.start]

    found.spread(work, 6 * outputs * (n_all + 1))
    chosen, best = found.choose_outputs(), find_best(points)
    insertion, deletion = (keep_output(points[:, kind].swapaxes(0, 1), chosen) for kind in range(2))
    sizes = {name: keep_output(best[:, j].T, chosen) for j, name in ((0, "positive_features"), (2, "negative_features"))}
    return Curves(
        insertion,
        deletion,
        insertion_area=keep_output(areas[:, 0].T, chosen),
        deletion_area=keep_output(areas[:, 1].T, chosen),
        positive_margin=keep_output(best[:, 1].T, chosen),
        negative_margin=keep_output(best[:, 3].T, chosen),
        output=found.name_outputs(chosen),
        **{name: size.astype(np.int64) for name, size in sizes.items()},
    )


def _members(coalitions: Any, players: Sequence[str]) -> np.ndarray:
    """Read coalitions as ``(coalitions, players) bool``."""
    if isinstance(coalitions, np.ndarray) and coalitions.dtype == bool:
        if coalitions.ndim != 2 or coalitions.shape[1] != len(players):
            raise UsageError(f"coalitions have shape {coalitions.shape}, expected a line for each, and in it {len(players)} players")
        return coalitions
    if isinstance(coalitions, str) or not isinstance(coalitions, Iterable):
        raise UsageError("coalitions are no list of lists of features or groups, expected one, or an array of true and false")
    place, listed = {name: j for j, name in enumerate(players)}, list(coalitions)
    members = np.zeros((len(listed), len(players)), bool)
    for line, given in enumerate(listed):
        several = isinstance(given, Iterable) and not isinstance(given, str)
        names = [name_at(each, place, "coalitions") for each in given] if several else given
        if not several:
            raise UsageError(f"coalition {line} is {given!r}, expected a list of features or groups")
        for name in read_names("coalitions", names, "names of features or groups, or their positions") if names else ():
            if name not in place:
                raise UsageError(f"coalitions name {name!r}, which is no feature or group of the model{did_you_mean(name, players)}")
            members[line, place[name]] = True
    return members


def coalition_values(
    model: Any,
    rows: Any,
    coalitions: Any,
    *,
    partition: Partition | None = None,
    background: Any = None,
    allow_unseen: bool = False,
    output: str | int | None = None,
) -> np.ndarray:
    """Compute the game itself: every row's expected margin when the players of a coalition are present and all others absent.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        n rows, as `attribute` takes them.
    coalitions : sequence of sequence of str or int, or array of bool
        Who is present, features or groups by name or position; an empty one is nobody. Or (coalitions, players), true where a player is present.
    partition, background, allow_unseen, output : optional
        As for `curves`: groups are players, and absent features take the values of the background's rows, where one is given.

    Returns
    -------
    (n, outputs, coalitions) float64
        Margin units.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    found = play_rows(model, rows, partition, background, output, allow_unseen)
    (n, outputs, n_all), members = found.shape, _members(coalitions, found.players)
    game, players, values = play_curves(found), found.forest.players, np.zeros((n, outputs, len(members)))

    def work(part: slice, bins: np.ndarray) -> None:
        for c, there in enumerate(members[:, players]):
            some = np.broadcast_to(there[:, None].astype(np.float64), (outputs, players.size, bins.shape[1]))
            _, curve = draw_curves(bins, game, players, n_all, np.ascontiguousarray(some))
            values[part, :, c] = curve[:, 0, : part.stop - part.start, np.count_nonzero(there)].T

    found.spread(work, 6 * outputs * (n_all + 1))
    return keep_output(values, found.choose_outputs())
