"""The Deployment record: parameters and schedules, validated before the first night."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from datetime import date as Date
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from httpx import HTTPError
from prefect import get_client
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.server.schemas.schedules import CronSchedule as ServerSchedule
from prefect.settings import PREFECT_API_URL
from prefect.types import BANNED_CHARACTERS

from leafledger.pipeline.arguments.choices import MODEL
from leafledger.pipeline.arguments.dates import fill_date, refuse_shared
from leafledger.pipeline.drift.against import find_against
from leafledger.pipeline.drift.compare.alarm_thresholds import read_thresholds
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.models.source import normalise_source
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.stores.uris import normalise

from .night_flags import Nights

# The flow's parameters that are paths.
PLACES = ("data", "out", "latest", "partition", "reasons", "background", "tables", "metrics_file", "lineage", "against", "thresholds")
SHOWN = 300  # characters of a server's answer
LOOKED_AT = 366  # runs of a schedule compared with another's, and nights whose paths are checked


@dataclass(frozen=True, slots=True)
class Deployment:
    """A validated deployment."""

    name: str
    schedules: dict[str, CronSchedule]  # by slug, by which the server identifies each on redeployment
    parameters: dict[str, Any]  # of the flow, as JSON: those that differ from defaults


def check_name(flag: str, name: str) -> None:
    """Refuse a name that Prefect refuses, or that is no Kubernetes label, since Prefect's worker makes one of it."""
    if not (name[:1].isalnum() and name[-1:].isalnum()) or any(character in name for character in BANNED_CHARACTERS):
        expected = f"a name from a letter or digit to a letter or digit, without {' '.join(BANNED_CHARACTERS)}"
        raise UsageError(f"--{flag} is {name!r:.80}, expected {expected}")


def _due_from(schedule: CronSchedule, n: int, starts: Sequence[datetime | None]) -> list[list[datetime]]:
    """Return the next times of a schedule, from each start, as the server computes them, in floating point, which misses seconds centuries ahead."""
    asked = ServerSchedule(cron=schedule.cron, timezone=schedule.timezone)  # which looks through all time zones when it is made

    async def ask() -> list[list[datetime]]:
        return [[(each + timedelta(seconds=0.5)).replace(microsecond=0) for each in await asked.get_dates(n, start=start)] for start in starts]

    return asyncio.run(ask())


def _due(schedule: CronSchedule, n: int, start: datetime | None = None) -> list[datetime]:
    """Return the next times of a schedule, from now if there is no start."""
    return _due_from(schedule, n, [start])[0]


def _find_skipped(schedule: CronSchedule) -> Date | None:
    """Find a day that a schedule skips: if clocks skip its hour at midnight, Prefect runs it the day before."""
    zone = ZoneInfo(schedule.timezone or "UTC")
    due = {each.astimezone(zone).date() for each in _due(schedule, LOOKED_AT)}
    meant = _due(CronSchedule(cron=schedule.cron, timezone="UTC"), LOOKED_AT, datetime.now(zone).replace(tzinfo=UTC))  # as if clocks skipped nothing
    return next((day for day in (each.date() for each in meant) if min(due) < day < max(due) and day not in due), None)


def make_schedule(cron: str, time_zone: str) -> CronSchedule:
    """Make a checked cron schedule."""
    try:
        ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise UsageError(f"--time-zone is {time_zone!r}, expected a name such as Europe/Berlin") from None
    try:
        schedule = CronSchedule(cron=cron, timezone=time_zone)
    except ValueError:
        raise UsageError(f"--cron is {cron!r}, expected minute, hour, day of month, month and day of week, as in '0 3 * * *'") from None
    try:
        _due(schedule, 1)
    except ValueError:
        raise UsageError(f"--cron is {cron!r}, which is never due, expected days that there are") from None
    skipped = _find_skipped(schedule)
    if skipped is not None:
        what = f"clocks of {time_zone} skip that hour on {skipped}, and Prefect begins the night an hour early, with the date of the day before"
        raise UsageError(f"--cron is {cron!r}, but {what}; expected an hour that all days have")
    return schedule


def _meet(first: CronSchedule, second: CronSchedule) -> datetime | None:
    """Return the time when both are due, if it is among the next runs of either."""
    for one, other in ((first, second), (second, first)):
        due = _due(one, LOOKED_AT)
        met = [each for each, after in zip(due, _due_from(other, 1, due), strict=True) if each in after]
        if met:
            return met[0]
    return None


def make_schedules(crons: tuple[str, ...], time_zone: str) -> tuple[CronSchedule, ...]:
    """Make validated cron schedules that are never due at the same time."""
    schedules = tuple(make_schedule(cron, time_zone) for cron in crons)
    for first, second in combinations(schedules, 2):
        due = _meet(first, second)
        if due is not None:
            raise UsageError(f"--cron is {first.cron!r} and {second.cron!r}, both due at {due:%Y-%m-%d %H:%M}; expected times that never coincide")
    return schedules


def check_server() -> str:
    """Refuse to deploy without a server that runs schedules, which Prefect's temporary server does not."""
    url = PREFECT_API_URL.value()
    if url is None:
        raise UsageError("PREFECT_API_URL is not set, expected that of a Prefect server: `prefect server start` starts one and says its URL")
    with get_client(sync_client=True) as client:
        error = client.api_healthcheck()
    if error is not None:
        raise UsageError(f"PREFECT_API_URL is {url}, no Prefect server answers there: {' '.join(str(error).split())}")
    return url


@contextmanager
def answered(url: str) -> Iterator[None]:
    """Turn unexpected answers of a server or proxy into one-line errors."""
    try:
        yield
    except (HTTPError, PrefectException, ValueError) as error:
        raise UsageError(f"{url}: {' '.join(str(error).split())[:SHOWN]}; expected a Prefect server that takes the deployment") from error


def forget_schedules(name: str, deployment: Deployment) -> None:
    """Remove the schedules from the server that the deployment no longer has: Prefect would keep them.

    Called after the deployment is made, since a refused deployment would otherwise be left without schedules.
    """
    with get_client(sync_client=True) as client:
        try:
            there = client.read_deployment_by_name(name)
        except ObjectNotFound:
            return
        for schedule in there.schedules:
            if schedule.slug not in deployment.schedules:
                client.delete_deployment_schedule(there.id, schedule.id)


def make_deployment(model: str, data: str, out: str, options: Options, nights: Nights) -> Deployment:
    """Validate the nightly run's arguments as far as possible without the data."""
    check_name("name", nights.name)
    schedules = make_schedules(nights.cron, nights.time_zone)
    today = Date.today()
    job = make_job(model, data, out, replace(options, date=today))
    if options.date is not None:
        raise UsageError(f"date is {options.date}, which would be that of every night; leave it out")
    if "{" not in out:
        raise UsageError(f"{out}: is the same place for every night, whose runs would be one; fill in {{date}}")
    if options.if_changed != "replace":
        refuse_shared(out, [today + timedelta(days=day) for day in range(LOOKED_AT + 1)])
    if nights.against is not None:
        find_against(nights.against, job)
    read_thresholds(None if nights.thresholds is None else fill_date(nights.thresholds, today))
    if nights.thresholds is not None and nights.against is None:
        raise UsageError(f"{nights.thresholds}: thresholds are of what is compared, but nothing is: against was not given")
    by_default = Options()
    asked = {field.name: getattr(options, field.name) for field in fields(Options)}
    parameters: dict[str, Any] = {"model": normalise_source(model), "data": data, "out": out}
    parameters |= {name: value for name, value in asked.items() if value != getattr(by_default, name)}
    followed = {name: getattr(nights, name) or None for name in ("against", "thresholds", "report", "names", "overview")}
    parameters |= {name: value for name, value in followed.items() if value is not None}
    for place in PLACES:
        if isinstance(parameters.get(place), str) and (place, parameters[place]) != ("background", MODEL):
            parameters[place] = normalise(parameters[place])
    slugs = [nights.name, *(f"{nights.name}-{number}" for number in range(2, len(schedules) + 1))]
    return Deployment(nights.name, dict(zip(slugs, schedules, strict=True)), json.loads(json.dumps(parameters)))
