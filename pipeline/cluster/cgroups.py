"""What Linux lets this process take of its machine: containers, pods, Slurm jobs and units of systemd are control groups with limits."""

import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

OWN = "/proc/self/cgroup"  # the groups of this process
GROUPS = "/sys/fs/cgroup"  # where all are; in a container its own group may be the first, whatever it is called outside


def find_memory() -> int | None:
    """Find how much memory the groups of this process may take together with whoever else is in them."""
    found = [read for folder in _find_groups("memory") for name in ("memory.max", "memory.limit_in_bytes") for read in _read(folder / name)[:1]]
    return min(found, default=None)


def find_cores() -> int | None:
    """Find how many cores' time the groups of this process may take."""
    found = []
    for folder in _find_groups("cpu"):
        second = _read(folder / "cpu.max"), [*_read(folder / "cpu.cfs_quota_us"), *_read(folder / "cpu.cfs_period_us")]
        found += [math.ceil(given[0] / given[1]) for given in second if len(given) == 2 and given[0] > 0 and given[1] > 0]
    return min(found, default=None)


def _find_groups(controller: str) -> Iterator[Path]:
    """Folders of this process's groups that may limit something, and of those around them: of version 2, and of version 1."""
    try:
        lines = Path(OWN).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # no Linux
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
    """The numbers in a file; none where it is not there or says that there is no limit."""
    try:
        return [int(word) for word in file.read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []
