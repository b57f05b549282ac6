"""What a user would pick instead: every other way to path-dependent Shapley values of these models, each wrapped once.

fasttreeshap itself is left out: 0.1.6 fails at import on NumPy 2 ("`np.obj2sctype` was removed in the NumPy 2.0 release"). Its fork stands for it.
"""

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.machine import find_version
from tests.bench.models import CATBOOST, LIGHTGBM, XGBOOST, Case, feature_names
from tests.bench.vendors import VENDORS

TREES = frozenset({XGBOOST, LIGHTGBM})
EVERY = TREES | {CATBOOST}
FEW_ROWS, PREPARING_ROWS, MANY_ROWS = 16, 20_000, 50_000


@dataclass(frozen=True, slots=True)
class Peer:
    """An explainer. Timed is ``call(explainer, wrapped, threads)`` alone; what ``prepare(case, model, threads)`` took is noted, not ``wrap``.

    ``values(case, result)`` is ``(outputs, n, features)``. ``package`` is whose version counts, the library's own where None; where not
    ``parallel``, one thread is all it uses. ``least(case)`` rows are what it needs at least to be at its best: it may prepare in every call.
    """

    name: str
    package: str | None
    libraries: frozenset[str]
    parallel: bool
    prepare: Callable[[Case, Any, int], Any]
    wrap: Callable[[Case, np.ndarray], Any]
    call: Callable[[Any, Any, int], Any]
    values: Callable[[Case, Any], np.ndarray]
    least: Callable[[Case], int] = lambda case: FEW_ROWS
    without: frozenset[str] = frozenset()  # keys of cases it cannot read or is too slow for

    def supports(self, case: Case) -> bool:
        """Whether it can be asked about a model here, where it may not be installed."""
        installed = self.package is None or find_version(self.package) is not None
        return installed and case.library in self.libraries and case.key not in self.without


def as_is(case: Case, rows: np.ndarray) -> np.ndarray:
    return rows


def _prepare_own(case, model, threads):
    return VENDORS[case.library].contributions, model


def _own_values(case, result):
    return result.reshape(len(result), case.n_classes, case.n_features + 1)[:, :, :-1].transpose(1, 0, 2)


def _prepare_shap(case, model, threads):
    import shap

    explainer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    explainer.model.model_type = "internal"  # else it hands the rows to the library's own contributions
    return explainer


def shap_values(case, result):
    return result.reshape(len(result), case.n_features, case.n_classes).transpose(2, 0, 1)


def _prepare_fasttreeshap(algorithm):
    def prepare(case, model, threads):
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):  # it prints that there is no IPython
            import fasttreeshap_fixed

        return fasttreeshap_fixed.TreeExplainer(model, algorithm=algorithm, n_jobs=threads)

    return prepare


def _fasttreeshap_values(case, result):
    return np.stack(result if isinstance(result, list) else [result])


def _prepare_shapiq(case, model, threads):
    import shapiq

    classes = range(case.n_classes) if case.n_classes > 1 else [None]
    explainers = [shapiq.TreeExplainer(model, index="SV", min_order=1, max_order=1, class_index=k) for k in classes]
    for explainer in explainers:
        explainer.explain(np.zeros(case.n_features, np.float32))  # its tables are made by the first row
    return explainers


def _shapiq_values(case, result):
    out = np.zeros((case.n_classes, len(result[0]), case.n_features))
    for k, batch in enumerate(result):
        for (j,), column in batch.values.items():
            out[k, :, j] = column
    return out


def _prepare_woodelf(case, model, threads):
    import woodelf
    from woodelf.core.trees.parse_models import load_decision_tree_ensemble_model

    if case.n_classes == 1:
        return [woodelf.WoodelfExplainer(model)]
    names = feature_names(case.n_features)
    return [woodelf.WoodelfExplainer(load_decision_tree_ensemble_model(model, names, class_index=k)) for k in range(case.n_classes)]


def wrap_woodelf(case, rows):
    import pandas as pd

    return pd.DataFrame(rows, columns=feature_names(case.n_features))


OWN = "library's own"
WOODELF, SHAPIQ = "woodelf", "shapiq"
WOODELF_PACKAGE = "woodelf-explainer"


def _fasttreeshap(algorithm: str) -> Peer:
    return Peer(
        name=f"fasttreeshap-fixed, {algorithm}",
        package="fasttreeshap-fixed",
        libraries=TREES,  # CatBoost's own computes what it is asked of CatBoost's models
        parallel=True,
        prepare=_prepare_fasttreeshap(algorithm),
        wrap=as_is,
        call=lambda explainer, rows, threads: explainer.shap_values(rows, check_additivity=False),
        values=_fasttreeshap_values,
        without=frozenset({"classes-10"}),  # it cannot read a base score for each class
    )


PEERS = (
    Peer(
        name=OWN,
        package=None,
        libraries=EVERY,
        parallel=True,
        prepare=_prepare_own,
        wrap=lambda case, rows: VENDORS[case.library].wrap(rows),
        call=lambda own, wrapped, threads: own[0](own[1], wrapped, threads),
        values=_own_values,
        least=lambda case: PREPARING_ROWS if case.library == CATBOOST else FEW_ROWS,
    ),
    Peer(
        name="shap, C extension",
        package="shap",
        libraries=TREES,  # of CatBoost's models it knows no covers
        parallel=False,
        prepare=_prepare_shap,
        wrap=as_is,
        call=lambda explainer, rows, threads: explainer.shap_values(rows, check_additivity=False),
        values=shap_values,
    ),
    _fasttreeshap("v1"),
    _fasttreeshap("v2"),
    Peer(
        name=SHAPIQ,
        package="shapiq",
        libraries=EVERY,
        parallel=False,  # n_jobs sends the whole explainer with every row: a hundred times slower
        prepare=_prepare_shapiq,
        wrap=as_is,
        call=lambda explainers, rows, threads: [explainer.explain_X(rows) for explainer in explainers],
        values=_shapiq_values,
    ),
    Peer(
        name=WOODELF,
        package=WOODELF_PACKAGE,
        libraries=TREES,  # NaN for CatBoost's models
        parallel=False,
        prepare=_prepare_woodelf,
        wrap=wrap_woodelf,
        call=lambda explainers, frame, threads: [explainer.shap_values(frame, verbose=False) for explainer in explainers],
        values=lambda case, result: np.stack(result),
        least=lambda case: MANY_ROWS,  # small calls cost the same
        without=frozenset({"lightgbm-100x1024", "forest-100x16"}),  # more than a minute for any number of rows
    ),
)
