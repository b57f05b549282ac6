"""Batch explanations of tree ensembles: load a model, attribute rows in memory, explain a data set, check what was published."""

from importlib import import_module
from typing import Any

_WHERE = {
    "attribute": "attributions",
    "check_run": "check",
    "compare": "compare",
    "curves": "rankings",
    "explain": "run",
    "gradient": "rankings",
    "load_ensemble": "models",
    "prediction_gap": "gap",
    "rank_by_gap": "gap",
    "read_latest": "latest",
    "LeafledgerError": "errors",
}
__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    """Import on first use: the command line answers ``--help`` without compiling kernels."""
    if name not in _WHERE:
        raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
    return getattr(import_module(f".{_WHERE[name]}", __name__), name)
