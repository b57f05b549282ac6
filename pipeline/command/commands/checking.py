"""The command ``check``: verification of a finished run."""

import sys
from dataclasses import asdict
from datetime import date as Date
from typing import Annotated, Any

from cyclopts import Parameter

from ...display.text import count
from ...errors import Exit, InvalidRun, NotFinished, UsageError
from ..terminal.dated import Day, fill_day
from ..terminal.documents import write_document
from ..terminal.flags import CLUSTER, INPUT, Json, Quiet, Threads, Wait, Workers
from ..terminal.terminal import complain, is_logged, open_console, say


def _find(run: str | None, date: Date | None, latest: str | None) -> str:
    """Find the run by name, date or ``latest``, whose manifest has to match the pointer's."""
    from ...runs.records.latest import read_latest
    from ...runs.records.manifest import read_manifest
    from ...stores.uris import normalise

    if run is not None:
        if latest is not None:
            raise UsageError("check takes either a run or --latest, got both")
        return fill_day(run, date)
    if latest is None:
        raise UsageError("check takes either a run or --latest, got neither")
    place = fill_day(latest, date)
    named = read_latest(normalise(place))
    if named is None:
        raise NotFinished(f"{place}: not there: no run was finished yet")
    manifest = read_manifest(named.run)
    if manifest is None:
        raise InvalidRun(f"{place}: names {named.run}, which has no manifest.json")
    if manifest.sha256 != named.manifest:
        raise InvalidRun(f"{place}: names {named.run} with manifest {named.manifest[:12]}, but there it is {manifest.sha256[:12]}")
    for name, said, is_there in (("n_rows", named.n_rows, manifest.n_rows), ("share", named.share, manifest.share)):
        if said not in (None, is_there):  # which readers may rely on
            raise InvalidRun(f"{place}: names {named.run} with {name} {said}, but there it is {is_there}")
    return named.run


def _say_effects(folder: str, report: Any, json: bool, quiet: bool) -> int:
    """Say what was verified of effects."""
    sound = not report.unverified
    if json:
        write_document({"effects": folder, "sound": sound} | asdict(report))
    again = ", computed again" if report.again else ""
    verdict = "sound" if sound else "not verified in full"
    objects, rows = count(len(report.objects), "object"), count(report.n_rows, "row")
    say(open_console(json or quiet), f"{folder}: {verdict}, effects over {rows} in {objects}{again}")
    for reason in report.unverified:
        complain(f"not verified: {reason}")
    return Exit.DONE if sound else Exit.PARTLY


def check(
    run: Annotated[str | None, Parameter(group=INPUT)] = None,
    *,
    latest: Annotated[str | None, Parameter(group=INPUT)] = None,
    date: Day = None,
    deep: Annotated[bool, Parameter(negative=())] = False,
    model: str | None = None,
    all_rows: Annotated[bool, Parameter(negative=())] = False,
    threads: Threads = None,
    scheduler: Annotated[str | None, Parameter(group=CLUSTER)] = None,
    workers: Workers = None,
    plain_tcp: Annotated[bool, Parameter(group=CLUSTER, negative=())] = False,
    wait: Wait = 15.0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Verify a finished run, or the folder of effects, by what its objects say of themselves: every part once, row counts, summaries computed again.

    Parameters
    ----------
    run
        Folder of the run, or of what the command effects wrote, a path or an fsspec URI.
    latest
        Instead of a run: the object that explain moves with --latest, which says the run; it has to have the manifest that it names.
    date
        YYYY-MM-DD, today or yesterday, in local time; fills {date} in RUN or --latest.
    deep
        Read every byte: digests, additivity of every row; make the tables again, from the model and the background, and explain the first rows of
        every part again, or compute effects again; digest the inputs again where the run was made with --digest-inputs.
    model
        The model's file, where it is not any more where it was.
    all_rows
        Explain all rows again.
    threads
        Threads of this process, by default one per core that it may use.
    scheduler
        Address of a Dask scheduler, tls:// where it is another host, or "serial" for one thread; by default this process does all.
    workers
        Processes of a local Dask cluster, in the place of threads.
    plain_tcp
        Reach a scheduler on another host without TLS: whoever shares that network can run code on its workers.
    wait
        As for explain.
    json
        Write one JSON document instead.
    quiet
        Show nothing but errors.

    Returns
    -------
    int
        Exit code: 0, or 3 where something that was asked for could not be done again, or where something of another run lies in the folder.

    Raises
    ------
    LeafledgerError
        The first thing found wrong, and where; or an argument that cannot be used.
    """
    from ...effects.check import check_effects, hold_effects
    from ...runs.check.check import check_run
    from ...stores.uris import normalise
    from ..terminal.progress import watched

    run = _find(run, date, latest)
    unseen = quiet or not (is_logged() or sys.stderr.isatty() or scheduler or workers)  # the result of a local check suffices for a job's output
    where: dict[str, Any] = {"scheduler": scheduler, "threads": threads, "workers": workers, "plain_tcp": plain_tcp, "wait": wait}
    if hold_effects(normalise(run)):
        with watched(unseen) as progress:
            return _say_effects(run, check_effects(run, deep or all_rows, model, **where, progress=progress), json, quiet)
    with watched(unseen) as progress:
        report = check_run(run, deep, model, all_rows, **where, progress=progress)
    how = "as stored" if report.as_stored else "as computed"
    additive = "" if report.residual is None else f", attributions add up within {report.residual:.1e} of the {report.total}'s bound {how}"
    rejected = f", {count(report.n_rejected, 'piece')} of the data rejected" if report.n_rejected else ""
    forgotten = f", {count(report.n_forgotten, 'row')} forgotten" if report.n_forgotten else ""
    again = f", {count(report.n_again, 'row')} explained again" if report.n_again else ""
    digested = f", {count(report.n_digested, 'input file')} as digested" if report.n_digested else ""
    verdict = "sound" if report.sound else "not verified in full"
    if json:
        write_document({"run": run, "sound": report.sound} | asdict(report))
    console = open_console(json or quiet)
    say(console, f"{run}: {verdict}, {count(report.n_rows, 'row')} in {count(report.parts, 'part')}{rejected}{forgotten}{additive}{again}{digested}")
    say(console, f"SHA-256 of manifest.json: {report.manifest}")
    if report.kept is not None:
        say(console, f"{run}: {report.kept}")
    for reason in report.unverified:
        complain(f"not verified: {reason}")
    for advisory in report.advisories:
        complain(f"{run}: {advisory}")
    for reason in report.left:
        complain(f"{run}: {reason}")
    return Exit.DONE if report.sound and not report.left else Exit.PARTLY
