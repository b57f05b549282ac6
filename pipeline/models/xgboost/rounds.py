"""Iterations of XGBoost's trees; files of versions before 1.6 do not say how many trees an iteration has."""

from typing import Any

import numpy as np

from ...errors import InvalidModel, UnsupportedModel
from ..formats.ubjson import integer, member, numbers
from .wrapper import read_attributes, read_notes

PARALLEL, BEST, BEST_TREES = "num_parallel_tree", "best_iteration", "best_ntree_limit"
STATED = (1, 6)  # version that states num_parallel_tree
BEST_STATED = (1, 4)  # version that states the number of trees up to the best iteration
MOST = 1 << 30


def _by_order(output: np.ndarray, n_outputs: int, where: str) -> int | None:
    """Tell trees per output and iteration by their order: all of the first output, all of the second and so on, then the next iteration."""
    if n_outputs == 1 or not output.size:
        return None
    parallel = int(np.argmax(output != output[0])) or output.size
    if not np.array_equal(output, np.resize(np.repeat(np.arange(n_outputs), parallel), output.size)):
        raise UnsupportedModel(
            f"{where}: iterations differ in their number of trees, which XGBoost before 1.6 does not say: train it with 1.6 or later"
        )
    return parallel


def _by_notes(notes: dict[str, Any], n_rounds: int, best: int | None, where: str) -> int | None:
    """Tell them by an estimator's parameters; a random forest leaves this one out, and has its ``n_estimators`` in one iteration."""
    if notes.get(PARALLEL) is not None:
        return integer(notes, PARALLEL, 1, MOST, where)
    perhaps_forest = best == 0 and notes.get("n_estimators") == n_rounds
    return 1 if notes and not perhaps_forest else None


def _parallel(learner: dict[str, Any], parameters: dict[str, Any], version: tuple[int, ...], output: np.ndarray, n_outputs: int, where: str) -> int:
    """Return the number of trees of an output in an iteration, by all that a file says of it."""
    attributes, notes = read_attributes(learner), read_notes(learner, where)
    best = None if attributes.get(BEST) is None else integer(attributes, BEST, 0, MOST, where)
    said: dict[str, int | None] = {}
    if PARALLEL in parameters or version >= STATED:
        said[PARALLEL] = integer(parameters, PARALLEL, 0, MOST, where, default="1") or 1
    else:
        said["the order of trees"] = _by_order(output, n_outputs, where)
        said["the estimator"] = _by_notes(notes, output.size // n_outputs, best, where)
    if best is not None and BEST_TREES in attributes:
        said[BEST_TREES] = integer(attributes, BEST_TREES, 0, MOST, where) // (best + 1)
    told = {name: number for name, number in said.items() if number is not None}
    if len(set(told.values())) > 1:
        raise InvalidModel(
            f"{where}: an iteration has {', '.join(f'{number} trees by {name}' for name, number in told.items())}, expected one "
            "number; versions from 1.6 on misread what earlier ones wrote: explain the file that was saved first"
        )
    if not told and best is not None and best + 1 < output.size and version < BEST_STATED:
        raise UnsupportedModel(
            f"{where}: XGBoost {version[0]}.{version[1]} does not say how many trees an iteration has ({PARALLEL}), nor so which are those up to the "
            f"best iteration {best}: save it again after booster.set_attr({BEST_TREES}=...), their number, or with {BEST}=None, to explain all"
        )
    return next(iter(told.values()), 1)


def number_rounds(learner: dict[str, Any], model: dict[str, Any], version: tuple[int, ...], n_outputs: int, where: str) -> np.ndarray:
    """Return the iteration of every tree, up to the best iteration of early stopping, as ``XGBModel.predict`` does."""
    parameters, output = member(model, "gbtree_model_param", dict, where), numbers(model, "tree_info", int, None, where)
    per_round = n_outputs * _parallel(learner, parameters, version, output, n_outputs, where)
    bounds = np.arange(0, output.size + per_round, per_round)
    if "iteration_indptr" in model:  # since 2.0
        bounds = numbers(model, "iteration_indptr", int, None, where)
    if bounds.size < 1 or bounds[0] != 0 or bounds[-1] != output.size or (np.diff(bounds) < 0).any():
        raise InvalidModel(f"{where}: 'iteration_indptr' {str(bounds)[:40]} does not divide {output.size} trees into rounds")
    attributes, used = read_attributes(learner), bounds.size - 1
    if attributes.get(BEST) is not None:
        used = integer(attributes, BEST, 0, bounds.size - 2, where) + 1
    return np.repeat(np.arange(used, dtype=np.int32), np.diff(bounds[: used + 1]))
