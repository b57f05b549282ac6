"""Damaged model files by the thousand: each ends in one line of refusal or in the library's own predictions, soon and in little memory.

``python -m tests.fuzz`` tries every format; loaders and libraries run in processes of their own, since the libraries' crash and hang on such files.
"""

import argparse
import io
import multiprocessing
import os
import re
import signal
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from leafledger import attribute
from leafledger.pipeline.errors import LeafledgerError
from leafledger.pipeline.models.catboost.cityhash import HashedCategory
from leafledger.pipeline.models.model import Model
from tests.formats import FORMATS, N_FEATURES, load, make_rows, with_texts

OUR_SECONDS, SECONDS = 10.0, 2.0  # that a file may take, beside other work; a library is given less, for many hang
START_SECONDS = 600.0  # that a process may take to import its library, to compile kernels, or to answer at all
BYTES = 1 << 30  # that a loader's process may hold at the most, its imports included
RTOL = 1e-5  # of the margin's bound: XGBoost adds up in single precision
WORDS = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
NUMBERS = (b"0", b"-1", b"1", b"2", b"99999999999999999999", b"1e308", b"-0.0", b"nan", b"inf", b"1e-320", b"2147483647", b"null", b"[]", b'""')
SEED = 20_261
SEVERAL = 10  # damaged members of a zip come with one damaged zip
NUMBER = re.compile(rb"-?\d[\d.eE+-]*")


def mutate(data: bytes, draw: np.random.Generator) -> bytes:
    """One to three changes: bits, words, written numbers, and pieces doubled, cut or moved."""
    changed = bytearray(data)
    for _ in range(draw.integers(1, 4)):
        at, length = int(draw.integers(max(1, len(changed) - 4))), int(draw.integers(1, 40))
        kind = draw.integers(6)
        if kind == 0:
            changed[at] ^= 1 << int(draw.integers(8))
        elif kind == 1:
            changed[at : at + 4] = int(draw.choice(WORDS)).to_bytes(4, "little")
        elif kind == 2:
            written = NUMBER.search(changed, at)
            if written:
                changed[slice(*written.span())] = NUMBERS[draw.integers(len(NUMBERS))]
        elif kind == 3:
            changed[at : at + length] = changed[at : at + length] * 2
        elif kind == 4:
            del changed[at : at + length]
        else:
            other = int(draw.integers(max(1, len(changed) - length)))
            changed[at : at + length] = changed[other : other + length]
    return bytes(changed)


def mutate_member(data: bytes, draw: np.random.Generator) -> bytes:
    """The same of a member of a zip, whose checksums are made true."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as found, zipfile.ZipFile(out, "w") as damaged:
        chosen = draw.choice(found.namelist())
        for name in found.namelist():
            damaged.writestr(name, mutate(found.read(name), draw) if name == chosen else found.read(name))
    return out.getvalue()


def _arrange(rows: np.ndarray, model: Model) -> Any:
    """Texts where the model knows categories by their hashes, under its own names."""
    hashed = any(feature.categories and isinstance(feature.categories[0], HashedCategory) for feature in model.features)
    return with_texts(rows).set_axis([feature.name for feature in model.features], axis=1) if hashed and len(model.features) == N_FEATURES else rows


def predict_ours(data: bytes, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Margins ``(n, outputs)`` and the bound of the largest; LeafledgerError where the file is refused."""
    model = load(data)
    found, ensemble = attribute(model, _arrange(rows, model)), model.ensemble
    return found.margin, float(np.abs(ensemble.base).max() + ensemble.root.size * np.abs(ensemble.value).max(initial=0.0))


def _peak() -> int:
    """Bytes that this process held at the most."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) << 10 if found else 0


def _answer(predict: Callable[[bytes, np.ndarray], Any], data: bytes, rows: np.ndarray, refusals: type[Exception]) -> tuple[str, Any, int]:
    try:
        return "predicted", predict(data, rows), _peak()
    except Exception as error:  # a library refuses in its own way; of ours only LeafledgerError is a refusal
        return "refused" if isinstance(error, refusals) else "raised", f"{type(error).__name__}: {error}", _peak()


def _ask_a_fork(connection: Connection, predict: Callable[[bytes, np.ndarray], Any], data: bytes, rows: np.ndarray) -> None:
    """Let a copy of this process answer: libraries crash and hang so often that starting them anew would take most of the time."""
    child = os.fork()
    if not child:
        connection.send(_answer(predict, data, rows, Exception))
        os._exit(0)
    until = time.monotonic() + SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if status:
                connection.send(("crashed", None, 0))
            return
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            connection.send(("hung", None, 0))
            return
        time.sleep(0.002)


def _serve(connection: Connection, ours: bool) -> None:
    """Predict what is sent, of a format: by us, or by its library."""
    from tests.compiled_once import compile_once  # which needs filelock; the changes of files above are used where there is none

    os.environ["OMP_NUM_THREADS"] = "1"  # a copy of a process has none of its other threads, and would wait for them
    silence = os.open(os.devnull, os.O_WRONLY)  # the libraries warn of every file
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    rows = make_rows()
    compile_once()
    for name in FORMATS:
        (predict_ours if ours else FORMATS[name].predict)(_sound(name), rows)  # imports and compiles
    connection.send(("ready", None, _peak()))
    while True:
        name, data = connection.recv()
        if ours:
            connection.send(_answer(predict_ours, data, rows, LeafledgerError))
        else:
            _ask_a_fork(connection, FORMATS[name].predict, data, rows)


@cache
def _sound(name: str) -> bytes:
    return FORMATS[name].train()


class Server:
    """A process that predicts, started again whenever it dies or does not answer in time."""

    def __init__(self, ours: bool):
        self._ours = ours
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._ours), daemon=True)
        self._process.start()
        theirs.close()
        if not self._connection.poll(START_SECONDS) or self._connection.recv()[0] != "ready":
            raise RuntimeError(f"{'we' if self._ours else 'libraries'}: do not start")

    def ask(self, name: str, data: bytes, seconds: float) -> tuple[str, Any, int]:
        """What became of a file of that format, the predictions or the reason, and the most memory that was held."""
        try:
            self._connection.send((name, data))
            if self._connection.poll(seconds):
                return self._connection.recv()
            ended = "hung"
        except (EOFError, OSError):
            ended = "crashed"
        self.stop()
        self._start()
        return ended, None, 0

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()


@dataclass(slots=True)
class Outcome:
    """What became of a format's damaged files."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)  # each a way in which ours failed
    peak: int = 0


def _differ(ours: tuple[np.ndarray, float], theirs: np.ndarray) -> bool:
    margin, bound = ours
    theirs = np.asarray(theirs, float).reshape(len(margin), -1)
    with np.errstate(all="ignore"):
        return theirs.shape == margin.shape and bool((np.abs(margin - theirs) > RTOL * max(bound, 1e-30)).any())


def fuzz(name: str, mutations: int, ours: Server, theirs: Server, seed: int = SEED) -> Outcome:
    """Damage a sound file so many times, and compare what becomes of it here and in its library."""
    outcome, sound, draw = Outcome(), _sound(name), np.random.default_rng(seed)
    for i in range(mutations):
        data = (mutate_member if FORMATS[name].zipped and i % SEVERAL else mutate)(sound, draw)
        kind, found, peak = ours.ask(name, data, OUR_SECONDS)
        outcome.peak = max(outcome.peak, peak)
        if kind in ("crashed", "hung", "raised"):
            outcome.faults.append(f"mutation {i}: {kind} {found or ''}")
        elif kind == "refused":
            outcome.counts["refused"] += 1
            if "\n" in found:
                outcome.faults.append(f"mutation {i}: several lines: {found!r}")
        else:
            said, predicted, _ = theirs.ask(name, data, START_SECONDS)  # which ends what hangs
            if said == "predicted" and _differ(found, predicted):
                outcome.faults.append(f"mutation {i}: differs by {np.abs(found[0] - np.asarray(predicted).reshape(found[0].shape)).max():.3g}")
            outcome.counts["the same" if said == "predicted" else f"read, the library {said}"] += 1
    if outcome.peak > BYTES:
        outcome.faults.append(f"held {outcome.peak >> 20} MiB")
    return outcome


def _report(names: list[str], mutations: int, ours: Server, theirs: Server) -> Iterator[str]:
    for name in names:
        outcome = fuzz(name, mutations, ours, theirs)
        counts = ", ".join(f"{count} {what}" for what, count in sorted(outcome.counts.items()))
        print(f"{name}: {mutations} damaged files: {counts}; {outcome.peak >> 20} MiB at the most", flush=True)
        yield from (f"{name}: {fault}" for fault in outcome.faults)


def main() -> int:
    """Every format, and an exit code of 1 if any file was read wrongly."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Damaged model files.")
    parser.add_argument("--mutations", type=int, default=10_000, help="of each format")
    parser.add_argument("--formats", nargs="+", choices=list(FORMATS), default=list(FORMATS), metavar="FORMAT")
    given = parser.parse_args()
    ours, theirs = Server(True), Server(False)
    try:
        faults = list(_report(given.formats, given.mutations, ours, theirs))
    finally:
        ours.stop()
        theirs.stop()
    for fault in faults:
        print(fault)
    print(f"{len(faults)} crashes, hangs and differences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
