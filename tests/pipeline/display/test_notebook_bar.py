"""A progress bar of a call in a notebook: after two seconds, now and then, and gone at the end; nothing anywhere else."""

import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from leafledger import attribute
from leafledger.pipeline.display import notebook_bar
from leafledger.pipeline.display.notebook_bar import NotebookBar


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when a test says so."""
    now = [100.0]
    monkeypatch.setattr(notebook_bar.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def cell(monkeypatch):
    """What a notebook's cell shows, change by change."""
    shown = []

    def update(drawn, raw):
        assert raw
        shown.append(drawn)

    def display(drawn, raw, display_id):
        assert display_id
        update(drawn, raw)
        return SimpleNamespace(update=update)

    fake = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1), display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", fake)
    return shown


def test_it_comes_after_two_seconds_and_goes_at_the_end(clock, cell):
    with NotebookBar(10, "attributing 10 rows") as bar:
        for n_done, now in ((1, 101.0), (2, 102.0), (3, 102.1), (4, 103.0), (10, 104.0)):
            clock[0] = now
            bar(n_done)
    assert [each["text/plain"] for each in cell] == [
        "attributing 10 rows: 20%, about 8 s left",
        "attributing 10 rows: 40%, about 4 s left",
        "",
    ]
    assert cell[0]["text/html"].startswith('<progress value="2" max="10"></progress> ')


def interrupt(bar, clock):
    """After some of the work."""
    clock[0] += 5
    bar(1)
    raise KeyboardInterrupt


def test_it_goes_where_a_call_is_interrupted(clock, cell):
    """Or the notebook would keep what is left of a call that works no more."""
    bar = NotebookBar(10, "attributing 10 rows")
    with pytest.raises(KeyboardInterrupt), bar:
        interrupt(bar, clock)
    assert [each["text/plain"] for each in cell] == ["attributing 10 rows: 10%, about 45 s left", ""]


def test_a_quick_call_shows_nothing(clock, cell):
    with NotebookBar(2, "attributing") as bar:
        bar(1)
        clock[0] += 5
        bar(2)
    assert cell == []


@pytest.mark.parametrize("where", ["no IPython", "a terminal", "another thread"])
def test_elsewhere_there_is_none(clock, cell, monkeypatch, where):
    if where == "no IPython":
        monkeypatch.delitem(sys.modules, "IPython")
    elif where == "a terminal":
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())

    def run():
        with NotebookBar(2, "attributing") as bar:
            clock[0] += 5
            bar(1)

    if where == "another thread":
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    else:
        run()
    assert cell == []


def test_a_long_call_shows_one(cell, monkeypatch):
    """Of many slices; its numbers are those of a call without."""
    rows = np.random.default_rng(0).normal(size=(40_000, 2))
    model = DecisionTreeRegressor(max_depth=2).fit(rows[:100], rows[:100, 0])
    wanted = attribute(model, rows).phi
    assert cell == []
    monkeypatch.setattr(notebook_bar, "SECONDS", 0.0)
    monkeypatch.setattr(notebook_bar, "EVERY", 0.0)
    assert (attribute(model, rows).phi == wanted).all()
    assert cell[0]["text/plain"].startswith("attributing 40,000 rows: ")
    assert cell[-1] == {"text/html": "", "text/plain": ""}
