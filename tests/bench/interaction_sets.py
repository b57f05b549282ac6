"""Interactions of all sets of up to three features, in both games, beside shapiq, which has them row by row."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background, prepare
from leafledger.kernels.set_indices import Sets
from leafledger.kernels.slices.buffers import Prepared, make_buffers
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.job.job import TABLE_BYTES
from tests.bench.compare import CHECKED_ROWS, LEAST_ROWS, contend_peer
from tests.bench.interactions import BACKGROUND_ROWS, MARGINAL_GAME, OURS, PATH_DEPENDENT, Interactions
from tests.bench.models import CASES, XGBOOST, trained
from tests.bench.ours import SHAPLEY, explain_all, fill
from tests.bench.peers import SHAPIQ, Peer, as_is
from tests.bench.timing import race, size
from tests.bench.vendors import VENDORS

KEY, MOST_ROWS = "xgboost-100x6", 1 << 13
SETS = Sets(3, "k-SII")
SAID = f"sets of up to three by {SETS.index}"
SETS_PATH_DEPENDENT, SETS_MARGINAL = (f"{game}, {SAID}" for game in (PATH_DEPENDENT, MARGINAL_GAME))
GAMES = {SETS_PATH_DEPENDENT: None, SETS_MARGINAL: BACKGROUND_ROWS}


def tables(ensemble: TreeEnsemble, background: np.ndarray | None) -> Prepared:
    """Tables of values and of interactions."""
    method = METHODS[SHAPLEY]
    if background is None:
        return prepare(ensemble, method, {}, interactions=True, sets=SETS)
    query = ask_background(ensemble, method, n_rows=len(background), budget=TABLE_BYTES, interactions=True, order=SETS.order)
    counted = measure_background(query, background.T[query.bins.column].astype(float))
    return prepare(ensemble, method, {}, interactions=True, background=(query, counted), sets=SETS)


def interact(prepared: Prepared, rows: np.ndarray) -> np.ndarray:
    """Interactions of rows, ``(outputs, n, sets)``."""
    buffers = make_buffers(prepared, len(rows))
    fill(prepared, buffers, rows)
    attribute_batch(METHODS[SHAPLEY], prepared, buffers)
    return buffers.pairs[:, :, : len(rows)].transpose(0, 2, 1).copy()


def _prepare_shapiq(background: np.ndarray | None, model: Any) -> Any:
    if background is None:
        from shapiq import TreeExplainer

        return TreeExplainer(model, index=SETS.index, min_order=1, max_order=SETS.order).explain
    from shapiq.tree.interventional import InterventionalTreeSHAPIQ

    return InterventionalTreeSHAPIQ(model, background, index=SETS.index, max_order=SETS.order).explain_function


def _in_order(sets: list[tuple[int, ...]], found: list[Any]) -> np.ndarray:
    """What shapiq found of every row, in the order of our sets; what it does not list is 0."""
    rows = ({tuple(sorted(members)): each.values[place] for members, place in each.interaction_lookup.items()} for each in found)
    return np.array([[row.get(members, 0.0) for members in sets] for row in rows])[None]


def shapiq(background: np.ndarray | None, prepared: Prepared) -> Peer:
    """The peer, on as many rows as are checked at least."""
    sets = [tuple(player for player in row if player >= 0) for row in prepared.pairs.players.tolist()]
    return Peer(
        name=SHAPIQ,
        package="shapiq",
        libraries=frozenset({XGBOOST}),
        parallel=False,
        prepare=lambda case, model, threads: _prepare_shapiq(background, model),
        wrap=as_is,
        call=lambda explain, rows, threads: [explain(row) for row in rows],
        values=lambda case, found: _in_order(sets, found),
        least=lambda case: CHECKED_ROWS,
    )


def measure_sets(folder: Path, repeats: int, seconds: float) -> Iterator[Interactions]:
    """Measure both games on one thread; tables and explainers are prepared outside the clock."""
    case = next(case for case in CASES if case.key == KEY)
    path = trained(case, folder)
    model, ensemble, rows = VENDORS[case.library].load(path), load_ensemble(path).ensemble, case.draw(MOST_ROWS, 2, case.n_features)
    for game, n_background in GAMES.items():
        background = None if n_background is None else case.draw(n_background, 3, case.n_features)
        prepared = tables(ensemble, background)
        contenders = [size(OURS, 1, lambda n, made=prepared: partial(explain_all, made, rows[:n]), LEAST_ROWS, len(rows), seconds)]
        checks, peer = [], shapiq(background, prepared)
        if peer.supports(case):
            made, check = contend_peer(peer, case, model, rows, interact(prepared, rows[:CHECKED_ROWS]), 1, seconds)
            contenders += made
            checks.append(check)
        yield Interactions(case.key, case.name, game, len(prepared.pairs.players), tuple(race(contenders, repeats)), tuple(checks), ())
