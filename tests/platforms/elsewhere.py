"""``python -m tests.platforms.elsewhere SYSTEM FOLDER MODEL DATA OUT...``: attribute, explain, check and report without what Windows or macOS lacks.

No proof that it works there. What a system lacks is gone before Leafledger is imported, and of Windows's rules those are enforced, in FOLDER, that a
program written on Linux breaks most: what is open or mapped is not removed or replaced, folders are not opened, names have no colons.
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import types
import warnings
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
LACKING = {  # modules, names of ``os`` and of ``signal``
    "win32": (
        ("fcntl", "resource", "pwd", "grp", "termios", "tty"),
        ("getuid", "geteuid", "getgid", "fork", "chown", "mkfifo", "O_TMPFILE", "O_NOFOLLOW", "sched_getaffinity", "killpg", "setsid", "statvfs"),
        ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "SIGPIPE", "pthread_sigmask"),
    ),
    "darwin": ((), ("O_TMPFILE", "sched_getaffinity", "posix_fadvise"), ()),
}
LINUX = ("/proc/self/status", "/proc/cpuinfo", "/proc/self/cgroup", "/sys/fs/cgroup")  # what Leafledger reads there
OTHERS = "numpy scipy pandas pyarrow.parquet pyarrow.dataset fsspec.implementations.local distributed psutil rich.console cyclopts jinja2 numba s3fs"
BARRED = set('<>:"|?*')


def make_msvcrt() -> types.ModuleType:
    """Windows's locks by those of this system."""
    import fcntl

    def locking(file: int, mode: int, _length: int) -> None:
        try:
            fcntl.flock(file, mode)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    found = types.ModuleType("msvcrt")
    found.__dict__.update(LK_NBLCK=fcntl.LOCK_EX | fcntl.LOCK_NB, locking=locking)
    return found


class Rules:
    """An audit hook that refuses what a system would, in a folder."""

    def __init__(self, system: str, folder: str) -> None:
        self.windows, self.folder, self.refused, self._looking = system == "win32", folder, list[str](), threading.local()

    def __call__(self, event: str, arguments: tuple) -> None:
        if getattr(self._looking, "now", False):
            return
        self._looking.now = True
        try:
            self._check(event, arguments)
        finally:
            self._looking.now = False

    def _check(self, event: str, arguments: tuple) -> None:
        if event == "open" and str(arguments[0]).startswith(LINUX):
            raise FileNotFoundError(2, "not on Linux", arguments[0])
        if not self.windows or event not in ("open", "os.mkdir", "os.link", "os.rename", "os.remove"):
            return
        places = [os.fspath(each) for each in arguments[: 2 if event in ("os.link", "os.rename") else 1] if isinstance(each, (str, os.PathLike))]
        for place in filter(lambda place: place.startswith(self.folder), places):
            if BARRED & set(place):
                self._refuse(event, place, "this is no name")
            if event == "open" and os.path.isdir(place):
                self._refuse(event, place, "a folder is not opened")
            if event in ("os.remove", "os.rename") and self._is_open(place):
                self._refuse(event, place, "is open or mapped")

    def _is_open(self, place: str) -> bool:
        """Whether this process has the file open, under any of its names, or mapped."""
        if not os.path.exists(place):
            return False
        found = os.stat(place)
        for each in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                there = os.stat(f"/proc/self/fd/{each}")
                if (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino):
                    return True
        mapped = (line.split() for line in Path("/proc/self/maps").read_text().splitlines())
        return any(len(line) > 5 and line[4] == str(found.st_ino) for line in mapped)

    def _refuse(self, event: str, place: str, why: str) -> None:
        self.refused.append(f"{event} {place}: {why}")
        raise PermissionError(13, why, place)


def pretend(system: str, folder: str) -> Rules:
    """Take away what a system lacks, and import Leafledger's modules that ask for the system."""
    for name in OTHERS.split():
        import_module(name)
    modules, of_os, of_signal = LACKING[system]
    if system == "win32":
        sys.modules["msvcrt"] = make_msvcrt()
        shutil._use_fd_functions = False  # as shutil has it there
    for name in modules:
        sys.modules[name] = None
    for module, names in ((os, of_os), (signal, of_signal)):
        for name in names:
            delattr(module, name)
    before, sys.platform = sys.platform, system
    for name in ("leafledger.pipeline.stores.system.locks", "leafledger.pipeline.stores.system.files"):
        import_module(name)
    sys.platform = before  # other packages are those of this system
    tempfile._O_TMPFILE_WORKS = False  # which no other system has
    rules = Rules(system, folder)
    sys.addaudithook(rules)
    return rules


def main(system: str, folder: str, model: str, data: str, *outs: str) -> None:
    """Explain a folder into others, and into buckets."""
    rules = pretend(system, folder)
    warnings.filterwarnings("error", category=EncodingWarning, module=r"leafledger\.")
    import pandas as pd

    import leafledger
    from leafledger.pipeline.command.cli import main as command

    found = leafledger.attribute(model, pd.read_parquet(data))
    assert abs(found.phi.sum(2) + found.base - found.margin).max() < 1e-9
    for out in outs:
        places = ["--out", f"{out}/night", "--latest", f"{out}/latest.json"]
        explain = ["explain", model, data, *places, "--date", "2026-11-28", "--item-rows", "1000", "--quiet"]
        for scheduler in (["--scheduler", "serial"], ["--threads", "2"]):
            assert command([*explain, *scheduler]) == 0  # the second finds it finished
        assert command([*explain, "--threads", "2", "--method", "banzhaf", "--if-changed", "replace"]) == 0
        assert command([*explain, "--threads", "2", "--if-changed", "replace"]) == 0
        assert command(["check", f"{out}/night", "--deep", "--scheduler", "serial"]) == 0
        assert command(["report", f"{out}/night", "--scheduler", "serial"]) == 0
        assert command(["runs", out]) == 0
        assert leafledger.read_run(f"{out}/night").manifest.n_rows == len(found.phi)
        assert rules.refused == [], rules.refused


if __name__ == "__main__":
    main(*sys.argv[1:])
