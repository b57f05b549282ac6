"""How much of the game sets of features up to a size explain, estimated on random orders of features."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from leafledger.kernels.ranking.ranked_curves import draw_curves
from leafledger.kernels.set_indices import Sets

from ...arguments.readers import read_number
from ...dataset.columns.partition import Partition
from ...errors import UsageError
from ...methods.interaction_lists import check_order
from .curves import play_curves
from .played_rows import keep_output, play_rows

FAITHFUL = "FSII"  # the sets' sum that comes nearest to the game
FIRST_SCORE = 0.5  # scores are from here on: players in no split have 0, and come last


@dataclass(frozen=True, slots=True)
class ExplainedShare:
    """How much of the variance of the game, over coalitions of features, the best sum over small sets explains.

    Attributes
    ----------
    share : (outputs,) float64
        At most 1, which is everything; 0 is as much as the mean explains. Of all rows together. NaN where the game does not vary.
    error : (outputs,) float64
        Its standard error, by the rows as a sample.
    """

    share: np.ndarray
    error: np.ndarray


def _divide_means(missed: np.ndarray, varied: np.ndarray) -> ExplainedShare:
    """Estimate the share from what each row misses and varies, ``(n, outputs)``: a quotient of means, its error by the delta method."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(varied.mean(axis=0) > 0, missed.mean(axis=0) / varied.mean(axis=0), np.nan)
        error = (missed - quotient * varied).std(axis=0, ddof=1) / np.sqrt(len(missed)) / varied.mean(axis=0)
    return ExplainedShare(1 - quotient, error)


def explained_share(
    model: Any,
    rows: Any,
    order: int,
    *,
    n_orderings: int = 64,
    seed: int = 0,
    partition: Partition | None = None,
    background: Any = None,
    allow_unseen: bool = False,
    output: str | int | None = None,
) -> ExplainedShare:
    """Estimate how much of the rows' games sets of up to ``order`` features explain: where it is near 1, larger sets say nothing more.

    A row's game has a value for every coalition, the expected margin where only its features are present. The sum over sets that comes nearest to it
    is that of index FSII (Tsai, Yeh and Ravikumar 2023), in squares weighted as for Shapley values. Those squares are estimated without bias: every
    row is given random orders of its features, and of each order all coalitions of its first features count, each size by its weight. Features that
    no split asks for do not count.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        n rows, as `attribute` takes them, at least two; some hundreds of a data set will do.
    order : int
        Largest size of a set, from 1, as for `attribute`.
    n_orderings : int
        Random orders of the features for every row, at least 2.
    seed : int
        Of the orders, at least 0; with the same one all numbers are the same, and shares of different orders are of the same coalitions.
    partition, background, allow_unseen, output : optional
        As for `curves`: groups are players, and absent features take the values of the background's rows, where one is given.

    Returns
    -------
    ExplainedShare

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    sets = Sets(read_number("order", order, 1), FAITHFUL)
    times, first_seed = read_number("n_orderings", n_orderings, 2), read_number("seed", seed, 0)
    found = play_rows(model, rows, partition, background, output, allow_unseen)
    check_order(sets, found.model, found.groups, False)
    (n, outputs, n_all), players = found.shape, found.forest.players
    if n < 2:
        raise UsageError(f"rows are {n}, expected at least 2, from which the error of the share is measured")
    prepared, game, m = found.prepare("shapley", sets), play_curves(found), players.size
    members = np.where(prepared.pairs.players < 0, m, np.searchsorted(players, prepared.pairs.players))
    sizes = np.arange(1, m)
    weights = 1 / (sizes * (m - sizes))
    weights /= weights.sum()
    missed, squares, means, products = (np.zeros((n, outputs)) for _ in range(4))

    def work(part: slice, bins: np.ndarray) -> None:
        some, n_padded = part.stop - part.start, bins.shape[1]
        interactions = np.zeros((outputs, len(members), n_padded))
        prepared.pairs.tables.add(bins, interactions, some)
        for number in range(times):
            draws = np.random.PCG64([first_seed, number])
            draws.advance(part.start * m)  # a row's orders do not depend on its part
            scores = np.full((n_padded, m), FIRST_SCORE)
            scores[:some] += np.random.Generator(draws).random((some, m))
            spread = np.ascontiguousarray(np.broadcast_to(scores.T, (outputs, m, n_padded)))
            values = draw_curves(bins, game, players, n_all, spread)[1][:, 0, :some, 1:m] - prepared.base[:, None, None]
            place = np.zeros((some, m + 1), np.int64)  # how many are there when a player has come; nobody is always there
            np.put_along_axis(place, np.argsort(-scores[:some], axis=1), np.arange(1, m + 1)[None], axis=1)
            complete = place[:, members].max(axis=2) + (m + 1) * np.arange(some)[:, None]
            joined = [np.bincount(complete.reshape(-1), each[:, :some].T.reshape(-1), some * (m + 1)) for each in interactions]
            fitted = np.cumsum(np.reshape(joined, (outputs, some, m + 1)), axis=2)[:, :, 1:m]
            mean = (values @ weights).T
            missed[part] += ((values - fitted) ** 2 @ weights).T / times
            squares[part] += (values**2 @ weights).T / times
            means[part] += mean
            products[part] += mean**2

    found.spread(work, outputs * (len(members) + 6 * (n_all + 1)))
    varied = squares - (means**2 - products) / (times * (times - 1))  # the mean's square from different orders, so that it has no bias
    chosen = found.choose_outputs()
    return _divide_means(keep_output(missed, chosen), keep_output(varied, chosen))
