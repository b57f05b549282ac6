"""Runs on threads of one process, which may be killed, and which items may kill: nothing is lost, doubled or done again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from leafledger import check_run, explain
from leafledger.pipeline.runs.records.folder import ATTEMPT
from tests.faults.clients import Client
from tests.faults.preload import DEADLY, DEADLY_FILE, SECONDS
from tests.faults.verdict import ID, committed, contents
from tests.more import more
from tests.pipeline.conftest import SMALL, damage, write_small
from tests.pipeline.running import attributions

SITE = os.path.join(os.path.dirname(__file__), "site")
PATHS = {"PYTHONPATH": os.pathsep.join([SITE, os.getcwd(), os.environ.get("PYTHONPATH", "")])}  # of processes that try one item alone
DIED = "the processes that it was given to died, every time"
SEEDS = 10


def arguments(data, out, threads, *told):
    """Of a run on threads."""
    return ["explain", data.model, data.data, "--out", out, "--id", ID, "--threads", str(threads), *told]


@pytest.fixture
def start(many):
    """Start a run in a process of its own, on three threads unless told otherwise, with what makes it last or die."""

    def started(out, *told, data=many.data, threads=3, **environment):
        return Client(PATHS | environment, arguments(replace(many, data=data), out, threads, *told))

    return started


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, SEEDS))])
def test_a_process_killed_at_random(many, tally, tmp_path, start, seed):
    """Again and again: what it committed stays, and the last one publishes the bytes of the fault-free run."""
    rng, out, before = random.Random(seed), str(tmp_path / "run"), {}
    for k in range(60):
        process = start(out, **{SECONDS: "0.3"})
        if process.wait(rng.uniform(0.2, 1.2) + 1.5 * k) is None:
            process.kill()
            process.wait()
            tally.faults["threads SIGKILL"] += 1
        assert committed(out).items() >= before.items()
        before = committed(out)
        if process.wait() == 0:
            break
    assert k  # some were killed: items last 0.3 seconds, four on each thread
    assert process.wait() == 0
    many.judge(out, before)


@pytest.mark.parametrize("threads", [*more(1), 3])
def test_an_item_that_kills_its_process_is_rejected_by_the_next(many, tally, tmp_path, start, threads):
    """Which tries alone what the last one died of; all others are explained, and the run after it finds nothing to do."""
    out, deadly = str(tmp_path / "run"), {DEADLY: "4", SECONDS: "0.3"}
    first = start(out, threads=threads, **deadly)
    assert first.wait() == -signal.SIGSEGV
    assert json.loads((tmp_path / "run" / ATTEMPT).read_text())["threads"] == threads
    left = committed(out)
    second = start(out, threads=threads, **deadly)
    tally.faults["items that kill their process"] += 1
    assert second.wait() == 3, second.output()
    assert committed(out).items() >= left.items()
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    (rejected,) = manifest["rejected"]
    assert (rejected["part"], rejected["reason"].endswith(DIED)) == (4, True)
    assert sorted(entry["part"] for entry in manifest["parts"]) == [part for part in range(len(manifest["parts"]) + 1) if part != 4]
    assert not (tmp_path / "run" / ATTEMPT).exists()
    assert {name for name in many.reference if name.startswith("attributions/")} - {f"{name}" for name in contents(out)} == {
        "attributions/part-00004.parquet"
    }
    check_run(out)
    assert start(out, threads=threads).wait() == 3


def test_a_deadly_file_takes_no_other_of_its_part_with_it(example, tally, tmp_path, start, many):
    """Files of a part are tried in groups, then alone."""
    data = write_small(example.frame, tmp_path / "data")
    deadly = sorted(data.rglob("*.parquet"))[3]
    told, out = ("--item-rows", "1000"), str(tmp_path / "run")
    codes = [start(out, *told, data=str(data), **{DEADLY_FILE: str(deadly)}).wait() for _ in range(2)]
    tally.faults["files that kill their process"] += 1
    assert codes == [-signal.SIGSEGV, 3]
    (rejected,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["rejected"]
    assert (rejected["uri"], rejected["reason"].endswith(DIED)) == (str(deadly), True)
    assert sum(SMALL) * 2 - check_run(out).n_rows == rejected["n_rows"]
    damage(deadly)
    explain(many.model, data, tmp_path / "whole", scheduler="serial", ids=[ID], item_rows=1000)
    assert attributions(out).equals(attributions(tmp_path / "whole"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_process_that_is_told_to_end_does(many, tally, tmp_path, number, code):
    """In good order, within the time of a slice: nothing is suspected of having killed it, and the next one goes on."""
    out = str(tmp_path / "run")
    command = [sys.executable, "-m", "leafledger", *arguments(many, out, 3)]  # to its very end, not one of a server that forks
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | PATHS | {SECONDS: "2"})
    until = time.monotonic() + 60
    while not committed(out) and time.monotonic() < until:
        time.sleep(0.05)
    assert process.poll() is None  # it has nine of twelve items left, six seconds of work
    told = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate()
    tally.faults[f"threads {signal.Signals(number).name}"] += 1
    assert time.monotonic() - told < 10
    assert process.returncode == code
    assert err.splitlines()[-1].endswith("; run the same command again to go on from there")
    assert not (tmp_path / "run" / ATTEMPT).exists()
    many.go_on(out, scheduler=None, threads=3)


def test_a_process_beside_another_suspects_nothing(many, tmp_path, start):
    """Two of one run at the same time: both end well, with the same bytes."""
    out = str(tmp_path / "run")
    processes = [start(out, **{SECONDS: "0.3"}) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    many.judge(out)
