"""Something done with every item, in turn, on threads, and on Dask: each once, with the same results; the first failure ends the work."""

import sys
import threading

import pytest

from leafledger.pipeline.cluster.map_items import map_items
from leafledger.pipeline.cluster.placement import make_placement
from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.errors import InvalidData

ITEMS = tuple(WorkItem(k, f"f{k}.parquet", "", (0,), 0, 10, 0, ()) for k in range(12))
SERIAL, DASK = make_placement("serial"), make_placement(workers=2)
THREADS = make_placement(threads=3)
MEMORY = 1 << 30


def numbered(task, item):
    """Stands in for work: a result that depends on the task and the item."""
    return f"{task} {item.part}"


def failing(task, item):
    """Work whose item 3 cannot be done."""
    if item.part == 3:
        raise InvalidData(f"{item.uri}: damaged")
    return item.part


def no_warming(task):
    """Nothing to compile."""


def test_serially_items_are_done_in_turn():
    """Each when it is asked for, none before."""
    done = []

    def work(task, item):
        done.append(item.part)
        return numbered(task, item)

    found = map_items(SERIAL, work, lambda _: pytest.fail("warmed"), "task", ITEMS, MEMORY)
    assert next(found) == (ITEMS[0], "task 0")
    assert done == [0]
    assert list(found) == [(item, f"task {item.part}") for item in ITEMS[1:]]
    assert done == list(range(12))


@pytest.mark.parametrize("where", [THREADS, DASK], ids=["threads", "dask"])
def test_on_threads_and_on_dask_every_item_is_done_once(in_process, where):
    """In whatever order; results stand with their items, and what has to be compiled is compiled before."""
    warmed = []
    found = list(map_items(where, numbered, warmed.append, "task", ITEMS, MEMORY))
    assert sorted(found, key=lambda done: done[0].part) == [(item, f"task {item.part}") for item in ITEMS]
    assert warmed == ["task"]


@pytest.mark.parametrize("where", [SERIAL, THREADS, DASK], ids=["serial", "threads", "dask"])
def test_a_failure_goes_to_the_caller_as_it_is(in_process, where):
    """And nothing more is yielded."""
    found = []
    with pytest.raises(InvalidData, match=r"^f3\.parquet: damaged$"):
        found.extend(map_items(where, failing, no_warming, None, ITEMS, MEMORY))
    assert 3 not in [item.part for item, _ in found]
    assert len(found) < len(ITEMS)


def test_one_item_needs_no_threads():
    """It is done where the caller is."""
    ((item, thread),) = map_items(THREADS, lambda task, item: threading.current_thread(), lambda _: pytest.fail("warmed"), None, ITEMS[:1], MEMORY)
    assert (item, thread) == (ITEMS[0], threading.current_thread())


def test_no_items_need_no_cluster(monkeypatch):
    """Nothing is imported or started for nothing."""
    monkeypatch.setitem(sys.modules, "leafledger.pipeline.cluster.start_client", None)
    assert list(map_items(DASK, numbered, no_warming, None, (), MEMORY)) == []
    with pytest.raises(ImportError):
        list(map_items(DASK, numbered, no_warming, None, ITEMS, MEMORY))
