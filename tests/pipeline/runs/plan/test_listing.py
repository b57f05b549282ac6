"""Whoever reads the footers of a run's data, the same is found, and the same is refused."""

import time
from contextlib import contextmanager
from dataclasses import replace

import distributed
import pyarrow.parquet as pq
import pytest

from leafledger import explain
from leafledger.pipeline.cluster import start_client as cluster
from leafledger.pipeline.dataset.files.listing import list_data
from leafledger.pipeline.dataset.files.matching import ExtraColumns
from leafledger.pipeline.errors import ClusterLost, InvalidData, SchemaMismatch
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.job.job import asked_columns, make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan import listing as listed
from leafledger.pipeline.runs.plan.listing import list_for
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


@pytest.fixture
def started(address, monkeypatch):
    """How many blocks local clusters were started for; their workers are threads of this process too."""
    found = []

    @contextmanager
    def start(job, n_blocks):
        found.append(n_blocks)
        with distributed.Client(address) as client:
            yield client

    monkeypatch.setattr(cluster, "local_client", start)
    return found


def job_here(example, folder, workers):
    return make_job(example.model, folder, folder.parent / "run", Options(workers=workers, ids=("name",), by=("month",)))


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


@pytest.mark.parametrize("n_files", [10, 11])
def test_a_local_cluster_reads_footers_where_it_is_asked_for(example, tmp_path, blocks, started, n_files):
    """And where there are many of them."""
    write_copies(example, tmp_path / "data", *NAMES[:n_files])
    for k in (1, 7):
        (tmp_path / "data" / NAMES[k]).write_bytes(b"PAR1 and no more")
    job, model = job_here(example, tmp_path / "data", workers=2), load_ensemble(example.model)
    found = list_for(job, job.data, model, asked_columns(job))
    assert (started, sorted(blocks)) == (([4], [0, 1, 2, 3]) if n_files == 11 else ([], []))
    assert found == list_data(job.data, model, asked_columns(job))
    assert [entry.uri for entry in found.rejected] == [f"{job.data}/{NAMES[k]}" for k in (1, 7)]


def test_without_a_cluster_none_is_started(example, tmp_path, blocks, started):
    """However many files there are."""
    write_copies(example, tmp_path / "data", *NAMES)
    job, model = job_here(example, tmp_path / "data", workers=None), load_ensemble(example.model)
    assert list_for(job, job.data, model, asked_columns(job)) == list_data(job.data, model, asked_columns(job))
    assert (started, blocks) == ([], [])


@pytest.mark.parametrize("first", [1, 5], ids=["of the first block", "of another"])
def test_the_first_file_that_does_not_fit_is_told_by_a_local_cluster_too(example, tmp_path, blocks, started, first):
    """Whoever reads it."""
    table = write_copies(example, tmp_path / "data", *NAMES)
    for k in (first, 10):
        pq.write_table(table.drop_columns("delay"), tmp_path / "data" / NAMES[k])
    job = job_here(example, tmp_path / "data", workers=2)
    with pytest.raises(SchemaMismatch, match=rf"{NAMES[first]}: column 'delay' missing"):
        list_for(job, job.data, load_ensemble(example.model))
    assert started == [4]


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
    assert list_for(job, job.data, model, ExtraColumns(("name",))) == list_data(job.data, model, ExtraColumns(("name",)))
    assert blocks == []


def test_a_scheduler_that_is_away_is_said(example, tmp_path, blocks):
    """While the run is planned."""
    write_copies(example, tmp_path / "data", *NAMES)
    job = job_on("tcp://127.0.0.1:1", example, tmp_path / "data")
    job = replace(job, placement=replace(job.placement, wait=1.0))
    with pytest.raises(ClusterLost, match=r"^tcp://127\.0\.0\.1:1: no Dask scheduler answers there"):
        list_for(job, job.data, load_ensemble(example.model))


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_runs_are_the_same(example, tmp_path, monkeypatch, two_workers):
    """Byte for byte, also where the footers of a background are read by worker processes."""
    write_copies(example, tmp_path / "data", *NAMES)
    given = {"background": tmp_path / "data", "ids": ["name"]}
    explain(example.model, tmp_path / "data", tmp_path / "serial", scheduler="serial", tables=tmp_path / "a", **given)
    monkeypatch.setattr(listed, "MANY", 11)
    monkeypatch.setattr(listed, "BLOCK", 3)
    explain(example.model, tmp_path / "data", tmp_path / "run", scheduler=two_workers, tables=tmp_path / "b", **given)
    assert contents(tmp_path / "run") == contents(tmp_path / "serial")
    explain(example.model, tmp_path / "data", tmp_path / "local", workers=2, tables=tmp_path / "c", **given)
    assert contents(tmp_path / "local") == contents(tmp_path / "serial")
