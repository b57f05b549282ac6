"""Runs to be reported: of one output with values and interactions, and of classes without them."""

import lightgbm
import numpy as np
import pandas as pd
import pytest

from leafledger import explain
from tests.pipeline.conftest import train


@pytest.fixture(scope="session")
def reported(example, tmp_path_factory):
    """A run with everything that a page shows of Shapley values."""
    out = tmp_path_factory.mktemp("reported") / "run"
    explain(example.model, example.data, out, ids=["flight"], values=True, interactions=2, scheduler="serial")
    return out


@pytest.fixture(scope="session")
def classes(example, tmp_path_factory):
    """A run of three classes, without values."""
    folder = tmp_path_factory.mktemp("classes")
    train(example.frame, objective="multiclass", num_class=3).save_model(folder / "model.txt")
    explain(str(folder / "model.txt"), example.data, folder / "run", scheduler="serial")
    return folder / "run"


@pytest.fixture(scope="session")
def acting(tmp_path_factory):
    """A run with interactions of sets of up to three features, all of which act together."""
    folder, rng = tmp_path_factory.mktemp("acting"), np.random.default_rng(3)
    rows = pd.DataFrame(rng.normal(size=(400, 3)).round(1), columns=["a", "b", f"c{'_that_has_a_long_name' * 3}"])
    settings = {"verbosity": -1, "num_threads": 1, "num_leaves": 15}
    lightgbm.train(settings, lightgbm.Dataset(rows, np.sign(rows.prod(axis=1))), 20).save_model(folder / "model.txt")
    rows.to_parquet(folder / "rows.parquet")
    explain(folder / "model.txt", folder / "rows.parquet", folder / "run", interactions=2, order=3, values=True, scheduler="serial")
    return folder / "run"


@pytest.fixture(scope="session")
def odd(tmp_path_factory):
    """Makes a run of some rows: a name that is markup, a feature without values, infinite ones."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"<script>alert(1)</script>": rng.normal(size=300), "null": np.full(300, np.nan), "wide": rng.normal(size=300)})
    settings = {"verbosity": -1, "num_threads": 1, "objective": "binary"}
    model = lightgbm.train(settings, lightgbm.Dataset(frame.to_numpy(), frame.iloc[:, 0] > 0), 3)
    named = model.model_to_string().replace("feature_names=Column_0 Column_1 Column_2", f"feature_names={' '.join(frame)}")
    frame.loc[::3, "wide"], frame.loc[1::3, "wide"] = np.inf, -np.inf

    def make(n):
        folder = tmp_path_factory.mktemp("odd")
        (folder / "model.txt").write_text(named)
        (folder / "data").mkdir()
        frame.iloc[:n].to_parquet(folder / "data/x.parquet", index=False)
        explain(folder / "model.txt", folder / "data", folder / "run", values=True, scheduler="serial")
        return folder / "run"

    return make
