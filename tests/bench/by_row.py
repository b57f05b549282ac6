"""``python -m tests.bench.by_row``: predictions and losses background row by background row, beside the margin's own time, and shap."""

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_again, ask_background, measure_background, prepare
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.job.job import TABLE_BYTES
from tests.bench.ours import SHAPLEY

N_FEATURES, N_TREES, DEPTH = 20, 100, 6
BACKGROUNDS = (1_000, 100_000)
QUANTITIES = (None, Quantity("squared"), Quantity("sigmoid"), Quantity("log"))  # None for the margin
ROWS, REPEATS = 1 << 15, 3
SHAP_ROWS, SHAP_BACKGROUND = 200, 100


@dataclass(frozen=True, slots=True)
class Measured:
    """One background and quantity: seconds to count and to make tables, how many games, and rows per second on one thread."""

    background: int
    quantity: str
    games: int
    count: float
    tables: float
    rate: float


def train():
    """A model of two classes, and what draws rows for it."""
    import xgboost

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, N_FEATURES))
    label = (rows[:, 0] * rows[:, 1] + rows[:, 2] + rng.normal(size=len(rows)) > 0).astype(int)
    given = {"objective": "binary:logistic", "max_depth": DEPTH, "eta": 0.1}
    return xgboost.train(given, xgboost.DMatrix(rows, label), N_TREES), lambda n: rng.normal(size=(n, N_FEATURES))


def time_best(call):
    """Seconds of the fastest call."""
    found = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def measure(ensemble, rows, background, quantity) -> Measured:
    """Everything that a background costs once, and a row each time."""
    method = METHODS[SHAPLEY]
    query = ask_background(ensemble, method, n_rows=len(background), budget=TABLE_BYTES * 64, quantity=quantity)
    values, moments = background.T[query.bins.column].copy(), [time.perf_counter()]
    counted = measure_background(query, values)
    following = ask_again(query, counted)
    counted = counted if following is None else measure_background(following, values)
    moments.append(time.perf_counter())
    prepared = prepare(ensemble, method, {}, background=(query, counted))
    moments.append(time.perf_counter())
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:] = rows.T[prepared.bins.column]
    buffers.labels.label[:] = 1.0
    attribute_batch(method, prepared, buffers)  # compiles
    seconds = time_best(partial(attribute_batch, method, prepared, buffers))
    name = "margin" if quantity is None else quantity.name
    games = max(1, len(prepared.weighted.tables))
    return Measured(len(background), name, games, moments[1] - moments[0], moments[2] - moments[1], len(rows) / seconds)


def race_shap(model, rows, background) -> float:
    """Rows per second of shap, of probabilities."""
    import shap

    explainer = shap.TreeExplainer(model, background, model_output="probability")
    return len(rows) / time_best(partial(explainer.shap_values, rows, check_additivity=False))


def main() -> None:
    """Measure, and show a table."""
    model, draw = train()
    ensemble, rows = load_ensemble(model).ensemble, draw(ROWS)
    table = Table("background rows", "of", "games", "counted in", "tables in", "rows per second", "times the margin's", title="one thread")
    with threadpool_limits(1):
        for n in BACKGROUNDS:
            background, own = draw(n), 0.0
            for quantity in QUANTITIES:
                found = measure(ensemble, rows, background, quantity)
                own = own or found.rate
                numbers = f"{found.count:.2f} s", f"{found.tables:.2f} s", f"{found.rate:,.0f}", f"{own / found.rate:.1f}"
                table.add_row(f"{n:,}", found.quantity, str(found.games), *numbers)
        theirs = race_shap(model, rows[:SHAP_ROWS], draw(SHAP_BACKGROUND))
    table.add_row(f"{SHAP_BACKGROUND:,}", "sigmoid, shap", "", "", "", f"{theirs:,.0f}", "")
    Console().print(table)


if __name__ == "__main__":
    main()
