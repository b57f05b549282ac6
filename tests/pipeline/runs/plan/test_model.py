"""The model of a run: the part of it that is asked for."""

import lightgbm
import numpy as np
import pytest
import xgboost

from leafledger.pipeline.errors import UnsupportedModel
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.model import load_model

ROWS = np.random.default_rng(0).normal(size=(90, 2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("models")
    for name, label, objective in (("three", np.arange(90) % 3, "multiclass"), ("one", ROWS[:, 0], "regression")):
        given = {"objective": objective, "num_class": 3 if objective == "multiclass" else 1, "verbose": -1}
        lightgbm.train(given, lightgbm.Dataset(ROWS, label), 4).save_model(found / name)
    return found


def load(folder, name, **options):
    return load_model(make_job(folder / name, folder / "data", folder / "out", Options(**options)))


def test_iterations_and_outputs_are_those_that_are_asked_for(folder):
    assert load(folder, "three").ensemble.root.size == 12
    assert load(folder, "three", trees="1:3").ensemble.root.size == 6
    kept = load(folder, "three", outputs=("a", "b", "c"), output="b")
    assert (kept.outputs, kept.only_output, kept.ensemble.root.size) == (("b",), 1, 4)


@pytest.mark.parametrize("number", ["Infinity", "-Infinity"])
def test_an_infinite_number_for_missing_values_is_refused(tmp_path, number):
    """Plan and manifest are JSON, which has none; a finite one is taken."""
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(ROWS, ROWS[:, 0]), 2)
    for name, noted in (("infinite.json", number), ("finite.json", "-999.0")):
        booster.set_attr(scikit_learn=f'{{"missing": {noted}}}')
        booster.save_model(tmp_path / name)
    with pytest.raises(UnsupportedModel, match=r"infinite\.json: -?inf stands for missing values, expected a finite number, or NaN alone; let data"):
        load(tmp_path, "infinite.json")
    assert load(tmp_path, "finite.json").missing == -999.0


def test_all_outputs_are_kept_where_each_row_has_its_own(folder):
    assert load(folder, "three", output="predicted").outputs == ("0", "1", "2")
    with pytest.raises(UnsupportedModel, match="those of objective 'regression' are no classes of one label"):
        load(folder, "one", output="predicted")
