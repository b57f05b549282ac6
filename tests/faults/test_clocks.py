"""Clocks that jump in the middle of a run, for everything that the run consists of: made by libfaketime, in processes that do not notice."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.verdict import ID, committed

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
pytestmark = [pytest.mark.long, pytest.mark.skipif(LIBRARY is None, reason="clocks are turned by libfaketime: apt-get install libfaketime")]
JUMPS = {"a day ahead": "+26h", "three hours back": "-3h"}
SECONDS = 400


def start(runner, out, clock, *options):
    """A command line whose clocks are off by what the file says, at any time."""
    environment = os.environ | {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # which no jump of a clock changes
        "DASK_DISTRIBUTED__WORKER__PRELOAD": '["tests.faults.preload"]',
        "FAULTS_SECONDS": "0.5",
        "PYTHONPATH": os.getcwd(),
    }
    command = [sys.executable, "-c", "from leafledger.pipeline.command.cli import main; raise SystemExit(main())"]
    return subprocess.Popen(
        [*command, "explain", runner.model, runner.data, "--out", out, "--id", ID, *options],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(runner, tally, out, clock, jump, *options):
    """A run in which the clock jumps once something is published; where it fails, in one line, the next one does the rest."""
    clock.write_text("+0\n")
    process, until = start(runner, out, clock, *options), time.monotonic() + SECONDS
    while not committed(out) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    clock.write_text(jump + "\n")
    assert process.poll() is None, process.communicate()
    tally.faults["clock jump"] += 1
    _, said = process.communicate(timeout=SECONDS)
    if process.returncode == 0:
        runner.judge(out)
        return
    assert process.returncode in (1, 9), said
    assert said.splitlines()[-1].startswith("leafledger: ")
    assert "Traceback" not in said
    clock.write_text("+0\n")
    runner.go_on(out)


@pytest.mark.parametrize("jump", ["+26h", "-15s"], ids=["a day ahead", "some seconds back"])
def test_a_clock_that_jumps_costs_nothing(many, tally, tmp_path, jump):
    """Of the client, its scheduler and its workers, which watch each other by it; Dask's messages wait until one that goes back is where it was."""
    finish(many, tally, str(tmp_path / "run"), tmp_path / "clock", jump, "--workers", "2")


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_a_clock_that_a_store_does_not_believe_is_said(runner, tally, tmp_path, bucket, jump):
    """A store that verifies signatures refuses them, and the run goes on once the clock is right again."""
    finish(runner, tally, f"{bucket}/run", tmp_path / "clock", jump, "--scheduler", "serial")
