"""What numbers were measured on."""

import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from pipeline.runs.job import count_cores

PACKAGES = ("leafledger", "numpy", "numba", "pyarrow", "dask", "xgboost", "lightgbm", "catboost")


def describe_machine(packages: Iterable[str]) -> dict[str, str]:
    """Processor, cores, how busy they are, and versions, those of other ``packages`` too: without them the numbers say nothing."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": str(count_cores()),
        "load average at start": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        **{name: version(name) for name in dict.fromkeys((*PACKAGES, *packages))},
    }
