"""The command ``explain``: a run, or one for each day of a range."""

import dataclasses
from collections.abc import Sequence
from datetime import date as Date
from typing import Annotated, Any

from cyclopts import Parameter

from leafledger.kernels.jit.collector import loading

from ...display.text import count, printable
from ...errors import Exit, InvalidRun, LeafledgerError, UnusablePlace
from ..app import find_version
from ..terminal.documents import write_document
from ..terminal.flags import DEFAULTS, INPUT, MEASURES, Flags, Json, PathArgument, Quiet, Replace
from ..terminal.outcome import Outcome, end_nights, say_totals, tell, tell_failure
from ..terminal.terminal import complain, named, open_console, say

OF_A_NIGHT = (Exit.NOT_YET, Exit.CONFLICT, Exit.REFUSED)  # prevents one night's run, but not others
OF_ALL_NIGHTS = (Exit.AWAY, Exit.UNFIT)  # ends a range of nights with valid arguments
MOST_ALARMS = 20  # shown


@dataclasses.dataclass(frozen=True, slots=True)
class _How:
    """What every night is told, and how its outcome is."""

    out: str
    against: str | None
    thresholds: str | None
    quiet: bool
    as_json: bool
    several: bool = False  # nights, with a line each
    earlier: Any = None  # nights of the same command, for the metrics

    @property
    def silent(self) -> bool:
        """Nothing is written on standard output but a document."""
        return self.quiet or self.as_json


def explain(
    model: PathArgument,
    data: PathArgument,
    *,
    out: PathArgument,
    options: Flags = DEFAULTS,
    replace: Replace = False,
    dates: Annotated[str | None, Parameter(group=INPUT)] = None,
    against: Annotated[str | None, Parameter(group=MEASURES)] = None,
    thresholds: Annotated[str | None, Parameter(group=MEASURES)] = None,
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
        finished, and compared where --against asks for it, are passed over. Each night ends with a line, and all with one of how many were
        explained, finished before, and failed. A night that fails keeps no other from being explained, as where its data are not there; arguments
        that cannot be used, and a store or a cluster that is away or does not fit, end the command.
    against
        Say what changed since this finished run, or the one that this JSON object names, which can be that of --latest: as leafledger drift does,
        once the run is published and before LATEST moves. Where something drifted the exit code is 4, where the two cannot be compared 3. The first
        night is compared with nothing.
    thresholds
        TOML or JSON file that says what counts as drift, as for leafledger drift; with --against.
    quiet
        Show nothing but errors; in a log, and one line at the end.
    json
        Write one JSON document instead.

    Returns
    -------
    int
        Exit code: 0, or 3 where rows were left out that cannot be read; else 4 where the run drifted; else 3 where too few rows are explained for
        ``latest``, MLflow took no link, or nothing could be compared. Of several dates the least of the nights that failed, 6 if one is not there
        yet and none is damaged, and 2 only if none has another; else 3 or 4 if any run's is, 3 if both are.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    with loading():
        from ...arguments.dates import list_days
        from ...runs.job.job import make_job

    asked = dataclasses.replace(options, if_changed="replace" if replace else options.if_changed)
    how = _How(out, against, thresholds, quiet, json)
    if dates is None:
        job = make_job(model, data, out, asked)
        done = _explain(job, _ask(job, how), how)
        code, document = done.code, done.document
    else:
        nights = _explain_nights(model, data, asked, list_days(dates, out, asked.date), how)
        code, document = end_nights(nights), {"runs": [night.document for night in nights]}
    if json:
        write_document(document)
    return code


def _ask(job: Any, how: _How) -> Any:
    """Read what a run is to be compared with, None where nothing is: what compares takes a second to import."""
    if how.against is None and how.thresholds is None:
        return None
    from ...drift.against import ask_comparison

    return ask_comparison(job, how.against, how.thresholds, once=how.several)


def _explain_nights(model: str, data: str, asked: Flags, days: Sequence[Date], how: _How) -> list[Outcome]:
    """Run every night of a range: a line each and one for all, also where the command ends before; of one night all that one shows."""
    from ...runs.monitor.metrics import Earlier

    how = dataclasses.replace(how, several=len(days) > 1, earlier=Earlier())
    console, done, told = open_console(how.silent or not how.several), list[Outcome](), set[str]()
    try:
        for day in days:
            night = _explain_night(model, data, dataclasses.replace(asked, date=day), how)
            done.append(night)
            for note in dict.fromkeys(night.notes):
                if note not in told:
                    say(console, note)
            told.update(night.notes)
            say(console, night.line(day))
    finally:
        say(console, say_totals(len(days), done))
    return done


def _is_of_a_night(error: LeafledgerError, in_order: bool) -> bool:
    """Return whether later nights may succeed: with valid arguments, the error comes from the night's data or output."""
    if in_order:
        return error.exit_code not in OF_ALL_NIGHTS and not isinstance(error, UnusablePlace)
    return error.exit_code in OF_A_NIGHT or isinstance(error, InvalidRun)


def _explain_night(model: str, data: str, options: Flags, how: _How) -> Outcome:
    """Run one night of a range; errors of this night alone are reported, and the others continue."""
    from ...arguments.dates import fill_date
    from ...runs.job.job import make_job
    from ...stores.uris import normalise

    in_order = False
    try:
        job = make_job(model, data, how.out, options)
        comparison = _ask(job, how)
        in_order = True
        return _explain(job, comparison, how)
    except LeafledgerError as error:
        if not _is_of_a_night(error, in_order):
            raise
        return tell_failure(normalise(fill_date(how.out, options.date)), error)


def _explain(job: Any, comparison: Any, how: _How) -> Outcome:
    """Run one job, and show what came of it unless it is one of several."""
    with loading():
        from ...dataset.columns.notes import note_columns
        from ...runs.explain import explain_job
        from ...runs.publish.move_latest import why_latest_stays
        from ..terminal.progress import watched

    with watched(how.quiet, transient=how.several) as progress, named(job.out):
        done = explain_job(job, progress, complain, how.earlier, comparison)
    run, stays = job.out if "{" in how.out else how.out.rstrip("/"), why_latest_stays(job.options, done.manifest, done.latest)
    notes = [*note_columns(done.model)]
    if not how.several:
        _show(job, run, done, stays, notes, open_console(how.silent))
        _show_changes(done.compared, how.against, open_console(how.silent))
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


def _show_changes(compared: Any, against: str | None, console: Any) -> None:
    """Show what changed since another run, or that there is none, if that was asked for."""
    verdict = compared.verdict
    if verdict is None:
        if against is not None and compared.undone is None:
            say(console, f"compared with nothing: {against} names no earlier night; leafledger drift compares with any run")
        return
    for line in verdict.differs:
        say(console, f"differs: {line}")
    for line in verdict.alarms[:MOST_ALARMS]:
        say(console, f"drift: {line}")
    if len(verdict.alarms) > MOST_ALARMS:
        say(console, f"{len(verdict.alarms) - MOST_ALARMS:,} more: after/drift.json has all")
    say(console, f"{count(len(verdict.alarms), 'alarm')} against {verdict.reference}")


def _say_version(manifest: Any) -> str:
    """Say of a run of another version what made it; nothing of one of this."""
    mine = find_version()
    made = f"; made by leafledger {printable(manifest.version)}, this is {mine}, and --if-changed replace makes it again"
    return "" if manifest.version == mine else made
