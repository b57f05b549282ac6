"""What may have killed the process of an earlier attempt, by what it left behind."""

import json
import os
import subprocess
import sys

import psutil
import pytest

from leafledger import explain
from leafledger.pipeline.cluster.threads import AHEAD
from leafledger.pipeline.cluster.worker_identity import this_machine
from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.runs.execute.interrupted import find_suspects, recorded
from leafledger.pipeline.runs.records.folder import ATTEMPT

ITEMS = tuple(WorkItem(k, f"f{k}.parquet", "", (0,), 0, 10, 0, ()) for k in range(20) if k != 3)  # one was rejected before


def leave(run, threads=2, **said):
    """The record of a process that is gone, unless said otherwise."""
    run.mkdir(exist_ok=True)
    (run / ATTEMPT).write_text(json.dumps({"host": this_machine().host, "process": 1 << 30, "began": 1.5, "threads": threads} | said))


def publish(run, *parts):
    """Parts that are there."""
    (run / "attributions").mkdir(parents=True, exist_ok=True)
    for part in parts:
        (run / "attributions" / f"part-{part:05d}.parquet").touch()


def test_what_ended_in_good_order_leaves_no_suspects(tmp_path):
    """Well or not; while it is at work its record says who it is."""
    publish(tmp_path, 0, 1)
    with recorded(str(tmp_path), 5):
        found = json.loads((tmp_path / ATTEMPT).read_text())
        assert (found["process"], found["threads"], found["host"]) == (os.getpid(), 5, this_machine().host)
        assert abs(found["began"] - psutil.Process().create_time()) < 0.1
        assert find_suspects(str(tmp_path), ITEMS) == set()  # it is at work
    assert not (tmp_path / ATTEMPT).exists()
    with pytest.raises(KeyboardInterrupt), recorded(str(tmp_path), 5):
        raise KeyboardInterrupt
    assert not (tmp_path / ATTEMPT).exists()
    assert find_suspects(str(tmp_path), ITEMS) == set()


@pytest.mark.parametrize(
    ("made", "threads", "suspects"),
    [
        ((), 2, {0, 1, 2, 4}),
        ((0, 1, 2), 1, {4, 5, 6}),
        ((0, 4), 2, {1, 2, 5, 6, 7, 8}),
        ((0, 1, 2, *range(4, 19)), 4, {19}),
        ((0, 1, 2, *range(4, 20)), 4, set()),
    ],
)
def test_suspects_have_no_part_and_may_have_begun(tmp_path, made, threads, suspects):
    """All before the last part, and as many behind it as threads could have had in hand."""
    assert AHEAD == 2
    publish(tmp_path, *made)
    leave(tmp_path, threads)
    assert find_suspects(str(tmp_path), ITEMS) == suspects


def test_a_process_that_is_there_is_not_dead(tmp_path):
    """One that has its number by now is another; of another host nothing is known, and it counts as dead."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        began = psutil.Process(child.pid).create_time()
        leave(tmp_path, process=child.pid, began=began)
        assert find_suspects(str(tmp_path), ITEMS) == set()
        leave(tmp_path, process=child.pid, began=began - 100)
        assert find_suspects(str(tmp_path), ITEMS) == {0, 1, 2, 4}
        leave(tmp_path, process=child.pid, began=began, host="elsewhere")
        assert find_suspects(str(tmp_path), ITEMS) == {0, 1, 2, 4}
    finally:
        child.communicate(b"\n")


@pytest.mark.slow
def test_a_run_that_workers_finish_leaves_no_record(in_process, example, tmp_path):
    """Of a process that died before; nor is there one where none was."""
    for name in ("run", "other"):
        if name == "run":
            leave(tmp_path / name)
        explain(example.model, example.data, tmp_path / name, workers=2)
        assert not (tmp_path / name / ATTEMPT).exists()


def test_a_record_that_is_none_says_that_something_died(tmp_path):
    """As a file that was cut short."""
    leave(tmp_path)
    (tmp_path / ATTEMPT).write_text("{")
    assert find_suspects(str(tmp_path), ITEMS) == {0, 1, 2, 4}
