"""Parameters that an estimator notes in its file are read where there are some, and damaged ones are refused."""

import numpy as np
import pandas as pd
import pytest
import xgboost

from leafledger import attribute, explain, load_ensemble, read_manifest
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidModel, UsageError
from leafledger.pipeline.models.xgboost.wrapper import read_attributes, read_missing, read_notes
from tests.versions.written import unpacked


def learner(text):
    return {"attributes": {"scikit_learn": text}}


@pytest.mark.parametrize(
    ("text", "missing"),
    [('{"missing": -999.0}', -999.0), ('{"missing": 0}', 0.0), ('{"missing": NaN}', None), ('{"missing": null}', None), ("{}", None)],
)
def test_the_number_for_missing_values(text, missing):
    """NaN and null are no numbers, and a Booster notes nothing."""
    assert read_missing(learner(text), "m") == missing
    assert read_missing({}, "m") is None
    assert read_attributes({"attributes": []}) == {}
    assert read_notes(learner(text), "m") == read_notes(learner(text), "m") or "NaN" in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "attribute 'scikit_learn' is '{', expected an estimator's parameters in JSON"),
        ("[1]", "attribute 'scikit_learn' is .*, expected an estimator's"),
        (7, "attribute 'scikit_learn' is 7"),
        ('{"missing": "x"}', "'missing' of the estimator is 'x', expected a number"),
        ('{"missing": true}', "'missing' of the estimator is True"),
        (f'{{"missing": 1{"0" * 400}}}', "'missing' of the estimator is an integer of 401 digits"),
    ],
)
def test_damaged_notes_are_refused(text, says):
    """In a line that names the place."""
    with pytest.raises(InvalidModel, match=f"^m: {says}"):
        read_missing(learner(text), "m")


@pytest.mark.slow
def test_a_file_s_number_is_said_and_must_be_the_given_one(tmp_path, capsys):
    """In the log, by inspect, plan and the manifest; another one is refused, the same changes nothing."""
    with unpacked("xgboost-1.7.6") as (folder, cases):
        case = next(case for case in cases if case["case"] == "missing=-999")
        (tmp_path / "m.json").write_bytes((folder / case["file"]).read_bytes())
    rows, model = pd.DataFrame(case["rows"], columns=case["columns"]), load_ensemble(tmp_path / "m.json")
    assert [feature.missing for feature in model.features] == [-999.0] * 3
    assert (rows == -999.0).any(axis=None)
    plain, same = attribute(model, rows), attribute(load_ensemble(tmp_path / "m.json", missing=-999), rows.where(rows != -999.0))
    assert (plain.margin == same.margin).all()
    for again in (tmp_path / "m.json", model):
        with pytest.raises(UsageError, match=r"^missing is 0, but .* says that -999 stands for missing values; leave it out, or give that one$"):
            load_ensemble(again, missing=0)
    rows.to_parquet(tmp_path / "rows.parquet")
    explain(tmp_path / "m.json", tmp_path / "rows.parquet", tmp_path / "run", scheduler="serial")
    assert read_manifest(str(tmp_path / "run")).missing == -999.0
    files = [str(tmp_path / name) for name in ("m.json", "rows.parquet", "other")]
    assert main(["plan", *files[:2], "--out", files[2]]) == 0
    assert "missing  -999, besides null and NaN" in capsys.readouterr().out
    assert main(["inspect", files[0], "--methods", ""]) == 0
    assert "missing    -999, besides null and NaN" in capsys.readouterr().out
    assert main(["explain", *files[:2], "--out", files[2], "--scheduler", "serial"]) == 0
    assert "missing values are -999, besides null and NaN\n" in capsys.readouterr().out
    assert main(["explain", *files[:2], "--out", files[2], "--missing", "0"]) == 2


def test_estimators_in_memory_agree_too():
    """With a number that is given besides."""
    rows = np.arange(40.0).reshape(20, 2)
    model = xgboost.XGBRegressor(n_estimators=2, missing=3.0, n_jobs=1).fit(rows, rows[:, 0])
    assert load_ensemble(model, missing=3).features[0].missing == 3.0
    with pytest.raises(UsageError, match=r"^missing is 4, but XGBRegressor object says that 3 stands for missing values"):
        load_ensemble(model, missing=4)
