"""Attributions come back from their file to the last bit, and a file that is not what was written is refused."""

import dataclasses

import lightgbm
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import RandomForestClassifier

from leafledger import attribute, load_attributions
from leafledger.pipeline.errors import InvalidRun, NotThere, OtherVersion
from leafledger.pipeline.in_memory.explain import saved

RNG = np.random.default_rng(10)
SITE = pd.Categorical(np.where(np.arange(70) % 5 == 0, None, RNG.choice(["Oslo", "Rome"], 70)))
FRAME = pd.DataFrame({"a": RNG.normal(size=70), "b": RNG.normal(size=70), "site": SITE}, index=[f"customer {i}" for i in range(70)])
FRAME.loc["customer 3", "a"] = np.nan
TARGET = FRAME["a"].fillna(0) * FRAME["b"] + (FRAME["site"] == "Oslo")
MODEL = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1, n_jobs=1).fit(FRAME, TARGET)
NUMBERS = RNG.normal(size=(70, 3))
FOREST = RandomForestClassifier(4, max_depth=3, random_state=0).fit(NUMBERS, np.digitize(NUMBERS[:, 0], [-1, 1]))
CALLS = {
    "frame": lambda: attribute(MODEL, FRAME),
    "picked": lambda: attribute(MODEL, FRAME)[[5, 3, 60]],
    "matrix": lambda: attribute(FOREST, NUMBERS),
    "picked of a matrix": lambda: attribute(FOREST, NUMBERS)[[5, 3, 60]],
    "table": lambda: attribute(MODEL, pa.table(FRAME.reset_index(drop=True))),
    "picked of a table": lambda: attribute(MODEL, pa.table(FRAME.reset_index(drop=True)))[10:20],
    "polars": lambda: attribute(MODEL, polars.from_pandas(FRAME.reset_index(drop=True))),
    "columns": lambda: attribute(FOREST, {str(j): NUMBERS[:, j] for j in range(3)}),
    "nothing": lambda: attribute(MODEL, FRAME[:0], interactions="all"),
    "interactions": lambda: attribute(MODEL, FRAME, interactions=2),
    "sets": lambda: attribute(FOREST, NUMBERS, interactions="all", order=3),
    "own output": lambda: attribute(FOREST, NUMBERS, output="predicted"),
    "groups": lambda: attribute(MODEL, FRAME, "owen", partition={"both": ["a", "b"]}),
    "errors": lambda: attribute(MODEL, FRAME, background=FRAME[:50], background_errors=True),
    "loss": lambda: attribute(MODEL, FRAME, space="loss", label=np.where(np.arange(70) == 4, np.nan, TARGET), background=FRAME[:20]),
    "curves": lambda: attribute(MODEL, FRAME, "curves"),
    "atoms": lambda: attribute(MODEL, FRAME, "semivalue", parameters={"atoms": "0.25:1,0.75:1"}),
    "sequence": lambda: attribute(MODEL, FRAME, "asymmetric", partition={"ab": ["a", "b"]}, parameters={"sequence": ["ab", "site"]}),
}


def same(one, other):
    """Whether two things are alike, bits and types of arrays too."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return type(one) is type(other) and one == other


@pytest.mark.filterwarnings("ignore:.*features by position")
@pytest.mark.parametrize("call", CALLS)
def test_all_of_it_comes_back(call, tmp_path):
    """Every field to the last bit, summaries as tables, and of the rows those that were explained, with their labels and values."""
    found = CALLS[call]()
    found.save(tmp_path / "it.parquet")
    back = load_attributions(tmp_path / "it.parquet")
    for each in dataclasses.fields(found):
        one, other = getattr(found, each.name), getattr(back, each.name)
        if each.name == "output" and one is not None:
            assert one.tolist() == other.tolist()
        elif each.name not in ("rows", "places", "summaries"):
            assert same(one, other), each.name
    assert {**back.summaries} == {**found.summaries}
    assert back.index.tolist() == found.index.tolist()
    for name in found.names:
        one, other = found.values(name), back.values(name)
        assert (one is None) == (other is None)
        if one is not None:
            pd.testing.assert_series_equal(pd.Series(one), pd.Series(other))
    assert repr(back) == repr(found)
    if call == "frame":
        pd.testing.assert_frame_equal(back.rows, FRAME)
        assert str(back.waterfall(3)) == str(found.waterfall(3))
        pd.testing.assert_frame_equal(back.importance(), found.importance())


@pytest.mark.slow
def test_any_byte_that_changed_is_noticed(tmp_path):
    """Wherever it is: in numbers, names, or what Parquet says of itself; and a file that was cut."""
    place = tmp_path / "it.parquet"
    attribute(MODEL, FRAME[:4]).save(place)
    data = place.read_bytes()
    for at in [*range(0, len(data), 97), *range(len(data) - 90, len(data))]:
        place.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        with pytest.raises(InvalidRun, match=r"(was damaged or changed since it was saved|holds no attributions|is no Parquet file)"):
            load_attributions(place)
    for at in range(data.rindex(b"phi"), len(data), 7):  # what Parquet says of itself are texts
        place.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
        with pytest.raises(InvalidRun):
            load_attributions(place)
    place.write_bytes(data[:-100])
    with pytest.raises(InvalidRun, match=r"is no Parquet file, expected one that Attributions.save wrote"):
        load_attributions(place)


def test_other_files_are_refused(tmp_path, monkeypatch):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(InvalidRun, match=r"holds no attributions, expected a file that Attributions.save wrote"):
        load_attributions(tmp_path / "other.parquet")
    with pytest.raises(NotThere):
        load_attributions(tmp_path / "none.parquet")
    monkeypatch.setattr(saved, "FORMAT", 2)
    attribute(MODEL, FRAME[:4]).save(tmp_path / "later.parquet")
    with pytest.raises(OtherVersion, match="attributions of format 2, and formats up to 1 are known here; use a later leafledger"):
        load_attributions(tmp_path / "later.parquet")
