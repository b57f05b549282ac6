"""Rankings: what TreeGrad-Ranker costs against Banzhaf values, which are its first step, and a curve against the evaluation of a single set."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit

from leafledger.kernels import game_values
from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.path_dependent.games import play
from leafledger.kernels.prepare import prepare
from leafledger.kernels.ranking.curves import CurveTables, add_areas, prepare_curves
from leafledger.kernels.slices.buffers import Buffers, Prepared
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.kernels.trees.forest import make_forest
from leafledger.pipeline.models import load_ensemble
from tests.bench.models import Case, trained
from tests.bench.ours import BANZHAF, make_slices, spread
from tests.bench.timing import Contender, Speed, clock, race

ROWS = 2_048
SLOW = 2.0  # seconds: what takes longer is timed once
RANKER, CURVES, EVALUATION = "ranker, ADAM, T = 10", "insertion and deletion areas", "one set by plain recursion"
ASKED = {
    BANZHAF: (BANZHAF, {"p": 0.5}),
    RANKER: ("ranker", {"steps": 10, "rate": 0.1, "optimizer": "adam"}),
    "ranker, ascent, T = 10": ("ranker", {"steps": 10, "rate": 5.0, "optimizer": "ascent"}),
}
SEVERAL = 4  # rankings at once


@dataclass(frozen=True, slots=True)
class Rankings:
    """A model's contenders, on the same rows and one thread; curves come two to a ranking, an evaluation is one point of one."""

    case: str
    model: str
    n_features: int
    speeds: tuple[Speed, ...]

    def seconds(self, name: str) -> float:
        """Of a row."""
        return next(1 / speed.rate for speed in self.speeds if speed.name == name)


@njit(nogil=True, error_model="numpy")
def evaluate(rows, present, ensemble, stack, weight, out):
    """f(S) of every row by going down each tree, both ways where a feature is absent (Lundberg et al. 2018, Alg. 1); numeric splits only."""
    for i in range(len(rows)):
        for root in ensemble.root:
            stack[0], weight[0], size = root, 1.0, 1
            while size > 0:
                size -= 1
                v, w = stack[size], weight[size]
                feature = ensemble.feature[v]
                if feature < 0:
                    out[i] += w * ensemble.value[v, 0]
                    continue
                left, right = ensemble.left[v], ensemble.right[v]
                if present[feature]:
                    x = rows[i, feature]
                    goes = ensemble.missing_left[v] if np.isnan(x) else x <= ensemble.threshold[v]
                    stack[size], weight[size], size = left if goes else right, w, size + 1
                else:
                    share = ensemble.cover[left] / (ensemble.cover[left] + ensemble.cover[right])
                    stack[size], weight[size] = left, w * share
                    stack[size + 1], weight[size + 1], size = right, w * (1 - share), size + 2


def _evaluate(ensemble: TreeEnsemble, rows: np.ndarray) -> None:
    """Half of the features present: the middle of a curve."""
    present = np.arange(ensemble.n_features) % 2 == 0
    stack = np.empty(ensemble.feature.size, np.int64)
    evaluate(rows, present, ensemble, stack, np.empty(stack.size), np.zeros(len(rows)))


def _whole(name: str, prepared: Prepared, piece: Buffers) -> None:
    attribute_batch(METHODS[name], prepared, piece)


def _curves(tables: CurveTables, n_rankings: int, piece: Buffers) -> None:
    outputs, _, n = piece.phi.shape
    areas = np.zeros((2, outputs, n_rankings, n))
    add_areas(piece.bins, tables, [piece.phi] * n_rankings, *areas)


def measure_rankings(case: Case, folder: Path, repeats: int) -> Rankings:
    """Race all of them on one thread."""
    ensemble, rows = load_ensemble(trained(case, folder)).ensemble, case.draw(ROWS, 2, case.n_features)
    made, banzhaf = [], None
    for what, (name, parameters) in ASKED.items():
        prepared = prepare(ensemble, METHODS[name], parameters)
        slices = make_slices(prepared, rows, 1)
        made.append(Contender(what, 1, len(rows), partial(spread, partial(_whole, name, prepared), slices, None)))
        banzhaf = banzhaf or (prepared, slices)
    prepared, slices = banzhaf
    spread(partial(_whole, BANZHAF, prepared), slices, None)
    forest = make_forest(ensemble)[1]
    tables = prepare_curves(play(forest, game_values.shapley), forest.players, forest.n_all)
    for name, n_rankings in ((CURVES, 1), (f"{CURVES}, {SEVERAL} rankings", SEVERAL)):
        made.append(Contender(name, 1, len(rows), partial(spread, partial(_curves, tables, n_rankings), slices, None)))
    if case.n_classes == 1:
        made.append(Contender(EVALUATION, 1, len(rows), partial(_evaluate, ensemble, rows.astype(np.float64))))
    for each in made:
        each.call()  # compiles
    timed = [replace(each, first=clock(each.call)) for each in made]
    return Rankings(case.key, case.name, case.n_features, tuple(race(timed, repeats, slow=SLOW)))
