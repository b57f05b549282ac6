"""Functions called in a process of its own: what they return and raise comes back, and their process may die."""

import os
import signal
import subprocess
import sys

import pytest

from leafledger.pipeline.cluster.child_process import ChildProcess
from leafledger.pipeline.errors import InvalidData, WorkersDied

SCRIPT = """
from leafledger.pipeline.cluster.child_process import ChildProcess
import operator
with ChildProcess() as child:  # without a guard: the child does not import this
    print(child.call(operator.add, 1, 2))
"""


def die(number):
    """As a crash in native code."""
    os.kill(os.getpid(), number)


def refuse(line):
    """As work that cannot be done."""
    raise InvalidData(line)


def talk(said):
    """As a library that prints."""
    print(said)
    os.write(1, said.encode())
    return os.getpid()


def test_what_is_returned_and_raised_comes_back():
    """From one process for all calls, which is not this one; what it prints is no answer."""
    with ChildProcess() as child:
        first, second = child.call(talk, "words"), child.call(talk, "more")
        assert first == second != os.getpid()
        with pytest.raises(InvalidData, match=r"^f\.parquet: damaged$"):
            child.call(refuse, "f.parquet: damaged")
        assert child.call(talk, "again") == first
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_process_that_dies_is_said_and_replaced(number):
    """The next call finds another one."""
    with ChildProcess() as child:
        first = child.call(os.getpid)
        with pytest.raises(WorkersDied, match="die"):
            child.call(die, number)
        assert child.call(os.getpid) not in (first, os.getpid())


def test_a_script_needs_no_guard(tmp_path):
    """Nothing of it runs twice."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("3\n", "")
