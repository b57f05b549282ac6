"""How the kernel's time grows with rows, trees and nodes: nanoseconds per row, node and point of the quadrature stay the same where it grows in
proportion. Deeper trees have more nodes, and for Shapley values more points."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import Prepared
from leafledger.pipeline.models import load_ensemble
from tests.bench.models import CASES, make_rows, trained, xgboost_trainer
from tests.bench.ours import BANZHAF, SHAPLEY, make_slices, spread
from tests.bench.timing import Contender, race

ROWS, TREES, DEPTHS = (2_048, 4_096, 8_192, 16_384), (25, 50, 100, 200, 400), (4, 6, 8, 10)
QUICK_ROWS, QUICK_TREES, QUICK_DEPTHS = (2_048, 4_096), (25, 100), (4, 6)
FEW_ROWS, DEEP_TREES = 2_048, 25


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel, alone and on one thread, on one model."""

    along: str  # what grows
    method: str
    n_rows: int
    n_trees: int
    depth: int
    n_nodes: int
    n_points: float  # of the quadrature, mean over nodes
    seconds: float

    @property
    def nanoseconds(self) -> float:
        """Per row, node and point."""
        return 1e9 * self.seconds / (self.n_rows * self.n_nodes * self.n_points)


def _model(folder: Path, method: str, n_trees: int, depth: int) -> tuple[Prepared, int, float]:
    """Tables, nodes, and points that a node is taken at in the mean: no tree of these models is looked up."""
    case = replace(CASES[0], key=f"xgboost-{n_trees}x{depth}", train=xgboost_trainer(n_trees, depth))
    ensemble = load_ensemble(trained(case, folder)).ensemble
    prepared = prepare(ensemble, METHODS[method], {"p": 0.5})
    walks = prepared.method.walked
    steps = [int((some.stop - some.start).sum()) for some in walks]
    points = sum(n * some.weights.shape[1] for n, some in zip(steps, walks, strict=True))
    once = prepare(ensemble, METHODS[BANZHAF], {"p": 0.5}).method.walked.one
    return prepared, ensemble.feature.size, points / int((once.stop - once.start).sum())


def _grid(quick: bool) -> Iterator[tuple[str, str, int, int, int]]:
    """What grows, method, rows, trees and depth of every step."""
    rows, trees, depths = (QUICK_ROWS, QUICK_TREES, QUICK_DEPTHS) if quick else (ROWS, TREES, DEPTHS)
    yield from (("rows", SHAPLEY, n, 100, 6) for n in rows)
    yield from (("trees", SHAPLEY, FEW_ROWS, n, 6) for n in trees)
    for method in (SHAPLEY, BANZHAF):
        yield from (("nodes", method, FEW_ROWS, DEEP_TREES, depth) for depth in depths)


def measure_scaling(folder: Path, repeats: int, quick: bool) -> list[Step]:
    """Time every step in turns."""
    contenders, grid, sizes = [], list(_grid(quick)), []
    rows = make_rows(max(ROWS), 5)
    for along, method, n_rows, n_trees, depth in grid:
        prepared, *size = _model(folder, method, n_trees, depth)
        slices, kernel = make_slices(prepared, rows[:n_rows], 1), METHODS[method].kernel
        work = partial(spread, lambda piece, kernel=kernel, tables=prepared.method: kernel(piece, tables), slices, None)
        contenders.append(Contender(along, 1, n_rows, work))
        sizes.append(size)
    speeds = race(contenders, repeats)
    return [Step(*step, *size, speed.seconds) for step, size, speed in zip(grid, sizes, speeds, strict=True)]
