"""Inspection of a model: trees, features, and measured costs of methods."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.method.method import Method
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.kernels.trees.paths import trace

from ...arguments.readers import shorten
from ...dataset.columns.players import combination_names, number_players
from ...display.nearest import did_you_mean
from ...display.text import as_html, count
from ...errors import UnsupportedModel, UsageError
from ...methods.tables import prepare_model
from ...models import load_ensemble
from ...models.model import Model
from .inspected_statistics import InspectedStatistics, inspect_statistics
from .unsupported import Refusal, check_given, find_refusals

ROWS, REPEATS = 128, 3  # of a measurement
SLOW = 2.0  # seconds, from which a method is measured only once


@dataclass(frozen=True, slots=True)
class Counted:
    """A number per tree: its mean and maximum."""

    mean: float
    most: int


@dataclass(frozen=True, slots=True)
class InspectedFeature:
    """A feature of the model: its kind in words, and the splits and trees that use it."""

    name: str
    values: str
    splits: int
    trees: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a method on one thread, with default parameters; or why it is unknown."""

    method: str
    microseconds: float | None  # per row
    table_bytes: int | None
    refused: str | None


@dataclass(frozen=True, slots=True)
class Inspection:
    """A model as `inspect_model` found it.

    Attributes
    ----------
    library, digest, objective : str
        Whose it is, the SHA-256 of its file, and what it was trained for, "" where the file does not say.
    margin : str
        What a margin is: "label", a prediction in the label's units, "class", a class's score, "classes", those of classes of which a row has one,
        "alone", one of these without the others, or "other".
    outputs : tuple of str
    base : tuple of float
        Margins before any tree, one for each output.
    single_precision : bool
        Values are rounded to single precision before they are compared.
    missing : float or None
        A number that stands for missing values besides NaN, where the model says one.
    n_trees, n_leaves : int
    leaves, depth, distinct_features : Counted
        Of a tree; its depth in splits, and the features that it asks for.
    features : tuple of InspectedFeature
        In the model's order, and after them combinations that CatBoost has statistics of.
    statistics : InspectedStatistics or None
        CatBoost's, where the model has some.
    refused : tuple of Refusal
        What cannot be had for the model, or needs more than it, and why.
    costs : tuple of Cost
        Of the methods that were asked for.
    """

    library: str
    digest: str
    objective: str
    margin: str
    outputs: tuple[str, ...]
    base: tuple[float, ...]
    single_precision: bool
    missing: float | None
    n_trees: int
    n_leaves: int
    leaves: Counted
    depth: Counted
    distinct_features: Counted
    features: tuple[InspectedFeature, ...]
    statistics: InspectedStatistics | None
    refused: tuple[Refusal, ...]
    costs: tuple[Cost, ...]

    def __repr__(self) -> str:
        return f"Inspection({self.library}, {count(self.n_trees, 'tree')}, {count(self.n_leaves, 'leaf').replace('leafs', 'leaves')})"

    def _repr_html_(self) -> str:
        """The features that are asked for most."""
        most = sorted(self.features, key=lambda feature: -feature.splits)
        return as_html(str(self), ("feature", "values", "splits"), ((each.name, each.values, each.splits) for each in most))

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it.

        Returns
        -------
        dict
        """
        return asdict(self)


def _counted(numbers: np.ndarray) -> Counted:
    return Counted(float(numbers.mean()) if numbers.size else 0.0, int(numbers.max(initial=0)))


def _draw_rows(ensemble: TreeEnsemble) -> np.ndarray:
    """Make rows on both sides of the model's thresholds and in all categories, ``(features, ROWS)``, without data."""
    rng = np.random.default_rng(0)
    rows = np.zeros((ensemble.n_features, ROWS))
    for j, n in enumerate(ensemble.n_categories.tolist()):
        asked = ensemble.threshold[ensemble.feature == j]
        if j >= ensemble.n_features - ensemble.statistics.column.size:  # statistics' bins
            rows[j] = rng.integers(0, np.unique(asked).size + 1, ROWS)
        elif n:
            rows[j] = rng.integers(0, n + 1, ROWS)
        elif asked.size:
            drawn = rng.choice(asked[np.isfinite(asked)] if np.isfinite(asked).any() else np.zeros(1), ROWS)
            rows[j] = np.where(rng.random(ROWS) < 0.5, drawn, drawn + np.abs(drawn) * 1e-3 + 1e-3)
    return rows


def _measure(model: Model, method: Method, rows: np.ndarray) -> Cost:
    """Time repeated attributions of the same rows; the first call compiles."""
    given = {parameter.name: parameter.default for parameter in method.parameters}
    try:
        check_given(model, method)
        prepared = prepare_model(model, method, given, ())
    except (UsageError, UnsupportedModel) as error:
        return Cost(method.name, None, None, str(error))
    buffers = make_buffers(prepared, ROWS)
    seconds = []
    for _ in range(REPEATS + 1):
        buffers.values[:, :ROWS] = rows[prepared.bins.column]
        buffers.phi[:] = 0.0
        started = time.perf_counter()
        attribute_batch(method, prepared, buffers)
        seconds.append(time.perf_counter() - started)
        if len(seconds) > 1 and seconds[-1] > SLOW:
            break
    return Cost(method.name, float(np.median(seconds[1:])) / ROWS * 1e6, count_bytes(prepared.method), None)


def inspect_model(model: Model | str | PathLike | Any, methods: Sequence[str] = (), progress: Callable[[str], None] | None = None) -> Inspection:
    """Say what a model is made of, and measure what methods cost on it.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    methods : sequence of str
        Methods whose cost is measured, on one thread and on rows that are drawn around the model's own thresholds; none by default. The first use of
        a method compiles it.
    progress : callable, optional
        Told the name of each method before it is measured.

    Returns
    -------
    Inspection

    Raises
    ------
    LeafledgerError
        The model cannot be loaded, or a name is that of no method; one line.
    """
    loaded = load_ensemble(model)
    for name in methods:
        if name not in METHODS:
            raise UsageError(f"there is no method {shorten(name)}, expected some of {', '.join(METHODS)}{did_you_mean(name, METHODS)}")
    ensemble, costs = loaded.ensemble, []
    traced = trace(ensemble, ensemble.feature, ensemble.n_features)
    inner, n_trees = ensemble.feature >= 0, ensemble.root.size
    players, combinations = number_players(loaded, ()), combination_names(loaded, ())
    kinds = [(each.name, each.kind) for each in loaded.features] + [(name, "statistics of a combination") for name in combinations]
    of_splits = ensemble.feature[inner] if players.numbers is None else players.numbers[ensemble.feature[inner]]
    asked = np.unique(np.stack((traced.tree[inner], of_splits)), axis=1)
    rows = _draw_rows(ensemble)
    for name in methods:
        if progress is not None:
            progress(name)
        costs.append(_measure(loaded, METHODS[name], rows))
    splits, trees = (np.bincount(numbers, minlength=len(kinds)).tolist() for numbers in (of_splits, asked[1]))
    return Inspection(
        library=loaded.library,
        digest=loaded.digest,
        objective=loaded.objective.name,
        margin=loaded.objective.margin.value,
        outputs=loaded.outputs,
        base=tuple(ensemble.base.tolist()),
        single_precision=ensemble.single_precision,
        missing=loaded.missing,
        n_trees=n_trees,
        n_leaves=int((~inner).sum()),
        leaves=_counted(np.bincount(traced.tree[~inner], minlength=n_trees)),
        depth=_counted(traced.levels),
        distinct_features=_counted(np.bincount(asked[0], minlength=n_trees)),
        features=tuple(InspectedFeature(name, kind, n, t) for (name, kind), n, t in zip(kinds, splits, trees, strict=True)),
        statistics=inspect_statistics(ensemble.statistics),
        refused=find_refusals(loaded),
        costs=tuple(costs),
    )
