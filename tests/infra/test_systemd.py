"""Units, by systemd itself."""

import json
import os
import re
import subprocess

import pytest
import yaml

from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import Exit
from tests.infra.files import INFRA, find

UNITS = sorted([*(INFRA / "systemd").glob("*.service"), *(INFRA / "systemd").glob("*.timer")])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_the_unit(unit):
    """It says nothing but that programs are not installed where the unit expects them."""
    analyze = find("systemd-analyze") or pytest.skip("there is no systemd")
    said = subprocess.run([analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60).stderr
    lines = [line for line in said.splitlines() if unit.stem in line]
    assert [line for line in lines if "/opt/leafledger/bin/" not in line] == []


CLOCK = 'date() { case "$*" in *-d*) command date "$@";; *) command date -d "$NOW" "$@";; esac; }; '  # that shows NOW


def run_nights(now):
    """What the nights' service gives the program: its command is run by a shell as systemd would, at a time of Berlin's clocks."""
    line = re.search(r"^ExecStart=/bin/sh -c '(.*)'$", (INFRA / "systemd/leafledger.service").read_text(), re.MULTILINE).group(1)
    script = CLOCK + line.replace("$$", "$").replace("%%", "%").replace("exec /opt/leafledger/bin/leafledger", "echo")
    where = {"PATH": os.environ["PATH"], "TZ": "Europe/Berlin", "NOW": now}
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True, env=where).stdout.split()


@pytest.mark.parametrize(
    ("now", "days"),
    [
        ("2026-11-27 03:04:59", "2026-11-20..2026-11-26"),
        ("2026-11-27 23:59:59", "2026-11-20..2026-11-26"),
        ("2026-11-28 00:30:00", "2026-11-20..2026-11-26"),  # tried again, or the machine was off at three
        ("2026-11-28 02:59:59", "2026-11-20..2026-11-26"),
        ("2026-11-28 03:00:00", "2026-11-21..2026-11-27"),
        ("2026-03-29 03:00:00", "2026-03-22..2026-03-28"),  # two hours after midnight
        ("2026-10-25 02:59:59", "2026-10-17..2026-10-23"),
        ("2026-10-25 03:00:00", "2026-10-18..2026-10-24"),  # four hours after it
        ("2027-01-01 01:00:00", "2026-12-24..2026-12-30"),
    ],
)
def test_the_nights_service_explains_no_day_that_has_just_ended(now, days):
    """Its partition may still be written: a day is over at the timer's hour."""
    assert run_nights(now)[-1] == days


def test_the_nights_service_counts_days_from_the_timers_hour():
    """Whoever changes one of the two is told of the other."""
    service, timer = ((INFRA / f"systemd/leafledger.{kind}").read_text() for kind in ("service", "timer"))
    assert re.search(r"^OnCalendar=\*-\*-\* 0(\d):00:00$", timer, re.MULTILINE).group(1) == re.search(r" (\d) hours ago", service).group(1)


def test_the_nights_service_names_options_that_there_are(capsys):
    """The file of options is one too."""
    given = run_nights("2026-11-27 03:00:00")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d\.\.\d{4}-\d\d-\d\d", given[-1])
    assert cli.main(["config", "explain", "--config", str(INFRA / "systemd/nights.toml")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("nights.toml") == 5
    assert {word for word in given if word.startswith("--")} == {"--config", "--log-format", "--quiet", "--dates"}


def test_comments_name_options_that_there_are(capsys):
    """Whoever writes what a comment says into nights.toml is not refused."""
    named = {option for unit in UNITS for option in re.findall(r"^#.* (\S+) in nights\.toml", unit.read_text(), re.MULTILINE)}
    assert named
    assert cli.main(["config", "explain", "--json"]) == 0
    assert named <= {setting["option"] for setting in json.loads(capsys.readouterr().out)["settings"]}


def test_a_night_is_tried_again_four_times_however_long_an_attempt_takes():
    """As long as the fifth begins within the interval, which is over before the next night: else that one would not be begun."""
    service, timer = ((INFRA / f"systemd/leafledger.{kind}").read_text() for kind in ("service", "timer"))
    hours = {"h": 1.0, "min": 1 / 60}

    def read(text, name):
        number, unit = re.search(rf"^{name}=(\d+)(h|min)$", text, re.MULTILINE).groups()
        return int(number) * hours[unit]

    burst = int(re.search(r"^StartLimitBurst=(\d+)$", service, re.MULTILINE).group(1))
    interval, between = read(service, "StartLimitIntervalSec"), read(service, "RestartSec")
    assert burst == 5
    assert "four times" in service
    assert (burst - 1) * (between + 5.0) < interval < 24 - read(timer, "RandomizedDelaySec")  # attempts of five hours


def test_the_service_takes_no_night_for_a_failure_that_is_published():
    """One of which rows are rejected, or that drifted, would be tried again four times."""
    service = (INFRA / "systemd/leafledger.service").read_text()
    assert set(map(int, re.search(r"^SuccessExitStatus=(.*)$", service, re.MULTILINE).group(1).split())) == {Exit.PARTLY, Exit.DRIFT}


def test_prefects_server_is_told_what_compose_tells_it():
    """Where its page may be copied, and where leases outlive it."""
    unit, compose = (INFRA / "systemd/prefect-server.service").read_text(), yaml.safe_load((INFRA / "compose.yaml").read_text())
    told = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.MULTILINE))
    assert told.keys() == compose["services"]["server"]["environment"].keys()
    lease = "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"
    assert told[lease] == compose["services"]["server"]["environment"][lease]
