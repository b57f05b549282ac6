"""How the kernel's time grows with rows, trees and depth: nanoseconds per row and node stay the same where it grows in proportion."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kernels.batch import Prepared, prepare
from kernels.methods import METHODS
from pipeline.models import load_ensemble

from .models import CASES, make_rows, trained, xgboost_trainer
from .ours import SHAPLEY, make_slices, spread
from .timing import Contender, race

ROWS, TREES, DEPTHS = (2_048, 4_096, 8_192, 16_384), (25, 50, 100, 200, 400), (4, 6, 8, 10)
FEW_ROWS, DEEP_TREES = 2_048, 25


@dataclass(frozen=True, slots=True)
class Step:
    """The Shapley kernel, alone and on one thread, on one model."""

    along: str  # what grows
    n_rows: int
    n_trees: int
    depth: int
    n_nodes: int
    seconds: float

    @property
    def nanoseconds(self) -> float:
        """Per row and node."""
        return 1e9 * self.seconds / (self.n_rows * self.n_nodes)


def _model(folder: Path, n_trees: int, depth: int) -> tuple[Prepared, int]:
    case = replace(CASES[0], key=f"xgboost-{n_trees}x{depth}", train=xgboost_trainer(n_trees, depth))
    ensemble = load_ensemble(trained(case, folder)).ensemble
    return prepare(ensemble, METHODS[SHAPLEY], {}), ensemble.feature.size


def _grid() -> Iterator[tuple[str, int, int, int]]:
    yield from (("rows", n, 100, 6) for n in ROWS)
    yield from (("trees", FEW_ROWS, n, 6) for n in TREES)
    yield from (("depth", FEW_ROWS, DEEP_TREES, depth) for depth in DEPTHS)


def measure_scaling(folder: Path, repeats: int) -> list[Step]:
    """Time every step in turns."""
    contenders, grid, nodes = [], list(_grid()), []
    rows = make_rows(max(ROWS), 5)
    for along, n_rows, n_trees, depth in grid:
        prepared, n_nodes = _model(folder, n_trees, depth)
        slices, kernel = make_slices(prepared, rows[:n_rows], 1), METHODS[SHAPLEY].kernel
        work = partial(spread, lambda piece, kernel=kernel, tables=prepared.method: kernel(piece.ranks, tables, piece.phi), slices, None)
        contenders.append(Contender(along, 1, n_rows, work))
        nodes.append(n_nodes)
    speeds = race(contenders, repeats)
    return [Step(*step, n_nodes, speed.seconds) for step, n_nodes, speed in zip(grid, nodes, speeds, strict=True)]
