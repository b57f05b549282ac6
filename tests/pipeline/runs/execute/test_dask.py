"""Parts made and a background counted in Dask tasks: what a dead worker costs, told here and not made, and keys that two runs do not share."""

import threading
import time

import distributed
import pytest

from leafledger.pipeline.dataset.files.listing import Rejected
from leafledger.pipeline.errors import InvalidLabel, StorageError
from leafledger.pipeline.runs.execute import dask as dask_
from leafledger.pipeline.runs.execute.bundles import BundleResult, Task, make_bundles
from tests.pipeline.threads import ITEMS, killed, on_threads


@pytest.fixture(scope="module")
def threads():
    """A cluster for the whole module."""
    with on_threads() as found:
        yield found


@pytest.fixture
def client(threads):
    """One of the cluster's."""
    with distributed.Client(threads) as found:
        yield found


class Work:
    """What is done in the place of parts: items that kill their workers so many times, and what they become else."""

    def __init__(self, deaths=(), error=None):
        self.left, self.error, self.tried = dict(deaths), error, []
        self.running, self.lock, self.together = 0, threading.Lock(), []

    def __call__(self, task, bundle):
        (item,) = bundle.items
        with self.lock:
            self.running += 1
            self.tried.append(item.part)
            self.together.append((item.part, self.running))
            dies = self.left.get(item.part, 0) > 0
            self.left[item.part] = self.left.get(item.part, 0) - 1
        time.sleep(0.02)
        with self.lock:
            self.running -= 1
        if dies:
            raise killed(item)
        if self.error and item.part == 2:
            raise self.error
        return f"{task.run} {task.recipe} {task.tables} {item.part}"

    def __reduce__(self):
        return _find, (id(self),)


WORKS = {}


def _find(number):
    """Work travels by name: it is counted here."""
    return WORKS[number]


def run_all(client, monkeypatch, work):
    WORKS[id(work)] = work
    monkeypatch.setattr(dask_, "do_bundle", work)
    return list(dask_.run_dask(client, Task("run", "rec", "tables"), make_bundles(ITEMS, {}, 0), 0))


def test_every_item_becomes_a_part(client, monkeypatch):
    """From the places that it is told."""
    work = Work()
    assert sorted(run_all(client, monkeypatch, work)) == [f"run rec tables {k}" for k in range(6)]
    assert sorted(work.tried) == list(range(6))


@pytest.mark.parametrize("other", [Task("run", "other", "tables"), Task("run", "rec", "others")], ids=["recipe", "tables"])
def test_a_run_in_the_folder_of_another_does_its_own_work(threads, client, monkeypatch, other):
    """The client of the first holds on to what it has; somebody has removed the folder, and what comes next there is of another model or method."""
    work, task, (bundle,) = Work(), Task("run", "rec", "tables"), make_bundles(ITEMS[:1], {}, 0)
    WORKS[id(work)] = work
    monkeypatch.setattr(dask_, "do_bundle", work)
    monkeypatch.setattr(dask_, "cancel", lambda *_: None)
    first = dask_.run_dask(client, task, [bundle], 0)
    held = [next(first), *client.futures]
    with distributed.Client(threads, set_as_default=False) as second:
        assert list(dask_.run_dask(second, other, [bundle], 0)) == [f"run {other.recipe} {other.tables} 0"]
        assert list(dask_.run_dask(second, task, [bundle], 0)) == held[:1]
    assert len(held) == 2
    assert work.tried == [0, 0]


def count(run, recipe, query, item, first_row):
    """Instead of a background's rows, of whichever number the first is."""
    return f"{recipe} {query} {item.part}"


@pytest.mark.parametrize(("recipe", "query"), [("other", "query"), ("rec", "another")])
def test_a_background_of_another_run_in_the_folder_is_counted(threads, client, monkeypatch, recipe, query):
    """What is counted is kept for all later runs."""
    monkeypatch.setattr(dask_, "count_item", count)
    monkeypatch.setattr(dask_, "merge_counts", lambda *counted: ", ".join(counted))
    monkeypatch.setattr(dask_, "cancel", lambda client, futures: held.extend(futures))
    held, given = [], (ITEMS[:2], 0, lambda _: None)
    assert dask_.count_dask(client, "run", "rec", "query", *given) == "rec query 0, rec query 1"
    with distributed.Client(threads, set_as_default=False) as second:
        assert dask_.count_dask(second, "run", recipe, query, *given) == f"{recipe} {query} 0, {recipe} {query} 1"
    held.clear()


@pytest.mark.slow
def test_a_suspect_is_tried_again_alone(client, monkeypatch):
    """Items whose workers died wait until all others are done; one that was there by chance becomes a part, one that kills again is rejected."""
    work = Work({1: 1, 4: 2})
    found = run_all(client, monkeypatch, work)
    (done,) = (each for each in found if isinstance(each, BundleResult))
    says = "f4.parquet: row groups [0, 1]: the processes that it was given to died, every time"
    assert done == BundleResult(0, 4, (Rejected(4, "f4.parquet", (0, 1), 10, says),), None)
    assert sorted(each for each in found if isinstance(each, str)) == [f"run rec tables {k}" for k in (0, 1, 2, 3, 5)]
    assert sorted(work.tried[:6]) == list(range(6))
    assert sorted(work.tried[6:]) == [1, 4]
    assert all(running == 1 for _, running in work.together[6:])


@pytest.mark.parametrize("error", [InvalidLabel("f2.parquet: row 3"), StorageError("f2.parquet: cannot read")])
def test_an_error_of_the_work_ends_the_run_as_it_is(client, monkeypatch, error):
    """Tasks that have not begun are cancelled."""
    with pytest.raises(type(error), match=str(error)):
        run_all(client, monkeypatch, Work(error=error))


def test_many_results_are_one_question(client, monkeypatch):
    """What is not there, or failed, is asked for alone, and says so then."""
    asked, gather = [], client.gather
    monkeypatch.setattr(client, "gather", lambda futures, **given: asked.append(len(futures)) or gather(futures, **given))
    futures = [client.submit(abs, -k, pure=False) for k in range(3)]
    failed = client.submit(int, "x", pure=False)
    distributed.wait([*futures, failed])
    assert dask_._gather(client, [*futures, failed]) == {future.key: k for k, future in enumerate(futures)}
    assert asked == [3]


def test_a_result_that_was_lost_leaves_the_others_to_be_asked_alone(client, monkeypatch):
    """A worker may die between the end of a task and the question for its result."""
    gather = client.gather

    def lose(asked, **given):
        if isinstance(asked, dict):
            raise killed(ITEMS[0])
        return gather(asked, **given)

    monkeypatch.setattr(client, "gather", lose)
    work = Work()
    assert dask_._gather(client, []) == {}
    assert sorted(run_all(client, monkeypatch, work)) == [f"run rec tables {k}" for k in range(6)]
    assert sorted(work.tried) == list(range(6))
