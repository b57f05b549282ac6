"""A background counted item by item: the same bits however many workers count it and whichever die, and no rows but those that were planned."""

import os
import shutil
import signal

import dask
import distributed
import numpy as np
import pytest

from leafledger import check_run, explain
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import ClusterLost, InvalidData, SchemaMismatch
from leafledger.pipeline.runs.execute import count_background
from leafledger.pipeline.runs.plan import background
from tests.pipeline.conftest import FEATURES, write_data
from tests.pipeline.running import contents

N_ROWS = 1000


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_however_many_count_the_bits_are_the_same(example, background_uri, against_rows, tmp_path, monkeypatch, two_workers):
    """Published files and tables of a run whose background was counted in many pieces on a cluster equal those of the serial run, byte for byte."""
    monkeypatch.setattr(background, "ITEM_ROWS", 100)
    counted = []

    def progress(work):
        counted.append(work)
        return lambda done: None

    given = {"background": background_uri, "precision": "float64", "progress": progress}
    explain(example.model, example.data, tmp_path / "two" / "run", **given, scheduler=two_workers)
    with cluster("", n_workers=4) as workers:
        explain(example.model, example.data, tmp_path / "four" / "run", **given, scheduler=workers.scheduler_address)
    stages = [("counting background", N_ROWS), ("preparing tables", 0), ("explaining", 3000)]
    assert [(work.doing, work.n_rows) for work in counted] == 2 * stages
    assert counted[0].n_items > 8
    assert contents(tmp_path / "two") == contents(tmp_path / "four") == contents(against_rows[0].parent)


@pytest.mark.parametrize("method", ["shapley", "gap"])
@pytest.mark.slow
def test_a_background_of_unknown_categories_is_refused(example, tmp_path, method):
    """Of all its files together. Of what is allowed no counts are kept, or a run that does not allow it would find them."""
    rows = example.frame[FEATURES][:300].reset_index(drop=True)
    rows[:5].to_parquet(tmp_path / "rows.parquet", index=False)
    for name, n_known in (("bad", 2), ("good", 150)):
        carrier = np.where(np.arange(300) < n_known, "UA", "ua")
        (tmp_path / name).mkdir()
        for first in range(0, 300, 100):  # most files have no category that the model knows
            rows.assign(carrier=carrier)[first : first + 100].to_parquet(tmp_path / name / f"{first}.parquet", index=False)
    given = {"method": method, "scheduler": "serial", "tables": tmp_path / "counts"}
    says = rf"^{tmp_path}/bad: column 'carrier': 298 of 300 values are no category of the model, expected"
    for out, allowed in (("0", False), ("1", True), ("2", False)):
        if allowed:
            explain(example.model, tmp_path / "rows.parquet", tmp_path / out, background=tmp_path / "bad", allow_unseen=True, **given)
            assert check_run(str(tmp_path / out), deep=True).n_rows == 5
            continue
        with pytest.raises(SchemaMismatch, match=says):
            explain(example.model, tmp_path / "rows.parquet", tmp_path / out, background=tmp_path / "bad", **given)
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "3", background=tmp_path / "good", **given)


def test_slices_of_a_background_do_not_show(example, background_uri, against_rows, tmp_path, monkeypatch):
    """Rows are counted a slice at a time."""
    monkeypatch.setattr(count_background, "max_slice_rows", lambda _: 128)
    explain(example.model, example.data, tmp_path / "run", background=background_uri, precision="float64", scheduler="serial")
    assert contents(tmp_path / "run") == contents(against_rows[0])


def test_a_background_that_changes_while_it_is_counted_stops_the_run(example, background_rows, background_uri, tmp_path):
    """A file replaced between plan and count is an error that names it."""
    shutil.copytree(background_uri, tmp_path / "rows")

    def replace_rows(work):
        write_data(background_rows.assign(delay=0.0), tmp_path / "rows")
        return lambda done: None

    with pytest.raises(InvalidData, match=r"rows/month=1/data\.parquet: changed since the run was planned"):
        explain(example.model, example.data, tmp_path / "run", background=tmp_path / "rows", scheduler="serial", progress=replace_rows)
    assert not (tmp_path / "_leafledger").exists()


def test_the_log_has_a_line_per_piece(example, background_uri, tmp_path, capsys):
    """While counting too, and where tables are prepared."""
    assert (
        main(["explain", example.model, example.data, "--out", str(tmp_path / "run"), "--background", background_uri, "--scheduler", "serial"]) == 0
    )
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["counting background"] * 4 + ["preparing tables", "explaining in this process"] + [
        "explaining"
    ] * 4
    assert lines[3] == "counting background: part 3: 251 rows; 4 of 4 parts, 1000 of 1000 rows, 100%"


def cluster(preload, n_workers=2):
    """Worker processes that run a few lines first."""
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", preload=[preload] if preload else []
    )


SLOW = """
import time
from leafledger.pipeline.dataset.files.rows import read_slices
from leafledger.pipeline.runs.execute import count_background
count_background.read_slices = lambda *given: time.sleep(0.2) or read_slices(*given)
"""


DEADLY = """
import os, signal
from leafledger.pipeline.runs.execute import count_background
count_background.read_slices = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.more
def test_a_worker_killed_while_counting_does_not_show(example, background_uri, against_rows, tmp_path, monkeypatch):
    """What it had counted is counted again, and the bits are the same."""
    monkeypatch.setattr(background, "ITEM_ROWS", 100)
    with cluster(SLOW) as workers, distributed.Client(workers) as client:
        pids = list(client.run(os.getpid).values())

        def kill_one(work):
            return lambda done: os.kill(pids.pop(), signal.SIGKILL) if work.doing == "counting background" and len(pids) > 1 else None

        address = workers.scheduler_address
        explain(example.model, example.data, tmp_path / "run", background=background_uri, precision="float64", scheduler=address, progress=kill_one)
    assert len(pids) == 1
    assert contents(tmp_path / "run") == contents(against_rows[0])


@pytest.mark.slow
def test_workers_that_die_of_counting_are_one_line(example, background_uri, tmp_path):
    """It names the file."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        cluster(DEADLY) as workers,
        pytest.raises(ClusterLost, match=r"month=\d/data\.parquet: row groups \[.*\]: the workers that it was given to died") as lost,
    ):
        explain(example.model, example.data, tmp_path / "run", background=background_uri, scheduler=workers.scheduler_address)
    assert "\n" not in str(lost.value)


@pytest.mark.slow
def test_a_scheduler_lost_while_counting_is_one_line(example, background_uri, against_rows, tmp_path, monkeypatch):
    """A rerun starts over and publishes the same."""
    monkeypatch.setattr(background, "ITEM_ROWS", 100)
    given = {"background": background_uri, "precision": "float64"}
    with cluster(SLOW) as workers:
        there = {"scheduler": workers.scheduler_address, "progress": lambda _: lambda done: workers.close()}
        with pytest.raises(ClusterLost, match=r"the Dask cluster went away with \d+ parts to do; run again to go on from there"):
            explain(example.model, example.data, tmp_path / "run", **given, **there)
    explain(example.model, example.data, tmp_path / "run", **given, scheduler="serial")
    assert contents(tmp_path / "run") == contents(against_rows[0])
