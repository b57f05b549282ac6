"""Which tests run which lines of a module, so that those that can notice a change are asked before the others."""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

CALLS = 50  # of a function that are followed in a test: whoever is called more often would take all the time


@dataclass
class Recorder:
    """Write down, as pytest runs tests, which lines of a module each runs in this process, and how long it takes."""

    module: Path
    record: Path  # where it is written
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, set[int]] = field(default_factory=dict)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Of one test, what it needs included."""
        found, place, began = self.lines.setdefault(item.nodeid, set()), str(self.module), time.monotonic()
        calls = Counter[CodeType]()

        def follow(frame: FrameType, event: str, value: Any) -> Any:
            found.add(frame.f_lineno)
            return follow

        def trace(frame: FrameType, event: str, value: Any) -> Any:
            if frame.f_code.co_filename != place or calls[frame.f_code] >= CALLS:
                return None
            calls[frame.f_code] += 1
            return follow

        sys.settrace(trace)
        threading.settrace(trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]  # which stops it
            self.seconds[item.nodeid] = time.monotonic() - began

    def pytest_sessionfinish(self) -> None:
        """Write it."""
        self.record.write_text(json.dumps({name: [self.seconds[name], sorted(found)] for name, found in self.lines.items()}))


@dataclass(frozen=True)
class First:
    """Ask tests that run one of some lines before the others, the fastest first. The others may start processes that run them."""

    record: Path
    lines: range

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort the tests."""
        known = json.loads(self.record.read_text())

        def place(item: pytest.Item) -> tuple[bool, float]:
            seconds, found = known.get(item.nodeid, (0.0, ()))
            return not any(line in self.lines for line in found), seconds

        items.sort(key=place)
