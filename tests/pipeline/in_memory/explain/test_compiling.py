"""Who waits for the compiler is told so, once."""

import logging

from leafledger.kernels.jit import notices
from leafledger.pipeline.in_memory.explain.explainer import say_compiling


def test_it_is_said_once(monkeypatch, caplog):
    """Whatever is compiled after the first kernel, and however often it is asked for; one line, which the logger's level silences."""
    monkeypatch.setattr(notices, "_TO_TELL", {})
    with caplog.at_level(logging.WARNING, "leafledger"):
        for _ in range(3):
            say_compiling()
            notices.announce()
    (said,) = caplog.messages
    assert said.startswith("Leafledger compiles kernels that this machine has not needed before")
    assert "\n" not in said
