"""Limits of memory and CPU by Linux control groups, as of containers, pods, Slurm jobs and systemd units."""

import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

OWN = "/proc/self/cgroup"  # the groups of this process
GROUPS = "/sys/fs/cgroup"  # root of all groups; in a container its own group may be the root, whatever its name outside


def find_memory() -> int | None:
    """Return the memory that the process's groups may use, shared with other members."""
    found = [read for folder in _find_groups("memory") for name in ("memory.max", "memory.limit_in_bytes") for read in _read(folder / name)[:1]]
    return min(found, default=None)


def find_cores() -> int | None:
    """Return the number of cores that the process's groups may use."""
    found = []
    for folder in _find_groups("cpu"):
        second = _read(folder / "cpu.max"), [*_read(folder / "cpu.cfs_quota_us"), *_read(folder / "cpu.cfs_period_us")]
        found += [math.ceil(given[0] / given[1]) for given in second if len(given) == 2 and given[0] > 0 and given[1] > 0]
    return min(found, default=None)


def _find_groups(controller: str) -> Iterator[Path]:
    """Return the folders of the process's groups and their ancestors with limits, in versions 2 and 1."""
    try:
        lines = Path(OWN).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        top = Path(GROUPS, controller) if controllers else Path(GROUPS)
        group = PurePosixPath(path.lstrip("/"))
        for each in (group, *group.parents):
            yield top / each


def _read(file: Path) -> list[int]:
    """Read the numbers of a file; empty if it is missing or unlimited."""
    try:
        return [int(word) for word in file.read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []
