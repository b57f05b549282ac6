"""The command ``leafledger``: explain, plan, compare, check, show, drift, report, inspect. A mistake is one line on standard error; 0: done."""

import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.text import Text

from ..display import printable
from ..errors import LeafledgerError
from .comparing import compare
from .drifting import drift
from .flags import DEFAULTS, INPUT, Flags, Place, Quiet
from .inspecting import inspect
from .reporting import report
from .showing import show
from .terminal import complain, guarded_streams, open_console, say

PARTLY = 3  # exit code of a run that had to leave rows out
SHOWN = 60  # characters of a parameter

app = App(
    name="leafledger",
    help="Explain every row of a Parquet data set with an XGBoost, LightGBM or CatBoost model.",
    version=lambda: version("leafledger"),
    version_flags=["--version"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # main says how to go on
)


def _write_value(value: Any) -> str:
    """A parameter's value as it is written on the command line, shortened."""
    if isinstance(value, str):
        return value
    entries = value if isinstance(value, tuple) else (value,)
    text = ",".join(
        ":".join(f"{number:g}" for number in entry) if isinstance(entry, tuple) else entry if isinstance(entry, str) else f"{entry:g}"
        for entry in entries
    )
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


@app.command(help_epilogue="Example: leafledger explain model.json flights/ --out explained/ --id flight --method banzhaf --parameter p=0.3")
def explain(
    model: Place,
    data: Place,
    *,
    out: Place,
    options: Flags = DEFAULTS,
    dates: Annotated[str | None, Parameter(group=INPUT)] = None,
    quiet: Quiet = False,
) -> int:
    """Explain every row and publish attributions and summaries. A rerun of an unfinished run does what is missing.

    Parameters
    ----------
    model
        XGBoost JSON or UBJ, LightGBM text, CatBoost cbm or JSON; of MLflow models:/NAME/VERSION, models:/NAME@ALIAS or runs:/RUN/PATH.
    data
        Parquet file, folder, glob or Hive-partitioned data set, a path or an fsspec URI.
    out
        Folder of the run: a path or an fsspec URI such as s3://bucket/prefix; {date} is filled in, here as in all paths and URIs.
    options
        What else a run can be told; every one is a flag of its own.
    dates
        FIRST..LAST, two days as YYYY-MM-DD: a run for each day from the first to the last. Those that are finished are passed over, and the first
        that fails ends the command.
    quiet
        Show nothing but errors.

    Returns
    -------
    int
        Exit code: 0, or PARTLY where rows were left out that cannot be read, too few are explained for ``latest``, or MLflow took no link; of several
        dates PARTLY if any run's is.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    if dates is None:
        return _explain(model, data, out, options, quiet)
    from ..runs.job import list_days

    days = list_days(dates, out, options.date)
    return max(_explain(model, data, out, replace(options, date=day), quiet) for day in days)


def _explain(model: str, data: str, out: str, options: Flags, quiet: bool) -> int:
    """One run; its exit code."""
    from ..runs.explain import explain_job
    from ..runs.job import make_job
    from ..runs.latest import why_latest_stays
    from ..runs.space import TOTALS
    from .progress import Bar, log_lines, silent
    from .show import show_summaries

    console = open_console(quiet)
    job = make_job(model, data, out, options)
    bar = Bar(Console(stderr=True)) if sys.stderr.isatty() and not quiet else None
    with bar or nullcontext():
        progress = bar or (silent if quiet else log_lines)
        manifest, already_finished, latest, matched, unlogged = explain_job(job, progress)
    if matched:
        say(console, f"features {matched}")
    run = job.out if "{" in out else out.rstrip("/")
    short = why_latest_stays(job.options, manifest)
    stays = "" if latest is None or latest.run == job.out else f" stays at {latest.run}, of {latest.date}"
    if already_finished:
        say(console, f"{run}: finished before, nothing to do ({manifest.n_rows:,} rows in {len(manifest.parts)} parts)")
        say(console, f"{'SHA-256:':<14}{manifest.sha256}")
        if latest is not None and short is None:
            say(console, f"{job.options.latest}:{stays or f' names it, of {latest.date}'}")
        return _tell(manifest, short, unlogged)
    say(console, f"{manifest.n_rows:,} rows explained in {len(manifest.parts)} parts")
    total = TOTALS[manifest.space]
    if manifest.residual is not None:
        say(console, f"attributions add up to {total} - base value within {manifest.residual:.1e} of the {total}'s bound")
    where = {"attributions": "" if job.options.global_only else "attributions", "summary": "summary", "manifest": "manifest.json"}
    for name, below in where.items():
        if below:
            say(console, f"{f'{name}:':<14}{run}/{below}")
    say(console, f"{'SHA-256:':<14}{manifest.sha256}")
    if latest is not None and short is None:
        say(console, f"{'latest:':<14}{job.options.latest}{stays}")
    show_summaries(console, job.out, manifest)
    return _tell(manifest, short, unlogged)


def _tell(manifest: Any, *short: str | None) -> int:
    """Say what could not be explained, and why the newest run is not this one, or MLflow has no link to it; the exit code."""
    for entry in manifest.rejected:
        complain(f"rejected: {entry.reason}")
    said = [reason for reason in short if reason is not None]
    for reason in said:
        complain(reason)
    return PARTLY if manifest.rejected or said else 0


def _describe(game: Any) -> str:
    """The background of a marginal game, its tables, and where its counts are kept."""
    size = f"at most {game.extent.n_bytes / 2**20:.1f} MiB of tables"
    if game.listing is None:
        return f"the model's own leaf weights, {size}"
    counts = "counts will be in" if game.uncounted else "counted before in"
    return f"{game.listing.n_rows:,} rows in {len(game.listing.files)} files, {size}, {counts} {game.counts}"


def _describe_link(link: Any) -> str:
    """The function that makes predictions of margins."""
    scale = "" if link.scale == 1 else f"{link.scale:g} times "
    return f"{link.name} of {scale}the margin"


def _describe_labels(labels: Any) -> str:
    """Their column, and what goes with them."""
    if labels is None:
        return ""
    weight = "" if labels.weight is None else f", weight {labels.weight}"
    by = f", by {' and '.join(labels.by)}" if labels.by else ""
    return f"{labels.label}{weight}{by}; rows without one are {'left out' if labels.missing == 'count' else 'refused'}"


@app.command(help_epilogue="Example: leafledger plan model.json flights/ --out explained/ --interactions 10")
def plan(model: Place, data: Place, *, out: Place, options: Flags = DEFAULTS) -> None:
    """Show what explain would do: work items, rows, memory, refusals. Leaves nothing behind.

    Parameters
    ----------
    model
        As for explain.
    data
        As for explain.
    out
        As for explain.
    options
        As for explain.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ..dataset.names import say_positions
    from ..runs.job import make_job
    from ..runs.load import load_model
    from ..runs.stages import plan_run

    job = make_job(model, data, out, options)
    run = plan_run(job, load_model(job))
    parameters = ", ".join(f"{name}={_write_value(value)}" for name, value in run.plan.parameters if value != ())
    n_players = len(run.plan.groups)
    said = {
        "model": ("" if run.model.origin is None else f"{run.model.origin}, ")
        + f"{run.model.library}, {len(run.plan.features)} features, outputs {', '.join(run.plan.outputs)}, "
        f"SHA-256 {run.plan.model_digest[:12]}" + ("" if run.plan.trees is None else ", iterations {}:{}".format(*run.plan.trees)),
        "method": f"{run.plan.method} {parameters}".strip(),
        "features": say_positions(run.model),
        "space": "" if run.plan.link is None else f"{run.plan.space}, by {_describe_link(run.plan.link)}",
        "groups": f"{n_players} of {len(run.plan.features)} features" if n_players else "",
        "combinations": f"{len(run.plan.combinations)} are players of their own" if run.plan.combinations else "",
        "pairs": f"{run.n_pairs:,} interact, {job.options.interactions} kept of a row" if job.options.interactions is not None else "",
        "background": _describe(run.game) if run.plan.background else "",
        "labels": _describe_labels(run.plan.labels),
        "input": f"{run.plan.n_rows:,} rows in {len({item.uri for item in run.plan.items})} files",
        "work": f"{len(run.plan.items)} items, one part each, slices of {run.plan.slice_rows} rows",
        "where": job.options.scheduler or f"local cluster of {min(job.workers, max(1, len(run.plan.items)))} processes",
        "memory": f"{run.memory.total >> 20} MiB a worker (tables {run.memory.tables / 2**20:.1f}, slice {run.memory.slice >> 20}, "
        f"largest row group {run.memory.row_group / 2**20:.1f}, footer {run.memory.footer / 2**20:.1f}), {job.worker_memory >> 20} MiB allowed",
        "output": job.out + (" (finished before: nothing to do)" if run.finished else ""),
    }
    console = Console()
    shown = {name: text for name, text in said.items() if text}
    for name, text in shown.items():
        line = Text.assemble((f"{name:<{max(map(len, shown)) + 2}}", "bold"), printable(text))
        console.print(line, soft_wrap=True, highlight=False)


@app.command(help_epilogue="Example: leafledger check explained/ --deep")
def check(
    run: Place,
    *,
    deep: Annotated[bool, Parameter(negative=())] = False,
    model: str | None = None,
    all_rows: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Verify a finished run by what its objects say of themselves: every part once, row counts, summaries computed again.

    Parameters
    ----------
    run
        Folder of the run, a path or an fsspec URI.
    deep
        Read every byte: digests, additivity of every row; make the tables again, from the model and the background, and explain the first rows of
        every part again.
    model
        The model's file, where it is not any more where it was.
    all_rows
        Explain all rows again.

    Returns
    -------
    int
        Exit code: 0, or PARTLY where something that was asked for could not be done again.

    Raises
    ------
    InvalidRun
        The first thing found wrong, and where.
    UsageError
        The model is not that of the run.
    StorageError
        An object is missing, or the store does not answer.
    """
    from ..runs.check import check_run

    report = check_run(run, deep, model, all_rows)
    how = "as stored" if report.as_stored else "as computed"
    additive = "" if report.residual is None else f", attributions add up within {report.residual:.1e} of the {report.total}'s bound {how}"
    rejected = f", {report.n_rejected} pieces of the data rejected" if report.n_rejected else ""
    again = f", {report.n_again:,} rows explained again" if report.n_again else ""
    verdict = "sound" if report.sound else "not verified in full"
    console = open_console()
    say(console, f"{run}: {verdict}, {report.n_rows:,} rows in {report.parts} parts{rejected}{additive}{again}")
    say(console, f"SHA-256 of manifest.json: {report.manifest}")
    for reason in report.unverified:
        complain(f"not verified: {reason}")
    return 0 if report.sound else PARTLY


app.command(compare, help_epilogue="Example: leafledger compare model.json flights/ --methods shapley,banzhaf,beta:4:1 --out comparison.parquet")
app.command(show, help_epilogue="Example: leafledger show explained/ --where customer=4711 --verify")
app.command(drift, help_epilogue="Example: leafledger drift explained/2026-11-23 --against explained/2026-11-22")
app.command(report, help_epilogue="Example: leafledger report explained/")
app.command(inspect, help_epilogue="Example: leafledger inspect model.txt --methods shapley,banzhaf,ranker")


def _fails(message: str, code: int) -> int:
    complain(message)
    return code


def main(arguments: list[str] | None = None, command: App = app) -> int:
    """Run a command line. Whatever goes wrong is one line on standard error.

    Parameters
    ----------
    arguments : list of str, optional
        By default those that this process was started with.
    command : App
        What reads them.

    Returns
    -------
    int
        Exit code: 0 done, 1 failed, 2 a wrong argument, 3 done but for rows that cannot be read or what cannot be verified, 4 drift, 5 no such row,
        130 interrupted.
    """
    with guarded_streams():
        try:
            os.getcwd()
        except OSError as error:  # which libraries look at as soon as they are imported
            return _fails(f"the working directory cannot be used, change to another one: {error.strerror}", 1)
        try:
            return command(arguments, exit_on_error=False, print_error=False) or 0
        except CycloptsError as error:
            return _fails(" ".join(str(error).split()), 2)
        except LeafledgerError as error:
            return _fails(str(error), error.exit_code)
        except KeyboardInterrupt:
            return _fails("interrupted; run the same command again to go on from there", 130)
