"""An explainer gives, call after call, in any thread and process, the bits that ``attribute`` gives."""

import inspect
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
import xgboost

from leafledger import LeafledgerError, attribute, prepare
from leafledger.pipeline.errors import SchemaMismatch, StorageError, UsageError
from leafledger.pipeline.in_memory.explain import explainer as explainer_module
from tests.pipeline.conftest import FEATURES, WRONG, train

ROOT = Path(__file__).parents[4]
N = 300
RNG = np.random.default_rng(3)
MATRIX = RNG.standard_normal((N, 4)).astype(np.float32).astype(float)
TARGET = MATRIX[:, 0] * MATRIX[:, 1] + np.abs(MATRIX[:, 2])
RESTORED = """
import pickle, sys
import numpy as np
rows = np.load(sys.argv[1])
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        print(pickle.load(file)(rows).phi.tobytes().hex())
"""


@pytest.fixture(scope="module")
def boosters():
    """Models of three libraries, of plain matrices, which have no names."""
    labels = (TARGET > 0.5).astype(int) + (TARGET > 1.2)
    symmetric = catboost.CatBoostClassifier(iterations=5, depth=3, verbose=False, allow_writing_files=False, thread_count=1)
    return {
        "xgboost": xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(MATRIX, TARGET), 5),
        "lightgbm": lightgbm.train({"verbosity": -1, "num_threads": 1, "num_leaves": 7}, lightgbm.Dataset(MATRIX, TARGET), 5),
        "catboost": symmetric.fit(MATRIX, labels),
    }


def assert_same_bits(found, expected):
    """Every array and every table of two attributions."""
    for name in ("phi", "base", "margin", "prediction", "interactions", "path", "output", "errors"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert (ours is None) == (theirs is None), name
        assert ours is None or (ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()), name
    for name in ("players", "groups", "pairs", "outputs", "features", "method", "space"):
        assert getattr(found, name) == getattr(expected, name), name
    assert {name: table.to_pydict() for name, table in found.summaries.items()} == {
        name: table.to_pydict() for name, table in expected.summaries.items()
    }


ASKED = [
    {},
    {"method": "banzhaf", "parameters": {"p": 0.3}},
    {"interactions": 2},
    {"partition": {"first": [0, 2]}},
    {"method": "owen", "partition": {"first": [0, 2]}},
    {"background": MATRIX[:40]},
    {"background": MATRIX[:80], "background_errors": True},
    {"method": "curves"},
]


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: "-".join(map(str, asked)) or "shapley")
def test_calls_have_the_bits_of_attribute(boosters, library, asked):
    """Of many rows, of one, and of many again, whatever the calls before have left in buffers."""
    explainer = prepare(boosters[library], **asked)
    for rows in (MATRIX, MATRIX[7:8], MATRIX[:0], MATRIX):
        assert_same_bits(explainer(rows), attribute(boosters[library], rows, **asked))


@pytest.mark.parametrize("asked", [{"output": "predicted"}, {"output": "other:3"}, {"output": 1}, {"space": "probability"}])
def test_outputs_and_spaces_are_those_of_attribute(boosters, asked):
    """A class of its own for every row, one class, and probabilities."""
    explainer = prepare(boosters["catboost"], **asked)
    assert_same_bits(explainer(MATRIX), attribute(boosters["catboost"], MATRIX, **asked))
    assert_same_bits(pickle.loads(pickle.dumps(explainer))(MATRIX), attribute(boosters["catboost"], MATRIX, **asked))


def test_frames_of_every_kind(example):
    """Categories, missing values, integers and types of any library's frame; each call looks at its own rows."""
    frame = example.frame[FEATURES][:N].reset_index(drop=True)
    explainer, expected = prepare(example.model), attribute(example.model, frame)
    moved = frame[FEATURES[::-1]].assign(month=frame["month"].astype("Int8"), carrier=frame["carrier"].astype("category"))
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    for rows in (frame, moved, pa.table(frame), batch, polars.from_arrow(batch)):
        assert explainer(rows).phi.tobytes() == expected.phi.tobytes()
    assert explainer(frame.iloc[5]).phi.tobytes() == expected.phi[5:6].tobytes()
    with pytest.raises(SchemaMismatch, match="column 'delay' missing"):
        explainer(frame.drop(columns="delay"))
    with pytest.raises(SchemaMismatch, match=r"column 'delay' is .*string"):
        explainer(frame.assign(delay="late"))
    with pytest.raises(SchemaMismatch, match="300 of 300 values are no category"):
        explainer(frame.assign(carrier="??"))
    assert prepare(example.model, allow_unseen=True)(frame.assign(carrier="??")).margin.shape == (N, 1)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "mixed"])
def test_a_frame_of_numbers_has_the_bits_of_arrow(library, dtype):
    """Numbers that come without Arrow are those that come with it: integers beyond 2^53, and a number that stands for a missing value."""
    rows = np.round(MATRIX * 100)
    rows[0] = 2**60 + 2**36 + 1
    frame = pd.DataFrame(rows, columns=list("abcd")).astype(dict.fromkeys("ab", "int64" if dtype == "mixed" else dtype))
    if library == "xgboost":
        model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, missing=100.0, n_jobs=1).fit(frame.where(frame != 100.0, 100.0), TARGET)
    else:
        model = lightgbm.LGBMRegressor(n_estimators=4, num_leaves=7, verbosity=-1, n_jobs=1).fit(frame, TARGET)
    explainer = prepare(model)
    assert explainer(frame).phi.tobytes() == explainer(pa.table(frame)).phi.tobytes()


@pytest.mark.slow
def test_threads_share_an_explainer(boosters):
    """Many calls at once, of different numbers of rows: the bits of one after the other."""
    explainer = prepare(boosters["xgboost"], interactions="all")
    parts = [MATRIX[start : start + 1 + start % 170] for start in range(120)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(explainer, parts))
    for each, part in zip(found, parts, strict=True):
        assert_same_bits(each, explainer(part))


def test_what_a_call_returned_is_left_alone(boosters):
    """Buffers are used again; results, and their summaries that nobody has looked at, are not in them."""
    explainer = prepare(boosters["xgboost"])
    first = explainer(MATRIX[:50])
    explainer(-MATRIX[:50])
    assert_same_bits(first, attribute(boosters["xgboost"], MATRIX[:50]))


@pytest.mark.parametrize("background", [None, MATRIX[:40]], ids=["covers", "background"])
@pytest.mark.slow
def test_pickles(boosters, tmp_path, background):
    """A pickle holds the tables, or names the folder where they are; another process finds the same bits by either."""
    whole = prepare(boosters["xgboost"], background=background)
    named = prepare(boosters["xgboost"], background=background, tables=tmp_path / "tables")
    expected = whole(MATRIX).phi.tobytes()
    assert named(MATRIX).phi.tobytes() == expected
    assert len(pickle.dumps(named)) < 4096 < len(pickle.dumps(whole))
    np.save(tmp_path / "rows.npy", MATRIX)
    for name, explainer in (("whole", whole), ("named", named)):
        (tmp_path / name).write_bytes(pickle.dumps(explainer))
    said = subprocess.run(
        [sys.executable, "-c", RESTORED, tmp_path / "rows.npy", tmp_path / "whole", tmp_path / "named"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [bytes.fromhex(line) for line in said.stdout.splitlines()] == [expected, expected]


def test_pickles_that_do_not_fit_are_refused(boosters, tmp_path, monkeypatch):
    """Of another version, and of a folder that is gone: in one line."""
    kept = pickle.dumps(prepare(boosters["xgboost"], tables=tmp_path / "tables"))
    with monkeypatch.context() as changed:
        changed.setattr("leafledger.pipeline.in_memory.explain.explainer.digest_sources", lambda: "other")
        with pytest.raises(UsageError, match="pickled by another version of leafledger, expected this one"):
            pickle.loads(kept)
    (tmp_path / "tables").rename(tmp_path / "elsewhere")
    with pytest.raises((StorageError, UsageError)) as error:
        pickle.loads(kept.replace(b"/tables/", b"/nowhere"))
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:.*features by position")
def test_a_model_without_names_and_a_background_agree_on_the_order(boosters):
    """By position, columns of background and rows have to be the same: one of two orders would be wrong."""
    frame = pd.DataFrame(MATRIX, columns=list("dbca"))
    explainer = prepare(boosters["xgboost"], background=frame[:40], partition={"two": ["d", "c"]})
    expected = attribute(boosters["xgboost"], frame, background=frame[:40], partition={"two": ["d", "c"]})
    assert_same_bits(explainer(frame), expected)
    assert explainer(MATRIX).players == ("two", "f1", "f3")
    with pytest.raises(SchemaMismatch, match="rows: columns are a, b, c, d, those of the background d, b, c, a: the model has no names"):
        explainer(frame[list("abcd")])


def test_groups_are_named_as_columns_are(tmp_path):
    """LightGBM writes underscores for spaces: a partition may say either, and what rows call a feature it is called in their attributions."""
    frame = pd.DataFrame(MATRIX, columns=["long name", "other name", "c", "d"])
    model = lightgbm.train({"verbosity": -1, "num_threads": 1, "num_leaves": 7}, lightgbm.Dataset(frame, TARGET), 4)
    for member in ("long name", "long_name", 0):
        explainer = prepare(model, partition={"two": [member, "d"]})
        assert_same_bits(explainer(frame), attribute(model, frame, partition={"two": ["long name", "d"]}))
    with pytest.raises(UsageError, match="group 'other name' is named as a feature outside of it"):
        prepare(model, partition={"other name": ["c"]})(frame)


def test_labels(example):
    """They belong to a call, as numbers or as a column."""
    explainer, frame = prepare(example.model, "r2"), example.frame[:N]
    expected = attribute(example.model, frame, "r2", label="delay")
    assert_same_bits(explainer(frame, label="delay"), expected)
    assert_same_bits(explainer(frame, label=frame["delay"].to_numpy(), weight=np.ones(N)), expected)
    with pytest.raises(UsageError, match="method 'r2' needs labels"):
        explainer(frame)
    with pytest.raises(UsageError, match="method 'shapley' takes no labels"):
        prepare(example.model)(frame, label="delay")
    with pytest.raises(UsageError, match=r"^method is a DataFrame, expected a name; rows to compare with are background=$"):
        prepare(example.model, frame)


def test_batches_have_the_columns_of_a_run(serial, example):
    """Names, order and numbers of a run's part, which rounds them to float32."""
    import pyarrow.parquet as pq

    part = pq.read_table(serial[0] / "attributions" / "part-00000.parquet")
    rows = pa.table(example.frame[:N])
    explainer = prepare(example.model)
    found = explainer.to_batch(rows, ["flight", "name"])
    assert found.schema.names == part.schema.names
    both = part.to_pandas().merge(found.to_pandas(), on="flight", suffixes=("", "_ours"))
    assert len(both)
    assert (both["phi_delay"] == both["phi_delay_ours"].astype("float32")).all()
    batch = rows.combine_chunks().to_batches()[0]
    assert explainer.to_batch(batch, "flight") == explainer.to_batch(rows, "flight").combine_chunks().to_batches()[0]
    with pytest.raises(UsageError, match="rows are a DataFrame, expected a batch or table of Arrow"):
        explainer.to_batch(example.frame)
    with pytest.raises(UsageError, match="ids have 'nowhere', which is no column of the rows"):
        explainer.to_batch(rows, "nowhere")


def test_duckdb_reads_and_hands_over_batches(example):
    """Rows of a query, batch by batch, and a query of what comes of them."""
    import duckdb

    frame = example.frame[:N]
    explainer, connection = prepare(example.model), duckdb.connect()
    reader = connection.sql("SELECT * FROM frame ORDER BY flight").to_arrow_reader(100)
    found = pa.Table.from_batches([explainer.to_batch(batch, "flight") for batch in reader])
    ((total,),) = connection.sql("SELECT sum(phi_delay) FROM found").fetchall()
    assert total == pytest.approx(attribute(example.model, frame).to_frame()["delay"].sum(), rel=1e-12)
    assert found["flight"].to_pylist() == sorted(frame["flight"])


def test_it_prints_as_one_line(example, boosters):
    """Model, method, features, outputs and game."""
    assert repr(prepare(example.model)) == "Explainer(lightgbm, 8 trees, method shapley, 4 features, 1 output, path-dependent game)"
    found = repr(prepare(boosters["catboost"], background=MATRIX[:40], space="probability"))
    assert (
        found == "Explainer(catboost, 15 trees, method shapley, 4 features, 3 outputs, background of 40 rows, space probability)"
        or "40 rows" in found
    )
    assert "leaf weights" in repr(prepare(boosters["catboost"], background="model"))


def test_the_arguments_are_those_of_attribute():
    """One name and one default; rows, labels and weights belong to a call."""
    ours = {name: given.default for name, given in inspect.signature(prepare).parameters.items()}
    theirs = {name: given.default for name, given in inspect.signature(attribute).parameters.items()}
    assert set(theirs) - set(ours) == {"rows", "label", "weight"}
    assert {name: theirs[name] for name in ours if name != "tables"} == {name: default for name, default in ours.items() if name != "tables"}


@pytest.mark.parametrize("name", ["model", "method", "parameters", "partition", "interactions", "background", "space", "tables"])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_a_wrong_type_is_told_in_one_line(example, name, wrong):
    """Whatever stands in the place of an argument."""
    with pytest.raises(LeafledgerError) as error:
        prepare(**{"model": example.model} | {name: wrong})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("wrong", [np.zeros((3, 2)), np.zeros(4), [1, 2, 3], None, "rows", pd.DataFrame({"delay": [1.0]})], ids=repr)
def test_rows_that_do_not_fit_are_refused(example, wrong):
    """In one line, as ``attribute`` does."""
    explainer = prepare(example.model)
    with pytest.raises(LeafledgerError) as error:
        explainer(wrong)
    with pytest.raises(LeafledgerError) as same:
        attribute(example.model, wrong)
    assert str(error.value) == str(same.value)
    assert "\n" not in str(error.value)


def test_several_classes_in_several_slices(example):
    """More rows than a slice has, on several threads and on one."""
    model = train(example.frame, objective="multiclass", num_class=3)
    rows = pa.table(pd.concat([example.frame] * 4, ignore_index=True))
    explainer = prepare(model)
    found = explainer.to_batch(rows)
    assert found == attribute(model, rows).to_arrow()
    assert found.schema.names[:4] == ["margin_0", "margin_1", "margin_2", "phi_0_distance"]


@pytest.mark.slow
def test_what_rows_choose_is_refused_before_there_are_any():
    """`attribute` has rows, and chooses the rate by them."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, min_child_samples=5).fit(rows, rows[:, 0] * rows[:, 1])
    with pytest.raises(UsageError, match="rate is left open, which rows choose, and there are none yet; give a number"):
        prepare(model, "ranker", parameters={"rate": "auto"})
    chosen = attribute(model, rows, "ranker", parameters={"rate": "auto"})
    again = prepare(model, "ranker", parameters=chosen.parameters)(rows)
    assert np.array_equal(chosen.phi, again.phi)


def small_model():
    """A model of its own, and rows."""
    rows = pd.DataFrame(np.random.default_rng(5).normal(size=(40, 2)), columns=["a", "b"])
    return lightgbm.LGBMRegressor(n_estimators=2, min_child_samples=5, verbose=-1, n_jobs=1).fit(rows, rows["a"]), rows


@pytest.mark.slow
def test_a_loop_is_told_of_prepare_once(monkeypatch, caplog):
    """After twenty calls with a few rows of the same model, and never again."""
    monkeypatch.setattr(explainer_module, "_latest", [None, 0, False])
    model, rows = small_model()
    for n in range(60):
        attribute(model, rows[:1])
        said = [record.message for record in caplog.records if "prepare" in record.message]
        assert len(said) == (n + 1 >= 20), n
    assert said == [
        "attribute reads the model anew at every call, 20 times now: explainer = leafledger.prepare(model), once, and explainer(rows) are faster"
    ]


def test_other_loops_are_not(monkeypatch, caplog, tmp_path):
    """Over models, or over many rows; a path is the same model by its text."""
    monkeypatch.setattr(explainer_module, "_latest", [None, 0, False])
    monkeypatch.setattr(explainer_module, "AGAIN", 3)
    monkeypatch.setattr(explainer_module, "FEW", 5)
    model, rows = small_model()
    other = small_model()[0]
    for each in (model, other) * 4:
        attribute(each, rows[:1])
    for _ in range(4):
        attribute(model, rows)
    assert "prepare" not in caplog.text
    path = tmp_path / "model.txt"
    model.booster_.save_model(path)
    for each in (path, str(path), path):
        attribute(each, rows[:1])
    assert caplog.text.count("leafledger.prepare(model)") == 1
