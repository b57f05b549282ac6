"""What a night is compared with, asked for together with its run, and the comparison once it is published."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date as Date
from os import PathLike
from typing import Any

from ..arguments.dates import fill_date
from ..arguments.readers import read_place
from ..display.text import printable
from ..errors import NotFinished, UnlikeRuns, UsageError
from ..progress import Progress
from ..runs.job.job import Job
from ..runs.records.derived import Compared, DriftVerdict
from ..runs.records.latest import read_latest
from ..runs.records.manifest import Manifest
from ..stores.uris import normalise
from .compare.alarm_thresholds import Given, read_thresholds
from .drift import drift
from .verdict import read_verdict


def find_against(against: str | PathLike, job: Job) -> str:
    """Find what a night is compared with.

    Parameters
    ----------
    against : str or path
        Folder of a run, or the JSON object that names the latest one; {date} is filled in.

    Returns
    -------
    str
        URI.

    Raises
    ------
    UsageError
        It is the very run.
    """
    given = read_place("against", against)
    place = normalise(fill_date(given, job.options.date))
    if place == job.out:
        raise UsageError(f"{given}: is the very run; expected another one, such as that of the night before")
    return place


def read_asked(job: Job, thresholds: Given | None) -> dict[str, float]:
    """Read what counts as drift, before a row is explained.

    Parameters
    ----------
    thresholds : mapping, str or path, optional
        As of `drift`; {date} in a path is filled in.

    Returns
    -------
    dict of str to float
        Those that are asked for.
    """
    found = read_thresholds(fill_date(str(thresholds), job.options.date) if isinstance(thresholds, str | PathLike) else thresholds)
    return {name: value for name, value in asdict(found).items() if value is not None}


def refuse_alone(thresholds: Given | None) -> None:
    """Refuse thresholds of a night that is compared with nothing."""
    if thresholds is not None:
        raise UsageError("thresholds are of what is compared, but nothing is: against was not given")


def find_verdict(job: Job, manifest: Manifest, against: str, thresholds: Mapping[str, Any], progress: Progress) -> DriftVerdict | None:
    """Compare a published night, or read what was found of it before, where ``latest`` names no other one any more.

    Parameters
    ----------
    against : str
        As `find_against` returns it.
    thresholds : mapping
        As `read_asked` returns it.

    Returns
    -------
    DriftVerdict or None
        None for the first night, and for one of an earlier date than that of ``latest``, unless they were compared before.

    Raises
    ------
    UnlikeRuns
        The runs' numbers mean different things.
    NotFinished
        The reference is not there.
    """
    place, options = against, job.options
    if place.endswith(".json"):
        latest = read_latest(place)
        if latest is None or normalise(latest.run) == job.out or (options.date is not None and Date.fromisoformat(latest.date) > options.date):
            before = read_verdict(job.out, manifest.sha256)
            if before is None and latest is None and place != options.latest:
                raise NotFinished(f"{place}: not there; expected a finished run, or an object that names the latest one")
            return before
        place = latest.run
    found = drift(
        job.out,
        against=place,
        thresholds=thresholds,
        scheduler=options.scheduler,
        threads=options.threads,
        workers=options.workers,
        plain_tcp=options.plain_tcp,
        wait=options.wait,
        progress=progress,
    )
    return DriftVerdict(found.run, found.reference, found.alarms, found.differs)


class Comparison:
    """The comparison of a night, to be made once it is published: a mistake in what is asked for is found before.

    Parameters
    ----------
    job : Job
    against : str or path
    thresholds : mapping, str or path, optional
    once : bool
        Pass over a night that was compared before.

    Raises
    ------
    UsageError
        The reference is the very run, or the thresholds cannot be used.
    """

    def __init__(self, job: Job, against: str | PathLike, thresholds: Given | None, once: bool = False):
        self._once = once
        self._job, self._against, self._thresholds = job, find_against(against, job), read_asked(job, thresholds)

    def __call__(self, manifest: Manifest, progress: Progress) -> Compared:
        """Compare the published night; that it cannot be compared takes nothing from it."""
        if self._once and read_verdict(self._job.out, manifest.sha256) is not None:
            return Compared()
        try:
            return Compared(find_verdict(self._job, manifest, self._against, self._thresholds, progress))
        except (UnlikeRuns, NotFinished) as error:
            return Compared(None, f"not compared: {printable(str(error))}")


def ask_comparison(job: Job, against: str | PathLike | None, thresholds: Given | None, once: bool = False) -> Comparison | None:
    """Read what a night is to be compared with, before it is explained.

    Parameters
    ----------
    against : str or path, optional
    thresholds : mapping, str or path, optional
    once : bool
        Pass over a night that was compared before.

    Returns
    -------
    Comparison or None
        None where none was asked for.

    Raises
    ------
    UsageError
        There are thresholds alone, or one of them cannot be used.
    """
    if against is None:
        refuse_alone(thresholds)
        return None
    return Comparison(job, against, thresholds, once)
