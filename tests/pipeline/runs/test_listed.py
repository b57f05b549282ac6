"""Whoever reads the footers of a run's data, the same is found, and the same is refused."""

import time
from dataclasses import replace

import distributed
import pyarrow.parquet as pq
import pytest

from leafledger import explain
from pipeline.dataset.listing import list_data
from pipeline.dataset.matching import Asked
from pipeline.errors import ClusterLost, InvalidData, SchemaMismatch
from pipeline.models import load_ensemble
from pipeline.runs import listed
from pipeline.runs.job import asked_columns, make_job
from pipeline.runs.listed import list_for
from pipeline.runs.options import Options
from tests.pipeline.running import contents, write_copies

NAMES = [f"month=1/{k:02}.parquet" for k in range(11)]
READ, DONE = listed._read_block, []


@pytest.fixture(scope="module")
def address():
    """Of a scheduler whose workers are threads of this process, so that what tests put in the place of work is what is done."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", memory_limit="auto") as found:
        yield found.scheduler_address


def read_late(matching, block):
    """The first block last."""
    time.sleep(0.2 if block.place == 0 else 0)
    read = READ(matching, block)
    DONE.append(block.place)
    return read


@pytest.fixture
def blocks(monkeypatch):
    """Which blocks of three files were read elsewhere, in the order in which they were done."""
    DONE.clear()
    monkeypatch.setattr(listed, "MANY", 11)
    monkeypatch.setattr(listed, "BLOCK", 3)
    monkeypatch.setattr(listed, "_read_block", read_late)
    return DONE


def job_on(address, example, folder):
    return make_job(example.model, folder, folder.parent / "run", Options(scheduler=address, plain_tcp=True, ids=("name",), by=("month",)))


def test_workers_find_what_this_process_finds(example, tmp_path, address, blocks):
    """A file that cannot be read and identities among it, though blocks are read in another order; of ten files they read none."""
    write_copies(example, tmp_path / "data", *NAMES)
    (tmp_path / "data" / NAMES[4]).write_bytes(b"PAR1 and no more")
    job, model = job_on(address, example, tmp_path / "data"), load_ensemble(example.model)
    found, expected = list_for(job, job.data, model, asked_columns(job)), list_data(job.data, model, asked_columns(job))
    assert found == expected
    assert (len(found.files), [entry.uri for entry in found.rejected]) == (10, [f"{job.data}/{NAMES[4]}"])
    assert sorted(blocks) == [0, 1, 2, 3]
    assert blocks[0] != 0
    (tmp_path / "data" / NAMES[0]).unlink()
    assert list_for(job, job.data, model) == list_data(job.data, model)
    assert len(blocks) == 4


def test_the_first_file_that_does_not_fit_is_told(example, tmp_path, address, blocks):
    """In the words of this process, whichever block is read first."""
    table = write_copies(example, tmp_path / "data", *NAMES)
    for k in (2, 10):
        pq.write_table(table.drop_columns("delay"), tmp_path / "data" / NAMES[k])
    job, model = job_on(address, example, tmp_path / "data"), load_ensemble(example.model)
    with pytest.raises(SchemaMismatch) as expected:
        list_data(job.data, model)
    assert f"{NAMES[2]}: column 'delay' missing" in str(expected.value)
    with pytest.raises(SchemaMismatch) as found:
        list_for(job, job.data, model)
    assert str(found.value) == str(expected.value)


def test_data_of_which_nothing_can_be_read_are_refused(example, tmp_path, address, blocks):
    """By the reason of the first file."""
    write_copies(example, tmp_path / "data", *NAMES)
    for name in NAMES:
        (tmp_path / "data" / name).write_bytes(b"PAR1 and no more")
    job = job_on(address, example, tmp_path / "data")
    with pytest.raises(InvalidData, match=rf"{NAMES[0]}: not a Parquet file"):
        list_for(job, job.data, load_ensemble(example.model))


def test_a_model_with_millions_of_categories_is_not_sent_about(example, tmp_path, address, blocks, monkeypatch):
    """It would be sent with every block."""
    write_copies(example, tmp_path / "data", *NAMES)
    job, model = job_on(address, example, tmp_path / "data"), load_ensemble(example.model)
    monkeypatch.setattr(listed, "MATCHING_BYTES", 100)
    assert list_for(job, job.data, model, Asked(("name",))) == list_data(job.data, model, Asked(("name",)))
    assert blocks == []


def test_a_scheduler_that_is_away_is_said(example, tmp_path, blocks):
    """While the run is planned."""
    write_copies(example, tmp_path / "data", *NAMES)
    job = job_on("tcp://127.0.0.1:1", example, tmp_path / "data")
    job = replace(job, options=replace(job.options, wait=1.0))
    with pytest.raises(ClusterLost, match=r"^tcp://127\.0\.0\.1:1: no Dask scheduler answers there"):
        list_for(job, job.data, load_ensemble(example.model))


def test_runs_are_the_same(example, tmp_path, monkeypatch):
    """Byte for byte, also where the footers of a background are read by worker processes."""
    write_copies(example, tmp_path / "data", *NAMES)
    given = {"background": tmp_path / "data", "ids": ["name"]}
    explain(example.model, tmp_path / "data", tmp_path / "serial", scheduler="serial", tables=tmp_path / "a", **given)
    monkeypatch.setattr(listed, "MANY", 11)
    monkeypatch.setattr(listed, "BLOCK", 3)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        explain(example.model, tmp_path / "data", tmp_path / "run", scheduler=cluster.scheduler_address, tables=tmp_path / "b", **given)
    assert contents(tmp_path / "run") == contents(tmp_path / "serial")
