"""A variant of models: how one is made, what its library says of some rows, and how far that is from what is found here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leafledger import attribute

N, N_EXPLAINED = 300, 100
CATEGORIES = list("pqrstuvw")
BOUNDS = {"XGBoost": 1e-5, "LightGBM": 1e-12, "CatBoost": 1e-12, "scikit-learn": 1e-12}  # XGBoost adds up in single precision


@dataclass(frozen=True, slots=True)
class Case:
    """A model, rows, and what its library says of them."""

    model: Any  # an object, or the path of a file
    rows: Any
    margin: np.ndarray  # (n, outputs)
    contributions: np.ndarray | None  # (n, outputs, features); None where the library has none


@dataclass(frozen=True, slots=True)
class Variant:
    """What a model is, in words, and how one is made; files go to the folder."""

    library: str
    name: str
    make: Callable[[Path], Case]


@dataclass(frozen=True, slots=True)
class Measured:
    """Largest differences, of margins as a fraction of the largest margin, of attributions of the largest attribution."""

    library: str
    name: str
    outputs: int
    features: int  # that have attributions other than 0
    margin: float
    contributions: float | None


def _apart(found: np.ndarray, expected: np.ndarray) -> float:
    if found.shape != expected.shape:
        raise ValueError(f"shape {found.shape}, expected {expected.shape}")
    largest = np.abs(expected).max()
    return float(np.abs(found - expected).max() / largest) if largest else float(np.abs(found).max())


def measure(variant: Variant, folder: Path) -> Measured:
    """Make a model of a variant and compare."""
    case = variant.make(folder)
    found = attribute(case.model, case.rows)
    apart = None if case.contributions is None else _apart(found.phi, case.contributions)
    features = int(found.phi.any(axis=(0, 1)).sum())
    return Measured(variant.library, variant.name, found.margin.shape[1], features, _apart(found.margin, case.margin), apart)


def make_frame() -> pd.DataFrame:
    """Numbers, some missing, some zero, and texts of eight values and of three."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)).astype(np.float32).astype(float).round(2), columns=["a", "b", "c"])
    frame.loc[::7, "a"], frame.loc[::5, "b"] = np.nan, 0.0
    return frame.assign(city=rng.choice(CATEGORIES, N), job=rng.choice(["cook", "clerk", "pilot"], N))


FRAME = make_frame()
NUMBERS = FRAME[["a", "b", "c"]]
CATEGORICAL = FRAME.astype({"city": "category", "job": "category"})
TARGET = (
    NUMBERS["a"].fillna(0.5) + NUMBERS["b"] * (NUMBERS["c"] > 0) + 2 * FRAME["city"].isin(["p", "s", "w"]) * (1 + (FRAME["job"] == "cook"))
).to_numpy()
POSITIVE = np.exp(TARGET / 2)
BINARY = (TARGET > 0.3).astype(int)
CLASSES = np.digitize(TARGET, [-0.3, 0.8])
SEVERAL = np.column_stack((TARGET, NUMBERS["c"] - TARGET))
GROUPS = np.full(10, N // 10)  # of a ranking
