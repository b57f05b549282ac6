"""Compilation of what effects call, ahead of them: both ways over a small model and a few rows."""

import numpy as np

from leafledger.kernels.slices.links import Link
from leafledger.kernels.trees.ensemble import TreeEnsemble

from ..methods.warmup import N_CATEGORIES, N_NUMERIC, N_ROWS, list_small_models
from ..models.model import Feature, Model
from ..models.objectives import Objective
from .feature_effects import feature_effects
from .partial_dependence import partial_dependence


def _call(ensemble: TreeEnsemble) -> None:
    """Call every kernel of effects on a model."""
    features = (*(Feature(f"f{j}") for j in range(N_NUMERIC)), Feature("c", True, tuple(map(str, range(N_CATEGORIES)))))
    outputs = tuple(f"y{k}" for k in range(ensemble.base.size))
    model = Model(ensemble, features, outputs, "", "", Objective(link=Link("softmax" if len(outputs) > 1 else "sigmoid")))
    rows = {each.name: np.zeros(N_ROWS) for each in features} | {"c": ["0"] * N_ROWS}
    asked = ["f0", "f1", "c"]
    feature_effects(model, rows, features=asked, pairs=[("f0", "f1")])
    feature_effects(model, rows, features=asked, space="response")
    partial_dependence(model, features=asked)


def warm_effects() -> None:
    """Compile or load every kernel that effects call."""
    for ensemble in list_small_models():
        _call(ensemble)
