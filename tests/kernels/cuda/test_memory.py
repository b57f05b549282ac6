"""As many slices as fit, what is kept gives way, and what does not fit is refused with the numbers."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from leafledger.kernels.cuda import decorator, memory
from leafledger.kernels.cuda.tables import Job
from leafledger.kernels.errors import NoRoom
from tests.kernels.cuda.small_card import Inside, SmallCard

WORDS = 1 << 17  # of a room: 1 MiB


def lay_out(mebibytes):
    """Tables of so many MiB, in two arrays of one job."""
    return lambda: [[Job(None, 1, 0, tuple(np.zeros(WORDS // 2) for _ in range(2 * mebibytes)))]]


def nothing(tables, room):
    """Work that takes no time."""


@pytest.mark.parametrize(("mebibytes", "at_once"), [(3, 1), (4, 2), (6, 4), (100, 6)])
def test_as_many_slices_at_once_as_fit(monkeypatch, mebibytes, at_once):
    """Beside tables of 2 MiB; those that find no room wait for one."""
    small, inside, key = SmallCard(monkeypatch, mebibytes << 20), Inside(at_once), object()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: memory.MEMORY.use(key, lay_out(2), WORDS, lambda *_: inside.meet()), range(24)))
    assert (inside.most, inside.done) == (at_once, 24)
    assert small.free == mebibytes - 2 - at_once << 20


@pytest.mark.parametrize(
    ("mebibytes", "says"),
    [
        (2, "the card has 2.0 MiB to spare, expected 3.0: tables 2.0, a slice of rows 1.0"),
        (1, "the card has 1.0 MiB to spare, expected 3.0: tables 2.0, a slice of rows 1.0"),
    ],
)
def test_what_does_not_fit_is_refused(monkeypatch, mebibytes, says):
    """Not even one slice beside the tables, or the tables by themselves; nothing is sent."""
    small = SmallCard(monkeypatch, mebibytes << 20)
    with pytest.raises(NoRoom) as refused:
        memory.MEMORY.use(object(), lay_out(2), WORDS, nothing)
    assert str(refused.value) == says
    assert small.free == mebibytes << 20


def test_memory_that_others_took_meanwhile(monkeypatch):
    """Tables are there, and another process has the rest: a slice is refused, and nobody waits for ever."""
    small, key = SmallCard(monkeypatch, 4 << 20), object()
    memory.MEMORY.use(key, lay_out(2), WORDS, nothing)
    small.n_bytes = 3 << 20
    with pytest.raises(NoRoom, match=r"has 1\.0 MiB to spare, expected 2\.0: tables 0\.0, a slice of rows 2\.0"):
        memory.MEMORY.use(key, lay_out(2), 2 * WORDS, nothing)


def test_a_part_is_left_to_the_driver(monkeypatch):
    """A sixteenth, or a GiB of a large card; the simulator has no end."""
    assert min(decorator.ask_memory()) > 0
    for n_bytes, spare in ((32 << 20, 2 << 20), (64 << 30, 1 << 30)):
        monkeypatch.setattr(memory, "ask_memory", lambda n_bytes=n_bytes: (n_bytes, n_bytes))
        assert memory._find_shortage(n_bytes - spare, 0) == ""
        assert f"expected {(n_bytes - spare + 8) / 2**20:,.1f}" in memory._find_shortage(n_bytes - spare, 8)


def test_tables_of_others_give_way(monkeypatch):
    """The longest unused first, and no more than needed; what was let go is sent again when it is asked for."""
    small, keys = SmallCard(monkeypatch, 7 << 20), [object() for _ in range(4)]
    for key in (*keys[:3], keys[0]):
        memory.MEMORY.use(key, lay_out(2), WORDS, nothing)
    assert (small.free, small.n_tables_sent) == (0, 12)
    memory.MEMORY.use(keys[3], lay_out(2), WORDS, nothing)  # in the place of the second
    for key, sent in ((keys[2], 16), (keys[0], 16), (keys[1], 20)):
        memory.MEMORY.use(key, lay_out(2), WORDS, nothing)
        assert small.n_tables_sent == sent
    assert small.free == 0


def test_a_few_tables_are_kept(monkeypatch):
    """However much memory there is, not those of every model that a process ever had."""
    small = SmallCard(monkeypatch, 100 << 20)
    for _ in range(memory.KEPT + 3):
        memory.MEMORY.use(object(), lay_out(2), WORDS, nothing)
    assert small.free == 100 - 2 * memory.KEPT - 1 << 20


def test_tables_that_are_in_use_are_waited_for(monkeypatch):
    """Another's tables do not fit beside them: its slice waits until they are not needed, and their memory is free before it is told."""
    small, started, others = SmallCard(monkeypatch, 4 << 20), threading.Event(), threading.Event()
    one, other, free = object(), object(), []
    tell = memory.MEMORY._changed.notify_all
    monkeypatch.setattr(memory.MEMORY._changed, "notify_all", lambda: (free.append(small.free), tell()))

    def work(tables, room):
        started.set()
        assert not others.wait(0.1)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(memory.MEMORY.use, one, lay_out(2), WORDS, work)
        started.wait()
        second = pool.submit(memory.MEMORY.use, other, lay_out(3), WORDS, lambda *_: others.set())
        first.result()
        second.result()
    assert others.is_set()
    assert free == [3 << 20, 0]


def test_any_mixture_that_fits_one_by_one(monkeypatch):
    """Tables and slices of all sizes on six threads: none is refused, none waits for ever, and never is more on the card than it has room for."""
    small, keys, done = SmallCard(monkeypatch, 5 << 20), [object() for _ in range(6)], []
    rng = np.random.default_rng(9)
    asked = [(int(which), int(words)) for which, words in zip(rng.integers(0, 6, 300), rng.integers(1, 2 * WORDS, 300), strict=True)]

    def use(which, words):
        memory.MEMORY.use(keys[which], lay_out(1 + which % 3), words, lambda tables, room: done.append(room.here.size >= words))
        return which, words

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda each: use(*each), asked, timeout=120)) == asked
    assert done == [True] * 300
    assert small.n_tables_sent > 2 * sum(1 + which % 3 for which in range(6))


def test_rooms_that_are_too_small_give_way(monkeypatch):
    """Slices of another model have more features; a smaller one takes a larger room."""
    small, key = SmallCard(monkeypatch, 5 << 20), object()
    for n_words, free in ((WORDS, 2), (3 * WORDS, 0), (2 * WORDS, 0)):
        memory.MEMORY.use(key, lay_out(2), n_words, nothing)
        assert small.free == free << 20


def test_a_room_that_is_too_large_gives_way(monkeypatch):
    """To tables that fit beside a room of their own size alone."""
    small = SmallCard(monkeypatch, 5 << 20)
    for mebibytes, n_words in ((1, 4 * WORDS), (4, WORDS)):
        memory.MEMORY.use(object(), lay_out(mebibytes), n_words, nothing)
        assert small.free == 0


def test_a_kernel_that_fails_gives_its_room_back(monkeypatch):
    """The next one takes it."""
    small, key = SmallCard(monkeypatch, 3 << 20), object()

    def fail(tables, room):
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            memory.MEMORY.use(key, lay_out(2), WORDS, fail)
    memory.MEMORY.use(key, lay_out(2), WORDS, nothing)
    assert (small.free, small.n_tables_sent) == (0, 4)


def test_what_nobody_holds_is_freed_before_the_card_is_asked(monkeypatch):
    """As numba-cuda on a card has it."""
    said = []

    class Context:
        memory_manager = SimpleNamespace(deallocations=SimpleNamespace(clear=lambda: said.append("freed")))

        def get_memory_info(self):
            said.append("asked")
            return 1.0, 2.0

    monkeypatch.setattr(decorator, "SIMULATED", False)
    monkeypatch.setattr(decorator, "cuda", SimpleNamespace(current_context=Context))
    assert decorator.ask_memory() == (1.0, 2.0)
    assert said == ["freed", "asked"]
