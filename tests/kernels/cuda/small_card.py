"""A card with little memory: what is sent or allocated takes room for as long as somebody holds it, in the simulator as on a card."""

import threading
import weakref

from leafledger.kernels.cuda import memory
from leafledger.kernels.cuda.decorator import SIMULATED, cuda


class SmallCard:
    """So many bytes; nothing is left to a driver, and nothing was sent before."""

    def __init__(self, monkeypatch, n_bytes):
        self.n_bytes, self.n_tables_sent, self._held = n_bytes, 0, []
        send, allocate = cuda.to_device, cuda.device_array
        monkeypatch.setattr(memory, "MEMORY", memory.Memory())
        monkeypatch.setattr(memory, "SPARE", (0, 0))
        monkeypatch.setattr(memory, "ask_memory", lambda: (self.free, n_bytes))
        monkeypatch.setattr(cuda, "to_device", lambda *given: self._take(send(*given), True))
        monkeypatch.setattr(cuda, "device_array", lambda *given: self._take(allocate(*given), False))

    @property
    def free(self):
        """Bytes that nobody holds; views of an array hold it too."""
        return self.n_bytes - sum(n for held, n in self._held if held() is not None)

    def _take(self, array, sent):
        self.n_tables_sent += sent
        self._held.append((weakref.ref(array._ary if SIMULATED else array.gpu_data), array.nbytes))
        if self.free < 0:
            raise AssertionError("the card is overfull: more was sent than it has room for")
        return array


class Inside:
    """How many threads are at work at once, each of which waits for so many."""

    def __init__(self, at_once):
        self.most, self.done, self._now, self._lock, self._all = 0, 0, 0, threading.Lock(), threading.Barrier(at_once, timeout=60)

    def meet(self):
        """Go on when all are there."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self._all.wait()
        with self._lock:
            self._now -= 1
            self.done += 1
