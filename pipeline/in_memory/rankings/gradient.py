"""Gradients of the multilinear extension in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafledger.kernels import game_values
from leafledger.kernels.marginal.presence import add_expectations
from leafledger.kernels.path_dependent.games import play
from leafledger.kernels.path_dependent.multilinear import add_gradients, prepare_gradient

from ...dataset.columns.partition import Partition
from ...display.text import count
from ...errors import UsageError
from ...methods.tables import refused
from .played_rows import keep_output, play_rows, read_numbers


@dataclass(frozen=True, slots=True)
class Gradient:
    """The margin that is expected where every player is present with a probability of its own, and its derivatives.

    Attributes
    ----------
    phi : (n, outputs, players) float64
        Derivatives by every player's probability, margin units; 0 for players in no split.
    margin : (n, outputs) float64
        The expected margin.
    output : (n,) str, or None
        Which of the model's outputs they are of, where each row has one of its own.
    """

    phi: np.ndarray
    margin: np.ndarray
    output: np.ndarray | None = None

    def __repr__(self) -> str:
        n, outputs, n_players = self.phi.shape
        return f"Gradient({count(n, 'row')}, {count(outputs, 'output')}, {count(n_players, 'player')})"


def gradient(
    model: Any,
    rows: Any,
    z: Any = 0.5,
    *,
    partition: Partition | None = None,
    background: Any = None,
    allow_unseen: bool = False,
    output: str | int | None = None,
) -> Gradient:
    """Differentiate the game's multilinear extension, of the whole ensemble, at a point of every row's own.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        n rows, as `attribute` takes them.
    z : array or float
        Probabilities that players are present, each independently: (n, outputs, players), or what NumPy spreads to it. Players are all features, or
        groups; what pandas has names of goes by them. At 0.5 everywhere, derivatives are Banzhaf values.
    partition : mapping, str or path, optional
        Groups of features, as `attribute` takes them.
    background : data frame, Arrow table, array or "model", optional
        As `attribute` takes it: of the marginal game. By default of the path-dependent game.
    allow_unseen : bool
        Take rows, and a background, of which the model knows hardly any category of some feature; by default they are refused.
    output : str or int, optional
        As `attribute` takes it. With "predicted" or "other", of each row's own class.

    Returns
    -------
    Gradient
        Derivatives by every probability and the margin that is expected, margin units.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. UsageError where probabilities are not numbers between 0 and 1 of that shape.
    """
    found = play_rows(model, rows, partition, background, output, allow_unseen)
    point = read_numbers(z, "probabilities", found.shape, found.players)
    if not ((point >= 0) & (point <= 1)).all():
        raise UsageError("probabilities are expected to lie between 0 and 1")
    if background is None:
        with refused():
            tables: Any = prepare_gradient(play(found.forest, game_values.shapley))
        add: Callable[..., None] = add_gradients
    else:
        tables, add = found.prepare("ranker").method.game, add_expectations
    phi, margin = np.zeros(found.shape), np.zeros(found.shape[:2])

    def work(part: slice, bins: np.ndarray) -> None:
        n, at = part.stop - part.start, found.to_kernel(point[part], bins.shape[1])
        derivatives, expected = np.zeros(at.shape), np.zeros((at.shape[0], at.shape[2]))
        add(bins, tables, at, derivatives, expected)
        phi[part, :, found.forest.players] = derivatives[:, :, :n].transpose(2, 0, 1)
        margin[part] = expected[:, :n].T

    found.spread(work, 3 * found.shape[1] * found.forest.n_players)
    chosen = found.choose_outputs()
    return Gradient(keep_output(phi, chosen), keep_output(margin, chosen), found.name_outputs(chosen))
