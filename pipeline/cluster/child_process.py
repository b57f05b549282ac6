"""A child process that calls functions, so that what kills it leaves this process alive."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from ..errors import WorkersDied

# The child imports what this process can import, and nothing of the script that runs here.
COMMAND = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from leafledger.pipeline.cluster.child_process import serve; serve()"
CLOSE_SECONDS = 5.0  # for the child to end once it is told to


class ChildProcess:
    """A process that is started for the first call, and again after it died. Use it as a context, which ends it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "ChildProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of a module in the child, and return what it returns, or raise what it raises.

        Raises
        ------
        WorkersDied
            The child died meanwhile.
        """
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter
                [sys.executable, "-c", COMMAND, json.dumps([os.path.abspath(place) for place in sys.path])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        sent, received = self._process.stdin, self._process.stdout
        if sent is None or received is None:
            raise WorkersDied("a child process has no pipes")
        try:
            pickle.dump((work, arguments), sent)
            sent.flush()
            failed, made = pickle.load(received)  # noqa: S301 - of our own child
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            self._end()
            raise WorkersDied(f"a child process died in {work.__name__}") from error
        if failed:
            raise made
        return made

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def serve() -> None:
    """Do the calls that arrive: what the child runs. Whatever is printed goes where errors go."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            work, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - of our own parent
        except EOFError:
            return
        try:
            answer = False, work(*arguments)
        except Exception as error:
            answer = True, error
        pickle.dump(answer, answers)
        answers.flush()
