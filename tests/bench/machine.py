"""What numbers were measured on."""

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from leafledger.pipeline.cluster.resources import count_cores

PACKAGES = ("leafledger", "numpy", "numba", "pyarrow", "dask", "xgboost", "lightgbm", "catboost")


def find_version(package: str) -> str | None:
    """Of an installed package; None where it is not there, as peers are not in the environment of development."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe_machine(packages: Iterable[str]) -> dict[str, str]:
    """Processor, cores, how busy they are, and versions, those of other ``packages`` too: without them the numbers say nothing."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": str(count_cores()),
        "load average at start": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        **{name: find_version(name) or "not installed" for name in dict.fromkeys((*PACKAGES, *packages))},
    }
