"""Entry point of the command ``leafledger``: explain, config, and one-line errors with exit codes."""

import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from cyclopts import App, Argument, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

from ..display.text import count, printable
from ..errors import Exit, InvalidRun, LeafledgerError, redact
from .app import app, find_version
from .commands.certifying import certificates
from .commands.checking import check
from .commands.comparing import compare
from .commands.drifting import drift
from .commands.forgetting import forget
from .commands.inspecting import inspect
from .commands.listing import runs
from .commands.planning import plan
from .commands.pruning import prune
from .commands.reporting import report
from .commands.rolling_back import rollback
from .commands.showing import show
from .commands.warming import warm
from .terminal.documents import error_document, write_document, write_error
from .terminal.flags import DEFAULTS, INPUT, Flags, Json, PathArgument, Quiet, Replace
from .terminal.settings import asks_document, completion, list_settings, make_configs, show_settings
from .terminal.signals import Terminated, heeding_sigterm
from .terminal.terminal import Log, complain, guarded_streams, is_logged, log, logged, named, open_console, say

GO_ON = "run the same command again to go on from there"
OF_A_NIGHT = (Exit.NOT_YET, Exit.CONFLICT, Exit.REFUSED)  # prevents one night's run, but not others
OF_ALL_NIGHTS = (Exit.AWAY, Exit.UNFIT)  # ends a range of nights with valid arguments


@dataclass(frozen=True, slots=True)
class _Finished:
    """Outcome of a run, to be reported."""

    run: str
    manifest: Any
    before: bool  # it was finished before
    kept: str  # differences from the requested run, if an existing run was kept
    latest: Any
    short: tuple[str, ...]  # requested steps that failed, with reasons
    inputs: Any
    advisories: tuple[str, ...]  # that may concern it, if it was finished before


@app.command(help_epilogue="Example: leafledger explain model.json flights/ --out explained/ --id flight --method banzhaf --parameter p=0.3")
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
        FIRST..LAST, two days as YYYY-MM-DD: a run for each day from the first to the last. Those that are finished are passed over. A night that
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
    from ..arguments.dates import list_days
    from ..runs.job.job import make_job
    from ..runs.monitor.metrics import Earlier

    asked = dataclasses.replace(options, if_changed="replace" if replace else options.if_changed)
    if dates is None:
        code, document = _explain(make_job(model, data, out, asked), out, quiet, json)
    else:
        nights = [dataclasses.replace(asked, date=day) for day in list_days(dates, out, asked.date)]
        earlier = Earlier()
        done = [_explain_night(model, data, out, night, quiet, json, earlier) for night in nights]
        code, document = _end_nights([code for code, _ in done]), {"runs": [document for _, document in done]}
    if json:
        write_document(document)
    return code


def _end_nights(codes: Sequence[int]) -> int:
    """Return the exit code of a range of nights. Data refused for one night comes last, since a 6 is retried."""
    failed = [code for code in codes if code not in (Exit.DONE, Exit.PARTLY)]
    return min(failed, key=lambda code: (code == Exit.USAGE, code)) if failed else max(codes)


def _is_of_a_night(error: LeafledgerError, in_order: bool) -> bool:
    """Return whether later nights may succeed: with valid arguments, the error comes from the night's data or output."""
    if in_order:
        return error.exit_code not in OF_ALL_NIGHTS
    return error.exit_code in OF_A_NIGHT or isinstance(error, InvalidRun)


def _explain_night(model: str, data: str, out: str, options: Flags, quiet: bool, as_json: bool, earlier: Any) -> tuple[int, dict[str, Any]]:
    """Run one night of several; errors of this night alone are reported, and the others continue."""
    from ..arguments.dates import fill_date
    from ..runs.job.job import make_job
    from ..stores.uris import normalise

    job = None
    try:
        job = make_job(model, data, out, options)
        return _explain(job, out, quiet, as_json, earlier)
    except LeafledgerError as error:
        if not _is_of_a_night(error, job is not None):
            raise
        with named(normalise(fill_date(out, options.date))):
            complain(str(error), "error")
        return error.exit_code, error_document(type(error).__name__, error.exit_code, str(error))


def _explain(job: Any, out: str, quiet: bool, as_json: bool, earlier: Any = None) -> tuple[int, dict[str, Any]]:
    """Run one job; return its exit code, and the outcome."""
    from ..dataset.columns.notes import note_columns
    from ..methods.output_space import TOTALS
    from ..runs.explain import explain_job
    from ..runs.job.table_option import choose_table
    from ..runs.publish.move_latest import why_latest_stays
    from .terminal.progress import watched

    console = open_console(quiet or as_json)
    with watched(quiet) as progress, named(job.out):
        done = explain_job(job, progress, complain, earlier)
    manifest, already_finished, kept, latest = done.manifest, done.already_finished, done.kept, done.latest
    for line in note_columns(done.model):
        say(console, line)
    run = job.out if "{" in out else out.rstrip("/")
    if kept:
        say(console, f"{run}: kept as it is; what is asked for differs in {kept}")
    why_stays = why_latest_stays(job.options, manifest, latest)
    short = tuple(filter(None, (why_stays, done.unlogged)))
    finished = _Finished(job.out, manifest, already_finished, kept, latest, short, done.inputs, tuple(map(str, done.advisories)))
    stays = "" if latest is None or latest.run == job.out else f" stays at {latest.run}, of {latest.date}"
    if already_finished:
        say(console, f"{run}: finished before, nothing to do ({manifest.counted}){_say_version(manifest)}")
        say(console, f"{'SHA-256:':<14}{manifest.sha256}")
        for advisory in done.advisories:
            complain(f"{run}: {advisory}")
        if latest is not None and why_stays is None:
            say(console, f"{job.options.latest}:{stays or f' names it, of {latest.date}'}")
        return _tell(finished)
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
    from .terminal.show import show_summaries

    show_summaries(console, job.out, manifest)
    return _tell(finished)


def _say_version(manifest: Any) -> str:
    """Say of a run of another version what made it; nothing of one of this."""
    mine = find_version()
    made = f"; made by leafledger {printable(manifest.version)}, this is {mine}, and --if-changed replace makes it again"
    return "" if manifest.version == mine else made


def _tell(done: _Finished) -> tuple[int, dict[str, Any]]:
    """Report rejections, and why ``latest`` or MLflow was not updated; return the exit code and the report."""
    from ..runs.formats.numbers import NUMBER

    manifest, how = done.manifest, "finished before" if done.before else "finished"
    if done.kept:
        how = f"kept as it is, what is asked for differs in {done.kept}"
    said = [*(f"rejected: {entry.reason}" for entry in manifest.rejected), *done.short]
    with named(done.run):
        for line in said:
            complain(line)
        if is_logged():
            log(f"{how}: {manifest.counted}, SHA-256 {manifest.sha256}")
    document = {
        "run": done.run,
        "finished_before": done.before,
        "version": manifest.version,
        "place": manifest.place,
        "kept": done.kept,
        "n_rows": manifest.n_rows,
        "n_parts": len(manifest.parts),
        "share": manifest.share,
        "residual": manifest.residual,
        "manifest": manifest.sha256,
        "inputs": None if done.inputs is None else done.inputs.sha256,
        "rejected": [asdict(entry) for entry in manifest.rejected],
        "latest": None if done.latest is None else {name: value for name, value in asdict(done.latest).items() if name != NUMBER},
        "advisories": [*done.advisories],
        "said": said,
    }
    return (Exit.PARTLY if said else Exit.DONE), document


app.command(plan, help_epilogue="Example: leafledger plan model.json flights/ --out explained/ --interactions 10")
app.command(compare, help_epilogue="Example: leafledger compare model.json flights/ --methods shapley,banzhaf,beta:4:1 --out comparison.parquet")
app.command(check, help_epilogue="Example: leafledger check explained/ --deep")
app.command(show, help_epilogue="Example: leafledger show explained/ --where customer=4711 --verify")
app.command(drift, help_epilogue="Example: leafledger drift explained/2026-11-23 --against explained/2026-11-22")
app.command(report, help_epilogue="Example: leafledger report explained/")
app.command(inspect, help_epilogue="Example: leafledger inspect model.txt --methods shapley,banzhaf,ranker")


app.command(runs, help_epilogue="Example: leafledger runs explained/ --html explained/index.html")
app.command(forget, help_epilogue="Example: leafledger forget explained/ --where customer_id=4711 --dry-run")
app.command(prune, help_epilogue="Example: leafledger prune explained/ --keep 90d --dry-run")
app.command(rollback, help_epilogue="Example: leafledger rollback explained/2026-11-23")
app.command(certificates, help_epilogue="Example: leafledger certificates tls/ --host scheduler.example.com --days 90")
app.command(warm, help_epilogue="Example: leafledger warm --cpu x86-64-v3")
app.command(
    "leafledger.flows.deploy:deploy",  # it stands above this package, and is imported when it is asked for
    name="deploy",
    help="Write the Prefect deployment that explains every night's data, for prefect deploy; or make it on the server.",
    help_epilogue='Example: leafledger deploy model.json "flights/{date-1d}" --out "explained/{date-1d}" --cron "0 3 * * *" --apply',
)
app.command(completion, help_epilogue="Example: leafledger completion bash > ~/.local/share/bash-completion/completions/leafledger")


@app.command(help_epilogue="Example: leafledger config explain --config nights.toml")
def config(command: str = "explain", *, json: Json = False) -> None:
    """Show what is in force of a command's options where no flag says otherwise, and who said it: a variable, the file of --config, or nobody.

    Parameters
    ----------
    command
        Its name.
    json
        Write one JSON document instead.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    filled: list[Argument] = []
    before = tuple(app.config or ())
    app.config = (*before, lambda _app, _commands, given: filled.extend(given))
    try:
        app.parse_args([command], exit_on_error=False, print_error=False)
    except MissingArgumentError:
        pass  # listed among the settings
    finally:
        app.config = before
    show_settings(command, list_settings(filled), json)


def _fails(kind: str, message: str, code: int, as_json: bool) -> int:
    complain(message, "error")
    if as_json:
        write_error(kind, code, redact(message))
    return int(code)


def _say(error: CycloptsError) -> str:
    """Describe a command line error in one line."""
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        first, n_more = error.unused_tokens[0], len(error.unused_tokens) - 1
        more = f" and {n_more:,} more" if n_more else ""
        return f"got {first!r}{more} beyond what the command takes; a pattern of files needs quotes, as 'flights/*.parquet', or name their folder"
    return " ".join(str(error).split())


def _end(work: Callable[[], int | None], as_json: bool) -> int:
    """Run a command and return its exit code; errors are one line on standard error, and a document with --json."""
    try:
        return int(work() or 0)
    except CycloptsError as error:
        return _fails("UsageError", _say(error), Exit.USAGE, as_json)
    except LeafledgerError as error:
        return _fails(type(error).__name__, str(error), error.exit_code, as_json)
    except Terminated:
        return _fails("Terminated", f"terminated by SIGTERM; {GO_ON}", Exit.TERMINATED, as_json)
    except KeyboardInterrupt:
        return _fails("KeyboardInterrupt", f"interrupted; {GO_ON}", Exit.INTERRUPTED, as_json)


@app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    config: Annotated[str | None, Parameter(env_var="LEAFLEDGER_CONFIG", show_env_var=True)] = None,
    log_format: Annotated[Literal["text", "json"] | None, Parameter(env_var="LEAFLEDGER_LOG_FORMAT", show_env_var=True)] = None,
) -> int:
    """Explain every row of a Parquet data set with an XGBoost, LightGBM, CatBoost or scikit-learn model.

    Parameters
    ----------
    tokens
        The command and its arguments.
    config
        TOML file with a table of options for each command, named as flags. Environment variables such as LEAFLEDGER_EXPLAIN_METHOD win over it, flags
        over both.
    log_format
        Write every line on standard error with time, level and run, as text or as JSON.

    Returns
    -------
    int
        Exit code.
    """
    with logged(Log(log_format)):
        return _end(lambda: _launch(tokens, config), asks_document(tokens, config, app))


def _launch(tokens: Sequence[str], config: str | None) -> int:
    app.config = make_configs(config, app)
    command, bound, _ = app.parse_args(list(tokens), exit_on_error=False, print_error=False)
    given = bound.arguments
    with named(str(given.get("out") or given.get("run") or "")):
        return _end(lambda: command(*bound.args, **bound.kwargs), given.get("json") is True)


def main(arguments: list[str] | None = None, command: App = app.meta) -> int:
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
        Exit code, an ``Exit``.
    """
    tokens = sys.argv[1:] if arguments is None else arguments
    with guarded_streams(), heeding_sigterm():
        as_json = asks_document(tokens, None, app)
        try:
            os.getcwd()
        except OSError as error:  # libraries read it on import
            message = f"the working directory cannot be used, change to another one: {error.strerror}"
            return _fails("OSError", message, Exit.FAILED, as_json)
        return _end(lambda: command(tokens, exit_on_error=False, print_error=False), as_json)
