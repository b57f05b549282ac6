"""Flags of a deployment's schedule, which need no Prefect."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Nights:
    """When the flow runs, and what follows a night that is published."""

    cron: tuple[str, ...]
    """When to run, as minute, hour, day of month, month and day of week. Several times where nights differ, as those before a weekend."""

    time_zone: str = "UTC"
    """Of the schedule and of {date}, as in Europe/Berlin."""

    name: str = "nightly"
    """Of the deployment."""

    against: str | None = None
    """Say what changed since this run, or the one that this JSON object names, which can be that of --latest; {date} is filled in."""

    thresholds: str | None = None
    """TOML or JSON file that says what counts as drift, as for leafledger drift."""

    report: Annotated[bool, Parameter(negative=())] = False
    """Write a page about every run, report/index.html, as leafledger report does."""

    names: str | None = None
    """TOML or JSON file of readable names of features, their units and descriptions, for the page, as for leafledger report."""

    overview: str | None = None
    """Page that lists all runs, as leafledger runs --html writes it: every page links to it."""
