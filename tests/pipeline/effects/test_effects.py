"""Effects as a run: what memory gives, on threads and a cluster, resumed where it was interrupted, refused where it cannot be."""

import json
import shutil

import lightgbm
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

import leafledger
from leafledger.kernels.effects.sums import CountedRows, Moments
from leafledger.pipeline.effects import effects as module
from leafledger.pipeline.errors import InvalidData, InvalidRun, NotThere, RunConflict, SchemaMismatch, UsageError
from leafledger.pipeline.stores import storage
from leafledger.pipeline.stores.table_arrays import open_stored_tables, store_tables
from tests.pipeline.effects.trained import ATOL, make_rows, train, train_classes

TABLES = ["bands.parquet", "curves.parquet", "interactions.parquet", "local_effects.parquet", "surfaces.parquet"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model file, and its background in three files."""
    folder, rows = tmp_path_factory.mktemp("effects"), make_rows(300)
    model, _ = train("lightgbm", rows)
    model.save_model(folder / "model.txt")
    (folder / "rows").mkdir()
    for k in range(3):
        rows[100 * k : 100 * (k + 1)].to_parquet(folder / "rows" / f"part-{k}.parquet")
    return folder, model, rows


@pytest.fixture(autouse=True)
def small_items(monkeypatch):
    """An item for every file."""
    monkeypatch.setattr(module, "ITEM_ROWS", 100)


def run(place, out, **given):
    folder, _, _ = place
    return leafledger.effects(folder / "model.txt", folder / "rows", out, pairs=[("x", "y")], **{"scheduler": "serial", **given})


def tables(out):
    return {name: pq.read_table(out / name) for name in TABLES}


def test_what_is_published_is_what_memory_gives(place, tmp_path):
    """Every table, pictures, and the record with their digests; the same request finds it."""
    _, model, rows = place
    found = run(place, tmp_path / "out")
    assert [name for name in found.objects if name in TABLES] == sorted(TABLES, key=found.objects.index)
    expected = leafledger.feature_effects(model, rows, pairs=[("x", "y")])
    made = tables(tmp_path / "out")
    for name in rows.columns:
        frame = made["curves.parquet"].to_pandas().query("feature == @name").reset_index(drop=True)
        for column in ("value", "standard_error", "share"):
            assert_allclose(frame[column], expected.partial_dependence.to_frame(name)[column], rtol=0, atol=ATOL)
        bands = made["bands.parquet"].to_pandas().query("feature == @name").reset_index(drop=True)
        pd.testing.assert_frame_equal(bands.drop(columns="feature"), expected.bands(name))
    local = made["local_effects.parquet"].to_pandas().query("feature == 'x'").reset_index(drop=True)
    assert_allclose(local["value"], expected.local_effects("x")["value"], rtol=0, atol=ATOL)
    assert_allclose(made["interactions.parquet"]["h"], expected.interactions()["h"], rtol=0, atol=ATOL)
    assert_allclose(made["surfaces.parquet"]["value"], expected.margins.to_frame(("x", "y"))["value"], rtol=0, atol=ATOL)
    record = json.loads((tmp_path / "out" / "effects.json").read_text())
    for name, entry in record["objects"].items():
        assert storage.sha256(tmp_path / "out" / name) == entry["sha256"]
    assert not [*(tmp_path / "out").glob("_work*")]
    assert run(place, tmp_path / "out").again
    with pytest.raises(RunConflict, match="holds other effects, which differ in intervals; choose another output or remove it"):
        run(place, tmp_path / "out", intervals=5)


@pytest.mark.slow
def test_threads_and_a_cluster_give_the_same_bits(place, tmp_path, two_workers):
    """And so does whatever order items come in."""
    run(place, tmp_path / "serial")
    run(place, tmp_path / "threads", scheduler=None, threads=2)
    run(place, tmp_path / "cluster", scheduler=two_workers)
    for name in TABLES:
        assert (tmp_path / "serial" / name).read_bytes() == (tmp_path / "threads" / name).read_bytes() == (tmp_path / "cluster" / name).read_bytes()


@pytest.mark.parametrize("fails_in", ["count_item", "sum_item"])
@pytest.mark.slow
def test_an_interrupted_run_goes_on(place, tmp_path, monkeypatch, fails_in):
    """What items gave is kept; the second attempt does the others alone."""
    real, done = getattr(module, fails_in), []

    def work(asked, item):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(item.item.part)
        return real(asked, item)

    work.__name__ = fails_in
    with monkeypatch.context() as patch:
        patch.setattr(module, fails_in, work)
        with pytest.raises(KeyboardInterrupt):
            run(place, tmp_path / "out")
    assert done == [0, 1]
    assert not (tmp_path / "out" / "effects.json").exists()

    def again(asked, item):
        done.append(item.item.part)
        return real(asked, item)

    again.__name__ = fails_in
    monkeypatch.setattr(module, fails_in, again)
    run(place, tmp_path / "out")
    assert done == [0, 1, 2]
    run(place, tmp_path / "whole")
    assert all(tables(tmp_path / "out")[name].equals(tables(tmp_path / "whole")[name]) for name in TABLES)


def test_who_comes_second_finds_what_the_same_call_published_meanwhile(place, tmp_path, monkeypatch):
    """The first to be done removes what both had kept, under the other's hands."""
    real, out = module.sum_item, tmp_path / "out"

    def sum_item(asked, item):
        with monkeypatch.context() as patch:
            patch.setattr(module, "sum_item", real)
            assert not run(place, out).again
        raise NotThere(f"{out}/_work: no such folder")

    monkeypatch.setattr(module, "sum_item", sum_item)
    assert run(place, out).again
    assert (out / "effects.json").exists()
    with pytest.raises(RunConflict, match="holds other effects"):
        run(place, out, intervals=5)


def test_a_dry_run_says_what_there_is_to_do(place, tmp_path, monkeypatch):
    """Work, what an interrupted attempt has done of it, and that it is finished; nothing is written, and what would be refused is refused."""
    planned = run(place, tmp_path / "out", dry_run=True).planned
    assert (planned.n_files, planned.n_items, planned.n_counted, planned.n_summed) == (3, 3, 0, 0)
    assert planned.pairs == (("x", "y"),)
    assert planned.where == "in this process"
    assert not (tmp_path / "out").exists()
    real, done = module.sum_item, []

    def work(asked, item):
        if done:
            raise KeyboardInterrupt
        done.append(item)
        return real(asked, item)

    work.__name__ = "sum_item"
    with monkeypatch.context() as patch:
        patch.setattr(module, "sum_item", work)
        with pytest.raises(KeyboardInterrupt):
            run(place, tmp_path / "out")
    halfway = run(place, tmp_path / "out", dry_run=True)
    assert (halfway.planned.n_counted, halfway.planned.n_summed, halfway.again) == (3, 1, False)
    assert run(place, tmp_path / "out").planned is None
    assert planned.n_states == pq.read_table(tmp_path / "out" / "curves.parquet").num_rows  # of one output, in which rows can be everywhere
    assert run(place, tmp_path / "out", dry_run=True).again
    with pytest.raises(RunConflict, match="holds other effects"):
        run(place, tmp_path / "out", intervals=5, dry_run=True)


def test_counts_that_somebody_changed_are_refused(place, tmp_path, monkeypatch):
    """Counts of an item cannot be those of other rows."""
    real = module.count_item

    def twice(asked, item):
        made = real(asked, item)
        return made._replace(statistics=made.statistics.merge([made.statistics]))

    twice.__name__ = "count_item"
    monkeypatch.setattr(module, "count_item", twice)
    with pytest.raises(InvalidRun, match="300 rows in all groups; remove this folder"):
        run(place, tmp_path / "out")


def counting(monkeypatch):
    """Names of the work that is done of items, as it is done."""
    done = []
    real = {name: getattr(module, name) for name in ("count_item", "count_states", "sum_item")}
    for name in real:

        def work(asked, item, name=name):
            done.append(name)
            return real[name](asked, item)

        work.__name__ = name
        monkeypatch.setattr(module, name, work)
    return done


def same_bytes(one, other):
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in TABLES)


@pytest.mark.slow
def test_other_effects_of_the_same_background_do_not_count_it_again(place, tmp_path, monkeypatch):
    """Other features, pairs and intervals, to the bytes of those that count; a dry run says that there is one pass."""
    run(place, tmp_path / "kept" / "one", features=["z"])
    done = counting(monkeypatch)
    other = {"features": ["y", "colour", "x"], "intervals": 7}
    planned = run(place, tmp_path / "kept" / "two", dry_run=True, **other).planned
    assert (planned.n_counted, planned.n_summed, planned.counts) == (3, 0, "")
    run(place, tmp_path / "kept" / "two", **other)
    assert done == ["sum_item"] * 3
    done.clear()
    run(place, tmp_path / "new" / "two", **other)
    assert done == ["count_item"] * 3 + ["sum_item"] * 3
    same_bytes(tmp_path / "kept" / "two", tmp_path / "new" / "two")


@pytest.mark.slow
def test_what_attributions_counted_is_not_counted_again_and_the_other_way_round(place, tmp_path, monkeypatch):
    """Against the same background with errors: effects add states alone, and attributions add nothing, to the same bytes."""
    folder, _, _ = place
    explained = {"background": folder / "rows", "background_errors": True, "scheduler": "serial"}
    leafledger.explain(folder / "model.txt", folder / "rows", tmp_path / "first" / "run", **explained)
    done = counting(monkeypatch)
    assert run(place, tmp_path / "first" / "effects", dry_run=True).planned.counts == str(tmp_path / "first" / "_leafledger")
    run(place, tmp_path / "first" / "effects")
    assert done == ["count_states"] * 3 + ["sum_item"] * 3
    run(place, tmp_path / "second" / "effects", tables=tmp_path / "shared")
    same_bytes(tmp_path / "first" / "effects", tmp_path / "second" / "effects")
    with monkeypatch.context() as patch:
        patch.setattr("leafledger.pipeline.runs.stages.execute.count", None)  # would be called
        leafledger.explain(folder / "model.txt", folder / "rows", tmp_path / "second" / "run", tables=tmp_path / "shared", **explained)
    for name in ("attributions/part-00000.parquet", "summary/background_errors.parquet"):
        assert (tmp_path / "first" / "run" / name).read_bytes() == (tmp_path / "second" / "run" / name).read_bytes()


def test_groups_are_counted_as_they_are_asked_for(tmp_path, monkeypatch):
    """A group in which a row may be in no state is counted where it is asked for; the same features in another space take one pass."""
    rows = pd.DataFrame({"x": [0.0, 1.0] * 30, "a": [1.0, 0.0] * 30, "b": [0.0, 1.0] * 30, "c": [1.0, 1.0] * 30, "d": [1.0, 0.0] * 30})
    model = lightgbm.train({"verbosity": -1, "objective": "binary", "min_data_in_leaf": 5}, lightgbm.Dataset(rows, rows["x"]), 4)
    model.save_model(tmp_path / "model.txt")
    rows.to_parquet(tmp_path / "rows.parquet")
    given = {"partition": {"x": ["x"], "fine": ["a", "b"], "wrong": ["c", "d"]}, "scheduler": "serial"}
    done = counting(monkeypatch)
    leafledger.effects(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "one", features=["x", "fine"], **given)
    leafledger.effects(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "two", features=["x", "fine"], space="probability", **given)
    assert done == ["count_item", "sum_item", "sum_item"]


def test_kept_states_that_no_rows_can_have_are_refused(place, tmp_path):
    """Of other rows, of other features, or something else."""
    run(place, tmp_path / "one")
    for folder in (tmp_path / "_leafledger").iterdir():
        kept = open_stored_tables(str(folder))
        if isinstance(kept, CountedRows):
            break
    twice = tuple(each * 2 for each in kept.states)
    for wrong, message in (
        (kept._replace(states=twice), "holds no states of 300 rows"),
        (kept._replace(states=kept.states[1:]), "holds no states of 4 features"),
        (kept.seen, "holds no states of 4 features"),
        (kept._replace(states=tuple(each.astype(np.float64) for each in kept.states)), "holds no states of 300 rows"),
    ):
        shutil.rmtree(folder)
        store_tables(wrong if wrong is not kept.seen else Moments(*[np.zeros(1)] * 3), str(folder))
        with pytest.raises(InvalidRun, match=f"{message}; remove this folder"):
            run(place, tmp_path / "two", features=["x"])


def test_a_background_of_unknown_categories_is_not_kept(tmp_path):
    """Later runs may not allow it."""
    rows = make_rows(300)
    model, _ = train("lightgbm", rows)
    model.save_model(tmp_path / "model.txt")
    rows["colour"] = pd.Categorical(["pink"] * 300)
    rows.to_parquet(tmp_path / "rows.parquet")
    given = {"features": ["x"], "scheduler": "serial"}
    with pytest.raises(SchemaMismatch, match="colour"):
        leafledger.effects(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "out", **given)
    leafledger.effects(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "out", allow_unseen=True, **given)
    assert not (tmp_path / "_leafledger").exists()


def test_predictions_of_classes(tmp_path):
    """Probabilities are published where they are asked for."""
    rows = make_rows(300)
    model = train_classes("binary", rows)
    model.save_model(tmp_path / "model.txt")
    rows.to_parquet(tmp_path / "rows.parquet")
    leafledger.effects(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "out", features=["x"], space="probability", scheduler="serial")
    frame = pq.read_table(tmp_path / "out" / "curves.parquet").to_pandas()
    expected = leafledger.partial_dependence(model, rows, features=["x"], space="probability").to_frame("x")
    assert_allclose(frame["value"], expected["value"], rtol=0, atol=ATOL)


def test_what_cannot_be_read_or_asked(place, tmp_path):
    """A damaged file, no rows, numbers that are none, an output that differs from row to row."""
    folder, _, rows = place
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    rows.to_parquet(damaged / "a.parquet")
    (damaged / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InvalidData, match=r"b\.parquet"):
        leafledger.effects(folder / "model.txt", damaged, tmp_path / "out", scheduler="serial")
    rows[:0].to_parquet(tmp_path / "none.parquet")
    with pytest.raises(UsageError, match="the background has no rows"):
        leafledger.effects(folder / "model.txt", tmp_path / "none.parquet", tmp_path / "out", scheduler="serial")
    with pytest.raises(UsageError, match="lies within the background, which the same call would read next time; choose another output"):
        leafledger.effects(folder / "model.txt", folder / "rows" / "*.parquet", folder / "rows", scheduler="serial")
    with pytest.raises(UsageError, match=r"quantiles are \[2\.0\], expected numbers from 0 to 1"):
        run(place, tmp_path / "out", quantiles=[2.0])
    with pytest.raises(UsageError, match="output is 'predicted', which differs from row to row"):
        run(place, tmp_path / "out", output="predicted")
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / "effects.json").write_text("[]")
    with pytest.raises(InvalidRun, match="is no record of effects"):
        run(place, tmp_path / "out")
