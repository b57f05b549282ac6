"""Predictions and losses, background row by background row: beside margins against the same background, and beside shap, on one thread."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.table import Table
from threadpoolctl import threadpool_limits

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_again, ask_background, measure_background, prepare
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.slices.buffers import Buffers, Prepared, make_buffers
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.job.job import TABLE_BYTES
from tests.bench.marginal import named
from tests.bench.models import CASES, Case, trained, xgboost_trainer
from tests.bench.ours import SHAPLEY
from tests.bench.timing import Contender, Speed, race

MARGIN = "margin"
SHAP = {"sigmoid": "probability", "log": "log_loss"}  # as shap calls what it knows of these
NAMES = {"squared": "squared error", "sigmoid": "probability", "log": "log loss", MARGIN: MARGIN}
BACKGROUNDS, QUICK_BACKGROUNDS, SHAP_BACKGROUND = (100, 1_000, 100_000), (100, 1_000), 100
ROWS, QUICK_ROWS, SHAP_ROWS, QUICK_SHAP_ROWS = 1 << 15, 1 << 12, 100, 20


def _train(rows: np.ndarray, target: np.ndarray, path: Path) -> None:
    xgboost_trainer(100, 6, objective="binary:logistic")(rows, (target > np.median(target)).astype(int), path)


CASE = Case("classes-2", "XGBoost, 100 trees, depth 6, two classes", CASES[0].library, ".ubj", _train)


@dataclass(frozen=True, slots=True)
class ByRow:
    """One background, and what attributions add up to."""

    model: str
    n_background: int
    quantity: str  # of NAMES
    games: int
    count: float  # seconds to read the background
    tables: float  # seconds to make tables
    ours: Speed  # bins, margins and attributions
    margin: Speed  # the same of margins
    theirs: Speed | None = None  # shap
    difference: float | None = None  # from shap, of the largest attribution

    @property
    def times_margin(self) -> float:
        """Times as long as attributions of margins take."""
        return self.margin.rate / self.ours.rate

    @property
    def times_shap(self) -> float | None:
        """Times shap's rows per second."""
        return self.theirs and self.ours.rate / self.theirs.rate


@dataclass(frozen=True, slots=True)
class _Ready:
    prepared: Prepared
    buffers: Buffers
    seconds: tuple[float, float]

    @property
    def games(self) -> int:
        return max(1, len(self.prepared.weighted.tables))


def _ready(ensemble: TreeEnsemble, rows: np.ndarray, labels: np.ndarray, background: np.ndarray, quantity: Quantity | None) -> _Ready:
    """Tables of a background, and rows in buffers, whose kernels are compiled."""
    method = METHODS[SHAPLEY]
    query = ask_background(ensemble, method, n_rows=len(background), budget=16 * TABLE_BYTES, quantity=quantity)
    values = background.T[query.bins.column].astype(float)
    moments = [time.perf_counter()]
    counted = measure_background(query, values)
    following = ask_again(query, counted)
    counted = counted if following is None else measure_background(following, values)
    moments.append(time.perf_counter())
    prepared = prepare(ensemble, method, {}, background=(query, counted))
    moments.append(time.perf_counter())
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:] = rows.T[prepared.bins.column]
    buffers.labels.label[:] = labels
    attribute_batch(method, prepared, buffers)
    count, tables = (later - earlier for earlier, later in pairwise(moments))
    return _Ready(prepared, buffers, (count, tables))


def _contend_shap(model: Path, name: str, rows: np.ndarray, labels: np.ndarray, background: np.ndarray) -> tuple[Contender, np.ndarray]:
    """Shap on some rows, and what it finds."""
    import shap
    import xgboost

    booster = xgboost.Booster(model_file=model)
    explainer = shap.TreeExplainer(booster, background, feature_perturbation="interventional", model_output=SHAP[name])
    call = partial(explainer.shap_values, rows, *([labels] if name == "log" else ()), check_additivity=False)
    found, started = call(), time.perf_counter()
    call()
    return Contender(f"shap, {SHAP[name]}", 1, len(rows), call, time.perf_counter() - started), np.asarray(found)


def measure_by_row(folder: Path, repeats: int, quick: bool, peers: bool) -> Iterator[ByRow]:
    """Every quantity with every background; beside ``peers`` with the smallest."""
    path, draw = trained(CASE, folder), partial(CASE.draw, n_features=CASE.n_features)
    n_rows = QUICK_ROWS if quick else ROWS
    ensemble, rows = load_ensemble(path).ensemble, draw(n_rows, 2)
    labels = (np.random.default_rng(3).random(n_rows) < 0.5).astype(float)
    backgrounds = {n: draw(n, 4) for n in (QUICK_BACKGROUNDS if quick else BACKGROUNDS)}
    asked = {MARGIN: None} | {name: Quantity(name) for name in NAMES if name != MARGIN}
    ready, contenders, theirs = dict[tuple[int, str], _Ready](), list[Contender](), dict[str, tuple[Contender, np.ndarray]]()
    for n, background in backgrounds.items():
        for name, quantity in asked.items():
            with threadpool_limits(1):
                _ready(ensemble, rows, labels, background[:2], quantity)  # compiles
                made = ready[n, name] = _ready(ensemble, rows, labels, background, quantity)
            call = partial(attribute_batch, METHODS[SHAPLEY], made.prepared, made.buffers)
            contenders.append(Contender(named(NAMES[name], n), 1, n_rows, call))
    if peers:
        some = slice(QUICK_SHAP_ROWS if quick else SHAP_ROWS)
        theirs = {name: _contend_shap(path, name, rows[some], labels[some], backgrounds[SHAP_BACKGROUND]) for name in SHAP}
        contenders += [contender for contender, _ in theirs.values()]
    speeds = {speed.name: speed for speed in race(contenders, repeats)}
    for (n, name), each in ready.items():
        found, difference = None, None
        if name in theirs and n == SHAP_BACKGROUND:
            contender, phi = theirs[name]
            found = speeds[contender.name]
            ours = np.zeros(phi.shape)
            ours[:, each.prepared.players] = each.buffers.phi[0, :, : len(phi)].T
            difference = float(np.abs(ours - phi).max() / np.abs(phi).max())
        mine, margins = (speeds[named(NAMES[what], n)] for what in (name, MARGIN))
        yield ByRow(CASE.name, n, NAMES[name], each.games, *each.seconds, mine, margins, found, difference)


def show_by_row(found: list[ByRow]) -> Table:
    """Rows per second, how many times as long margins' attributions that is, and shap's."""
    table = Table(title=f"Background row by background row, {found[0].model}, one thread", title_justify="left")
    table.add_column("", no_wrap=True)
    for head in ("background", "games", "count s", "tables s", "rows/s", "times margin's", "shap's rows/s", "ours /", "difference"):
        table.add_column(head, justify="right", no_wrap=True)
    for each in found:
        numbers = f"{each.count:.3f}", f"{each.tables:.3f}", f"{each.ours.rate:,.0f}", f"{each.times_margin:.1f}"
        peer = (f"{each.theirs.rate:,.0f}", f"{each.times_shap:.0f}", f"{each.difference:.0e}") if each.theirs else ("", "", "")
        table.add_row(each.quantity, f"{each.n_background:,}", str(each.games), *numbers, *peer)
    return table
