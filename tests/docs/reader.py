"""A reader who types what a page says, in a folder with the demo's flights and models, and looks at what comes of it."""

import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leafledger.kernels.methods import METHODS
from leafledger.pipeline.command.cli import main
from tests.docs.blocks import COMMANDS, FILE, OUTPUT, PYTHON, Block, read_blocks, read_commands

ROOT = Path(__file__).parents[2]
OURS = "leafledger"
SHELL = re.compile(r"[|<>&;*]")  # what only a shell understands
# What would install something, or run for minutes, is checked instead: that the target, or the distribution, is there.
CHECKED = {"make ": "make --dry-run ", "pip install ": f"{sys.executable} -m pip install --quiet --dry-run --no-deps --no-build-isolation "}
SECONDS = 600  # a command may take, beside other work
SHOWN = "sh"  # commands without a prompt, which need other machines, or minutes: nothing runs them


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a page expects at a place, and what came."""

    line: int
    start: int
    end: int
    expected: str
    got: str
    unsaid: bool = False  # there is no block for it yet


@dataclass(slots=True)
class Reader:
    """Types blocks; keeps variables of Python and of the shell, and the last exit code."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    code: int = 0
    said: str = ""
    started: list[subprocess.Popen] = field(default_factory=list)

    def type(self, command: str) -> str:
        """Run a command; what it prints, on standard error too where it fails or says why rows were left out."""
        self.said = self._type(command)
        return self.said

    def _type(self, command: str) -> str:
        if command == "echo $?":
            code, self.code = self.code, 0
            return f"{code}\n"
        if self.code:
            raise AssertionError(f"the command before {command!r} ended with exit code {self.code}, which the page does not say; it said {self.said}")
        if command.startswith(f"{OURS} ") and not SHELL.search(command.replace("'", "")):
            return self._run_ours(shlex.split(command.replace("\\\n", " "))[1:])
        return self._run_shell(command)

    def _run_ours(self, arguments: list[str]) -> str:
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            try:
                self.code = main(arguments)
            except SystemExit as ended:  # --help and --version
                self.code = int(ended.code or 0)
        said = errors.getvalue().splitlines(keepends=True)
        return out.getvalue() + "".join(line for line in said if line.startswith(f"{OURS}:"))

    def _run_shell(self, command: str) -> str:
        for typed, checked in CHECKED.items():
            if command.startswith(typed):
                subprocess.run(shlex.split(checked + command.removeprefix(typed)), cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
                return ""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            ["bash", "-c", command],
            env=environment,
            cwd=self.folder,
            text=True,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        said, errors = process.communicate(timeout=SECONDS)
        self.code = process.returncode
        return said + errors if self.code else said

    def execute(self, block: Block, page: Path) -> str:
        """Run a block of Python; what it prints."""
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), self.names)
        return out.getvalue()

    def stop(self) -> None:
        """End what commands left running in the background."""
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def missing(self, tree: str) -> list[str]:
        """Paths of a tree, as a page draws it, that are not there."""
        stack: list[tuple[int, Path]] = []
        absent = []
        for line in tree.splitlines():
            indent, name = len(line) - len(line.lstrip()), (line.split() or [""])[0].rstrip(",")
            while stack and stack[-1][0] >= indent:
                stack.pop()
            path = (stack[-1][1] if stack else self.folder) / name
            stack.append((indent, path))
            if name and not path.exists():
                absent.append(str(path.relative_to(self.folder)))
        return absent


@contextmanager
def reading(folder: Path) -> Iterator[Reader]:
    """A reader in a folder, with an environment and methods of its own."""
    before, environment, methods, reader = Path.cwd(), dict(os.environ), dict(METHODS), Reader(folder)
    os.chdir(folder)
    os.environ |= {"COLUMNS": "100", "DO_NOT_TRACK": "1", "PREFECT_HOME": str(folder / "prefect"), "PREFECT_LOGGING_LEVEL": "ERROR"}
    os.environ.pop("PREFECT_API_URL", None)
    try:
        yield reader
    finally:
        reader.stop()
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)
        METHODS.clear()
        METHODS.update(methods)


def read_page(page: Path, reader: Reader) -> Iterator[Outcome]:
    """Type all blocks of a page, in their order. What Python prints stands in the next block, if that is a text."""
    blocks = list(read_blocks(page))
    printed = ""
    for block, following in zip(blocks, [*blocks[1:], None], strict=False):
        where = f"{page}:{block.line}"
        if block.language == COMMANDS:
            for command in read_commands(block):
                yield Outcome(command.line, command.start, command.end, command.expected, reader.type(command.typed))
        elif block.language == PYTHON:
            printed = reader.execute(block, page)
            if printed and (following is None or following.language != OUTPUT):
                yield Outcome(block.line, block.after, block.after, "", printed, unsaid=True)
        elif block.language == OUTPUT and printed:
            yield Outcome(block.line, block.start, block.end, block.text, printed)
        elif block.language == OUTPUT and block.text.split("\n")[0].split()[0].endswith("/"):
            if absent := reader.missing(block.text):
                raise AssertionError(f"{where}: {', '.join(absent)} not there")
        elif block.file:
            (reader.folder / block.file[0]).write_text(block.file[1])
        elif block.language == SHOWN:
            pass
        elif block.language == FILE or not block.language.startswith("{"):
            raise AssertionError(f"{where}: a block of {block.language or 'no language'!r}, which nothing runs; expected {COMMANDS} or {PYTHON}")
        printed = printed if block.language == PYTHON else ""
