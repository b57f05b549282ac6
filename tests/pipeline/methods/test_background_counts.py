"""What is kept of a background for later runs: counts that they find, and that are refused where they are damaged or forged."""

import shutil

import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose

from leafledger import check_run, explain, load_ensemble
from leafledger.kernels.slices.buffers import Pairs
from leafledger.pipeline.errors import InvalidRun, RunConflict
from leafledger.pipeline.methods import background_counts
from leafledger.pipeline.runs.check.recompute_rows import SAMPLE_ROWS
from leafledger.pipeline.runs.job import job as config
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan import planned_run as planned_run_
from leafledger.pipeline.stores.table_arrays import BYTES, INDEX, open_stored_tables, store_tables
from tests.pipeline.conftest import write_data
from tests.pipeline.running import attributions, contents, read_phi, stored

SINGLE = 1e-5  # the library adds in single precision


def test_a_later_run_finds_the_counts(example, background_uri, against_rows, tmp_path, monkeypatch):
    """It does not count, its plan and its bytes are those of the run that did."""
    monkeypatch.setattr(background_counts, "measure_background", lambda *_: pytest.fail("counted again"))
    tables = against_rows[0].parent / "_leafledger"
    before = {path: path.stat().st_mtime_ns for path in tables.rglob("*")}
    explain(example.model, example.data, tmp_path / "run", background=background_uri, tables=tables, precision="float64", scheduler="serial")
    assert contents(tmp_path / "run") == contents(against_rows[0])
    assert {path: path.stat().st_mtime_ns for path in tables.rglob("*")} == before
    assert not (tmp_path / "_leafledger").exists()


@pytest.mark.slow
def test_another_background_has_other_tables(example, background_rows, background_uri, against_rows, tmp_path):
    """A file that changed is another background, for tables and for a run that was there before; a copy elsewhere is another one as well."""
    given = {"precision": "float64", "scheduler": "serial"}
    shutil.copytree(background_uri, tmp_path / "rows")
    explain(example.model, example.data, tmp_path / "one", background=tmp_path / "rows", **given)
    write_data(background_rows.assign(delay=background_rows["delay"] + 1), tmp_path / "rows")
    with pytest.raises(RunConflict, match="different in the background's files; choose another output"):
        explain(example.model, example.data, tmp_path / "one", background=tmp_path / "rows", **given)
    explain(example.model, example.data, tmp_path / "two", background=tmp_path / "rows", **given)
    assert len(list((tmp_path / "_leafledger").iterdir())) == 2
    assert (read_phi(tmp_path / "one") == read_phi(against_rows[0])).all()
    assert (read_phi(tmp_path / "one") != read_phi(tmp_path / "two")).any()


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.slow
def test_counts_are_of_what_a_number_stands_for(example, background_rows, tmp_path):
    """Rows read with another number for what is missing are others, with the same bytes: each run's base is the mean of its own margins."""
    numbers = background_rows.assign(delay=background_rows["delay"].fillna(-999.0))
    given = {"background": write_data(numbers, tmp_path / "rows"), "precision": "float64", "scheduler": "serial"}
    for missing, name in ((None, "one"), (-999, "two")):
        found = explain(example.model, given["background"], tmp_path / name, missing=missing, **given)
        assert_allclose(found.base, attributions(tmp_path / name)["margin"].to_numpy().mean(), rtol=1e-12)
        assert check_run(tmp_path / name, deep=True).n_again
    assert len(list((tmp_path / "_leafledger").iterdir())) == 2


@pytest.mark.filterwarnings("ignore:.*features by position")
def test_counts_are_of_the_columns_that_were_read(tmp_path):
    """A model without names takes the data's columns by position, and then the background's by the data's names: others for other data."""
    rows = np.random.default_rng(0).normal(size=(120, 3)) * [1, 10, 100]
    booster = xgboost.train({"nthread": 1, "max_depth": 3}, xgboost.DMatrix(rows, rows @ [3, 2, 1]), 5)
    booster.save_model(tmp_path / "model.json")
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    frame.to_parquet(tmp_path / "rows.parquet")
    for columns in (["a", "b", "c"], ["b", "a", "c"]):
        name = "".join(columns)
        frame[columns].to_parquet(tmp_path / f"{name}.parquet")
        given = {"background": tmp_path / "rows.parquet", "precision": "float64", "scheduler": "serial"}
        found = explain(tmp_path / "model.json", tmp_path / f"{name}.parquet", tmp_path / name, **given)
        assert_allclose(found.base, booster.predict(xgboost.DMatrix(frame[columns].to_numpy())).mean(), rtol=SINGLE)
        assert check_run(tmp_path / name, deep=True).n_again


DAMAGE = {
    "a flipped bit": lambda folder: flip(folder / BYTES),
    "the end missing": lambda folder: (folder / BYTES).write_bytes((folder / BYTES).read_bytes()[:-1]),
    "no bytes": lambda folder: (folder / BYTES).write_bytes(b""),
    "no array": lambda folder: (folder / BYTES).unlink(),
    "an index of nothing": lambda folder: (folder / INDEX).write_text("{}"),
    "half an index": lambda folder: (folder / INDEX).write_text((folder / INDEX).read_text()[:99]),
    "another index": lambda folder: (folder / INDEX).write_text((folder / INDEX).read_text().replace("<i8", "<f8")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_tables_are_named(example, background_uri, against_rows, tmp_path, damage):
    """Whatever is wrong with what an earlier run left is found while planning; with the folder gone the run prepares it anew."""
    shutil.copytree(against_rows[0].parent / "_leafledger", tmp_path / "_leafledger")
    folder = stored(tmp_path / "_leafledger")
    given = {"background": background_uri, "precision": "float64", "scheduler": "serial"}
    job = config.make_job(example.model, example.data, tmp_path / "run", Options(background=background_uri))
    assert not planned_run_.plan_run(job, load_ensemble(example.model)).uncounted
    DAMAGE[damage](folder)
    with pytest.raises(InvalidRun, match=rf"^{folder}: the tables of an earlier run are damaged there; remove this folder$"):
        explain(example.model, example.data, tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()
    shutil.rmtree(folder)
    explain(example.model, example.data, tmp_path / "run", **given)
    assert contents(tmp_path / "run") == contents(against_rows[0])


def forge(folder, change):
    """Counts that somebody else put there: every digest agrees."""
    found = open_stored_tables(str(folder))
    forged = change(found)
    shutil.rmtree(folder)
    store_tables(forged, str(folder))


def turned(counts, n):
    """Each count stands where its neighbour stood, among the first n."""
    return np.concatenate((np.roll(counts[:n], 1), counts[n:]))


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found._replace(counts=found.counts * 2),
        lambda found: found._replace(counts=found.counts[:-1]),
        lambda found: found._replace(start=found.start + (1 << 40)),
        lambda found: Pairs(found.counts, found.times),
    ],
    ids=["more rows", "fewer codes", "far away", "another record"],
)
def test_forged_counts_are_refused(example, background_uri, against_rows, tmp_path, change):
    """What can be counted of no rows is found while planning, though its digest is right."""
    shutil.copytree(against_rows[0].parent / "_leafledger", tmp_path / "_leafledger")
    folder = stored(tmp_path / "_leafledger")
    forge(folder, change)
    with pytest.raises(InvalidRun, match=rf"^{folder}: the background.*expect.*; remove this folder$"):
        explain(example.model, example.data, tmp_path / "run", background=background_uri, scheduler="serial")


@pytest.mark.slow
def test_a_deep_check_counts_again(example, background_uri, against_rows, tmp_path):
    """Counts that some rows may have, but not these, are found by who explains rows again without them."""
    assert check_run(against_rows[0], deep=True).n_again == 4 * SAMPLE_ROWS
    shutil.copytree(against_rows[0].parent / "_leafledger", tmp_path / "_leafledger")
    forge(stored(tmp_path / "_leafledger"), lambda found: found._replace(counts=turned(found.counts, 2)))
    explain(example.model, example.data, tmp_path / "run", background=background_uri, scheduler="serial")
    assert check_run(tmp_path / "run").n_rows == len(example.frame)
    with pytest.raises(InvalidRun, match=r"part-00000\.parquet: rows 0 to 63 explained again differ"):
        check_run(tmp_path / "run", deep=True)


def test_a_deep_check_needs_the_background(example, background_rows, tmp_path):
    """Where its files are others by now, rows cannot be explained again; the model's own weights are always there."""
    data = write_data(background_rows, tmp_path / "rows")
    explain(example.model, example.data, tmp_path / "run", background=data, scheduler="serial")
    write_data(background_rows.assign(delay=0.0), tmp_path / "rows")
    assert check_run(tmp_path / "run", deep=True).n_again == 0
    shutil.rmtree(data)
    assert check_run(tmp_path / "run", deep=True).n_again == 0


def test_tables_that_were_not_finished_are_made_anew(example, background_uri, against_rows, tmp_path):
    """Without an index nothing counts as stored; bytes of something else that lie there are not taken for tables."""
    shutil.copytree(against_rows[0].parent / "_leafledger", tmp_path / "_leafledger")
    folder = stored(tmp_path / "_leafledger")
    given = {"background": background_uri, "precision": "float64", "scheduler": "serial"}
    (folder / INDEX).unlink()
    explain(example.model, example.data, tmp_path / "run", **given)
    assert contents(tmp_path / "run") == contents(against_rows[0])
    (folder / INDEX).unlink()
    flip(folder / BYTES)
    with pytest.raises(InvalidRun, match=r"damaged there; remove this folder$"):
        explain(example.model, example.data, tmp_path / "other", **given)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 65, 80])
def test_sums_are_made_by_places(monkeypatch, n):
    """Eight neighbours at a time, then eight sums, as on Dask, in whatever order they come."""
    monkeypatch.setattr(background_counts, "_merge", lambda parts: parts[0] if len(parts) == 1 else list(parts))
    left = list(range(n))
    while len(left) > 1:
        left = [left[i] if i + 1 == len(left) else left[i : i + 8] for i in range(0, len(left), 8)]
    assert background_counts.merge_in_tree((k, k) for k in reversed(range(n))) == left[0]
