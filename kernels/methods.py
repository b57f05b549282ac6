"""The methods by name: each an algorithm that prepares tables once per model, and the kernel that reads them for every batch."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import game_values
from .ensemble import TreeEnsemble
from .paths import Trace
from .ranks import RankedSplits
from .semivalue import add_semivalues, prepare_semivalue


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number a method takes, between ``lower`` and ``upper``; the ends themselves are allowed where ``closed``."""

    name: str
    default: float
    lower: float
    upper: float
    closed: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class Method:
    """An algorithm of attributions.

    ``prepare(ensemble, splits, trace, parameters)`` returns a NamedTuple of arrays; ``kernel(ranks, tables, phi)`` adds into
    ``phi (outputs, used, n) float64``. Where ``additive``, phi sums to margin minus base value on every row. ``reductions`` names the
    summaries a run keeps.
    """

    name: str
    meaning: str
    prepare: Callable[[TreeEnsemble, RankedSplits, Trace, Mapping[str, float]], NamedTuple]
    kernel: Callable[[Any, Any, Any], None]
    additive: bool
    parameters: tuple[Parameter, ...] = ()
    reductions: tuple[str, ...] = ("importance",)


METHODS = {
    method.name: method
    for method in (
        Method(
            name="shapley",
            meaning="Shapley values, absent features averaged by cover; they add up to margin minus base value",
            prepare=lambda ensemble, splits, trace, _: prepare_semivalue(ensemble, splits, trace, game_values.shapley),
            kernel=add_semivalues,
            additive=True,
        ),
        Method(
            name="banzhaf",
            meaning="Banzhaf values, absent features averaged by cover; the mean effect of a feature when every other is present with probability p",
            prepare=lambda ensemble, splits, trace, parameters: prepare_semivalue(
                ensemble, splits, trace, lambda n_players: game_values.banzhaf(n_players, parameters["p"])
            ),
            kernel=add_semivalues,
            additive=False,
            parameters=(Parameter("p", 0.5, 0.0, 1.0, True, "probability that another feature is present"),),
        ),
        Method(
            name="beta",
            meaning="Beta values, absent features averaged by cover; a large alpha weighs small coalitions, a large beta large ones",
            prepare=lambda ensemble, splits, trace, parameters: prepare_semivalue(
                ensemble, splits, trace, lambda n_players: game_values.beta(n_players, parameters["alpha"], parameters["beta"])
            ),
            kernel=add_semivalues,
            additive=False,
            parameters=(
                Parameter("alpha", 1.0, 0.0, math.inf, False, "exponent of 1 - t, less one"),
                Parameter("beta", 1.0, 0.0, math.inf, False, "exponent of t, less one"),
            ),
        ),
    )
}
