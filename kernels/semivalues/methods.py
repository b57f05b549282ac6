"""Methods whose values average marginal contributions: Shapley, Banzhaf, Beta, custom weights, and values of partitions."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .. import game_values
from ..errors import InvalidParameters
from ..game_values import GameValue, Weighing, size_rule, weigh_by_size, weigh_by_value
from ..marginal.coalitions import Views, any_sequence, each_group, everyone, in_sequence, whole_groups
from ..marginal.game import Levels, MarginalGame
from ..marginal.query import MarginalUse
from ..method.method import ADDITIVE, Check, Games, Method, Parameters, Phi
from ..method.notation import choose_method, read_method
from ..method.parameters import Parameter, number, numbers, points, sequence_of_groups
from ..path_dependent.games import play, play_in_sequence, play_owen
from ..path_dependent.probabilistic import ProbabilisticTables, add_probabilistic, no_probabilistic, prepare_probabilistic
from ..slices.buffers import Buffers
from ..trees.forest import Forest
from ..trees.paths import trace
from .tables import SemivalueTables, add_semivalues, no_semivalues, prepare_semivalue
from .two_step import TwoStepTables, add_two_step, share_equally

ACROSS, WITHIN = "across", "within"
LEAST_TOTAL = 1e-6  # least total of signed weights relative to that of their magnitudes: less would lose digits
MISSED = 1e-6  # deviation from a sum of one allowed to given numbers
EXPONENTS = 1e-6, 1e12  # of Beta values, plus one: smaller ones lose digits in quadrature, larger ones may overflow


def attribute_semivalues(buffers: Buffers, tables: SemivalueTables) -> None:
    """Add the attributions of a batch: the kernel that a card has too.

    Parameters
    ----------
    buffers : Buffers
        with bins
    tables : SemivalueTables
    """
    add_semivalues(buffers.bins, tables, buffers.phi, buffers.n_rows)


def _against(game: MarginalGame, views: Views, levels: Levels, n_rows: int) -> SemivalueTables:
    """Make the tables of a game against a background, without walks."""
    looked_up, subsets, patterns = game.play(views, levels, n_rows)
    return no_semivalues(game.forest)._replace(looked_up=looked_up, subsets=subsets, patterns=patterns)


def _semivalue(
    name: str,
    meaning: str,
    value: Callable[[Parameters], GameValue],
    *,
    check: Check | None = None,
    parameters: tuple[Parameter, ...] = (),
    index: str = "",
) -> Method:
    """Declare a method whose value is a quadrature of the game."""
    return Method(
        name=name,
        meaning=meaning,
        games=Games(
            path_dependent=lambda forest, given: prepare_semivalue(play(forest, value(given)), forest),
            background=MarginalUse(
                views=(everyone,),
                tables=lambda game, given: _against(game, everyone, Levels(None, weigh_by_value(value(given))), game.forest.n_players),
            ),
            value=value,
            index=index,
        ),
        kernel=attribute_semivalues,
        parameters=parameters,
        check=check,
    )


SHAPLEY = _semivalue(
    "shapley",
    "Shapley values; they add up to margin minus base value",
    lambda _: game_values.shapley,
    check=ADDITIVE,
    index="k-SII",
)
BANZHAF = _semivalue(
    "banzhaf",
    "Banzhaf values; the mean effect of a feature when every other is present with probability p",
    lambda given: lambda n_players: game_values.banzhaf(n_players, given["p"]),
    parameters=(number("p", 0.5, 0.0, 1.0, "probability that another feature is present", closed=True),),
)
BETA = _semivalue(
    "beta",
    "Beta values; a large alpha weighs small coalitions, a large beta large ones",
    lambda given: lambda n_players: game_values.beta(n_players, given["alpha"], given["beta"]),
    parameters=(
        number("alpha", 1.0, *EXPONENTS, "exponent of 1 - t, less one", closed=True),
        number("beta", 1.0, *EXPONENTS, "exponent of t, less one", closed=True),
    ),
)


def _any_measure(given: Parameters) -> GameValue:
    if not given["atoms"] and not given["density"]:
        raise InvalidParameters("method 'semivalue' needs parameter 'atoms' or 'density'")

    def value(n_players: int) -> game_values.Quadrature:
        parts = [np.array(given["atoms"], float).reshape(-1, 2)]
        if given["density"]:
            spread = game_values.density_atoms if callable(given["density"]) else game_values.polyline_atoms
            parts.append(spread(n_players, given["density"]))
        atoms = np.concatenate(parts)
        total, size = atoms[:, 1].sum(), np.abs(atoms[:, 1]).sum()
        if not total > LEAST_TOTAL * size:
            raise InvalidParameters(
                f"weights of 'atoms' and 'density' sum to {total:.3g}, and their sizes to {size:.3g}; "
                f"expected a sum above {LEAST_TOTAL:g} of the latter, for they are scaled to sum to one"
            )
        return game_values.measure(n_players, atoms)

    value(1)  # refuses sizes that cannot be scaled, even if no tree needs them
    return value


SEMIVALUE = _semivalue(
    "semivalue",
    "any semivalue: others are present with probability t, and t is spread by a measure on [0, 1]",
    _any_measure,
    parameters=(
        points("atoms", "t:weight, …: single probabilities and their weights"),
        points("density", "t:height, …: a density as a polyline; in Python also a smooth function of t and 1 - t"),
    ),
)


class ProbabilisticGames(NamedTuple):
    """Walked trees and look-up tables of a background; one of both is empty."""

    walked: ProbabilisticTables
    against: SemivalueTables


def _read_sizes(given: Parameters, n_players: int, who: str = "players", n_on_path: int | None = None) -> np.ndarray:
    """Return the probability that a player joins a coalition of 0, 1, … others, ``(players,)``; or of as many as fit on a path."""
    if bool(given["sizes"]) == bool(given["weights"]):
        raise InvalidParameters("method 'probabilistic' needs parameter 'sizes' or 'weights', and not both")
    name = "sizes" if given["sizes"] else "weights"
    sizes = np.array(given[name])
    if sizes.size not in (n_players, n_on_path):
        fewer = "" if n_on_path in (None, n_players) else f", or for each of {n_on_path}, as many as the trees are deep"
        raise InvalidParameters(f"parameter {name!r} has {sizes.size} numbers, expected one for each of {n_players} {who}{fewer}")
    n_players = sizes.size
    if name == "weights":
        from scipy.special import binom

        with np.errstate(invalid="ignore"):
            sizes = sizes * binom(n_players - 1, np.arange(n_players))
        if not np.isfinite(sizes).all():
            raise InvalidParameters(f"parameter 'weights' overflows: there are too many coalitions of {n_players} {who}; give 'sizes'")
    with np.errstate(over="ignore", invalid="ignore"):
        total, size = sizes.sum(), np.abs(sizes).sum()
    times = ", times how many coalitions of a size there are," if name == "weights" else ""
    if not abs(total - 1) <= MISSED:
        raise InvalidParameters(f"parameter {name!r}{times} sums to {total:.9g}, expected 1, as probabilities do")
    if not total > LEAST_TOTAL * size:
        raise InvalidParameters(
            f"parameter {name!r}{times} sums to 1, and its magnitudes to {size:.3g}; expected less than {1 / LEAST_TOTAL:g}, or digits are lost"
        )
    return sizes


def _read_sizes_of(forest: Forest, given: Parameters) -> np.ndarray:
    """Return the sizes among all players, or among min(depth, players) of them, which decide everything (Li, Yu and Low 2026, Remark 2)."""
    return _read_sizes(given, forest.n_all, n_on_path=min(max(1, int(forest.trace.level.max(initial=0))), forest.n_all))


def _walk_probabilistic(forest: Forest, given: Parameters) -> ProbabilisticGames:
    traced = trace(forest.ensemble, forest.player_of_node, forest.n_players)
    walked = prepare_probabilistic(forest.ensemble, forest.splits, traced, forest.player_of_node, _read_sizes_of(forest, given))
    return ProbabilisticGames(walked, no_semivalues(forest))


def _look_up_probabilistic(game: MarginalGame, given: Parameters) -> ProbabilisticGames:
    levels = Levels(None, weigh_by_size(_read_sizes_of(game.forest, given)))
    return ProbabilisticGames(no_probabilistic(game.forest.splits.words), _against(game, everyone, levels, game.forest.n_players))


def _attribute_probabilistic(buffers: Buffers, tables: ProbabilisticGames) -> None:
    if tables.walked.passes.start.size:
        add_probabilistic(buffers.bins, tables.walked, buffers.phi)
    add_semivalues(buffers.bins, tables.against, buffers.phi, buffers.n_rows)


PROBABILISTIC = Method(
    name="probabilistic",
    meaning="any probabilistic value: a feature joins coalitions of given sizes",
    games=Games(_walk_probabilistic, MarginalUse(views=(everyone,), tables=_look_up_probabilistic)),
    kernel=_attribute_probabilistic,
    parameters=(
        numbers("sizes", "probability that a feature joins a coalition of 0, 1, … others, 1 in all; one for each feature, group, or level of trees"),
        numbers("weights", "or the weight of every single coalition of 0, 1, … others; those of all coalitions sum to 1"),
    ),
)

OF_PLAYERS: dict[str, Method] = {method.name: method for method in (SHAPLEY, BANZHAF, BETA, SEMIVALUE, PROBABILISTIC)}  # they need no partition


class Level(NamedTuple):
    """A value that groups play for, or their members, in both games."""

    value: GameValue
    weigh: Weighing


def _level_of(forest: Forest, given: Parameters, name: str) -> Level:
    """Read the value across groups or within them; sizes are those of all groups, or of the largest group, of which smaller ones have what remains
    when members without effect are taken out."""
    family, chosen = read_method(given[name], OF_PLAYERS)
    n_players, who = (forest.n_all, "groups") if name == ACROSS else (int(np.bincount(forest.groups).max()), "members of the largest group")
    if family.games.value is None:
        sizes = _read_sizes(chosen, n_players, who)
        return Level(size_rule(sizes), weigh_by_size(sizes))
    value = family.games.value(chosen)
    return Level(value, weigh_by_value(value))


def _play_levels(forest: Forest, given: Parameters) -> SemivalueTables:
    return prepare_semivalue(play_owen(forest, *(_level_of(forest, given, name).value for name in (ACROSS, WITHIN))), forest)


def _weigh_levels(game: MarginalGame, given: Parameters) -> SemivalueTables:
    levels = Levels(*(_level_of(game.forest, given, name).weigh for name in (ACROSS, WITHIN)))
    return _against(game, each_group, levels, game.forest.n_used)


def _both_add_up(given: Parameters) -> bool:
    """Return whether all attributions add up: only with Shapley values at both levels."""
    return given[ACROSS] == given[WITHIN] == SHAPLEY.name


OWEN = Method(
    name="owen",
    meaning="Owen values of a partition: a feature's value in its group, among groups that come whole; Shapley values at both levels add up",
    games=Games(path_dependent=_play_levels, background=MarginalUse(views=(each_group,), tables=_weigh_levels)),
    kernel=attribute_semivalues,
    parameters=(
        choose_method(ACROSS, OF_PLAYERS, "value that groups play for, with its parameters, as banzhaf:0.5 or semivalue(atoms=0.25:1,0.75:1)"),
        choose_method(WITHIN, OF_PLAYERS, "value that the members of a group play for"),
    ),
    phi=Phi(rows=lambda forest: forest.column, of_groups=False),
    check=replace(ADDITIVE, applies=_both_add_up),
)


def absent_others(n_players: int) -> game_values.Quadrature:
    """Return the game value of a player that never meets others: one node at t = 0, the weighted Banzhaf value at 0.

    Parameters
    ----------
    n_players : int
        not needed, one node is always exact
    """
    return game_values.banzhaf(n_players, 0.0)


def _attribute_two_step(buffers: Buffers, tables: TwoStepTables) -> None:
    add_two_step(buffers.bins, tables, buffers.phi, buffers.n_rows)


TWO_STEP = Method(
    name="two_step",
    meaning="two-step Shapley values of a partition: a feature's own in its group alone, and an equal part of what the group gets beyond it",
    games=Games(
        path_dependent=lambda forest, _: share_equally(
            forest,
            alone=prepare_semivalue(play_owen(forest, absent_others, game_values.shapley), forest),
            groups=prepare_semivalue(play(forest, game_values.shapley), forest),
        ),
        background=MarginalUse(
            views=(each_group, whole_groups),
            tables=lambda game, _: share_equally(
                game.forest,
                alone=_against(game, each_group, Levels(weigh_by_value(absent_others), weigh_by_value(game_values.shapley)), game.forest.n_used),
                groups=_against(game, whole_groups, Levels(None, weigh_by_value(game_values.shapley)), game.forest.n_players),
            ),
        ),
    ),
    kernel=_attribute_two_step,
    phi=Phi(rows=lambda forest: forest.members, of_groups=False),
    check=ADDITIVE,
)


def _places(forest: Forest, given: Parameters) -> np.ndarray:
    """Return the place of every group in the sequence, ``(groups,)``; refuse a sequence that leaves out a group, or has one twice."""
    sequence, groups = np.array(given["sequence"], np.int64), np.unique(forest.groups)
    if not np.array_equal(np.sort(sequence), groups):
        raise InvalidParameters(f"parameter 'sequence' is {sequence.tolist()}, expected each of {groups.tolist()} once")
    places = np.zeros(groups[-1] + 1, np.int64)
    places[sequence] = np.arange(sequence.size)
    return places


def _present_others(n_players: int) -> game_values.Quadrature:
    """Return the game value of a player that meets all others: one node at t = 1, the weighted Banzhaf value at 1."""
    return game_values.banzhaf(n_players, 1.0)


def _against_in_sequence(game: MarginalGame, given: Parameters) -> SemivalueTables:
    levels = Levels(weigh_by_value(_present_others), weigh_by_value(game_values.shapley))
    return _against(game, in_sequence(_places(game.forest, given)[game.forest.players]), levels, game.forest.n_used)


ASYMMETRIC = Method(
    name="asymmetric",
    meaning="asymmetric Shapley values of groups in a sequence: a feature's value in its group, with earlier groups present and later ones absent",
    games=Games(
        path_dependent=lambda forest, given: prepare_semivalue(
            play_in_sequence(forest, _places(forest, given)[forest.players], game_values.shapley), forest
        ),
        background=MarginalUse(views=(any_sequence,), tables=_against_in_sequence),
    ),
    kernel=attribute_semivalues,
    parameters=(sequence_of_groups("sequence", "all groups, causes first, with the features that no group names"),),
    phi=Phi(rows=lambda forest: forest.column, of_groups=False),
    check=ADDITIVE,
)

METHODS = (SHAPLEY, BANZHAF, BETA, SEMIVALUE, PROBABILISTIC, OWEN, TWO_STEP, ASYMMETRIC)
