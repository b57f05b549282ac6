"""A scheduler as its own command starts it, and a process of many workers at it; both are watched from outside, and ended at the end."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import distributed
import psutil

START_SECONDS = 300
END_SECONDS = 60
SCHEDULER = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file")
COMPLAINTS = (" - WARNING - ", " - ERROR - ", " - CRITICAL - ", "Event loop was unresponsive")
ROOT = Path(__file__).parents[2]


def find_peak(pid: int) -> int:
    """Bytes that a process has had in memory at most."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


@dataclass(frozen=True, slots=True)
class Watched:
    """A process, and what it has said."""

    process: psutil.Process
    log: Path

    def cpu(self) -> float:
        """Seconds of all its threads, in the kernel too."""
        times = self.process.cpu_times()
        return times.user + times.system

    def peak(self) -> int:
        """Bytes in memory at most."""
        return find_peak(self.process.pid)

    def complaints(self) -> list[str]:
        """What it logged as a warning or worse, or of a loop that was held up, without times."""
        said = [line.split(" - ", 1)[-1] for line in self.log.read_text().splitlines()]
        return [line for line in said if any(mark in line for mark in COMPLAINTS)]


@dataclass(frozen=True, slots=True)
class Simulated:
    """A cluster whose workers wait."""

    address: str
    scheduler: Watched
    farm: Watched


@contextmanager
def _start(name: str, folder: Path, *arguments: str) -> Iterator[Watched]:
    log = folder / f"{name}.log"
    with log.open("w") as file, subprocess.Popen([sys.executable, "-m", *arguments], stderr=file, stdout=file, cwd=ROOT) as process:
        try:
            yield Watched(psutil.Process(process.pid), log)
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _read_address(file: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            return json.loads(file.read_text())["address"]
        except (FileNotFoundError, json.JSONDecodeError):  # not there yet, or half of it
            time.sleep(0.05)
    raise TimeoutError(f"{file}: no scheduler has written it within {START_SECONDS} seconds")


@contextmanager
def simulate(n_workers: int, folder: Path) -> Iterator[Simulated]:
    """Start a scheduler and its workers, which are there when the block begins."""
    file = folder / "scheduler.json"
    with _start("scheduler", folder, *SCHEDULER, str(file)) as scheduler:
        address = _read_address(file)
        with _start("farm", folder, "tests.scale.farm", address, str(n_workers), str(folder)) as farm:
            with distributed.Client(address) as client:
                client.wait_for_workers(n_workers, timeout=START_SECONDS)
            yield Simulated(address, scheduler, farm)
