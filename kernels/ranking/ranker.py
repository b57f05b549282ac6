"""TreeGrad-Ranker: feature scores by gradient ascent on the ensemble's game (Li, Yu and Low 2026, Algorithms 2 and 10).

A set S of features that raises the margin when present and lowers it when absent maximises (f(S) - f(all others)) / 2. Relaxed to points z of
probabilities of presence, the objective is ascended along its gradient g from z = 1/2; scores are the mean of the gradients on the path. After one
step they are the Banzhaf values; after more they are no longer linear in the model, so trees are summed in every step. Every output has its own path.

Two ways of ascent: z + rate g, with a rate in units of 1 / margin, and ADAM (Kingma and Ba 2015), whose steps have about the length ``rate`` in any
unit. Its denominator is sqrt(v) + 1e-8 as there and in the authors' code; with sqrt(v + 1e-8), as Algorithm 10 prints, models of small margins hardly
move.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..jit.decorator import frozen, jit
from ..jit.lanes import zeros
from ..marginal import presence
from ..marginal.presence import PresenceTables
from ..path_dependent.games import Game
from ..path_dependent.multilinear import GRADIENT_ROWS, INSIDE, GradientTables, make_stacks, prepare_gradient, take_batch, walk_one, walk_two
from ..trees.forest import Forest
from . import polynomials
from .polynomials import PolynomialTables, add_polynomials, prepare_polynomials

MOST_STEPS = 10_000
MOMENTUM, MEMORY, NEGLIGIBLE = 0.9, 0.999, 1e-8  # of ADAM: beta_1, beta_2 and epsilon'
# ``evaluate(row, k, z, g, first)`` adds output k's gradient for the rows from ``row`` on to g, at z as in ``_step``, and returns their objective,
# which is optional at ``first``, where z = 1/2.
Evaluate = Callable[[int, int, Any, Any, bool], Any]


class Trees(NamedTuple):
    """Trees of the path-dependent game."""

    gradient: GradientTables
    polynomials: PolynomialTables  # of all trees, if all can be looked up; then none is walked


class RankerTables(NamedTuple):
    """A game, and the parameters of the ascent."""

    game: Trees | PresenceTables
    n_steps: np.ndarray  # (1,) int64
    rate: np.ndarray  # (1,) float64, length of a step
    adaptive: np.ndarray  # (1,) bool, use ADAM


def prepare_ranker(game: Trees | PresenceTables, n_steps: int, rate: float, adaptive: bool) -> RankerTables:
    """Set up the ascent of ``add_scores``."""
    return frozen(RankerTables(game, np.array([n_steps], np.int64), np.array([rate]), np.array([adaptive])))


def lay_out_trees(game: Game, forest: Forest) -> Trees:
    """Lay out the trees of a game on the forest."""
    return Trees(prepare_gradient(game), prepare_polynomials(forest))


@jit
def _step(z: np.ndarray, g: np.ndarray, mean: np.ndarray, square: np.ndarray, t: int, rate: float, adaptive: bool) -> None:
    """Move z along the gradient of step t = 1, 2, …, arrays ``(players * GRADIENT_ROWS,)``; ADAM's running means are updated."""
    if adaptive:
        faster, slower = rate / (1 - MOMENTUM**t), 1 / (1 - MEMORY**t)
        for i in range(z.size):
            mean[i] = MOMENTUM * mean[i] + (1 - MOMENTUM) * g[i]
            square[i] = MEMORY * square[i] + (1 - MEMORY) * g[i] * g[i]
            z[i] += faster * mean[i] / (np.sqrt(slower * square[i]) + NEGLIGIBLE)
    else:
        for i in range(z.size):
            z[i] += rate * g[i]
    for i in range(z.size):
        z[i] = min(max(z[i], INSIDE), 1 - INSIDE)


def _walk(bins: np.ndarray, trees: GradientTables) -> Evaluate:
    """Return an evaluation by walks of every tree at z and 1 - z."""
    stacks, margin, taken = make_stacks(bins, trees), zeros(2 * GRADIENT_ROWS), [-1]

    def evaluate(row: int, k: int, z: np.ndarray, g: np.ndarray, first: bool) -> Any:
        if taken[0] != row:
            take_batch(bins, trees, row, stacks[0])
            taken[0] = row
        if first:  # z equals 1 - z
            walk_one(stacks, trees, k, z, g, margin)
        else:
            walk_two(stacks, trees, k, z, g, margin)
        return (margin[:GRADIENT_ROWS] - margin[GRADIENT_ROWS:]) / 2

    return evaluate


def _look_up(bins: np.ndarray, tables: PolynomialTables, n_players: int) -> Evaluate:
    """Return an evaluation by polynomials in z - 1/2."""
    n, h, room = bins.shape[1], zeros(polynomials.ROWS), zeros(polynomials.ROOM)
    x = zeros(n_players * polynomials.ROWS)

    def evaluate(row: int, k: int, z: np.ndarray, g: np.ndarray, first: bool) -> Any:  # noqa: ARG001 - the shape of an evaluation
        h[:] = 0.0
        x[:] = z - 0.5
        add_polynomials(bins, row, min(polynomials.ROWS, n - row), tables, k, x, g, h, room)
        return h

    return evaluate


def _play(bins: np.ndarray, tables: PresenceTables) -> Evaluate:
    """Return an evaluation by the leaves of the marginal game at z and 1 - z."""
    codes, taken = np.empty((tables.first.size, presence.ROWS), np.int64), [-1]

    def evaluate(row: int, k: int, z: np.ndarray, g: np.ndarray, first: bool) -> Any:  # noqa: ARG001 - the shape of an evaluation
        if taken[0] != row:
            presence.read_codes(bins, tables, row, codes)
            taken[0] = row
        margin = np.zeros((2, presence.ROWS))
        presence.add_gradient(tables, codes, k, z, 0.5, g, margin[0])
        presence.add_gradient(tables, codes, k, 1.0 - z, 0.5, g, margin[1])
        return margin[0] - margin[1]

    return evaluate


def _climb(tables: RankerTables, evaluate: Evaluate, rows: int, phi: np.ndarray, path: np.ndarray) -> None:
    """Ascend ``rows`` rows at a time. Not jitted: a kernel compiled inside another may round differently."""
    n_steps, (outputs, n_players, n) = int(tables.n_steps[0]), phi.shape
    z, g, total, mean, square = (zeros(n_players * rows) for _ in range(5))
    for row in range(0, n, rows):
        size = min(rows, n - row)
        for k in range(outputs):
            z[:] = 0.5
            for sums in (total, mean, square):
                sums[:] = 0.0
            for t in range(n_steps):
                g[:] = 0.0
                objective = evaluate(row, k, z, g, t == 0)
                if t:
                    path[k, t, row : row + size] = objective[:size]
                total += g
                if t + 1 < n_steps:
                    _step(z, g, mean, square, t + 1, tables.rate[0], tables.adaptive[0])
            phi[k, :, row : row + size] += total.reshape(n_players, rows)[:, :size] / n_steps


def add_scores(bins: np.ndarray, tables: RankerTables, phi: np.ndarray, path: np.ndarray) -> None:
    """Add every row's scores to ``phi``, and write the objective's path (Li, Yu and Low 2026, Algorithms 2 and 10)."""
    path[:, :1] = 0.0
    if isinstance(tables.game, PresenceTables):
        _climb(tables, _play(bins, tables.game), presence.ROWS, phi, path)
    elif tables.game.polynomials.looked_up.first.size:
        _climb(tables, _look_up(bins, tables.game.polynomials, phi.shape[1]), polynomials.ROWS, phi, path)
    else:
        _climb(tables, _walk(bins, tables.game.gradient), GRADIENT_ROWS, phi, path)
