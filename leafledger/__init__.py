"""Batch explanations of tree ensembles: attribute rows in memory, explain a data set, compare rankings, check what was published."""

from importlib import import_module
from typing import Any

_WHERE = {
    "LeafledgerError": "pipeline.errors",
    "attribute": "pipeline.in_memory.attributions",
    "check_run": "pipeline.runs.check",
    "compare": "pipeline.comparisons.compare",
    "curves": "pipeline.in_memory.rankings",
    "explain": "pipeline.runs.stages",
    "gradient": "pipeline.in_memory.rankings",
    "load_ensemble": "pipeline.models",
    "prediction_gap": "pipeline.in_memory.prediction_gap",
    "rank_by_gap": "pipeline.in_memory.prediction_gap",
    "read_latest": "pipeline.runs.latest",
}
__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    """Import on first use: the command line answers ``--help`` without compiling kernels."""
    if name not in _WHERE:
        raise AttributeError(f"module 'leafledger' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
