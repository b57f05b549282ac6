"""Settings of the whole suite."""

import gc
import os
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

# Libraries that train and predict here would start as many threads as there are processors in each of many processes, and threads of OpenMP spin
# while they wait for one that has no processor: twice the time. Each library asks when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "1")  # threads play a card, unless it is 0, where there is one; Numba asks when it is imported

from numba import config

from leafledger.kernels.trees import binning

gc.disable()  # until all tests are found: it takes as long to look through what stays as to import it

if config.DISABLE_JIT:
    # Buffers are padded to whole batches, and every row of them costs where kernels are plain Python. All other modules of kernels are imported after
    # this one, and take the number from there; it is the smallest that the ranker's walks can do with.
    binning.BATCH = 64

if "PYTEST_XDIST_WORKER" in os.environ:
    from tests.compiled_once import compile_once

    compile_once()

# Shells let what runs in the background ignore SIGINT, and so do all that it starts: a Prefect worker, which ends by sending itself one, never would.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Runs wait for a disk until it has what they write, thirty times each: half of their time here. Tests' files lie in memory where there is room for
# them, and where scripts may run that lie there.
MEMORY = Path("/dev/shm")
ROOM = 4 << 30  # bytes
if MEMORY.is_dir() and (memory := os.statvfs(MEMORY)).f_bavail * memory.f_frsize >= ROOM and not memory.f_flag & os.ST_NOEXEC:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# Kernels compile on first use, so no example has a deadline; the drawn forests are large.
settings.register_profile("compiled", deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
# `make faults` and what else is asked for with --long draw more than what one waits for.
settings.register_profile("long", parent=settings.get_profile("compiled"), max_examples=200)
# Kernels as plain Python are slow, and their coverage must not depend on what is drawn.
settings.register_profile("interpreted", parent=settings.get_profile("compiled"), max_examples=20, derandomize=True)
# Lines and branches are all reached by few examples; that what kernels compute is right, others show.
settings.register_profile("covered", parent=settings.get_profile("interpreted"), max_examples=5)
# An index that is out of bounds is so on nearly every forest; what is right, `make test` checks on more of them.
settings.register_profile("checked", parent=settings.get_profile("compiled"), max_examples=20)
PROFILE = "interpreted" if config.DISABLE_JIT else "checked" if config.BOUNDSCHECK else "compiled"
# One example that fails is enough for tests.mutants, and it need not be small; nor may it be tried again with the next change.
settings.register_profile("mutants", parent=settings.get_profile(PROFILE), phases=(Phase.explicit, Phase.generate), database=None)
# What one runs while working: a mistake of a kernel shows on nearly every forest.
settings.register_profile("quick", parent=settings.get_profile(PROFILE), max_examples=4)
settings.load_profile(PROFILE)

TESTS = Path(__file__).parent
# Files are begun in an order that keeps the processors busy: first what takes longest, and mostly waits; what waits else, spread over the first of
# the others; and none late that takes long.
FIRST = ("flows/", "pipeline/report/test_in_chromium.py", "docs/")
WAITING, SPREAD = "faults/", 0.4
HEAVY = (
    "golden/",
    "papers/test_main.py",
    "pipeline/runs/publish/",
    "platforms/",
    "test_forged.py",
    "test_fuzz.py",
    "test_mutants.py",
    "test_tampering.py",
)
SLOW_FOLDERS = ("faults", "flows", "papers", "scale", "variants", "beside", "bench", "docs", "infra")  # servers, clusters, whole pages


def pytest_addoption(parser):
    parser.addoption(
        "--long", action="store_true", help="all faults and many seeds, and a week of nights, not only what takes seconds; implies --radosgw"
    )
    parser.addoption("--quick", action="store_true", help="no slow tests, and the middle case of each of the others")


def pytest_configure(config):
    config.addinivalue_line("markers", "again: takes long as plain Python, and runs no line that others do not: `make coverage` leaves it out")
    config.addinivalue_line("markers", "long: takes minutes, runs with --long alone")
    config.addinivalue_line("markers", "more: what `make test` holds on fewer cases, left to `make test-more`")
    config.addinivalue_line("markers", "slow: takes a fifth of a second of CPU or more, does not run with --quick")
    if config.getoption("--quick") or config.getoption("--long"):
        settings.load_profile("quick" if config.getoption("--quick") else "long")


def pytest_ignore_collect(collection_path, config):
    """With --quick, slow folders are not even imported; None leaves the choice to others."""
    inside = collection_path.is_relative_to(TESTS) and collection_path != TESTS
    return True if config.getoption("--quick") and inside and collection_path.relative_to(TESTS).parts[0] in SLOW_FOLDERS else None


def keep_quick(config, items):
    """Leave out slow tests and what `make test` leaves out, and of every other all cases but the middle one: the first is often trivial."""
    cases = {}
    for item in items:
        if not any(map(item.get_closest_marker, ("slow", "more", "long"))):
            cases.setdefault((item.path, item.originalname), []).append(item)
    chosen = {each[len(each) // 2] for each in cases.values()}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def name_file(item):
    return item.path.relative_to(TESTS).as_posix()


def order_files(names):
    """The place of each file."""
    names = list(dict.fromkeys(names))
    first = [name for each in FIRST for name in names if name.startswith(each)]
    waiting = [name for name in names if name.startswith(WAITING)]
    others = sorted((name for name in names if name not in {*first, *waiting}), key=lambda name: not name.startswith(HEAVY))
    spread = {name: SPREAD * len(others) * k / len(waiting) for k, name in enumerate(waiting)}
    return spread | {name: k for k, name in enumerate(others)} | {name: k - len(first) for k, name in enumerate(first)}


def pytest_collection_finish():
    """What tests make is looked through for garbage, what was there before them never; and a fourteenth as often as Python does by itself."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """In a fresh clone each of pytest's processes begins with other tests, and finds compiled what others have imported meanwhile."""
    report = yield
    if isinstance(collector, pytest.Directory) and (worker := getattr(collector.config, "workerinput", None)):
        first = len(report.result) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        report.result = report.result[first:] + report.result[:first]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    items.sort(key=name_file)  # as all processes find them
    yield
    if config.getoption("--quick"):
        keep_quick(config, items)
    place = order_files([name_file(item) for item in items])
    items.sort(key=lambda item: place[name_file(item)])
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                # with many seeds; a few of each kind of fault run always
                item.add_marker(pytest.mark.skip(reason="takes minutes: make faults"))


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's
def pytest_xdist_make_scheduler(config, log):
    """A file of tests is one process's, and so is a folder whose files share a server."""
    from xdist.scheduler import LoadFileScheduling

    class Folders(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            folder = "/".join(file.split("/")[:2])
            return folder if folder == "tests/flows" else file

    return Folders(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def one_in(request):
    """``one_in(n)``: the stride of a test that is killed at every step; 1 with --long, so that `make faults` leaves out none."""
    return lambda n: 1 if request.config.getoption("--long") else n


@pytest.fixture(autouse=True)
def _float32_overflow_is_meant():
    """A value beyond float32 is infinite to a library that compares float32; NumPy warns of it where kernels run uncompiled."""
    with np.errstate(over="ignore", invalid="ignore"):
        yield
