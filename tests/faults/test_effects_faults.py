"""Effects keep what a run promises: killed at any write or refused by the store, the same command goes on, and the record comes last."""

import json
import signal

import pytest

from leafledger.pipeline.errors import Exit
from tests.faults.clients import Client
from tests.faults.interrupting import interrupt
from tests.faults.proxy import Rule, afterwards, before, lose_answer, says
from tests.faults.verdict import contents
from tests.more import more

ASKED = ["--features", "distance", "--pairs", "distance,delay", "--scheduler", "serial"]
OBJECTS = ("curves", "surfaces", "bands", "local_effects", "interactions")
# Writes: probes twice each, in the output and where counts are kept; tables of the first pass twice, what its four items gave twice each; counts and
# states twice each, for later runs; tables and items of the second pass likewise; five tables, two pictures, the record; the work removed.
STEPS, RECORD = 37, 35
SOME = {9, RECORD}  # for the short suite


@pytest.fixture(scope="module")
def reference(example, tmp_path_factory):
    """What nobody interrupted publishes, by name."""
    out = tmp_path_factory.mktemp("effects") / "out"
    client = Client({}, ["effects", example.model, "--background", example.data, "--out", str(out), *ASKED])
    assert client.wait() == 0
    return contents(str(out))


@pytest.fixture
def start(example, environment, bucket):
    """Start the same into the bucket."""

    def started():
        return Client(environment, ["effects", example.model, "--background", example.data, "--out", f"{bucket}/out/effects", *ASKED])

    return started


def judge(start, bucket, reference):
    """The same command goes on, to the bytes of the reference; nothing else stays."""
    again = start()
    assert again.wait() == 0
    assert contents(f"{bucket}/out/effects") == reference


@pytest.mark.parametrize("when", [before, afterwards])
@pytest.mark.parametrize("step", [pytest.param(step, marks=[] if step in SOME else pytest.mark.long) for step in range(STEPS)])
def test_a_client_killed_at_a_write(proxy, bucket, start, reference, step, when):
    """The next one does what is missing; only the record says that all is there."""
    assert interrupt(start, proxy, when, skip=step).wait() == -signal.SIGKILL
    assert ("effects.json" in contents(f"{bucket}/out/effects")) == (step + (when is afterwards) > RECORD)
    judge(start, bucket, reference)


def test_the_steps_are_all_steps_and_the_record_comes_last(proxy, bucket, start, reference):
    """Killing at each of them leaves none out."""
    with proxy.broken():
        assert start().wait() == 0
        writes = [line for line in proxy.lines if line.split()[0] in {"PUT", "POST", "DELETE"}]
    assert len(writes) == STEPS
    assert "effects.json" in writes[RECORD]
    names = json.loads(contents(f"{bucket}/out/effects")["effects.json"])["objects"]
    assert {f"{name}.parquet" for name in OBJECTS} < set(names)
    assert all(any(name in line for line in writes[:RECORD]) for name in names)
    assert contents(f"{bucket}/out/effects") == reference


@pytest.mark.parametrize("pattern", [*more("PUT .*curves.parquet"), "PUT .*effects.json", "PUT .*item-00000"])
def test_a_store_that_refuses_ends_it_in_one_line(proxy, bucket, start, reference, pattern):
    """An exit code that says to try again; nothing is published."""
    with proxy.broken(rule := Rule(pattern, says(403, "AccessDenied"), times=float("inf"))):
        client = start()
        assert client.wait() == Exit.AWAY
    assert rule.made
    _, out, err = client.output()
    assert out == ""
    assert err.splitlines()[-1].startswith(f"leafledger: {bucket}")
    assert "canary" not in err
    assert "effects.json" not in contents(f"{bucket}/out/effects")
    judge(start, bucket, reference)


@pytest.mark.parametrize("rule", [Rule("PUT .*effects.json", lose_answer), Rule("PUT .*bands", says(503, "SlowDown"), times=2)], ids=["lost", "503"])
def test_what_passes_is_survived(proxy, bucket, start, reference, rule):
    """An answer that is lost is no conflict."""
    with proxy.broken(rule):
        assert start().wait() == 0
    assert rule.made
    assert contents(f"{bucket}/out/effects") == reference


@pytest.mark.parametrize(("number", "code", "how"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated by SIGTERM")])
def test_a_signal_ends_it_so_that_it_can_be_gone_on_with(proxy, bucket, start, reference, number, code, how):
    """Ctrl-C, and what systemd or Kubernetes send: an exit code and one line."""
    client = interrupt(start, proxy, before, "^PUT .*curves", number=number)
    assert client.wait() == code
    _, _, err = client.output()
    assert err.splitlines()[-1] == f"leafledger: {how}; run the same command again to go on from there"
    judge(start, bucket, reference)
