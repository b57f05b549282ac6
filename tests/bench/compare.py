"""Kernels against the library that trained the model: contributions against contributions, and both against its own predictions."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from kernels.batch import Buffers, Prepared, attribute_batch, make_buffers, prepare
from kernels.margin import add_margins
from kernels.methods import METHODS
from kernels.ranks import BATCH, rank_rows
from pipeline.models import load_ensemble
from pipeline.tables import table_bytes

from .models import Case, make_rows, trained
from .timing import Contender, Speed, race

SLICE_ROWS = 1 << 13
PREDICT, CONTRIBUTIONS = "library: predict", "library: contributions"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Speeds of everything that was done with one model, and how far its two kinds of Shapley values are apart."""

    model: str
    table_bytes: int
    largest_phi: float
    largest_difference: float
    speeds: tuple[Speed, ...]

    def ratio(self, speed: Speed, to: str) -> float | None:
        """Rows per second over those of the library's own, on as many threads."""
        return next((speed.rate / other.rate for other in self.speeds if other.name == to and other.threads == speed.threads), None)


def _slices(prepared: Prepared, rows: np.ndarray, n_threads: int) -> list[Buffers]:
    """Rows as slices to work on, ranked: at least one for each thread where batches suffice."""
    step = min(SLICE_ROWS, max(BATCH, len(rows) // n_threads // BATCH * BATCH))
    made = []
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        buffers = make_buffers(prepared, len(part))
        buffers.values[:, : len(part)] = part.T[prepared.ranks.column]
        rank_rows(buffers.values, prepared.ranks, buffers.ranks)
        made.append(buffers)
    return made


def _spread(work: Callable[[Buffers], None], slices: list[Buffers], threads: Executor | None) -> None:
    """The work on every slice, in this thread or on all."""
    if threads is None:
        for piece in slices:
            work(piece)
    else:
        list(threads.map(work, slices))


def _largest_difference(prepared: Prepared, slices: list[Buffers], theirs: np.ndarray) -> float:
    ours = np.zeros_like(theirs[:, :-1], np.float64)
    ours[:, prepared.ranks.column] = np.concatenate([piece.phi[0].T for piece in slices])
    return float(np.abs(ours - theirs[:, :-1]).max())


def compare(case: Case, folder: Path, many_rows: int, threads: Executor, n_threads: int, repeats: int) -> Comparison:
    """Measure one model. Contributions run on ``case.contribution_rows`` rows, what is far faster on ``many_rows``; the table says which."""
    path = trained(case, folder)
    peer, ensemble = case.load(path), load_ensemble(path).ensemble
    shapley, banzhaf = (prepare(ensemble, METHODS[name], {"p": 0.5}) for name in ("shapley", "banzhaf"))
    many, few = make_rows(many_rows, seed=2), make_rows(case.contribution_rows, seed=3)
    wrapped_many, wrapped_few = peer.wrap(many), peer.wrap(few)
    slices_many, slices_few = _slices(shapley, many, n_threads), _slices(shapley, few, n_threads)

    def rank(piece: Buffers) -> None:
        rank_rows(piece.values, shapley.ranks, piece.ranks)

    def margin(piece: Buffers) -> None:
        add_margins(piece.ranks, shapley.margin, piece.margin)

    def kernel(name: str, prepared: Prepared) -> Callable[[Buffers], None]:
        return lambda piece: METHODS[name].kernel(piece.ranks, prepared.method, piece.phi)

    def whole(piece: Buffers) -> None:
        attribute_batch(METHODS["shapley"], shapley, piece)

    contenders = []
    for n, pool in {1: None, n_threads: threads}.items():
        contenders += [
            Contender("shapley: ranks, margins, phi", n, len(few), partial(_spread, whole, slices_few, pool)),
            Contender("shapley: kernel alone", n, len(few), partial(_spread, kernel("shapley", shapley), slices_few, pool)),
            Contender("banzhaf: kernel alone", n, len(few), partial(_spread, kernel("banzhaf", banzhaf), slices_few, pool)),
            Contender(CONTRIBUTIONS, n, len(few), partial(peer.contributions, wrapped_few, n)),
            Contender("rank_rows", n, len(many), partial(_spread, rank, slices_many, pool)),
            Contender("add_margins", n, len(many), partial(_spread, margin, slices_many, pool)),
            Contender(PREDICT, n, len(many), partial(peer.predict, wrapped_many, n)),
        ]
    speeds = race(contenders, repeats)
    _spread(whole, slices_few, None)
    theirs = peer.contributions(wrapped_few, n_threads)
    return Comparison(
        model=case.name,
        table_bytes=table_bytes(shapley),
        largest_phi=float(np.abs(theirs[:, :-1]).max()),
        largest_difference=_largest_difference(shapley, slices_few, theirs),
        speeds=tuple(speeds),
    )
