"""What helps to call the command: options and who said them, and completion for shells."""

import shutil
import subprocess

import pytest

from leafledger.pipeline.command import cli
from leafledger.pipeline.command import cli as app_

# As Bash does where Tab is pressed: the word, and the one before it.
PRESS = (
    'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _leafledger leafledger "${@: -1}" "${@: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"'
)


def test_every_option_has_a_line(capsys):
    assert cli.main(["config", "show"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["run", "–", "not", "given"]
    assert ["most", "10", "default"] in lines
    assert cli.main(["config", "explode"]) == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no Bash")
@pytest.mark.slow
def test_bash_completes_commands_and_options(tmp_path, capsys):
    """By the script as it is written."""
    assert cli.main(["completion", "bash"]) == 0
    script = tmp_path / "leafledger"
    script.write_text(capsys.readouterr().out)

    def complete(*words):
        pressed = subprocess.run(["bash", "--norc", "-c", PRESS, "bash", script, "leafledger", *words], capture_output=True, text=True, check=True)
        return pressed.stdout.split()

    assert complete("exp") == ["explain"]
    assert complete("explain", "--preci") == ["--precision"]
    assert complete("check", "--de") == ["--deep"]
    assert complete("explain", "--log") == ["--log-format"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.slow
def test_other_shells_have_a_script(shell, capsys):
    """That names every command."""
    assert cli.main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in app_.app if not name.startswith("-"))
