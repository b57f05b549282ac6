"""Methods ``gap`` and ``gap_greedy``: rankings of features, evaluated by prediction gaps."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..arrays.ordering import SIZE
from ..method.method import Games, Method, Parameters, Phi
from ..method.parameters import Parameter, choice, number, numbers, whole
from ..ranking.methods import RANKING, prepare_ranking, score_players
from ..ranking.ranks import rows_with_scores, summarize_ranks
from ..slices.buffers import Buffers
from ..trees.forest import Forest
from .feature_noise import NOISE
from .noise import Measured
from .query import PerturbationUse
from .rankings import ERROR, NO, PGI2, YES, RankingTables, add_gaps, add_greedy, prepare_rankings
from .tables import BUDGET

PERTURBED = (
    NOISE,
    numbers("scale", "standard deviation of the noise, or one for every feature; 1 by default; with a background in the features' own", 0.0),
    number("budget", BUDGET, 0.0, math.inf, "pairs of leaves that may be looked at for a row", closed=True),
    choice("resample", YES, (YES, NO), "categories and groups are drawn from the background; without one they stay"),
    choice("approximate", NO, (NO, YES), "beyond the budget, PGI² is estimated by quasi-Monte Carlo, with a standard error"),
    whole("seed", 0, 0, np.iinfo(np.int32).max, "of its points"),
)
GAPS = summarize_ranks("gaps", 2, "pgi2", "mean ranks, and the mean PGI² of rankings")


def _perturbing(
    name: str,
    meaning: str,
    prepare: Callable[[Forest, Parameters, Measured | None], NamedTuple],
    kernel: Callable[[Buffers, RankingTables], None],
    parameter: Parameter,
) -> Method:
    """Declare a method that ranks features and measures its rankings."""
    return Method(
        name=name,
        meaning=meaning,
        games=Games(path_dependent=lambda forest, given: prepare(forest, given, None), background=PerturbationUse(prepare)),
        kernel=kernel,
        parameters=(parameter, *PERTURBED),
        phi=Phi(rows=rows_with_scores(2), column="rank", scores=(PGI2, ERROR), ranks=SIZE, linear=False),
        summaries=(GAPS,),
        perturbs=True,
    )


def _prepare_gap(forest: Forest, given: Parameters, measured: Measured | None) -> RankingTables:
    return prepare_rankings(forest, given, measured, prepare_ranking(forest, given["ranking"]), top=forest.n_all, passes=1)


def _attribute_gap(buffers: Buffers, tables: RankingTables) -> None:
    scores = score_players(buffers, tables.ranker, tables.of_ranker, tables.gap.units.size)
    add_gaps(buffers.values, buffers.bins, tables, scores, buffers.phi)


def _prepare_greedy(forest: Forest, given: Parameters, measured: Measured | None) -> RankingTables:
    top = min(given["top"] or forest.n_all, forest.n_all)
    nobody = np.zeros(1, np.int64), np.zeros(0)
    return prepare_rankings(forest, given, measured, nobody, top=top, passes=max(1, min(top, forest.n_players)))


def _attribute_greedy(buffers: Buffers, tables: RankingTables) -> None:
    add_greedy(buffers.values, buffers.bins, tables, buffers.phi)


GAP = _perturbing(
    "gap",
    "a ranking by size of a method's values, and its PGI²: how far perturbing the features ranked first moves the prediction",
    _prepare_gap,
    _attribute_gap,
    RANKING,
)
GAP_GREEDY = _perturbing(
    "gap_greedy",
    "the greedy ranking: each feature in turn the one whose perturbation moves the prediction most, and its PGI²",
    _prepare_greedy,
    _attribute_greedy,
    whole("top", 0, 0, np.iinfo(np.int32).max, "features that are ranked, 0 for all"),
)

METHODS = (GAP, GAP_GREEDY)
