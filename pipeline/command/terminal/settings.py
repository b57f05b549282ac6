"""Settings of options by environment variables and files; flags win over variables, variables over files."""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal

from cyclopts import App
from cyclopts.argument import Argument, ArgumentCollection
from cyclopts.config import Dict, Env

from ...display.nearest import did_you_mean
from ...errors import UsageError, redact
from .documents import write_document
from .terminal import open_console, say, write_raw


def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Write a script by which a shell completes commands and options.

    Parameters
    ----------
    shell
        Where it is to be read.
    """
    from ..app import app

    write_raw(app.generate_completion(shell=shell))


PREFIX = "LEAFLEDGER_"
OWN = ("CONFIG", "LOG_FORMAT")  # variables of every command
ENVIRONMENT = "environment"
SAME = {"plan": "explain"}  # settings of another command that a command uses
ONE_CHOICE = ("replace", "if-changed")  # two flags of one choice: the winning source decides both
_CHOICE = {f"--{name}" for name in ONE_CHOICE}
# Variables that Kubernetes sets for a service named leafledger, or leafledger-…; for ports also their types.
SERVICE = re.compile(
    r"(\w+_)?(SERVICE_HOST=.*|SERVICE_PORT(_\w+)?=.*|PORT(_\d+_(TCP|UDP|SCTP))?=\w+://.*|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=.*)"
)
YES = ("1", "t", "true", "y", "yes")  # as in cyclopts
Config = Callable[[App, tuple[str, ...], ArgumentCollection], None]


@dataclass(frozen=True, slots=True)
class Setting:
    """An option of a command, with the source of its value."""

    option: str
    value: str | None  # as a flag's text, without credentials; None without value and default
    source: str  # flag, a variable's name, a file, default, or not given


def show_settings(command: str, settings: Sequence[Setting], as_json: bool) -> None:
    """Show the options of a command, with values and sources.

    Parameters
    ----------
    command : str
        Its name.
    settings : sequence of Setting
    as_json : bool
        As a document.
    """
    if as_json:
        write_document({"command": command, "settings": [asdict(setting) for setting in settings]})
        return
    console, lines = open_console(), [(setting.option, setting.value or "–", setting.source) for setting in settings]
    first, second = (max((len(line[at]) for line in lines), default=0) for at in (0, 1))
    for option, value, source in lines:
        say(console, f"{option:<{first}}  {value:<{second}}  {source}")


def option_names(arguments: Iterable[Argument]) -> dict[str, str]:
    """Return the names of a command's options in files."""
    return {name.removeprefix("--"): _name(argument) for argument in arguments if argument.parse for name in argument.names if name.startswith("--")}


def _name(argument: Argument) -> str:
    return next(name for name in argument.names if name.startswith("--")).removeprefix("--")


def read_settings(path: str | None, app: App) -> dict[str, dict[str, Any]]:
    """Read a settings file: a table for every command, with options named as flags."""
    if path is None:
        return {}
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: not TOML: {' '.join(str(error).split())}") from error
    commands = [name for name in app if not name.startswith("-") and name not in SAME]
    for command, table in found.items():
        if command not in commands:
            other = f"; {command} takes those of {SAME[command]}" if command in SAME else did_you_mean(command, commands)
            raise UsageError(f"{path}: has {command!r:.80}, expected a table for a command: {', '.join(commands)}{other}")
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {command} is {table!r:.80}, expected a table of options")
        known = option_names(app[command].assemble_argument_collection())
        for option, value in table.items():
            if option not in known:
                raise UsageError(
                    f"{path}: [{command}] has {option!r:.80}, which is no option of the command, see leafledger {command} --help"
                    f"{did_you_mean(option, known)}"
                )
            if isinstance(value, dict):
                raise UsageError(f"{path}: [{command}] {option} is a table, expected a value or a list of values")
    return found


def check_variables(environment: Mapping[str, str], app: App) -> None:
    """Refuse unknown variables with the prefix, since a misspelt one would be ignored silently."""
    given = {name.removeprefix(PREFIX): value for name, value in environment.items() if name.startswith(PREFIX)}
    for name, value in given.items():
        if name in OWN or SERVICE.fullmatch(f"{name}={value}"):
            continue
        command = next((each for each in app if name.startswith(f"{each.upper()}_") and each not in SAME), None)
        known = [] if command is None else [_as_variable(option) for option in option_names(app[command].assemble_argument_collection())]
        if command is None or name.removeprefix(f"{command.upper()}_") not in known:
            expected = f"{PREFIX}COMMAND_OPTION, as in {PREFIX}EXPLAIN_METHOD" if command is None else f"an option, see leafledger {command} --help"
            variables = [f"{PREFIX}{command.upper()}_{each}" for each in known] if command else []
            raise UsageError(f"environment variable {PREFIX}{name}: expected {expected}{did_you_mean(PREFIX + name, variables)}")


def _as_variable(option: str) -> str:
    return option.upper().replace("-", "_")


def asks_document(tokens: Sequence[str], path: str | None, app: App) -> bool:
    """Return whether a command line asks for JSON, even if it is invalid, so that the error is JSON too.

    Parameters
    ----------
    tokens : sequence of str
    path : str or None
        Of a file of settings.
    app : App

    Returns
    -------
    bool
        By the flag, the variable or the file.
    """
    if "--json" in tokens:
        return True
    command = next((token for token in tokens if not token.startswith("-") and token in [*app]), "")
    whose = SAME.get(command, command)
    said = os.environ.get(f"{PREFIX}{_as_variable(whose)}_JSON")
    if said is not None:
        return said.lower() in YES
    try:
        return read_settings(path, app).get(whose, {}).get("json") is True
    except UsageError:  # reported when the command line is parsed
        return False


def _refuse_empty(environment: Mapping[str, str], command: str, arguments: ArgumentCollection) -> None:
    """Refuse empty variables for several values, which would be ignored in favour of the file."""
    for option in option_names(argument for argument in arguments if not argument.tokens):
        name = f"{PREFIX}{_as_variable(command)}_{_as_variable(option)}"
        if name in environment and not environment[name].strip():
            raise UsageError(f"environment variable {name}: is empty, expected a value or several with spaces between; unset it")


def _choose_once(arguments: ArgumentCollection) -> ArgumentCollection:
    """Return options that further sources may fill: none of a choice with a given flag; two given flags have to agree."""
    said = {_name(argument): argument for argument in arguments if argument.tokens and not _CHOICE.isdisjoint(argument.names)}
    if len(said) == len(ONE_CHOICE):
        replace, changed = (said[name].convert() for name in ONE_CHOICE)
        if replace is not (changed == "replace"):
            raise UsageError(f"replace is {str(replace).lower()} and if-changed is {changed}, which says something else; give one of them")
    return ArgumentCollection([argument for argument in arguments if not said or _CHOICE.isdisjoint(argument.names)])


def make_configs(path: str | None, app: App) -> list[Config]:
    """Make the sources that fill in options without flags.

    Parameters
    ----------
    path : str or None
        Of a file of settings.
    app : App

    Returns
    -------
    list of callable
        As cyclopts takes them, the one that wins first.

    Raises
    ------
    UsageError
        As of `read_settings` and `check_variables`.
    """
    check_variables(os.environ, app)
    tables, source = read_settings(path, app), "" if path is None else str(Path(path).absolute())
    environment = Env(PREFIX, source=ENVIRONMENT)

    def fill(called: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        if not commands:
            return
        whose = SAME.get(commands[0], commands[0])
        environment(called, (whose,), _choose_once(arguments))
        _refuse_empty(os.environ, whose, arguments)
        left = _choose_once(arguments)
        known = option_names(left)
        table = {option: value for option, value in tables.get(whose, {}).items() if option in known}
        Dict(table, source=source, use_commands_as_keys=False)(called, commands, left)
        _choose_once(arguments)

    return [fill]


def list_settings(arguments: Iterable[Argument]) -> list[Setting]:
    """List the effective options of a command, with their sources.

    Parameters
    ----------
    arguments : iterable of Argument
        Filled in.

    Returns
    -------
    list of Setting
    """
    return [_setting(argument) for argument in arguments if argument.parse and not argument.children]


def _setting(argument: Argument) -> Setting:
    name = _name(argument)
    if not argument.tokens:
        default = argument.field_info.default
        given = not argument.required
        return Setting(name, _write(default) if given else None, "default" if given else "not given")
    first = argument.tokens[0]
    source = "flag" if first.source == "cli" else str(first.keyword) if first.source == ENVIRONMENT else first.source
    return Setting(name, redact(" ".join(_write(token.value or token.implicit_value) or "" for token in argument.tokens)), source)


def _write(value: Any) -> str | None:
    if value is None or value is Parameter.empty:
        return None
    if isinstance(value, tuple | list):
        return " ".join(map(str, value)) or None
    return str(value).lower() if str(value) in ("True", "False") else str(value)
