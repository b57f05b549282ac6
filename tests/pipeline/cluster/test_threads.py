"""Threads that share items, and slices of items: every one once, slices in order, and a failure anywhere ends all."""

import threading
import time

import pytest

from leafledger.pipeline.cluster.threads import AHEAD, GivenUp, Threads, do_all

N_ITEMS = 40


def test_every_item_is_done_once():
    """On as many threads as there are, and what is made stands with its item."""
    names = set()

    def work(item):
        names.add(threading.current_thread().name)
        time.sleep(0.001)
        return item * item

    assert sorted(Threads(4).map(work, range(N_ITEMS))) == [(k, k * k) for k in range(N_ITEMS)]
    assert len(names) == 4


def test_more_items_are_begun_where_a_store_is_far():
    """So that some wait for it while others compute; no more of them than that."""
    lock, at_work, seen, together = threading.Lock(), [0], [], threading.Event()

    def work(_):
        with lock:
            at_work[0] += 1
            seen.append(at_work[0])
            if at_work[0] == 2 + AHEAD:
                together.set()
        together.wait(5)
        with lock:
            at_work[0] -= 1

    list(Threads(2, far=True).map(work, range(20)))
    assert max(seen) == 2 + AHEAD


def test_one_thread_is_the_caller_s():
    """Each item is done when it is asked for, none before."""
    done = []
    found = Threads(1).map(lambda item: done.append((item, threading.current_thread())), range(3))
    assert done == []
    next(found)
    assert done == [(0, threading.current_thread())]
    assert len(list(found)) == 2


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_few_items_are_ahead_of_who_takes_them(n_threads):
    """So that what is made does not pile up: of one that is taken slowly, no more have begun than have a thread or wait for one."""
    begun = []
    for taken, _ in enumerate(Threads(n_threads).map(begun.append, range(N_ITEMS))):
        time.sleep(0.002)
        assert len(begun) <= taken + 1 + n_threads + AHEAD


@pytest.mark.parametrize(("n_threads", "n_items"), [(1, 3), (2, 1), (4, 1), (4, 3), (4, 9)])
def test_slices_come_in_order(n_threads, n_items):
    """Though the first of four takes longest; and every slice once."""
    threads = Threads(n_threads)

    def explain(number):
        time.sleep(0.004 if number % 4 == 0 else 0.0)
        return number

    def work(item):
        return list(threads.in_order(explain, range(25)))

    assert [made for _, made in threads.map(work, range(n_items))] == [list(range(25))] * n_items


@pytest.mark.parametrize(("n_threads", "n_items"), [(4, 1), (4, 2), (5, 2)])
def test_threads_without_an_item_help(n_threads, n_items):
    """All of them at once, while the threads that have one read and write."""
    threads, lock, at_work, together = Threads(n_threads), threading.Lock(), [0], threading.Event()

    def explain(_):
        with lock:
            at_work[0] += 1
            if at_work[0] >= n_threads - n_items:
                together.set()
        together.wait(5)
        with lock:
            at_work[0] -= 1

    list(threads.map(lambda _: list(threads.in_order(explain, range(30))), range(n_items)))
    assert together.is_set()


def test_no_more_threads_work_than_there_are():
    """On slices, of however many items."""
    threads, lock, at_work, seen = Threads(3), threading.Lock(), [0], []

    def explain(_):
        with lock:
            at_work[0] += 1
            seen.append(at_work[0])
        time.sleep(0.002)
        with lock:
            at_work[0] -= 1

    list(threads.map(lambda _: list(threads.in_order(explain, range(10))), range(7)))
    assert max(seen) <= 3


def test_few_slices_are_ahead():
    """Slices that are explained and not yet taken hold memory: no more of them than threads, beside the one in hand."""
    threads, done, ahead = Threads(4), [], []

    def work(_):
        for taken, _ in enumerate(threads.in_order(done.append, range(60))):
            time.sleep(0.001)
            ahead.append(len(done) - taken - 1)

    list(threads.map(work, [0]))
    assert max(ahead) <= 5


def test_a_failure_gives_up_the_rest():
    """Of items, which have not begun, and of slices, at the next; it is raised as it is."""
    threads, begun, ended, failed = Threads(2), [], [], threading.Event()

    def slices():
        yield 0
        failed.wait(10)
        time.sleep(0.1)  # until the caller knows
        yield 1
        pytest.fail("a slice was asked for")

    def work(item):
        begun.append(item)
        if item == 1:
            failed.set()
            raise ValueError("item 1")
        try:
            list(threads.in_order(abs, slices()))
        except GivenUp:
            ended.append(item)
            raise

    with pytest.raises(ValueError, match=r"^item 1$"):
        list(threads.map(work, range(N_ITEMS)))
    assert begun[:2] == [0, 1]
    assert len(begun) <= 3
    assert ended[0] == 0


def test_a_slice_s_failure_is_its_item_s():
    """Also where another thread did it; slices before it are taken."""
    threads, taken = Threads(4), []

    def explain(number):
        if number == 7:
            raise ValueError("slice 7")
        return number

    def work(_):
        taken.extend(threads.in_order(explain, range(20)))

    with pytest.raises(ValueError, match=r"^slice 7$"):
        list(threads.map(work, [0]))
    assert taken == list(range(7))


def test_who_stops_taking_stops_the_work():
    """As Ctrl-C does."""
    begun = []

    def work(item):
        begun.append(item)
        time.sleep(0.002)

    found = Threads(2).map(work, range(1000))
    next(found)
    found.close()
    n = len(begun)
    time.sleep(0.02)
    assert len(begun) == n < 10


@pytest.mark.parametrize("n_threads", [1, 3, None])
def test_all_are_done_in_order(n_threads):
    """Whichever ends first; of none there is nothing."""

    def work(item):
        time.sleep(0.003 if item % 3 == 0 else 0)
        return -item

    assert do_all(work, range(0, 20, 2), n_threads) == list(range(0, -20, -2))
    assert do_all(work, (), n_threads) == []


@pytest.mark.parametrize("n_threads", [1, 3])
def test_who_waits_is_told_how_many_are_done(n_threads):
    """One after the other, on the thread that waits."""
    told = []
    do_all(lambda item: item, range(9), n_threads, lambda n: told.append((n, threading.current_thread())))
    assert told == [(n, threading.current_thread()) for n in range(1, 10)]
