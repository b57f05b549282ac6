"""``python -m tests.bench.r2 [--quick] [--folder FOLDER]``: the decomposition of R² beside qshap 2.0.0, in an environment of its own, since qshap
wants an older NumPy than the other peers. What both give is compared, shares and every row's losses."""

import argparse
import json
import time
import warnings
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from leafledger import attribute
from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.r2.shares import finalize, no_rows, update, whole
from leafledger.kernels.slices.buffers import Prepared, make_buffers
from leafledger.pipeline.dataset.columns.labels import lay_out
from leafledger.pipeline.models import load_ensemble
from tests.bench.bars import Bar
from tests.bench.machine import describe_machine
from tests.bench.models import CASES, CATBOOST, LIGHTGBM, XGBOOST, Case, make_rows, make_target, trained, xgboost_trainer
from tests.bench.ours import MOST_SLICE, fill
from tests.bench.report import show_bars
from tests.bench.timing import Contender, Speed, race
from tests.bench.vendors import VENDORS

R2, QSHAP, PREDICT = "ours", "qshap", "predict"
MODELS = (
    Case("xgboost-100x4", "XGBoost, 100 trees, depth 4", XGBOOST, ".ubj", xgboost_trainer(100, 4)),
    CASES[0],
    Case("xgboost-500x3", "XGBoost, 500 trees, depth 3", XGBOOST, ".ubj", xgboost_trainer(500, 3)),
    next(case for case in CASES if case.library == CATBOOST),
)
ROWS, QUICK_ROWS = (1_000, 10_000, 100_000), (1_000, 4_000)
PEER_ROWS, QUICK_PEER_ROWS = 200, 100  # of qshap, which does 7 rows a second at depth 6
TREES = (25, 50, 100, 200)
REPEATS, QUICK_REPEATS = 5, 2
DEEP = "xgboost-100x6"
TIMES, RATE, OF_PREDICT, LINEAR = 40, 1_000, 1 / 10, 1.25
LOOKED_UP = ("xgboost-500x3", "catboost-500x6")  # that cost no more than so many predictions
# Of shares, and of losses beside the largest: qshap follows XGBoost's residuals in float32, the others' in float64.
ALLOWED = {XGBOOST: 1e-5, LIGHTGBM: 1e-9, CATBOOST: 1e-9}


@dataclass(frozen=True, slots=True)
class Found:
    """A model's speeds on one thread, and how far qshap's shares and losses are from ours; a loss is what its largest is the unit of."""

    case: str
    library: str
    model: str
    preparation: float  # seconds
    speeds: tuple[Speed, ...]
    share_difference: float
    loss_difference: float

    def rate(self, name: str, n_rows: int | None = None) -> float:
        """Rows per second, on the most rows where not told."""
        rates = {speed.n_rows: speed.rate for speed in self.speeds if speed.name == name}
        return rates[max(rates) if n_rows is None else n_rows]


def share_out(prepared: Prepared, rows: np.ndarray, label: np.ndarray) -> Any:
    """Shares of R^2 from the caller's matrix, a slice at a time: how a caller works through many rows."""
    state, place = no_rows(prepared.players.size), np.arange(prepared.players.size)
    for first in range(0, len(rows), MOST_SLICE):
        part = slice(first, first + MOST_SLICE)
        n = len(rows[part])
        buffers = make_buffers(prepared, n)._replace(labels=lay_out(label[part], np.ones(n)))
        fill(prepared, buffers, rows[part])
        attribute_batch(METHODS["r2"], prepared, buffers)
        state = update(state, buffers.phi[0], buffers.labels, n)
    return finalize(whole(state), place, place.size)


def load_peer(case: Case, path: Path) -> Any:
    """The model as qshap takes it: an estimator of scikit-learn's kind."""
    from qshap import gazer

    if case.library == XGBOOST:
        import xgboost

        model = xgboost.XGBRegressor()
        model.load_model(path)
        model.get_booster().feature_names = None  # qshap predicts a matrix, whose columns have no names
        return gazer(model)
    return gazer(VENDORS[case.library].load(path))


def ask_peer(peer: Any, rows: np.ndarray, label: np.ndarray) -> Any:
    with threadpool_limits(1):
        return peer.rsq(rows, label, local=True, ncore=1, progress_bar=False)


def compare(model: Any, peer: Any, rows: np.ndarray, label: np.ndarray) -> tuple[float, float]:
    """Largest differences of shares, and of losses beside the largest; qshap gives these with the other sign."""
    theirs, ours = ask_peer(peer, rows, label), attribute(model, rows, "r2", label=label)
    losses = ours.phi[:, 0]
    return float(np.abs(theirs.rsq - ours.summaries["r2"]["r2"].to_numpy()).max()), float(np.abs(theirs.loss + losses).max() / np.abs(losses).max())


def compare_lightgbm(n_rows: int) -> tuple[float, float]:
    """With a model that is trained here: of LightGBM's, qshap takes none from a file."""
    import lightgbm
    from qshap import gazer

    rows = make_rows(n_rows, 7)
    label = make_target(rows)
    model = lightgbm.LGBMRegressor(n_estimators=20, max_depth=4, n_jobs=1, verbose=-1, random_state=1).fit(rows, label)
    return compare(model, gazer(model), rows.astype(np.float64), label)


def measure(case: Case, folder: Path, sizes: tuple[int, ...], peer_rows: int, repeats: int) -> Found:
    """Shares of one model on one thread, on every number of rows, in turns with predictions and qshap."""
    path = trained(case, folder)
    ensemble = load_ensemble(str(path)).ensemble
    started = time.perf_counter()
    prepared = prepare(ensemble, METHODS["r2"], {})
    preparation = time.perf_counter() - started
    rows = make_rows(max(sizes), 6, case.n_features)
    label, vendor, peer = make_target(rows), VENDORS[case.library], load_peer(case, path)
    model, most = vendor.load(path), vendor.wrap(rows)
    asked = rows[:peer_rows].astype(np.float64)
    contenders = [Contender(R2, 1, n, partial(share_out, prepared, rows[:n], label[:n])) for n in sizes]
    contenders.append(Contender(PREDICT, 1, len(rows), partial(vendor.predict, model, most, 1)))
    differences = compare(str(path), peer, asked, label[:peer_rows])  # its kernels are compiled by this
    started = time.perf_counter()
    ask_peer(peer, asked, label[:peer_rows])
    once = time.perf_counter() - started
    contenders.append(Contender(QSHAP, 1, peer_rows, partial(ask_peer, peer, asked, label[:peer_rows]), once))
    return Found(case.key, case.library, case.name, preparation, tuple(race(contenders, repeats)), *differences)


def measure_trees(folder: Path, n_rows: int, repeats: int) -> dict[int, float]:
    """Seconds by the number of trees, of depth 4."""
    contenders, rows = [], make_rows(n_rows, 6)
    for n in TREES:
        case = replace(MODELS[0], key=f"xgboost-{n}x4", train=xgboost_trainer(n, 4))
        prepared = prepare(load_ensemble(str(trained(case, folder))).ensemble, METHODS["r2"], {})
        contenders.append(Contender(str(n), 1, n_rows, partial(share_out, prepared, rows, make_target(rows))))
    return {int(speed.name): speed.seconds for speed in race(contenders, repeats)}


def _agree(case: str, library: str, shares: float, losses: float) -> list[Bar]:
    allowed = ALLOWED[library]
    return [
        Bar(case, "R²: difference of shares from qshap's", shares, allowed, most=True),
        Bar(case, "R²: difference of losses from qshap's, of the largest", losses, allowed, most=True),
    ]


def judge(measured: list[Found], trees: dict[int, float], lightgbm: tuple[float, float]) -> list[Bar]:
    """Every bar; how time grows is its ratio to proportional growth."""
    bars = _agree("lightgbm-20x4", LIGHTGBM, *lightgbm)
    for found in measured:
        fewest, most = (of(speed.n_rows for speed in found.speeds if speed.name == R2) for of in (min, max))
        bars.append(Bar(found.case, "R²: time per row, most rows over fewest", found.rate(R2, fewest) / found.rate(R2, most), LINEAR, most=True))
        if found.case == DEEP:
            bars.append(Bar(found.case, "R²: times qshap", found.rate(R2) / found.rate(QSHAP), TIMES))
            bars.append(Bar(found.case, "R²: rows/s on one thread", found.rate(R2), RATE))
        if found.case in LOOKED_UP:
            bars.append(Bar(found.case, "R²: times predict", found.rate(R2) / found.rate(PREDICT), OF_PREDICT))
        bars += _agree(found.case, found.library, found.share_difference, found.loss_difference)
    fewest, most = min(trees), max(trees)
    bars.append(Bar("xgboost-25x4 … 200x4", "R²: time per tree, most over fewest", trees[most] / most / (trees[fewest] / fewest), LINEAR, most=True))
    return bars


def show(found: Found) -> Table:
    """Seconds and rows per second of one model."""
    title = f"R² of {found.model}, one thread; prepared in {found.preparation:.2f} s"
    caption = f"qshap's shares are within {found.share_difference:.0e} of ours, losses within {found.loss_difference:.0e} of the largest"
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for name in ("", "rows", "seconds", "rows/s", "spread", "ours /"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for speed in found.speeds:
        spread = "once" if speed.spread is None else f"{speed.spread:.0%}"
        times = "" if speed.name == R2 else f"{found.rate(R2) / speed.rate:.3g}"
        table.add_row(speed.name, f"{speed.n_rows:,}", f"{speed.seconds:.3f}", f"{speed.rate:,.0f}", spread, times)
    return table


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.r2", description="Benchmark of the decomposition of R².")
    parser.add_argument("--quick", action="store_true", help="fewer rows and repeats")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"), help="where models are kept and r2.json is written")
    options = parser.parse_args()
    folder, console = options.folder.absolute(), Console(width=max(150, Console().width))
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # the peer's own
    sizes, peer_rows, repeats = (QUICK_ROWS, QUICK_PEER_ROWS, QUICK_REPEATS) if options.quick else (ROWS, PEER_ROWS, REPEATS)
    machine = describe_machine(["qshap"])
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()), highlight=False)
    measured = []
    for case in MODELS:
        measured.append(measure(case, folder, sizes, peer_rows, repeats))
        console.print(show(measured[-1]))
    trees = measure_trees(folder, sizes[0], repeats)
    console.print("seconds by trees of depth 4: " + ", ".join(f"{n}: {seconds:.3f}" for n, seconds in trees.items()), highlight=False)
    bars = judge(measured, trees, compare_lightgbm(peer_rows))
    console.print(show_bars(bars))
    results = {
        "machine": machine,
        "measured": [asdict(found) for found in measured],
        "trees": trees,
        "bars": [asdict(bar) | {"met": bar.met} for bar in bars],
    }
    (folder / "r2.json").write_text(json.dumps(results, indent=1))
    console.print(f"{folder}/r2.json written", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
