"""The methods by name: each an algorithm that prepares tables once per model, and the kernel that reads them for every batch."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import binom

from . import game_values
from .game_values import GameValue
from .marginal.coalitions import Views, each_group, everyone, whole_groups
from .marginal.game import Levels, MarginalGame
from .parameters import InvalidParameters, Parameter, choice, number, numbers, points, whole
from .path_dependent.games import play, play_owen
from .path_dependent.probabilistic import add_probabilistic, prepare_probabilistic
from .prediction_gap.noise import NOISES, Measured
from .prediction_gap.rankings import EMPIRICAL, ERROR, NO, PGI2, YES, RankedCurves, add_gaps, add_greedy, add_ranked_curves, prepare_rankings, rows_of
from .prediction_gap.tables import BUDGET
from .r2.qshap import add_losses, prepare_qshap
from .ranking.curves import KINDS, prepare_curves
from .ranking.ranker import MOST_STEPS, add_scores, prepare_ranker
from .semivalues.tables import SemivalueTables, add_semivalues, no_semivalues, prepare_semivalue
from .semivalues.two_step import add_two_step, share_equally
from .trees.forest import Forest
from .trees.paths import trace

ADAM, ASCENT = "adam", "ascent"
Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Method:
    """An algorithm of attributions.

    ``prepare(forest, parameters)`` returns a NamedTuple of arrays; ``kernel(bins, tables, phi)`` adds into ``phi (outputs, rows, n) float64``, whose
    rows are the forest's ``rows``: players, or features where not ``by_player``. ``marginal(game, parameters)`` returns tables of the same type for
    the marginal game, in which units are seen by ``views``; a method without views has none. ``perturbed(forest, parameters, measured)`` returns
    tables of the same type where rows are perturbed by what was measured of a background. Where ``additive``, phi sums to margin minus base
    value on every row. ``value`` turns parameters into the game value whose interactions can be asked for. Where a method has a ``path`` of so many
    steps, by its parameters and the number of players, ``kernel(bins, tables, phi, path)`` writes ``path (outputs, steps, n) float64`` too.
    ``reductions`` names the summaries a run keeps. Where ``labelled``, rows have labels, which the kernel takes as well: ``kernel(bins, tables, phi,
    label, residual, remainder)``, see ``qshap.add_losses``. A method that ``reads_values`` is called as ``kernel(values, bins, tables, phi)``, with
    values as binning left them. ``column`` is what parts call phi; the last rows of phi may be no player's but ``scores``, with names of their own,
    and where ``whole`` all others hold whole numbers.
    """

    name: str
    meaning: str
    prepare: Callable[[Forest, Parameters], NamedTuple]
    kernel: Callable[..., None]
    additive: bool
    parameters: tuple[Parameter, ...] = ()
    value: Callable[[Parameters], GameValue] | None = None
    by_player: bool = True
    rows: Callable[[Forest], Any] = lambda forest: forest.players
    views: tuple[Views, ...] = ()
    marginal: Callable[[MarginalGame, Parameters], NamedTuple] | None = None
    perturbed: Callable[[Forest, Parameters, Measured], NamedTuple] | None = None
    path: Callable[[Parameters, int], int] | None = None
    reductions: tuple[str, ...] = ("importance",)
    labelled: bool = False
    column: str = "phi"
    reads_values: bool = False
    scores: tuple[str, ...] = ()
    whole: bool = False


def _against(game: MarginalGame, views: Views, levels: Levels, n_rows: int) -> SemivalueTables:
    """Tables of a game against a background, where nothing is walked."""
    looked_up, subsets, patterns = game.play(views, levels, n_rows)
    return no_semivalues(game.forest)._replace(looked_up=looked_up, subsets=subsets, patterns=patterns)


def _alone(n_players: int) -> game_values.Quadrature:
    """Others never come."""
    return game_values.banzhaf(n_players, 0.0)


def _semivalue(name: str, meaning: str, value: Callable[[Parameters], GameValue], additive: bool = False, parameters: tuple[Parameter, ...] = ()):
    """A method whose value is a quadrature of the game."""
    return Method(
        name=name,
        meaning=meaning,
        prepare=lambda forest, given: prepare_semivalue(play(forest, value(given)), forest),
        kernel=add_semivalues,
        additive=additive,
        parameters=parameters,
        value=value,
        views=(everyone,),
        marginal=lambda game, given: _against(game, everyone, Levels(None, value(given)), game.forest.n_players),
    )


def _measured(given: Parameters) -> GameValue:
    if not given["atoms"] and not given["density"]:
        raise InvalidParameters("method 'semivalue' needs parameter 'atoms' or 'density'")

    def value(n_players: int) -> game_values.Quadrature:
        parts = [np.array(given["atoms"], float).reshape(-1, 2)]
        if given["density"]:
            spread = game_values.density_atoms if callable(given["density"]) else game_values.polyline_atoms
            parts.append(spread(n_players, given["density"]))
        return game_values.measure(n_players, np.concatenate(parts))

    return value


def _prepare_probabilistic(forest: Forest, given: Parameters) -> NamedTuple:
    if bool(given["sizes"]) == bool(given["weights"]):
        raise InvalidParameters("method 'probabilistic' needs parameter 'sizes' or 'weights', and not both")
    name = "sizes" if given["sizes"] else "weights"
    sizes = np.array(given[name])
    if sizes.size != forest.n_all:
        raise InvalidParameters(f"parameter {name!r} has {sizes.size} numbers, expected one for each of {forest.n_all} players")
    if name == "weights":
        with np.errstate(invalid="ignore"):
            sizes = sizes * binom(forest.n_all - 1, np.arange(forest.n_all))
        if not np.isfinite(sizes).all():
            raise InvalidParameters(f"parameter 'weights' overflows: there are too many coalitions of {forest.n_all} players; give 'sizes'")
    traced = trace(forest.ensemble, forest.player_of_node, forest.n_players)
    return prepare_probabilistic(forest.ensemble, forest.splits, traced, forest.player_of_node, sizes)


RANKERS = ("shapley", "banzhaf", "beta", "ranker")  # methods that rank
BY_SIZE = RANKERS[:3]  # and those whose values have a size
PERTURBED = (
    choice("noise", "normal", (*(noise.name for noise in NOISES), EMPIRICAL), "what is added to numeric features; empirical draws them anew instead"),
    numbers("scale", "standard deviation of the noise, or one for every feature; 1 by default; with a background in the features' own"),
    number("budget", BUDGET, 0.0, math.inf, "pairs of leaves that may be looked at for a row", closed=True),
    choice("resample", YES, (YES, NO), "categories and groups are drawn from the background; without one they stay"),
    choice("approximate", NO, (NO, YES), "beyond the budget, PGI² is estimated by quasi-Monte Carlo, with a standard error"),
    whole("seed", 0, 0, np.iinfo(np.int32).max, "of its points"),
)


def _read_ranking(ranking: str) -> tuple[str, dict[str, Any]]:
    """A method, and its parameters, which follow its name in their order after colons."""
    name, *values = ranking.split(":")
    known = METHODS[name].parameters
    if len(values) > len(known):
        raise ValueError(f"expected at most {len(known)} parameters: {':'.join((name, *(parameter.name for parameter in known)))}")
    given = {parameter.name: parameter.default for parameter in known}
    for parameter, value in zip(known, values, strict=False):
        try:
            given[parameter.name] = parameter.read(value)
        except ValueError as error:
            raise ValueError(f"{error} for {parameter.name!r}") from None
    return name, given


def _ranking(names: tuple[str, ...]) -> Parameter:
    """One of some methods that rank."""

    def read(given: Any) -> str:
        if not isinstance(given, str) or given.split(":")[0] not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        _read_ranking(given)
        return given

    return Parameter("ranking", names[0], read, "method that ranks, its parameters after colons, as beta:4:1")


def _prepare_ranker(forest: Forest, ranking: str) -> tuple[int, NamedTuple]:
    """Which of RANKERS ranks, and its tables."""
    name, given = _read_ranking(ranking)
    return RANKERS.index(name), METHODS[name].prepare(forest, given)


def _scores(number: int) -> Callable[[Any, Any, Any], None]:
    """The kernel of one of RANKERS, without the way that it goes."""
    ranker = METHODS[RANKERS[number]]
    if ranker.path is None:
        return ranker.kernel
    return lambda bins, tables, phi: ranker.kernel(bins, tables, phi, np.zeros((phi.shape[0], int(tables.n_steps[0]), phi.shape[2])))


def _prepare_gap(forest: Forest, given: Parameters, measured: Measured | None = None) -> NamedTuple:
    ranker, of_ranker = _prepare_ranker(forest, given["ranking"])
    return prepare_rankings(forest, given, measured, ranker=ranker, of_ranker=of_ranker, top=forest.n_all, passes=1)


def _add_gaps(values, bins, tables, phi) -> None:
    add_gaps(values, bins, tables, phi, _scores(tables.ranker[0]))


def _prepare_curves(forest: Forest, given: Parameters) -> NamedTuple:
    ranker, of_ranker = _prepare_ranker(forest, given["ranking"])
    return RankedCurves(prepare_curves(play(forest, game_values.shapley), forest.players, forest.n_all), np.array([ranker]), of_ranker)


def _add_curves(bins, tables, phi, path) -> None:
    add_ranked_curves(bins, tables, phi, path, _scores(tables.ranker[0]))


def _prepare_greedy(forest: Forest, given: Parameters, measured: Measured | None = None) -> NamedTuple:
    top = min(given["top"] or forest.n_all, forest.n_all)
    return prepare_rankings(forest, given, measured, ranker=0, of_ranker=np.zeros(0), top=top, passes=max(1, min(top, forest.n_players)))


def _perturbing(name: str, meaning: str, prepare: Callable[..., NamedTuple], kernel: Callable[..., None], parameter: Parameter) -> Method:
    """A method that ranks, and measures its rankings."""
    return Method(
        name=name,
        meaning=meaning,
        prepare=prepare,
        perturbed=prepare,
        kernel=kernel,
        additive=False,
        parameters=(parameter, *PERTURBED),
        rows=rows_of,
        reductions=("gaps",),
        reads_values=True,
        column="rank",
        scores=(PGI2, ERROR),
        whole=True,
    )


METHODS = {
    method.name: method
    for method in (
        _semivalue(
            "shapley",
            "Shapley values; they add up to margin minus base value",
            lambda _: game_values.shapley,
            additive=True,
        ),
        _semivalue(
            "banzhaf",
            "Banzhaf values; the mean effect of a feature when every other is present with probability p",
            lambda given: lambda n_players: game_values.banzhaf(n_players, given["p"]),
            parameters=(number("p", 0.5, 0.0, 1.0, "probability that another feature is present", closed=True),),
        ),
        _semivalue(
            "beta",
            "Beta values; a large alpha weighs small coalitions, a large beta large ones",
            lambda given: lambda n_players: game_values.beta(n_players, given["alpha"], given["beta"]),
            parameters=(
                number("alpha", 1.0, 0.0, math.inf, "exponent of 1 - t, less one"),
                number("beta", 1.0, 0.0, math.inf, "exponent of t, less one"),
            ),
        ),
        _semivalue(
            "semivalue",
            "any semivalue: others are present with probability t, and t is spread by a measure on [0, 1]",
            _measured,
            parameters=(
                points("atoms", "t:weight, …: single probabilities and their weights"),
                points("density", "t:height, …: a density as a polyline; in Python also a function of t and 1 - t"),
            ),
        ),
        Method(
            name="probabilistic",
            meaning="any probabilistic value: a feature joins coalitions of given sizes",
            prepare=_prepare_probabilistic,
            kernel=add_probabilistic,
            additive=False,
            parameters=(
                numbers("sizes", "probability that a feature joins a coalition of 0, 1, … others; as many as there are features, or groups"),
                numbers("weights", "or the weight of every single coalition of 0, 1, … others"),
            ),
        ),
        Method(
            name="owen",
            meaning="Owen values of a partition: a feature's Shapley value in its group, among groups that come whole; they add up as Shapley's do",
            prepare=lambda forest, _: prepare_semivalue(play_owen(forest, game_values.shapley), forest),
            kernel=add_semivalues,
            additive=True,
            by_player=False,
            rows=lambda forest: forest.column,
            views=(each_group,),
            marginal=lambda game, _: _against(game, each_group, Levels(game_values.shapley, game_values.shapley), game.forest.n_used),
        ),
        Method(
            name="two_step",
            meaning="two-step Shapley values of a partition: a feature's own in its group alone, and an equal part of what the group gets beyond it",
            prepare=lambda forest, _: share_equally(
                forest,
                alone=prepare_semivalue(play_owen(forest, _alone), forest),
                groups=prepare_semivalue(play(forest, game_values.shapley), forest),
            ),
            kernel=add_two_step,
            additive=True,
            by_player=False,
            rows=lambda forest: forest.members,
            views=(each_group, whole_groups),
            marginal=lambda game, _: share_equally(
                game.forest,
                alone=_against(game, each_group, Levels(_alone, game_values.shapley), game.forest.n_used),
                groups=_against(game, whole_groups, Levels(None, game_values.shapley), game.forest.n_players),
            ),
        ),
        Method(
            name="r2",
            meaning="what a feature takes off the squared error of a regression, row by row, and so its share of R^2 (Q-SHAP)",
            prepare=lambda forest, _: prepare_qshap(forest),
            kernel=add_losses,
            additive=False,
            reductions=("r2",),
            labelled=True,
            column="loss",
        ),
        Method(
            name="ranker",
            meaning="scores that rank features so that those on top raise the margin and those at the bottom lower it; Banzhaf values after one step",
            prepare=lambda forest, given: prepare_ranker(play(forest, _alone), forest, given["steps"], given["rate"], given["optimizer"] == ADAM),
            kernel=add_scores,
            additive=False,
            parameters=(
                whole("steps", 10, 1, MOST_STEPS, "gradients that are averaged"),
                number("rate", 0.1, 0.0, math.inf, "length of a step; with ascent of that of a gradient, in units of 1 / margin"),
                choice("optimizer", ADAM, (ADAM, ASCENT), "adam or ascent"),
            ),
            path=lambda given, _: given["steps"],
            reductions=("importance", "objective"),
        ),
        Method(
            name="curves",
            meaning="a ranking by a method's values, the highest first, and the margin while features are added from its top, and from its bottom",
            prepare=_prepare_curves,
            kernel=_add_curves,
            additive=False,
            parameters=(_ranking(RANKERS),),
            rows=rows_of,
            path=lambda _, n_players: len(KINDS) * (n_players + 1),
            reductions=("areas", "curves"),
            column="rank",
            scores=KINDS,
            whole=True,
        ),
        _perturbing(
            "gap",
            "a ranking by size of a method's values, and its PGI²: how far perturbing the features ranked first moves the prediction",
            _prepare_gap,
            _add_gaps,
            _ranking(BY_SIZE),
        ),
        _perturbing(
            "gap_greedy",
            "the greedy ranking: each feature in turn the one whose perturbation moves the prediction most, and its PGI²",
            _prepare_greedy,
            add_greedy,
            whole("top", 0, 0, np.iinfo(np.int32).max, "features that are ranked, 0 for all"),
        ),
    )
}
