"""Interactions of every two features, in both games, beside the explainers that have them: XGBoost's own, and woodelf."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background, prepare
from leafledger.kernels.slices.buffers import Prepared, make_buffers
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.job.job import TABLE_BYTES
from tests.bench.compare import CHECKED_ROWS, LEAST_ROWS, Check, contend_peer
from tests.bench.models import CASES, XGBOOST, Case, trained
from tests.bench.ours import SHAPLEY, explain_all, fill
from tests.bench.peers import OWN, WOODELF, WOODELF_PACKAGE, Peer, wrap_woodelf
from tests.bench.timing import Speed, race, size
from tests.bench.vendors import VENDORS

OURS = "ours"
PATH_DEPENDENT, BACKGROUND_ROWS = "path-dependent", 1_000
MARGINAL_GAME = f"marginal, {BACKGROUND_ROWS:,} background rows"
# Cases, the games they are measured in, and rows at most: woodelf prepares in every call, and takes minutes for the larger model.
PAIRED = (("xgboost-100x6", (PATH_DEPENDENT, MARGINAL_GAME), 1 << 15), ("xgboost-500x8", (PATH_DEPENDENT,), 1 << 12))
QUICK_PAIRED = (("xgboost-100x6", (PATH_DEPENDENT, MARGINAL_GAME), 1 << 11),)


@dataclass(frozen=True, slots=True)
class Interactions:
    """A model's interactions in one game: rows/s with values, bins and margins, ours and the peers'."""

    case: str
    model: str
    game: str
    n_pairs: int
    speeds: tuple[Speed, ...]
    checks: tuple[Check, ...]
    failures: tuple[str, ...]

    def rate(self, name: str) -> float | None:
        """Rows per second of a contender."""
        return next((speed.rate for speed in self.speeds if speed.name == name), None)

    def check(self, name: str) -> Check | None:
        return next((check for check in self.checks if check.peer == name), None)


def matrices(prepared: Prepared, rows: np.ndarray, n_features: int) -> np.ndarray:
    """``(outputs, n, features * features) float64`` as XGBoost and shap lay them out: half of an interaction for either of the two."""
    buffers = make_buffers(prepared, len(rows))
    fill(prepared, buffers, rows)
    attribute_batch(METHODS[SHAPLEY], prepared, buffers)
    found, n = np.zeros((prepared.base.size, len(rows), n_features, n_features)), len(rows)
    first, second = prepared.pairs.players.T
    halves = buffers.pairs[:, :, :n].transpose(0, 2, 1) / 2
    found[:, :, first, second] = found[:, :, second, first] = halves
    own = np.zeros((prepared.base.size, n, n_features))
    own[:, :, prepared.players] = buffers.phi[:, :, :n].transpose(0, 2, 1)
    diagonal = np.arange(n_features)
    found[:, :, diagonal, diagonal] = own - found.sum(axis=3)
    return found.reshape(prepared.base.size, n, -1)


def _prepare_own(case: Case, model: Any, threads: int) -> Any:
    model.set_param({"nthread": threads})
    return model


def _own_values(case: Case, result: np.ndarray) -> np.ndarray:
    return result[None, :, :-1, :-1].reshape(1, len(result), -1)  # the last of both is the base value


def _prepare_woodelf(background: np.ndarray | None, case: Case, model: Any, threads: int) -> Any:
    import woodelf

    return woodelf.WoodelfExplainer(model, *(() if background is None else (wrap_woodelf(case, background),)))


def _peers(background: np.ndarray | None) -> Iterator[Peer]:
    if background is None:
        yield Peer(
            name=OWN,
            package=None,
            libraries=frozenset({XGBOOST}),
            parallel=False,
            prepare=_prepare_own,
            wrap=lambda case, rows: VENDORS[case.library].wrap(rows)[1],
            call=lambda model, wrapped, threads: model.predict(wrapped, pred_interactions=True),
            values=_own_values,
            least=lambda case: CHECKED_ROWS,
        )
    yield Peer(
        name=WOODELF,
        package=WOODELF_PACKAGE,
        libraries=frozenset({XGBOOST}),
        parallel=False,
        prepare=partial(_prepare_woodelf, background),
        wrap=wrap_woodelf,
        call=lambda explainer, frame, threads: explainer.shap_interaction_values(frame, as_df=True, verbose=False),
        values=_woodelf_values,
        least=lambda case: max(n_rows for key, _, n_rows in PAIRED if key == case.key),
    )


def _woodelf_values(case: Case, result: Any) -> np.ndarray:
    names = wrap_woodelf(case, np.zeros((1, case.n_features))).columns
    zeros = np.zeros(len(result))
    columns = [result[pair].to_numpy() if (pair := (one, other)) in result.columns else zeros for one in names for other in names]
    return np.stack(columns, axis=1)[None]


def _tables(ensemble: TreeEnsemble, background: np.ndarray | None) -> Prepared:
    method = METHODS[SHAPLEY]
    if background is None:
        return prepare(ensemble, method, {}, interactions=True)
    query = ask_background(ensemble, method, n_rows=len(background), budget=TABLE_BYTES, interactions=True)
    counted = measure_background(query, background.T[query.bins.column].astype(float))
    return prepare(ensemble, method, {}, interactions=True, background=(query, counted))


def _work(prepared: Prepared, rows: np.ndarray) -> Callable[[int], Callable[[], None]]:
    return lambda n: partial(explain_all, prepared, rows[:n])


def measure_interactions(quick: bool, folder: Path, repeats: int, seconds: float) -> Iterator[Interactions]:
    """Measure every model in its games, on one thread; tables and explainers are prepared outside the clock."""
    for key, games, most_rows in QUICK_PAIRED if quick else PAIRED:
        case = next(case for case in CASES if case.key == key)
        for game in games:
            yield _measure(case, game, most_rows, folder, repeats, seconds)


def _measure(case: Case, game: str, most_rows: int, folder: Path, repeats: int, seconds: float) -> Interactions:
    path, vendor = trained(case, folder), VENDORS[case.library]
    model, ensemble = vendor.load(path), load_ensemble(path).ensemble
    rows = case.draw(most_rows, 2, case.n_features)
    background = case.draw(BACKGROUND_ROWS, 3, case.n_features) if game == MARGINAL_GAME else None
    prepared = _tables(ensemble, background)
    ours = matrices(prepared, rows[:CHECKED_ROWS], case.n_features)
    contenders = [size(OURS, 1, _work(prepared, rows), LEAST_ROWS, len(rows), seconds)]
    checks, failures = [], []
    for peer in (peer for peer in _peers(background) if peer.supports(case)):
        try:
            made, check = contend_peer(peer, case, model, rows, ours, 1, seconds)
        except Exception as error:  # a peer fails in its own way, and is said to
            failures.append(f"{peer.name}: {type(error).__name__}: {error}")
        else:
            contenders += made
            checks.append(check)
    speeds = tuple(race(contenders, repeats))
    return Interactions(case.key, case.name, game, len(prepared.pairs.players), speeds, tuple(checks), tuple(failures))
