"""Runs in processes of their own, started fast, that a test kills when it likes."""

import contextlib
import io
import multiprocessing
import os
import signal

import fsspec

from tests.pipeline.forking import IMPORTED

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload([*IMPORTED, "s3fs", "tests.faults.preload"])


def _run(environment: dict[str, str], arguments: list[str], said) -> None:
    from leafledger.pipeline.command.cli import main
    from tests.faults.preload import dask_setup

    os.environ.update(environment)
    dask_setup(None)
    fsspec.config.set_conf_env(fsspec.config.conf)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(arguments)
    said.send((code, out.getvalue(), err.getvalue()))
    os._exit(code)


class Client:
    """A command line in a process of its own, with what the environment says in `preload`."""

    def __init__(self, environment: dict[str, str], arguments: list[str]):
        self._said, said = context.Pipe(duplex=False)
        self.process = context.Process(target=_run, args=(environment, arguments, said))
        self.process.start()
        said.close()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal."""
        os.kill(self.process.pid, number)

    def wait(self, seconds: float = 120) -> int | None:
        """Its exit code, negative the signal that ended it."""
        self.process.join(seconds)
        return self.process.exitcode

    def output(self) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of one that ended by itself."""
        return self._said.recv()
