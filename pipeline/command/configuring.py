"""What helps to call the command: options and who said them, and completion for shells."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from .documents import write_document
from .settings import Setting
from .terminal import open_console, say, write_raw


def show_settings(command: str, settings: Sequence[Setting], as_json: bool) -> None:
    """Show the options of a command, what they are and who said so.

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


def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Write a script by which a shell completes commands and options.

    Parameters
    ----------
    shell
        Where it is to be read.
    """
    from .cli import app

    write_raw(app.generate_completion(shell=shell))
