"""The command ``explain``: a run, or one for each day of a range."""

import dataclasses
from collections.abc import Sequence
from datetime import date as Date
from typing import Annotated, Any

from cyclopts import Parameter

from ...display.text import count, printable
from ...errors import Exit, InvalidRun, LeafledgerError
from ..app import find_version
from ..terminal.documents import write_document
from ..terminal.flags import DEFAULTS, INPUT, Flags, Json, PathArgument, Quiet, Replace
from ..terminal.outcome import Outcome, end_nights, say_totals, tell, tell_failure
from ..terminal.terminal import complain, named, open_console, say

OF_A_NIGHT = (Exit.NOT_YET, Exit.CONFLICT, Exit.REFUSED)  # prevents one night's run, but not others
OF_ALL_NIGHTS = (Exit.AWAY, Exit.UNFIT)  # ends a range of nights with valid arguments


def explain(
    model: PathArgument,
    data: PathArgument,
    *,
    out: PathArgument,
    options: Flags = DEFAULTS,
    replace: Replace = False,
    dates: Annotated[str | None, Parameter(group=INPUT)] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Explain every row and publish attributions and summaries. A rerun of an unfinished run does what is missing.

    Parameters
    ----------
    model
        XGBoost JSON or UBJ, LightGBM text, CatBoost cbm or JSON, skops, or a file of leafledger.save_model; of MLflow models:/NAME/VERSION,
        models:/NAME@ALIAS or runs:/RUN/PATH.
    data
        Parquet file, folder, glob or Hive-partitioned data set, a path or an fsspec URI; or a table of Delta Lake or Iceberg.
    out
        Folder of the run: a path or an fsspec URI such as s3://bucket/prefix; {date} is filled in, here as in all paths and URIs.
    options
        What else a run can be told; every one is a flag of its own.
    replace
        The same as --if-changed replace.
    dates
        FIRST..LAST, two days as --date takes them, such as 2026-11-01..yesterday: a run for each day from the first to the last. Those that are
        finished are passed over. Each night ends with a line, and all with one of how many were explained, finished before, and failed. A night that
        fails keeps no other from being explained, as where its data are not there; arguments that cannot be used, and a store or a cluster that is
        away or does not fit, end the command.
    quiet
        Show nothing but errors; in a log, and one line at the end.
    json
        Write one JSON document instead.

    Returns
    -------
    int
        Exit code: 0, or 3 where rows were left out that cannot be read, too few are explained for ``latest``, or MLflow took no link; of several
        dates the least of the nights that failed, 6 if one is not there yet and none is damaged, and 2 only if none has another; else 3 if any
        run's is.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...arguments.dates import list_days
    from ...runs.job.job import make_job

    asked = dataclasses.replace(options, if_changed="replace" if replace else options.if_changed)
    if dates is None:
        done = _explain(make_job(model, data, out, asked), out, quiet, json)
        code, document = done.code, done.document
    else:
        nights = _explain_nights(model, data, out, asked, list_days(dates, out, asked.date), quiet, json)
        code, document = end_nights(nights), {"runs": [night.document for night in nights]}
    if json:
        write_document(document)
    return code


def _explain_nights(model: str, data: str, out: str, asked: Flags, days: Sequence[Date], quiet: bool, as_json: bool) -> list[Outcome]:
    """Run every night of a range: a line each and one for all, also where the command ends before; of one night all that one shows."""
    from ...runs.monitor.metrics import Earlier

    console, earlier, done, told = open_console(quiet or as_json), Earlier(), list[Outcome](), set[str]()
    several = len(days) > 1
    try:
        for day in days:
            done.append(_explain_night(model, data, out, dataclasses.replace(asked, date=day), quiet, as_json, earlier, several))
            if several:
                for note in done[-1].notes:
                    if note not in told:
                        say(console, note)
                told.update(done[-1].notes)
                say(console, done[-1].line(day))
    finally:
        if several:
            say(console, say_totals(len(days), done))
    return done


def _is_of_a_night(error: LeafledgerError, in_order: bool) -> bool:
    """Return whether later nights may succeed: with valid arguments, the error comes from the night's data or output."""
    if in_order:
        return error.exit_code not in OF_ALL_NIGHTS
    return error.exit_code in OF_A_NIGHT or isinstance(error, InvalidRun)


def _explain_night(model: str, data: str, out: str, options: Flags, quiet: bool, as_json: bool, earlier: Any, several: bool) -> Outcome:
    """Run one night of a range; errors of this night alone are reported, and the others continue."""
    from ...arguments.dates import fill_date
    from ...runs.job.job import make_job
    from ...stores.uris import normalise

    job = None
    try:
        job = make_job(model, data, out, options)
        return _explain(job, out, quiet, as_json, earlier, several)
    except LeafledgerError as error:
        if not _is_of_a_night(error, job is not None):
            raise
        return tell_failure(normalise(fill_date(out, options.date)), error)


def _explain(job: Any, out: str, quiet: bool, as_json: bool, earlier: Any = None, several: bool = False) -> Outcome:
    """Run one job, and show what came of it unless it is one of several."""
    from ...dataset.columns.notes import note_columns
    from ...runs.explain import explain_job
    from ...runs.publish.move_latest import why_latest_stays
    from ..terminal.progress import watched

    with watched(quiet, transient=several) as progress, named(job.out):
        done = explain_job(job, progress, complain, earlier)
    run, stays = job.out if "{" in out else out.rstrip("/"), why_latest_stays(job.options, done.manifest, done.latest)
    notes = [*note_columns(done.model)]
    if not several:
        _show(job, run, done, stays, notes, open_console(quiet or as_json))
    for advisory in done.advisories:
        complain(f"{run}: {advisory}")
    return tell(job.out, done, stays, notes)


def _show(job: Any, run: str, done: Any, why_stays: str | None, notes: Sequence[str], console: Any) -> None:
    """Show where a run's results are, and its summaries."""
    from ...methods.output_space import TOTALS
    from ...runs.job.table_option import choose_table
    from ..terminal.show import show_summaries

    manifest, latest = done.manifest, done.latest
    for line in notes:
        say(console, line)
    if done.kept:
        say(console, f"{run}: kept as it is; what is asked for differs in {done.kept}")
    stays = "" if latest is None or latest.run == job.out else f" stays at {latest.run}, of {latest.date}"
    if done.already_finished:
        say(console, f"{run}: finished before, nothing to do ({manifest.counted}){_say_version(manifest)}")
        say(console, f"{'SHA-256:':<14}{manifest.sha256}")
        if latest is not None and why_stays is None:
            say(console, f"{job.options.latest}:{stays or f' names it, of {latest.date}'}")
        return
    say(console, f"{count(manifest.n_rows, 'row')} explained in {count(len(manifest.parts), 'part')}")
    total = TOTALS[manifest.space]
    if manifest.residual is not None:
        say(console, f"attributions add up to {total} - base value within {manifest.residual:.1e} of the {total}'s bound")
    table = choose_table(job.options, job.out)
    where = {
        "attributions": "" if job.options.global_only else f"{run}/attributions",
        "summary": f"{run}/summary",
        "manifest": f"{run}/manifest.json",
        "table": "" if table is None else table.uri,
    }
    for name, uri in where.items():
        if uri:
            say(console, f"{f'{name}:':<14}{uri}")
    say(console, f"{'SHA-256:':<14}{manifest.sha256}")
    if done.inputs is not None:
        say(console, f"{'inputs:':<14}{run}/inputs.json")
        say(console, f"{'SHA-256:':<14}{done.inputs.sha256}")
    if latest is not None and why_stays is None:
        say(console, f"{'latest:':<14}{job.options.latest}{stays}")
    show_summaries(console, job.out, manifest)


def _say_version(manifest: Any) -> str:
    """Say of a run of another version what made it; nothing of one of this."""
    mine = find_version()
    made = f"; made by leafledger {printable(manifest.version)}, this is {mine}, and --if-changed replace makes it again"
    return "" if manifest.version == mine else made
