"""Clients that are killed at any step of the commit, again and again: what they committed stays, the next one does the rest."""

import json
import re
import signal

import pytest

from tests.faults.clients import Client
from tests.faults.interrupting import interrupt
from tests.faults.proxy import afterwards, before
from tests.faults.verdict import ID, committed, contents

# Writes of a run: probe five times, plan, tables twice, recipe, the attempt, four parts, the attempt removed, summaries four times, tables removed,
# manifest, how it was made.
STEPS, MANIFEST = 22, 20
SOME = {10, MANIFEST}  # for the short suite: a part, the manifest


@pytest.fixture
def start(runner, environment, bucket):
    """Start a run of the example into the bucket."""

    def started(*told):
        return Client(environment, ["explain", runner.model, runner.data, "--out", f"{bucket}/run", "--id", ID, "--scheduler", "serial", *told])

    return started


@pytest.mark.parametrize("when", [before, afterwards])
@pytest.mark.parametrize("step", [pytest.param(step, marks=[] if step in SOME else pytest.mark.long) for step in range(STEPS)])
def test_a_client_killed_at_a_step_of_the_commit(runner, proxy, bucket, start, step, when):
    """The next one does what is missing; after the manifest there is nothing left to do."""
    assert interrupt(start, proxy, when, skip=step).wait() == -signal.SIGKILL
    found, left = contents(f"{bucket}/run"), committed(f"{bucket}/run")
    assert ("manifest.json" in found) == (step + (when is afterwards) > MANIFEST)
    again = start()
    assert again.wait() == 0
    runner.judge(f"{bucket}/run", left)


def test_the_steps_are_all_steps(runner, proxy, bucket, start):
    """Killing at each of them leaves none out."""
    with proxy.broken():
        assert start().wait() == 0
        assert sum(line.split()[0] in {"PUT", "POST", "DELETE"} for line in proxy.lines) == STEPS
    runner.judge(f"{bucket}/run")


@pytest.mark.long
def test_clients_killed_one_after_another(runner, proxy, bucket, start):
    """Each is killed right after the first new object that it creates, until one finds nothing left to do."""
    killed = 0
    while True:
        before_it, fresh = committed(f"{bucket}/run"), set(contents(f"{bucket}/run"))
        code = interrupt(start, proxy, afterwards, "^PUT .*(plan|npy|index|part|importance|manifest)").wait()
        assert committed(f"{bucket}/run").items() >= before_it.items()
        if code == 0:
            break
        killed += 1
        assert code == -signal.SIGKILL
        assert set(contents(f"{bucket}/run")) - fresh
    assert killed >= 10
    runner.judge(f"{bucket}/run", before_it)


@pytest.mark.parametrize(("number", "code", "how"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated by SIGTERM")])
def test_a_signal_ends_a_run_that_can_be_gone_on_with(runner, proxy, bucket, start, tmp_path, number, code, how):
    """Ctrl-C, and what systemd or Kubernetes send: an exit code and one line, and those who watch runs are told that it failed."""
    told = ("--metrics-file", str(tmp_path / "run.prom"), "--lineage", str(tmp_path / "events.jsonl"))
    client = interrupt(lambda: start(*told), proxy, before, "^PUT .*part-00002", number=number)
    assert client.wait() == code
    _, _, err = client.output()
    assert err.splitlines()[-1] == f"leafledger: {how}; run the same command again to go on from there"
    assert re.search(r'^leafledger_run_finished\{run=".*"\} 0.0$', (tmp_path / "run.prom").read_text(), re.MULTILINE)
    assert [json.loads(line)["eventType"] for line in (tmp_path / "events.jsonl").read_text().splitlines()] == ["START", "FAIL"]
    left = committed(f"{bucket}/run")
    assert left
    assert start().wait() == 0
    runner.judge(f"{bucket}/run", left)
