"""SIGTERM to a command: an exception in the main thread, once, and only where nobody else has a way of his own."""

import signal
import threading

import pytest

from leafledger.pipeline.command.cli import main
from leafledger.pipeline.runs.monitor.signals import Terminated, heeding_sigterm, passing_sigterm_on


def test_the_first_one_raises_and_the_next_one_ends():
    """What is done by default is restored as soon as one came, and afterwards."""
    seen = []

    def end():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            seen.append(signal.getsignal(signal.SIGTERM))

    with heeding_sigterm(), pytest.raises(Terminated):
        end()
    assert seen == [signal.SIG_DFL]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with heeding_sigterm():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_others_keep_their_way():
    """A program that calls the command, as Prefect's; and threads, in which Python lets nobody choose."""

    def own(_number, _frame):
        raise AssertionError

    seen = []

    def beside():
        with heeding_sigterm():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
    signal.signal(signal.SIGTERM, own)
    try:
        with heeding_sigterm():
            assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_what_a_command_calls_leaves_the_signal_to_it():
    """The process is not ended below it: the command says how, and with which code. A program that has no way of its own ends, see the metrics."""
    with heeding_sigterm(), pytest.raises(Terminated), passing_sigterm_on():
        signal.raise_signal(signal.SIGTERM)
    with passing_sigterm_on():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_command_ends_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr("leafledger.pipeline.runs.check.check.check_run", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
    assert main(["check", "anywhere"]) == 143
    assert capsys.readouterr().err == "leafledger: terminated by SIGTERM; run the same command again to go on from there\n"
