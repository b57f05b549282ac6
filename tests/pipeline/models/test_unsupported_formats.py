"""Files of models that are not read, each made by those who make them, are refused by what they are, with what to do instead."""

import json
import pickle
import zipfile

import catboost
import joblib
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import RandomForestRegressor

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.models.unsupported_formats import recognise_foreign

ROWS = np.random.default_rng(0).normal(size=(80, 3))
TARGET = ROWS[:, 0] + ROWS[:, 1] ** 2


def forest():
    return RandomForestRegressor(2, max_depth=2).fit(ROWS, TARGET)


def booster():
    return xgboost.train({"max_depth": 2, "nthread": 1}, xgboost.DMatrix(ROWS, TARGET), 2)


def trees():
    return lightgbm.train({"verbosity": -1, "num_threads": 1, "num_leaves": 3}, lightgbm.Dataset(ROWS, TARGET), 2)


def symmetric():
    return catboost.CatBoostRegressor(iterations=2, depth=2, verbose=0, allow_writing_files=False, thread_count=1).fit(ROWS, TARGET)


def archive(path, *names):
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, "{}")


def by_hand():
    """An ONNX model of one node: version of the format, producer, a graph with a name, and a set of operators."""
    graph = b"\x0a\x02\x0a\x00" + b"\x12\x01g"
    return b"\x08\x08" + b"\x12\x03abc" + b"\x3a" + bytes([len(graph)]) + graph + b"\x42\x02\x10\x15"


MADE = {
    "pickle": (lambda path: path.write_bytes(pickle.dumps(forest())), "is a pickle, as joblib"),
    "old pickle": (lambda path: path.write_bytes(pickle.dumps(booster(), protocol=2)), "is a pickle, as joblib"),
    "joblib": (lambda path: joblib.dump(forest(), path), "is a pickle, as joblib"),
    "joblib, zlib": (lambda path: joblib.dump(forest(), path, compress=3), "is compressed; unpack it; if joblib"),
    "joblib, xz": (lambda path: joblib.dump(forest(), path, compress=("xz", 3)), "is compressed; unpack it; if joblib"),
    "zip": (lambda path: archive(path, "model.cbm"), "is a zip archive; name the model file inside"),
    "onnx by hand": (lambda path: path.write_bytes(by_hand()), "is an ONNX file, which has no weights of leaves"),
    "onnx": (lambda path: symmetric().save_model(str(path), format="onnx"), "is an ONNX file, which has no weights of leaves"),
    "pmml": (lambda path: symmetric().save_model(str(path), format="pmml"), "is XML, as PMML is; use the file that"),
    "xgboost's text": (lambda path: booster().dump_model(path), "is a dump for people"),
    "xgboost's json": (lambda path: booster().dump_model(path, dump_format="json"), "is a dump for people"),
    "lightgbm's json": (lambda path: path.write_text(json.dumps(trees().dump_model())), "is a dump for people"),
}


@pytest.mark.parametrize(("make", "says"), MADE.values(), ids=MADE)
def test_a_file_is_refused_by_what_it_is(make, says, tmp_path):
    """In one line, whatever it is called."""
    make(tmp_path / "model.json")
    with pytest.raises(UnsupportedModel) as refusal:
        load_ensemble(tmp_path / "model.json")
    assert str(refusal.value).startswith(f"{tmp_path}/model.json: {says}")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("cut", range(1, len(by_hand())))
def test_an_onnx_file_that_is_cut_is_none(cut):
    """Wherever: fields that are whole, without a graph, are something else."""
    assert (recognise_foreign(by_hand()[:cut]) is not None) == (cut == len(by_hand()) - 4)


@pytest.mark.parametrize("field", range(1, 31))
def test_every_field_of_onnx_is_known(field):
    """As its onnx.proto numbers those of ModelProto, whatever holds them; a file with another one is something else."""
    known = field in (1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26)
    for wire, value in ((0, b"\x96\x01"), (1, bytes(8)), (2, b"\x02ab"), (5, bytes(4))):
        tag = field << 3 | wire
        head = bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])
        assert (recognise_foreign(by_hand() + head + value) is not None) == known
        assert recognise_foreign(by_hand() + head + value[:-1]) is None
        assert recognise_foreign(head + value) is None or field == 7
    assert recognise_foreign(by_hand() + bytes([field << 3 & 127 | 3 | 128, field >> 4])) is None


@pytest.mark.parametrize("data", [b"", b"\x08", b"\xff" * 40, b"\x08" * (1 << 20), b"\x0b\x00", b"\x80", b"PAR1", b"{}"])
def test_other_bytes_are_nothing_that_is_known(data, tmp_path):
    """And are not read for long."""
    assert recognise_foreign(data) is None
    (tmp_path / "model").write_bytes(data)
    with pytest.raises(InvalidModel, match="not a model file, expected XGBoost"):
        load_ensemble(tmp_path / "model")


def test_models_that_are_read_are_not_foreign(tmp_path):
    """Of every library."""
    symmetric().save_model(str(tmp_path / "m.cbm"))
    for data in (bytes(booster().save_raw("json")), bytes(booster().save_raw("ubj")), trees().model_to_string().encode()):
        assert recognise_foreign(data) is None
    assert recognise_foreign((tmp_path / "m.cbm").read_bytes()) is None
