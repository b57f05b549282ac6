"""A night that is replaced on a store that fails, or by a process that dies: readers of its folder find every row once when the command is done."""

from collections import Counter

import pyarrow.dataset
import pytest

from leafledger import check_run, list_runs, read_run
from leafledger.pipeline.errors import LeafledgerError
from leafledger.pipeline.stores.open_store import open_filesystem
from tests.faults.proxy import Rule, drop_answer, lose_answer, reset, says
from tests.faults.verdict import ID
from tests.more import one_in
from tests.pipeline.runs.publish.killing import NEVER, KilledError, kill_writes

ALWAYS = float("inf")
UNAVAILABLE, INTERNAL, FORBIDDEN = says(503, "SlowDown"), says(500, "InternalError"), says(403, "AccessDenied")
PLACED, OVER = r"PUT .*/run/attributions/part-\d+-", r"PUT .*/run/manifest\.json"  # parts in their place, and the exchange itself
REMOVED = r"(POST|DELETE) .*run"  # of the earlier parts, and of the place that the new ones were made in

PASSING = {
    "copy refused twice": Rule(PLACED, UNAVAILABLE, times=2),
    "copy's answer lost": Rule(PLACED, lose_answer),
    "copy's connection lost": Rule(PLACED, drop_answer, skip=1),
    "copy reset": Rule(PLACED, reset),
    "exchange refused once": Rule(OVER, INTERNAL),
    "exchange's answer lost": Rule(OVER, lose_answer),
    "exchange's connection lost": Rule(OVER, drop_answer),
}
LASTING = {
    "copies refused": Rule(PLACED, FORBIDDEN, times=ALWAYS),
    "copies unavailable after two": Rule(PLACED, UNAVAILABLE, times=ALWAYS, skip=2),
    "exchange refused": Rule(OVER, FORBIDDEN, times=ALWAYS),
    "gone at the exchange": Rule(OVER, reset, times=ALWAYS),
    "three in ten requests fail": Rule(".", UNAVAILABLE, times=ALWAYS, share=0.3),
    "removals refused": Rule(REMOVED, FORBIDDEN, times=ALWAYS, skip=1),
}


def by_folder(out):
    """Ids of all rows that lie in a run's folder, as readers find them who know no manifest."""
    filesystem, path = open_filesystem(out)
    filesystem.invalidate_cache()
    return Counter(pyarrow.dataset.dataset(f"{path}/attributions", filesystem=filesystem).to_table(columns=[ID])[ID].to_pylist())


def by_manifest(out):
    return Counter(read_run(out).attributions()[ID].to_pylist())


@pytest.fixture
def replace_night(runner, bucket):
    """``(out, replace)``: a night that is there, put where it lies, and what makes it anew with fewer trees."""
    out = f"{bucket}/run"
    filesystem, path = open_filesystem(out)
    filesystem.pipe({f"{path}/{name}": data for name, data in runner.reference.items()})
    return out, lambda **given: runner.explain(out, trees=5, if_changed="replace", **given)


def try_out(act):
    """What an act said that failed, nothing where it did not."""
    try:
        act()
    except LeafledgerError as error:
        return str(error)
    return ""


def judge(out, tally):
    """Every row once, by its folder and by its manifest, and nothing left of the other run."""
    expected, found = by_manifest(out), by_folder(out)
    tally.lost += (expected - found).total()
    tally.doubled += (found - expected).total()
    tally.finished += 1
    assert found == expected
    assert {*expected.values()} == {1}
    assert check_run(out, deep=True).left == ()


@pytest.mark.parametrize("name", one_in(2, [*PASSING]))
def test_what_passes_is_survived(replace_night, proxy, tally, name):
    """The night is replaced as if nothing had been."""
    out, replace = replace_night
    before = by_manifest(out)
    with proxy.broken(rule := PASSING[name]):
        replace()
    assert rule.made
    judge(out, tally)
    assert by_manifest(out) == before


@pytest.mark.parametrize("name", one_in(2, [*LASTING][::-1]))
def test_what_lasts_leaves_one_of_the_two_runs_whole(replace_night, proxy, tally, name):
    """It ends in one line, or says what it could not remove; readers find all rows; the command given again puts it right."""
    out, replace = replace_night
    with proxy.broken(rule := LASTING[name]):
        said = try_out(replace)
    assert rule.made
    assert "\n" not in said
    assert "canary" not in said
    assert by_manifest(out) <= by_folder(out)
    assert {*by_manifest(out).values()} == {1}
    replace()
    judge(out, tally)


@pytest.mark.long
def test_killed_at_every_third_step(replace_night, runner, tally, monkeypatch):
    """Whatever ends the process, all rows are there; `runs` says what is left; the command given again puts it right."""
    out, _ = replace_night
    left, steps = kill_writes(monkeypatch)
    trees = 5
    for n in range(0, 500, 3):
        left[0] = n
        trees = 11 - trees  # another run each time
        try:
            runner.explain(out, trees=trees, if_changed="replace")
        except KilledError:
            left[0] = NEVER
        else:
            break
        assert by_manifest(out) <= by_folder(out)
        (told,) = list_runs(out.rsplit("/", 1)[0])
        assert (told.left is not None) == (by_folder(out) != by_manifest(out))
        runner.explain(out, trees=trees, if_changed="replace")
        judge(out, tally)
    assert {"copy", "update", "remove"} <= {*steps}
