"""One model explained by everything there is: these kernels, every peer that can, and the library's own predictions as the floor."""

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import Prepared
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.stores.table_arrays import table_bytes
from tests.bench.models import Case, trained
from tests.bench.ours import BANZHAF, SHAPLEY, WHOLE, attributions, contend, explain_all, most_rows
from tests.bench.peers import PEERS, Peer
from tests.bench.timing import Contender, Speed, clock, race, size
from tests.bench.vendors import VENDORS

PREDICT = "predict"
EXACT = 1e-4  # of the largest phi: what is further off computes something else
CHECKED_ROWS, LEAST_ROWS = 512, 1024
BANZHAF_AT = {"p": 0.5}


@dataclass(frozen=True, slots=True)
class Check:
    """How far a peer is from these kernels on the same rows, as a fraction of the largest phi, and seconds it prepared for outside the clock."""

    peer: str
    difference: float
    preparation: float

    @property
    def exact(self) -> bool:
        return self.difference <= EXACT  # False for NaN


@dataclass(frozen=True, slots=True)
class Comparison:
    """Speeds of everything that was done with one model, its tables, and how exact its peers are."""

    case: str
    model: str
    table_bytes: int
    table_seconds: float
    largest_phi: float
    speeds: tuple[Speed, ...]
    checks: tuple[Check, ...]
    failures: tuple[str, ...]  # peers that raised, and what

    def rate(self, name: str, threads: int = 1) -> float | None:
        """Rows per second of a contender."""
        return next((speed.rate for speed in self.speeds if speed.name == name and speed.threads == threads), None)

    def check(self, name: str) -> Check | None:
        return next((check for check in self.checks if check.peer == name), None)


def contend_peer(
    peer: Peer, case: Case, model: Any, rows: np.ndarray, ours: np.ndarray, n_threads: int, seconds: float
) -> tuple[list[Contender], Check]:
    """The peer on one thread and, where it uses them, on all, with as many rows as last about ``seconds``; and its check on few."""
    made: list[Contender] = []
    preparation, last = 0.0, [None]

    def calls(explainer: Any, threads: int, n: int) -> Callable[[], None]:
        wrapped = peer.wrap(case, rows[:n])

        def call():
            last[0] = peer.call(explainer, wrapped, threads)

        return call

    for threads in (1, n_threads) if peer.parallel and n_threads > 1 else (1,):
        started = time.perf_counter()
        with threadpool_limits(threads):
            explainer = peer.prepare(case, model, threads)
        preparation = preparation or time.perf_counter() - started
        least = made[0].n_rows if made else peer.least(case)
        made.append(size(peer.name, threads, partial(calls, explainer, threads), least, len(rows), seconds))
    theirs = peer.values(case, last[0])[:, : ours.shape[1]]
    difference = float(np.abs(theirs - ours[:, : theirs.shape[1]]).max() / np.abs(ours).max())
    return made, Check(peer.name, difference, preparation)


def _prepare(ensemble: Any) -> tuple[dict[str, Prepared], float]:
    """Tables of both methods, and the seconds that Shapley's took on one thread."""
    tables = {}
    with threadpool_limits(1):
        tables[SHAPLEY] = prepare(ensemble, METHODS[SHAPLEY], {})
        seconds = clock(lambda: prepare(ensemble, METHODS[SHAPLEY], {}))
        tables[BANZHAF] = prepare(ensemble, METHODS[BANZHAF], BANZHAF_AT)
    return tables, seconds


def compare(case: Case, folder: Path, threads: Executor, n_threads: int, repeats: int, seconds: float) -> Comparison:
    """Measure one model, each contender on as many of the same rows as it works through in about ``seconds``."""
    path, vendor = trained(case, folder), VENDORS[case.library]
    model, ensemble = vendor.load(path), load_ensemble(path).ensemble
    rows = case.draw(case.most_rows, 2, case.n_features)
    tables, table_seconds = _prepare(ensemble)
    shapley = tables[SHAPLEY]
    ours = attributions(shapley, SHAPLEY, rows[:CHECKED_ROWS], case.n_features)

    most = min(len(rows), most_rows(shapley))
    n_few = size(WHOLE, 1, lambda n: partial(explain_all, shapley, rows[:n]), LEAST_ROWS, most, seconds).n_rows
    wrapped = vendor.wrap(rows)
    contenders = contend(tables, rows[:n_few], rows[:most], threads, n_threads)
    contenders += [Contender(PREDICT, n, len(rows), partial(vendor.predict, model, wrapped, n)) for n in dict.fromkeys((1, n_threads))]
    checks, failures = [], []
    for peer in (peer for peer in PEERS if peer.supports(case)):
        try:
            made, check = contend_peer(peer, case, model, rows, ours, n_threads, seconds)
        except Exception as error:  # a peer fails in its own way, and is said to
            failures.append(f"{peer.name}: {type(error).__name__}: {error}")
        else:
            contenders += made
            checks.append(check)
    return Comparison(
        case=case.key,
        model=case.name,
        table_bytes=table_bytes(shapley),
        table_seconds=table_seconds,
        largest_phi=float(np.abs(ours).max()),
        speeds=tuple(race(contenders, repeats)),
        checks=tuple(checks),
        failures=tuple(failures),
    )
