"""Methods that rank by gradient ascent, and that draw insertion and deletion curves."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import game_values
from ..arrays.ordering import SCORE
from ..errors import InvalidParameters
from ..jit.decorator import count_bytes
from ..marginal.coalitions import everyone
from ..marginal.game import MarginalGame
from ..marginal.presence import PresenceTables, lay_out_presence
from ..marginal.query import MarginalUse
from ..method.method import Games, Method, Parameters, Phi
from ..method.notation import choose_method, read_method
from ..method.open_parameters import Tuning, find_open
from ..method.parameters import choice, number, whole
from ..path_dependent.games import play
from ..reductions.reduction import MOMENTS
from ..reductions.summary import ABOUT_STEPS, IMPORTANCE, Labels, Subject, Summary, Table, tabulate_moments
from ..semivalues.methods import OF_PLAYERS, absent_others
from ..slices.buffers import Buffers
from ..trees.forest import Forest
from .curves import KINDS, prepare_curves
from .ranked_curves import SCORES, PresentPlayers, RankedCurves, add_ranked_curves
from .ranker import MOST_STEPS, RankerTables, Trees, add_scores, lay_out_trees, prepare_ranker
from .ranks import rows_with_scores, summarize_ranks
from .rates import AUTO, RATE_ROWS, choose_rate

ADAM, ASCENT = "adam", "ascent"


def _summarize_path(name: str, label: Callable[[Subject], Labels], columns: tuple[str, ...], description: str) -> Summary:
    """Declare the summary of a method's path, step by step."""

    def tabulate(state: Any, subject: Subject) -> dict[str, Table]:
        moments = MOMENTS.finalize(state, np.arange(subject.n_steps), subject.n_steps)
        return tabulate_moments(name, {column: moments[column] for column in ABOUT_STEPS}, label(subject), subject)

    return Summary(
        name=name,
        reduction=MOMENTS,
        reads=lambda buffers: buffers.path,
        tabulate=tabulate,
        columns=("output", *columns, *ABOUT_STEPS),
        description=description,
    )


OBJECTIVE = _summarize_path(
    "objective", lambda subject: {"step": [step + 1 for step in range(subject.n_steps)]}, ("step",), "the ranker's objective, step by step"
)


def _label_points(subject: Subject) -> Labels:
    n_points = subject.n_steps // len(KINDS)
    return {"curve": [name for name in KINDS for _ in range(n_points)], "present": [*range(n_points)] * len(KINDS)}


CURVE_MEANS = _summarize_path("curves", _label_points, ("curve", "present"), "mean curves of insertion and deletion, point by point")
AREAS = summarize_ranks("areas", len(SCORES), "score", "mean ranks, mean areas under the curves, and where these are best")


def _attribute_ranker(buffers: Buffers, tables: RankerTables) -> None:
    add_scores(buffers.bins, tables, buffers.phi, buffers.path)


def _ascend(game: Trees | PresenceTables, given: Parameters) -> RankerTables:
    if given["rate"] == AUTO:
        raise InvalidParameters(f"rate is {AUTO!r}, but there are no rows to choose it by; expected a number")
    return prepare_ranker(game, given["steps"], given["rate"], given["optimizer"] == ADAM)


def _try_rate(given: Parameters) -> tuple[Method, Parameters] | None:
    return (RANKER, {**given, "rate": 1.0}) if given["rate"] == AUTO else None


RANKER = Method(
    name="ranker",
    meaning="scores that rank features so that those on top raise the margin and those at the bottom lower it; Banzhaf values after one step",
    games=Games(
        path_dependent=lambda forest, given: _ascend(lay_out_trees(play(forest, absent_others), forest), given),
        background=MarginalUse(views=(everyone,), tables=lambda game, given: _ascend(lay_out_presence(game), given), of_sets=True),
    ),
    kernel=_attribute_ranker,
    parameters=(
        whole("steps", 10, 1, MOST_STEPS, "gradients that are averaged"),
        number(
            "rate", 0.1, 0.0, math.inf, f"length of a step; with ascent of that of a gradient, in units of 1 / margin; {AUTO}: by rows", word=AUTO
        ),
        choice("optimizer", ADAM, (ADAM, ASCENT), "adam or ascent"),
    ),
    phi=Phi(n_steps=lambda given, _: given["steps"], linear=False),
    summaries=(IMPORTANCE, OBJECTIVE),
    tuning=Tuning("rate", RATE_ROWS, _try_rate, choose_rate, lambda given, rate: {**given, "rate": rate}),
)

RANKERS = {**OF_PLAYERS, RANKER.name: RANKER}  # methods that may rank: those with values of all players
AGAINST = {name: method.games.background for name, method in RANKERS.items() if isinstance(method.games.background, MarginalUse)}


# of str, a text that ``read_method`` reads
RANKING = choose_method("ranking", RANKERS, "method that ranks, with its parameters, as beta:4:1 or semivalue(atoms=0.25:1,0.75:1)")


def _number(method: Method) -> np.ndarray:
    """Return a method's number in RANKERS, ``(1,) int64``."""
    return np.array([list(RANKERS).index(method.name)])


def prepare_ranking(forest: Forest, ranking: str) -> tuple[np.ndarray, Any]:
    """Make the tables of the ranking method.

    Parameters
    ----------
    ranking : str
        a value of the parameter ``ranking``

    Returns
    -------
    ranker : (1,) int64
        which of RANKERS it is
    tables : NamedTuple
        that method's, of the path-dependent game

    Raises
    ------
    ValueError
        ``ranking`` is none of RANKERS, or gives it parameters that it does not take
    """
    method, given = read_method(ranking, RANKERS)
    return _number(method), method.games.path_dependent(forest, given)


def bound_ranking(forest: Forest) -> int:
    """Bound the bytes of the tables of whichever method ranks.

    Parameters
    ----------
    forest : Forest
        its players are ranked

    Returns
    -------
    int
        of ``prepare_ranking`` at most
    """
    defaults = {parameter.name: parameter.default for method in RANKERS.values() for parameter in method.parameters}
    given = defaults | {"atoms": ((0.5, 1.0),), "sizes": (1 / max(1, forest.n_all),) * forest.n_all}
    found = {name: count_bytes(method.games.path_dependent(forest, given)) for name, method in RANKERS.items()}
    return max(*found.values(), 2 * found[next(iter(RANKERS))])  # a semivalue of a signed measure has twice as many nodes as Shapley's


def score_players(buffers: Buffers, ranker: np.ndarray, tables: Any, n_players: int) -> np.ndarray:
    """Attribute the buffered rows by the ranking method.

    Parameters
    ----------
    buffers : Buffers
        with bins; its ``phi`` and ``path`` are left as they are
    ranker : (1,) int64
    tables : NamedTuple
        both as ``prepare_ranking`` returned them
    n_players : int
        players that some split asks for

    Returns
    -------
    scores : (outputs, n_players, n) float64, margin units
        padded rows too
    """
    outputs, _, n = buffers.phi.shape
    method = list(RANKERS.values())[ranker[0]]
    n_steps = int(tables.n_steps[0]) if isinstance(tables, RankerTables) else 0
    own = buffers._replace(phi=np.zeros((outputs, n_players, n)), path=np.zeros((outputs, n_steps, n)))
    method.kernel(own, tables)
    return own.phi


def _prepare_curves(forest: Forest, given: Parameters) -> RankedCurves:
    curves = prepare_curves(play(forest, game_values.shapley), forest.players, forest.n_all)
    return RankedCurves(curves, *prepare_ranking(forest, given["ranking"]))


def _prepare_marginal_curves(game: MarginalGame, given: Parameters) -> RankedCurves:
    present = PresentPlayers(lay_out_presence(game), game.forest.players.astype(np.int64))
    method, asked = read_method(given["ranking"], RANKERS)
    return RankedCurves(present, _number(method), AGAINST[method.name].tables(game, asked))


def _attribute_curves(buffers: Buffers, tables: RankedCurves) -> None:
    scores = score_players(buffers, tables.ranker, tables.of_ranker, tables.players.size)
    add_ranked_curves(buffers.bins, tables, scores, buffers.phi, buffers.path)


def _try_ranking(given: Parameters) -> tuple[Method, Parameters] | None:
    method, asked = read_method(given["ranking"], RANKERS)
    return find_open(method, asked)


def _fill_ranking(given: Parameters, rate: float) -> dict[str, Any]:
    _, asked = read_method(given["ranking"], RANKERS)
    return {**given, "ranking": ":".join((RANKER.name, *map(str, {**asked, "rate": rate}.values())))}


CURVES = Method(
    name="curves",
    meaning="a ranking by a method's values, the highest first, and the margin while features are added from its top, and from its bottom",
    games=Games(_prepare_curves, MarginalUse(views=(everyone, everyone), tables=_prepare_marginal_curves, of_sets=True)),
    kernel=_attribute_curves,
    parameters=(RANKING,),
    phi=Phi(rows=rows_with_scores(len(SCORES)), column="rank", scores=SCORES, ranks=SCORE, n_steps=lambda _, n: len(KINDS) * (n + 1), linear=False),
    summaries=(AREAS, CURVE_MEANS),
    tuning=Tuning("rate", RATE_ROWS, _try_ranking, choose_rate, _fill_ranking),
)

METHODS = (RANKER, CURVES)
