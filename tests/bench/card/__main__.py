"""Leafledger on a graphics card and on threads, beside GPUTreeShap and woodelf on the same card: python -m tests.bench.card MODEL….

Models are files, which ``python -m tests.bench.card --train FOLDER`` makes on a machine that has their libraries. GPUTreeShap is a program, compiled
from gputreeshap.cu beside this file and a checkout of its header. With ``--background`` values are those against so many rows; ``--kept 2 20`` keeps
tables of codes of 2 bits, sums over subsets of leaves of 20 players, and patterns of others, ``--kept 0 0`` patterns alone.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import leafledger
from leafledger.kernels.marginal import query
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import Prepared, make_buffers
from leafledger.kernels.trees.binning import bin_rows
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from tests.bench.models import FEATURES, NAMES, make_rows, make_target, xgboost_trainer

REPEATS = 3
THREADS = (1, 2, 4, 8, 16)
CHECKED = 1000  # rows whose values are compared
SEED = 5


def train(folder: Path) -> None:
    """Save the three models: shallow and deep trees of XGBoost, and LightGBM's with many leaves."""
    import lightgbm

    rows = make_rows(50_000, 0)
    target = make_target(rows)
    for n_trees, depth in ((100, 6), (500, 8)):
        xgboost_trainer(n_trees, depth)(rows, target, folder / f"xgboost-{n_trees}x{depth}.ubj")
    given = {"num_leaves": 1024, "min_data_in_leaf": 5, "verbosity": -1, "seed": 1}
    lightgbm.train(given, lightgbm.Dataset(rows, target, feature_name=NAMES), 100).save_model(folder / "lightgbm-100x1024.txt")


def list_paths(ensemble: TreeEnsemble) -> list[np.ndarray]:
    """Every leaf's path as GPUTreeShap takes it, elements end to end: path, feature, lower and upper end, missing, cover ratio, leaf value."""
    parent = np.full(ensemble.feature.size, -1)
    inner = np.flatnonzero(ensemble.feature >= 0)
    parent[ensemble.left[inner]] = parent[ensemble.right[inner]] = inner
    beyond = ensemble.threshold.astype(np.float32)  # x <= threshold is x < the next number of single precision
    beyond = np.where(beyond <= ensemble.threshold, np.nextafter(beyond, np.float32(np.inf)), beyond)
    leaves = np.flatnonzero(ensemble.feature < 0)
    node, path, parts = leaves, np.arange(leaves.size), []
    n = leaves.size
    root = (np.full(n, -1), np.full(n, -np.inf), np.full(n, np.inf), np.ones(n, bool), np.ones(n), ensemble.value[leaves, 0])
    parts.append((path, *root))
    while True:
        below = parent[node] >= 0
        node, path = node[below], path[below]
        if not node.size:
            break
        split = parent[node]
        left = ensemble.left[split] == node
        ratio = ensemble.cover[node] / (ensemble.cover[ensemble.left[split]] + ensemble.cover[ensemble.right[split]])
        ends = np.where(left, -np.inf, beyond[split]), np.where(left, beyond[split], np.inf)
        parts.append((path, ensemble.feature[split], *ends, ensemble.missing_left[split] == left, ratio, ensemble.value[leaves[path], 0]))
        node = split
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    types = (np.int64, np.int64, np.float32, np.float32, np.uint8, np.float64, np.float32)
    return [column[order].astype(dtype) for column, dtype in zip(columns, types, strict=True)]


def clock(call: Callable[[], object]) -> float:
    """The median of a few calls' seconds."""
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def compare(name: str, phi: np.ndarray, expected: np.ndarray) -> str:
    return f"{name} differs by at most {np.abs(phi - expected).max() / np.abs(expected).max():.1e} of the largest attribution"


def measure_peer(program: Path, model: Path, rows: np.ndarray, expected: np.ndarray) -> None:
    """Time GPUTreeShap, in a process of its own."""
    paths = list_paths(load_ensemble(model).ensemble)
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "given", Path(folder) / "phi"
        with given.open("wb") as file:
            for array in (np.array([paths[0].size, *rows.shape], np.int64), *paths, rows):
                array.tofile(file)
        said = subprocess.run([program, given, out], capture_output=True, text=True, check=True).stdout.split()
        phi = np.fromfile(out, np.float32).reshape(len(rows), -1)[:CHECKED, :FEATURES]
    for what in ("whole", "kernel"):
        seconds = statistics.median(float(taken) for kind, taken in zip(said[::2], said[1::2], strict=True) if kind == what)
        print(f"GPUTreeShap, {what}: {len(rows) / seconds:,.0f} rows/s", flush=True)
    print(compare("GPUTreeShap", phi, expected), flush=True)


def measure_kernels(prepared: Prepared, rows: np.ndarray) -> None:
    """Time our kernels alone, bins on the card beforehand, together and one by one; and with copies of bins and attributions."""
    from leafledger.kernels.cuda.card import on_card
    from leafledger.kernels.cuda.decorator import cuda
    from leafledger.kernels.cuda.tables import Jobs, launch, lay_out, send

    method, buffers = on_card(METHODS["shapley"], prepared), make_buffers(prepared, len(rows))
    n_phi, n = buffers.phi.shape[1:]
    buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
    bin_rows(buffers.values, prepared.bins, buffers.bins)
    started = time.perf_counter()
    method.kernel(buffers._replace(n_rows=64), prepared.method)
    print(f"first call, which compiles: {time.perf_counter() - started:.1f} s", flush=True)
    jobs = send(lay_out(prepared.method, 8 * buffers.bins.itemsize, n_phi))
    given, out = cuda.to_device(buffers.bins.reshape(-1)), cuda.to_device(buffers.phi.reshape(-1))

    def alone(some: Jobs) -> None:
        launch(some, given, out, n_phi, n, len(rows), cuda.default_stream())
        cuda.synchronize()

    print(f"leafledger, kernels: {len(rows) / clock(lambda: alone(jobs)):,.0f} rows/s", flush=True)
    for job in jobs:
        rate = len(rows) / clock(lambda job=job: alone([job]))
        print(f"leafledger, {job.kernel.py_func.__name__}, {job.n_bytes / 2**20:,.1f} MiB: {rate:,.0f} rows/s", flush=True)
    rate = len(rows) / clock(lambda: method.kernel(buffers._replace(n_rows=len(rows)), prepared.method))
    print(f"leafledger, with copies: {rate:,.0f} rows/s", flush=True)


def measure(model: Path, rows: np.ndarray, background: np.ndarray | None, program: Path | None, with_woodelf: bool) -> None:
    """Measure everything on one model; attributions of the processor are what others are compared with."""
    print(f"== {model.name}, {len(rows):,} rows{'' if background is None else f', background of {len(background):,}'}", flush=True)
    on_threads, on_card = (leafledger.prepare(model, device=device, background=background) for device in ("cpu", "cuda"))
    expected = on_threads(rows[:CHECKED]).phi[:, 0]
    print(compare("the card", on_card(rows[:CHECKED]).phi[:, 0], expected), flush=True)
    for threads in THREADS:
        some = rows[: max(CHECKED, len(rows) * threads // (16 * THREADS[-1]))]
        rate = len(some) / clock(lambda some=some, threads=threads: on_threads._explain(some, None, None, threads))
        print(f"leafledger, {threads} threads: {rate:,.0f} rows/s", flush=True)
    print(f"leafledger, rows in memory on the card: {len(rows) / clock(lambda: on_card(rows)):,.0f} rows/s", flush=True)
    measure_kernels(on_card._prepared, rows)
    if program is not None:
        measure_peer(program, model, rows, expected)
    if with_woodelf:
        import pandas as pd
        import woodelf
        import xgboost

        frame = pd.DataFrame(rows[: len(rows) // 10], columns=NAMES)
        explainer = woodelf.WoodelfExplainer(xgboost.Booster(model_file=model), GPU=True)
        print(f"woodelf: {len(frame) / clock(lambda: explainer.shap_values(frame, verbose=False)):,.0f} rows/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.card", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--train", type=Path, help="make the models in this folder, and measure nothing")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--gputreeshap", type=Path, help="the compiled program")
    parser.add_argument("--woodelf", action="store_true", help="beside woodelf on CuPy, a tenth of the rows; of models of XGBoost")
    parser.add_argument("--background", type=int, help="values against so many rows, without others' programs")
    parser.add_argument("--kept", type=int, nargs=2, metavar=("BITS", "PLAYERS"), help="bits of codes with tables, players of summed leaves")
    given = parser.parse_args()
    if given.background and (given.gputreeshap or given.woodelf):
        parser.error("others' programs are measured without a background")
    if given.kept:
        query.COARSE_TO_FINE = [tuple(given.kept)]
    if given.train is not None:
        train(given.train)
    for model in given.models:
        background = make_rows(given.background, SEED + 1) if given.background else None
        measure(model, make_rows(given.rows, SEED), background, given.gputreeshap, given.woodelf)


if __name__ == "__main__":
    main()
