"""A week of nights by the shipped deployment: what an operator finds every morning, who is told of it, and what is published."""

import hashlib
import json
from contextlib import redirect_stdout
from datetime import timedelta
from io import BytesIO, StringIO

import pandas as pd
import pytest

import leafledger
from leafledger.flows.stages import RETRY_SECONDS
from leafledger.pipeline.command.cli import main
from tests.docs.blocks import agrees, read_blocks
from tests.earlier.moving import RUNS
from tests.flows.conftest import wait_for
from tests.flows.telling import TOLD_SECONDS
from tests.flows.week import LATEST, MONDAY, N_ROWS, PAGE, ZONE, beginning, live, settle

pytestmark = pytest.mark.long
NOT_THERE = "s3://flights/date=2026-03-23: cannot list: no such file or object"
OTHER = "s3://explained/2026-03-23: holds another run, different in input files (s3://flights/date=2026-03-23/b.parquet); choose another output, or"
AWAY = "s3://models/arrival-delay.json: cannot read: Could not connect to the endpoint URL: "
DAMAGED = "s3://flights/date=2026-03-27/b.parquet: not a Parquet file: "
OTHER_DATA = "differs in input files (s3://flights/date=2026-03-28/a.parquet)"
MORNINGS = {  # name, state, how its message begins, the day of the run that is the latest then, exit code of the same as a command
    "monday": ("23", "Completed", "s3://explained/2026-03-22: explained (3,000 rows in 1 part)", "22", 0),
    "tuesday": ("24", "Failed", NOT_THERE, "22", 6),
    "tuesday again": ("24", "Completed", "s3://explained/2026-03-23: explained (3,000 rows in 1 part)", "23", 0),
    "wednesday": ("25", "Completed", "s3://explained/2026-03-24: explained (3,000 rows in 1 part)", "24", 0),
    "tuesday refused": ("24", "Failed", f"{OTHER} replace it with --if-changed replace", "24", 7),
    "tuesday replaced": ("24", "Completed", "s3://explained/2026-03-23: explained (6,000 rows in 1 part)", "24", 0),
    "thursday": ("26", "Drifted", "s3://explained/2026-03-25: explained (3,000 rows in 1 part); ", "25", 0),
    "friday": ("27", "Failed", AWAY, None, 9),
    "friday again": ("27", "Completed", "s3://explained/2026-03-26: explained (3,000 rows in 1 part)", "26", 0),
    "saturday": ("28", "PartlyRejected", "s3://explained/2026-03-27: explained (3,000 rows in 1 part); ", "27", 3),
    "saturday replaced": ("28", "Completed", "s3://explained/2026-03-27: explained (6,000 rows in 1 part)", "27", 0),
    "sunday": ("29", "Drifted", "s3://explained/2026-03-28: explained (3,000 rows in 1 part); ", "28", 0),
    # The same as a command is of the night in its own bucket, where the other model, and the data without the person, are conflicts.
    "once more": ("29", "Completed", "s3://again/2026-03-28: explained (3,000 rows in 1 part)", "28", 0),
    "another model": ("29", "Completed", "s3://again/2026-03-28: explained (3,000 rows in 1 part)", "28", 7),
    "put back": ("29", "Completed", "s3://again/2026-03-28: finished before, nothing to do (3,000 rows in 1 part)", "28", 0),
    "forgotten": ("29", "Failed", f"s3://again/2026-03-28: holds another run, {OTHER_DATA.replace('differs', 'different')}; ", "28", 7),
    "left as it is": ("29", "Completed", f"s3://again/2026-03-28: kept, {OTHER_DATA} (2,999 rows in 1 part)", "28", 7),
}
AFTERWARDS = {"once more", "another model", "put back", "forgotten", "left as it is"}
BY_HAND = {"tuesday refused", "tuesday replaced", "saturday replaced", *AFTERWARDS}
KEYS = {f"leafledger-nightly-{name}" for name in ("importance", "inputs", "outputs", "progress", "report")}  # of artifacts


@pytest.fixture(scope="module")
def week(server, tmp_path_factory):
    """The week, lived."""
    from prefect import get_client

    with get_client(sync_client=True) as client, beginning(server, client, tmp_path_factory.mktemp("week")) as week:
        live(week)
        yield week


def ask(*arguments):
    """Exit code of a command, and what it prints."""
    with redirect_stdout(StringIO()) as out:
        code = main([*arguments])
    return code, out.getvalue()


@pytest.mark.parametrize("which", MORNINGS)
def test_a_morning(week, which):
    """The flow run's name, state and message; which run is the latest; and that the command says the same with its exit code."""
    day, state, message, latest, code = MORNINGS[which]
    seen = week.mornings[which]
    assert (seen.name, seen.state) == (f"2026-03-{day}", state)
    assert seen.message.startswith(message)
    assert (seen.latest and seen.latest.run) == (latest and f"s3://explained/2026-03-{latest}")
    assert seen.code == code, seen.error
    if state == "Completed":
        assert (seen.message, seen.log) == (message, ())
    if state == "Failed" and which not in AFTERWARDS:
        assert seen.error == f"leafledger: {seen.message}\n"


def test_a_run_is_of_the_day_on_which_it_was_due(week):
    """At three o'clock in Berlin, also after the night in which clocks go forward, and when it is tried again."""
    assert list(week.mornings) == list(MORNINGS)
    for which, seen in week.mornings.items():
        assert seen.scheduled == (which not in BY_HAND)
        if seen.scheduled:
            assert seen.due.astimezone(ZONE).strftime("%Y-%m-%d %H:%M") == f"{seen.name} 03:00"
    assert week.mornings["sunday"].due.hour == week.mornings["saturday"].due.hour - 1


def test_whoever_has_to_know_is_told(week):
    """State and message of what failed, left rows out or drifted, and of nothing else."""
    expected = [(f"explain {seen.name}: {seen.state}", seen.message) for seen in week.mornings.values() if seen.state != "Completed"]
    assert len(expected) == 7

    def told():  # of the week, since the deployment may be due while the test runs; Prefect sends at least once
        found = [(each["subject"], each["body"]) for each in week.told if each["subject"].startswith("explain 2026-03-2")]
        return list(dict.fromkeys(found))

    wait_for(lambda: len(told()) >= len(expected), TOLD_SECONDS)
    assert sorted(told()) == sorted(expected)  # Prefect promises no order


@pytest.mark.parametrize("which", ["tuesday", "tuesday refused", "friday"])
def test_an_error_is_one_line(week, which):
    """Of the log, again and again the same; and nothing is shown of a night that published nothing."""
    seen = week.mornings[which]
    assert seen.log[-1] == f"ERROR {seen.message}"
    assert all(line.startswith("ERROR ") and seen.message in line and "\n" not in line for line in seen.log)
    assert seen.artifacts == {}


def test_a_store_that_is_away_is_waited_for(week):
    """As often as the page says, and as long."""
    tries = [line for line in week.mornings["friday"].infos if "will start" in line]
    assert [line.partition(" - ")[2].split(" will ")[0] for line in tries] == ["Retry 1/3", "Retry 2/3", "Retry 3/3"]
    assert RETRY_SECONDS == [10.0, 60.0, 300.0]


@pytest.mark.parametrize("which", [which for which, (_, state, *_) in MORNINGS.items() if state != "Failed" and which not in AFTERWARDS])
def test_artifacts_of_a_morning(week, which):
    """What is published is linked to, with the digest that the object has; the report; and what changed, where there is a night before."""
    seen = week.mornings[which]
    alone = which in ("monday", "tuesday replaced")
    assert set(seen.artifacts) == KEYS | (set() if alone else {"leafledger-nightly-drift"})
    run = seen.message.partition(": ")[0]
    assert seen.artifacts["leafledger-nightly-report"].data == f"[{run}/report/index.html]({run}/report/index.html)"
    assert week.objects.exists(f"{run}/report/index.html")
    assert seen.artifacts["leafledger-nightly-outputs"].data == f"[{run}]({run})"
    said = seen.artifacts["leafledger-nightly-outputs"].description
    if which != "saturday":  # which another run took the place of
        digest = hashlib.sha256(week.objects.cat_file(f"{run}/manifest.json")).hexdigest()
        if which != "tuesday again":  # likewise
            assert said.endswith(f"SHA-256 of manifest.json {digest}")
            attributions = said.partition(": ")[2].partition(",")[0]
            assert week.objects.glob(f"{run}/{attributions}part-00000*.parquet")  # with digits where it took the place of another
    assert ("1 piece of the data rejected, see rejected.json" in said) == (which == "saturday")


def test_a_new_model_is_told_from_new_data(week):
    """By the line that is sent and by the artifact: a model moves attributions and margins, data move the values too."""
    model, data = (week.mornings[which] for which in ("thursday", "sunday"))
    for seen, against in ((model, "24"), (data, "27")):
        alarms = [line.removeprefix("WARNING drift: ") for line in seen.log]
        shown = seen.artifacts["leafledger-nightly-drift"].data
        assert f"{len(alarms)} alarms against s3://explained/2026-03-{against}: {alarms[0]} and {len(alarms) - 1} more" in seen.message
        assert all(f"* {line}" in shown for line in alarms)
    assert "; differs: the model is another one: SHA-256 " in model.message
    assert "the model is another one" in model.artifacts["leafledger-nightly-drift"].data
    assert not any("value of" in line for line in model.log)
    assert any("value of distance" in line for line in data.log)
    assert "model" not in data.message


def test_what_is_left_out_is_named(week):
    """In the line that is sent, in the log, and in the run itself, of which the rest is there."""
    seen = week.mornings["saturday"]
    assert f"; 1 piece of the data rejected: {DAMAGED}" in seen.message
    assert [line.startswith(f"WARNING rejected: {DAMAGED}") for line in seen.log] == [True]
    assert seen.error.startswith(f"leafledger: rejected: {DAMAGED}")
    assert (seen.latest.n_rows, seen.latest.share) == (3000, 0.5)


def test_a_night_that_is_replaced_is_compared_with_the_one_before_or_with_none(week):
    """Never with a later one, which ``latest`` names while an earlier night is made anew; where it names that very night, ``against`` says which."""
    assert f"{LATEST}: names no earlier run, nothing is compared" in week.mornings["tuesday replaced"].infos
    shown = week.mornings["saturday replaced"].artifacts["leafledger-nightly-drift"].data
    assert shown.startswith("**s3://explained/2026-03-27 against s3://explained/2026-03-26**")


def test_a_night_of_the_old_model_is_another_run(week):
    """Its folder is not touched unless that is asked for; where it is to be kept, it is said in what it differs."""
    before = week.objects.cat_file("s3://explained/2026-03-24/manifest.json")
    code, error = week.explain("--date", "2026-03-25")
    assert (code, error.count("\n")) == (7, 1)
    assert "s3://explained/2026-03-24: holds another run, different in the model, which is another one at the same place (SHA-256 was " in error
    assert week.explain("--date", "2026-03-25", "--if-changed", "keep")[0] == 0
    assert week.objects.cat_file("s3://explained/2026-03-24/manifest.json") == before


def test_the_folder_lists_the_week(week):
    """Seven finished runs, each with what was found of it; every one is sound, to the last row."""
    code, printed = ask("runs", "s3://explained", "--json")
    listed = json.loads(printed)["runs"]
    days = [str(MONDAY + timedelta(days=k - 1)) for k in range(7)]
    assert (code, [each["date"] for each in listed]) == (0, days)
    assert {each["state"] for each in listed} == {"finished"}
    assert [each["n_rows"] for each in listed] == [3000, 6000, 3000, 3000, 3000, 6000, 3000]
    assert {each["n_rejected"] for each in listed} == {0}
    assert len({each["model_digest"] for each in listed[:3]}) == len({each["model_digest"] for each in listed[3:]}) == 1
    assert [bool(each["alarms"]) for each in listed] == [False, False, False, True, False, False, True]
    for each in listed[3:]:
        assert ask("check", each["run"], "--deep")[0] == 0
    for each in listed[:3]:  # of a model that is not there any more
        assert ask("check", each["run"])[0] == 0
    assert ask("check", "--latest", LATEST)[0] == 0


@pytest.mark.parametrize(("bucket", "before", "after"), [("bycron", "explained", "put back"), ("again", "once more", "put back by hand")])
def test_a_night_is_put_back_to_the_last_bit(week, bucket, before, after):
    """Readers of the folder find the rows that it had before another model took its place, and no others: of cron and of Prefect."""
    explained, back = week.rows[before], week.rows[after]
    assert len(explained) == N_ROWS
    pd.testing.assert_frame_equal(back, explained, check_exact=True)
    assert week.objects.glob(f"s3://{bucket}/2026-03-28/_kept/*") == []


def test_a_person_is_forgotten_in_a_night_of_prefect_and_stays_so(week):
    """The flow refuses to explain the other data, and leaves the night as it is where that is asked for: all others' rows are what they were."""
    explained, found = week.rows["once more"], week.rows["forgotten by hand"]
    expected = explained[explained["flight"] != 1117].reset_index(drop=True)
    assert len(expected) == N_ROWS - 1
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_a_forgotten_person_is_in_no_night(week):
    """By pandas, of every Parquet file below the folder of nights; all other rows are what they were."""
    week.objects.invalidate_cache()
    frames = [pd.read_parquet(BytesIO(week.objects.cat_file(path))) for path in week.objects.find("s3://bycron") if path.endswith(".parquet")]
    flights = [frame["flight"] for frame in frames if "flight" in frame]
    assert sum(map(len, flights)) == 27_000 - 9  # of seven nights with nine files
    assert not any((each == 1117).any() for each in flights)
    expected = week.rows["explained"]
    expected = expected[expected["flight"] != 1117].reset_index(drop=True)
    pd.testing.assert_frame_equal(week.rows["forgotten"], expected, check_exact=True)


def test_a_night_of_an_earlier_version_is_last_nights(week):
    """The first night of this version is compared with it, and its folder has the bytes that it was copied with."""
    before, tonight = "s3://bycron/orders/2026-03-28", "s3://bycron/orders/2026-03-29"
    versions = [leafledger.read_manifest(run).version for run in (before, tonight)]
    assert versions == ["0.2.0", leafledger.__version__]
    verdict = json.loads(week.objects.cat_file(f"{tonight}/after/drift.json"))
    assert (verdict["reference"], verdict["alarms"]) == (before, [])
    kept = RUNS / "0.2.0" / "next"
    files = [str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()]
    assert sorted(week.objects.find(before)) == sorted(f"{before.removeprefix('s3://')}/{name}" for name in files)
    assert all(week.objects.cat_file(f"{before}/{name}") == (kept / name).read_bytes() for name in files)


def test_the_page_says_what_was_seen(week):
    """Each block in turn, with an ellipsis for what it leaves out; ``python -m tests.flows.week`` prints all of it."""
    seen = iter(map(settle, week.said))
    assert [block.text for block in read_blocks(PAGE) if not any(agrees(block.text, said) for said in seen)] == []
