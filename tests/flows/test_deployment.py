"""What is deployed: checked schedules, and parameters that make the run which the flags ask for."""

import inspect
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from leafledger.flows.deployment import Nights, make_deployment, make_schedules
from leafledger.flows.explain import explain
from leafledger.pipeline.command.terminal.flags import Flags
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options, pick

NIGHTLY = Nights(cron=("0 3 * * *",))


@pytest.mark.parametrize(
    ("crons", "says"),
    [
        (("0 3 * * *", "0 3 * * 1"), "--cron is '0 3 * * *' and '0 3 * * 1', both due at DATE 03:00; expected times that never coincide"),
        (("0 3 * * 1-5", "0 6 * * *", "0 3 29 2 *"), "--cron is '0 3 * * 1-5' and '0 3 29 2 *', both due at DATE 03:00"),
        (("* * * * *", "59 23 31 12 *"), "both due at DATE 23:59"),
        (("0 3 * * *", "0 3 * * *"), "both due"),
        (("0 3 30 2 *",), "--cron is '0 3 30 2 *', which is never due, expected days that there are"),
        (("0 3 * *",), "--cron is '0 3 * *', expected minute, hour"),
    ],
)
def test_schedules_that_coincide_or_are_never_due_are_refused(crons, says):
    """However rarely they do: the night would be explained twice, or never."""
    with pytest.raises(UsageError) as refused:
        make_schedules(crons, "Europe/Berlin")
    assert says in re.sub("[0-9]{4}-[0-9]{2}-[0-9]{2}", "DATE", str(refused.value))


@pytest.mark.parametrize(
    ("cron", "time_zone", "skips"),
    [
        ("0 0 * * *", "America/Santiago", True),
        ("30 0 * * 0", "Africa/Cairo", False),  # which change their clocks on a Friday
        ("30 0 * * 5", "Africa/Cairo", True),
        ("0 1 * * *", "America/Santiago", False),
        ("0 0,12 * * *", "America/Santiago", False),
        ("30 2 * * *", "Europe/Berlin", False),  # an hour early, on the same day
        ("0 0 * * *", "Europe/Berlin", False),
        ("0 0 29 2 *", "America/Santiago", False),
    ],
)
def test_a_schedule_that_skips_a_day_with_its_hour_is_refused(cron, time_zone, skips):
    """The run due then has the date of the day before, which would be explained twice, and the day never."""
    if not skips:
        assert make_schedules((cron,), time_zone)[0].cron == cron
        return
    with pytest.raises(
        UsageError, match=rf"but clocks of {time_zone} skip that hour on \d{{4}}-\d\d-\d\d, and Prefect begins the night an hour early"
    ):
        make_schedules((cron,), time_zone)


def test_nights_that_are_compared_with_themselves_are_refused():
    """Each would fail."""
    with pytest.raises(UsageError, match="is the very run; expected another one"):
        make_deployment("model.txt", "data/{date}", "explained/{date}", Flags(), replace(NIGHTLY, against="explained/x/../{date:%Y-%m-%d}"))


@pytest.mark.parametrize("crons", [("0 3 * * 1-5", "0 6 * * 6,7"), ("*/2 * * * *", "1-59/2 * * * *"), ("0 3 29 2 *",)])
def test_schedules_that_do_not_coincide_are_taken(crons):
    """Each as it was written."""
    assert tuple(schedule.cron for schedule in make_schedules(crons, "Europe/Berlin")) == crons


@pytest.mark.parametrize(
    ("out", "options", "says"),
    [
        ("s3://explained/run", {}, "s3://explained/run: is the same place for every night, whose runs would be one; fill in {date}"),
        ("s3://explained/{date:%m-%d}", {}, "s3://explained/{date:%m-%d}: is the same place on "),
        ("s3://explained/{date:%Y%M%d}", {}, "got the form %Y%M%d: %M is no part of a day"),
        ("s3://explained/{date}", {"date": "2026-03-02"}, "date is 2026-03-02, which would be that of every night; leave it out"),
        ("data/{date}", {}, "/data/{date}: lies within the data"),
    ],
)
def test_nights_that_would_be_one_are_refused(out, options, says):
    """Also an output where the next night would read it."""
    with pytest.raises(UsageError) as refused:
        make_deployment("model.txt", "data", out, Flags(**options), NIGHTLY)
    assert says.replace("{date}", str(date.today()) if "lies" in says else "{date}") in str(refused.value)


def test_parameters_make_the_run_that_was_asked_for(tmp_path):
    """Prefect takes them, and the flow reads the same options from them; whatever is as by default is left out, and places are absolute."""
    asked = Options(
        latest="latest.json", ids=("flight", "carrier"), top=3, method="beta", parameters=("alpha=2", "beta=1"), partition={"when": ["hour", 2]},
        interactions="all", background="s3a://rows/{date-7d}", trees="1:5", outputs="a", missing=-999, max_rejected=3, mlflow_run="0123",
    )  # fmt: skip
    nights = Nights(cron=("0 3 * * *",), name="eu", against="{date-1d}/run", report=True)
    deployment = make_deployment("models:/late/1", "data/{date}", "out/{date}", asked, nights)
    found = deployment.parameters
    explain.validate_parameters(found)
    assert not {"precision", "thresholds", "scheduler", "date"} & set(found)
    given = {name: parameter.default for name, parameter in inspect.signature(explain.fn).parameters.items()} | found
    day = date(2026, 1, 9)
    expected = make_job(
        "models:/late/1", "data/{date}", "out/{date}", pick({name: getattr(asked, name) for name in given if hasattr(asked, name)} | {"date": day})
    )
    assert make_job(given["model"], given["data"], given["out"], pick(given | {"date": day})) == expected
    assert (found["model"], found["background"]) == ("models:/late/1", "s3://rows/{date-7d}")
    here = Path.cwd()
    assert (found["against"], found["out"]) == (str(here / "{date-1d}/run"), str(here / "out/{date}"))


def test_the_model_s_own_background_is_no_place():
    """It is a word, as in the command."""
    assert make_deployment("m", "data", "out/{date}", Options(background="model"), NIGHTLY).parameters["background"] == "model"
