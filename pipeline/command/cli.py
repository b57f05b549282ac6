"""Entry point of the command ``leafledger``: its commands, config, and one-line errors with exit codes."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from cyclopts import App, Argument, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

from ..errors import Exit, LeafledgerError, redact
from ..runs.monitor.signals import Terminated, heeding_sigterm
from .app import app
from .commands.certifying import certificates
from .commands.checking import check
from .commands.comparing import compare
from .commands.drifting import drift
from .commands.explaining import explain
from .commands.forgetting import forget
from .commands.giving import reasons
from .commands.listing import runs
from .commands.models.effects import effects
from .commands.models.inspecting import inspect
from .commands.planning import plan
from .commands.pruning import prune, rollback
from .commands.reporting import report
from .commands.showing import show
from .commands.warming import warm
from .terminal.documents import write_error
from .terminal.flags import Json
from .terminal.settings import asks_document, completion, list_settings, make_configs, show_settings
from .terminal.terminal import Log, complain, guarded_streams, logged, named

GO_ON = "run the same command again to go on from there"

app.command(explain, help_epilogue="Example: leafledger explain model.json flights/ --out explained/ --id flight --method banzhaf --parameter p=0.3")
app.command(plan, help_epilogue="Example: leafledger plan model.json flights/ --out explained/ --interactions 10")
app.command(compare, help_epilogue="Example: leafledger compare model.json flights/ --methods shapley,banzhaf,beta:4:1 --out comparison.parquet")
app.command(check, help_epilogue="Example: leafledger check explained/ --deep")
app.command(show, help_epilogue="Example: leafledger show explained/ --where customer=4711 --verify")
app.command(reasons, help_epilogue="Example: leafledger reasons explained/ --csv reasons.csv --letters letters/ --template html")
app.command(drift, help_epilogue="Example: leafledger drift explained/2026-11-23 --against explained/2026-11-22")
app.command(report, help_epilogue="Example: leafledger report explained/")
app.command(effects, help_epilogue="Example: leafledger effects model.json --background flights/ --out effects/ --pairs distance,carrier")
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
