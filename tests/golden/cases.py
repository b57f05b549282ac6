"""What golden numbers are kept of: models of every library, every method in every game that it has, and what else can be asked of attributions."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leafledger import attribute, load_ensemble
from leafledger.kernels.methods import METHODS

HERE = Path(__file__).parent
MODELS = HERE / "models"  # files that the libraries wrote once, see `models`
ROWS, BACKGROUND = HERE / "rows.parquet", HERE / "background.parquet"
LIBRARIES = {  # files by library and kind of model
    "xgboost": "xgboost.ubj",
    "xgboost, three classes": "xgboost_classes.json",
    "lightgbm": "lightgbm.txt",
    "lightgbm, random forest": "lightgbm_forest.txt",
    "catboost": "catboost.cbm",
    "catboost, target statistics": "catboost_ctr.json",
    "scikit-learn, gradient boosting": "gradient_boosting.skops",
    "scikit-learn, histogram gradient boosting": "hist_gradient_boosting.skops",
    "scikit-learn, random forest": "random_forest.skops",
    "scikit-learn, AdaBoost": "adaboost.skops",
    "neutral": "neutral.leaftrees",
}
NUMERIC = [name for name in LIBRARIES if name.startswith("scikit-learn") and "histogram" not in name]
CODES = {"x": 0.0, "y": 1.0, "z": 2.0}
PLAIN = "lightgbm"  # the model that every method is tried on
PARTITION = {"both": ["a", "k"]}
NEEDED: dict[str, tuple[dict[str, Any], ...]] = {  # parameters to try a method with, where its defaults are not all
    "banzhaf": ({}, {"p": 0.3}),
    "beta": ({"alpha": 2.0, "beta": 0.5},),
    "semivalue": ({"atoms": ((0.2, 0.5), (0.9, 0.5))}, {"density": ((0.0, 1.0), (1.0, 3.0))}),
    "probabilistic": ({"sizes": (0.1, 0.2, 0.3, 0.4)},),
    "owen": ({}, {"across": "banzhaf", "within": "beta:2:1"}),
    "asymmetric": ({"sequence": ("c", "both", "b")}, {"sequence": ("both", "b", "c")}),
    "ranker": ({"steps": 3}, {"steps": 3, "optimizer": "ascent"}),
    "gap": ({}, {"ranking": "banzhaf:0.3"}),
    "gap_greedy": ({}, {"approximate": "yes", "budget": 1.0}),
}
NAMES = ("base", "margin", "prediction", "phi", "interactions", "errors", "path")  # arrays of attributions
GROUPED = ("owen", "two_step", "asymmetric")  # need a partition
LABELLED = ("r2",)


@dataclass(frozen=True, slots=True)
class Case:
    """A call of ``attribute``."""

    name: str
    model: str  # of LIBRARIES
    method: str = "shapley"
    asked: dict[str, Any] = field(default_factory=dict)
    rows_as_background: bool = False
    labelled: bool = False


def _write(parameters: dict[str, Any]) -> str:
    return "".join(f", {name}={value}" for name, value in parameters.items())


def _of_methods() -> Iterator[Case]:
    for name, method in METHODS.items():
        for parameters in NEEDED.get(name, ({},)):
            asked = {"parameters": parameters, **({"partition": PARTITION} if name in GROUPED else {})}
            labelled = name in LABELLED
            yield Case(f"{name}{_write(parameters)}", PLAIN, name, asked, labelled=labelled)
            if method.games.background or method.perturbs:
                yield Case(f"{name}{_write(parameters)}, background", PLAIN, name, asked, rows_as_background=True, labelled=labelled)
            if method.games.value:
                asked = asked | {"interactions": "all"}
                yield Case(f"{name}{_write(parameters)}, interactions", PLAIN, name, asked)
                yield Case(f"{name}{_write(parameters)}, interactions, background", PLAIN, name, asked, rows_as_background=True)


def list_cases() -> list[Case]:
    """List all calls."""
    of_libraries = [
        case for name in LIBRARIES for case in (Case(f"model {name}", name), Case(f"model {name}, background", name, rows_as_background=True))
    ]
    others = [
        Case("groups", PLAIN, asked={"partition": PARTITION}),
        Case("combinations of features", "catboost, target statistics", asked={"combinations": "own"}),
        Case("the model's own weights", "catboost", asked={"background": "model"}),
        Case("errors of a background", PLAIN, asked={"background_errors": True}, rows_as_background=True),
        Case("probability", "xgboost, three classes", asked={"space": "probability"}, rows_as_background=True),
        Case("probability, path-dependent", "scikit-learn, gradient boosting", asked={"space": "probability"}),
        Case("predicted output", "xgboost, three classes", asked={"output": "predicted"}),
        Case("some trees", "xgboost", asked={"trees": "1:3"}),
    ]
    return [*_of_methods(), *of_libraries, *others]


def read_rows(path: Path, model: str) -> pd.DataFrame:
    """Read rows, one of which has an unseen category; trees of scikit-learn know numbers alone."""
    rows = pd.read_parquet(path)
    return rows.assign(k=rows["k"].map(CODES).fillna(2.0)) if model in NUMERIC else rows


def compute(case: Case) -> dict[str, np.ndarray]:
    """Compute all numbers of a case."""
    rows, asked = read_rows(ROWS, case.model), dict(case.asked)
    if case.rows_as_background:
        asked["background"] = read_rows(BACKGROUND, case.model)
    if case.labelled:
        asked |= {"label": rows["y"], "weight": rows["w"]}
    model = load_ensemble(MODELS / LIBRARIES[case.model], trees=asked.pop("trees", None))
    found = attribute(model, rows, case.method, **asked)
    numbers = {name: getattr(found, name) for name in NAMES}
    return {name: np.asarray(value, np.float64) for name, value in numbers.items() if value is not None}
