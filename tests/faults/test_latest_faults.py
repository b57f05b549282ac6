"""``latest`` in front of a store that fails: it never names what is not there, never goes back, and the next run puts it right."""

import threading

import pytest

from leafledger import read_latest
from leafledger.pipeline.errors import StorageError, UsageError
from tests.faults.clients import Client
from tests.faults.interrupting import interrupt, meet
from tests.faults.proxy import Rule, afterwards, before, drop_answer, hang, ignores, lose_answer, says
from tests.faults.verdict import ID
from tests.more import more

ALWAYS = float("inf")
MOVES = "PUT .*latest.json"
FAULTS = {"503 twice": says(503, "SlowDown"), "lose": lose_answer, "drop": drop_answer, "409": says(409, "ConditionalRequestConflict")}
FAULTS["hang"] = hang


@pytest.fixture
def move(runner, bucket):
    """Explain the example as the run of a day of January 2026; what ``latest`` names then."""

    def moved(day):
        runner.explain(f"{bucket}/{{date}}", latest=f"{bucket}/latest.json", date=f"2026-01-{day:02}")
        runner.judge(f"{bucket}/2026-01-{day:02}")
        return read_latest(f"{bucket}/latest.json").run

    return moved


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in {"lose", "409"} else pytest.mark.long) for name in FAULTS])
@pytest.mark.parametrize("there", [False, True], ids=["created", "replaced"])
def test_what_passes_is_survived(proxy, bucket, move, name, there):
    """A lost acknowledgement is one's own; a conflict is looked at again."""
    if there:
        move(1)
    rule = Rule(MOVES, FAULTS[name], times=2 if name == "503 twice" else 1)
    with proxy.broken(rule):
        assert move(2) == f"{bucket}/2026-01-02"
    assert rule.made


@pytest.mark.parametrize("skip", range(3))
def test_a_probe_s_answer_is_lost(proxy, bucket, move, skip):
    """What the probe left says what the store does."""
    rule = Rule("PUT .*_probe", lose_answer, skip=2 + skip)  # after the two that try to create one object
    with proxy.broken(rule):
        assert move(2) == f"{bucket}/2026-01-02"
    assert rule.made


def test_what_lasts_leaves_it_where_it_was(runner, proxy, bucket, move):
    """The run is finished all the same, and the next one, which has nothing else to do, moves it."""
    move(1)
    with proxy.broken(Rule(MOVES, says(503, "SlowDown"), times=ALWAYS)), pytest.raises(StorageError, match=r"latest\.json: cannot write"):
        move(2)
    assert read_latest(f"{bucket}/latest.json").run == f"{bucket}/2026-01-01"
    runner.judge(f"{bucket}/2026-01-02")
    assert move(2) == f"{bucket}/2026-01-02"


def test_a_later_run_that_overtakes_stays(proxy, bucket, move):
    """It moves ``latest`` between another's look and write."""
    move(1)
    fault = before(lambda: move(3))
    fault.__name__ = "overtaken"
    with proxy.broken(Rule(MOVES, fault)):
        assert move(2) == f"{bucket}/2026-01-03"


def test_runs_that_end_at_once(proxy, bucket, move):
    """Their writes meet at the store."""
    together = threading.Barrier(2)

    def race(exchange):
        meet(exchange, together)

    with proxy.broken(Rule(MOVES, race, times=ALWAYS)):
        runs = [threading.Thread(target=move, args=(day,)) for day in (2, 1, 3)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
    assert read_latest(f"{bucket}/latest.json").run == f"{bucket}/2026-01-03"


@pytest.mark.parametrize("when", [*more(before), afterwards])
def test_a_client_killed_while_it_moves(runner, proxy, environment, bucket, move, when, request):
    """The run is finished; the next one moves what was not moved."""
    refused_first = "radosgw" in request.node.name and when is afterwards  # where an ETag has no quotes
    move(1)
    arguments = ["explain", runner.model, runner.data, "--out", f"{bucket}/{{date}}", "--latest", f"{bucket}/latest.json", "--date", "2026-01-02"]

    def start():
        return Client(environment, [*arguments, "--id", ID, "--scheduler", "serial"])

    interrupt(start, proxy, when, MOVES, skip=refused_first)
    runner.judge(f"{bucket}/2026-01-02")
    assert read_latest(f"{bucket}/latest.json").run == f"{bucket}/2026-01-0{1 if when is before else 2}"
    assert start().wait() == 0
    assert read_latest(f"{bucket}/latest.json").run == f"{bucket}/2026-01-02"


def test_a_store_that_replaces_whatever_is_there_is_refused(runner, proxy, bucket, move, request):
    """Before the work; where there is a single writer it will do."""
    if "radosgw" in request.node.name:
        pytest.skip("conditions are signed, and this store verifies signatures")
    careless = Rule("PUT", ignores("If-Match"), times=ALWAYS)
    given = {"latest": f"{bucket}/latest.json", "date": "2026-01-01"}
    with proxy.broken(careless):
        with pytest.raises(UsageError, match=r"latest\.json: the store ignores conditions .* --single-writer"):
            runner.explain(f"{bucket}/run", progress=lambda work: pytest.fail(f"started {work.doing}"), **given)
        runner.explain(f"{bucket}/run", single_writer=True, **given)
    runner.judge(f"{bucket}/run")
    assert read_latest(f"{bucket}/latest.json").run == f"{bucket}/run"
