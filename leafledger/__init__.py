"""Exact explanations of tree ensembles: attribute rows in memory, explain a data set, compare rankings, check what was published."""

from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors read; everything is imported on first use, so that ``import leafledger`` compiles nothing
    from kernels.methods import METHODS as METHODS
    from pipeline.comparisons.compare import compare as compare
    from pipeline.drift.drift import Drift as Drift
    from pipeline.drift.drift import drift as drift
    from pipeline.errors import LeafledgerError as LeafledgerError
    from pipeline.in_memory.attribute import attribute as attribute
    from pipeline.in_memory.attributions import Attributions as Attributions
    from pipeline.in_memory.explainer import Explainer as Explainer
    from pipeline.in_memory.explainer import prepare as prepare
    from pipeline.in_memory.finished import FinishedRun as FinishedRun
    from pipeline.in_memory.finished import read_run as read_run
    from pipeline.in_memory.inspection import Inspection as Inspection
    from pipeline.in_memory.inspection import inspect_model as inspect_model
    from pipeline.in_memory.leaf_tables import leaf_tables as leaf_tables
    from pipeline.in_memory.prediction_gap import prediction_gap as prediction_gap
    from pipeline.in_memory.prediction_gap import rank_by_gap as rank_by_gap
    from pipeline.in_memory.rankings import Curves as Curves
    from pipeline.in_memory.rankings import Gradient as Gradient
    from pipeline.in_memory.rankings import curves as curves
    from pipeline.in_memory.rankings import gradient as gradient
    from pipeline.in_memory.sampling_bound import sampling_bound as sampling_bound
    from pipeline.models import load_ensemble as load_ensemble
    from pipeline.models import save_model as save_model
    from pipeline.models.model import Model as Model
    from pipeline.models.sklearn_groups import encoder_groups as encoder_groups
    from pipeline.nights.listed import ListedRun as ListedRun
    from pipeline.nights.listed import list_runs as list_runs
    from pipeline.nights.prune import Pruned as Pruned
    from pipeline.nights.prune import prune as prune
    from pipeline.report.report import WrittenReport as WrittenReport
    from pipeline.report.report import report as report
    from pipeline.runs.check import Report as Report
    from pipeline.runs.check import check_run as check_run
    from pipeline.runs.explain import explain as explain
    from pipeline.runs.latest import Latest as Latest
    from pipeline.runs.latest import read_latest as read_latest
    from pipeline.runs.plan import Plan as Plan
    from pipeline.runs.provenance import Provenance as Provenance
    from pipeline.runs.publish import Manifest as Manifest
    from pipeline.runs.publish import read_manifest as read_manifest

    __version__: str

__all__ = [
    "METHODS",
    "Attributions",
    "Curves",
    "Drift",
    "Explainer",
    "FinishedRun",
    "Gradient",
    "Inspection",
    "Latest",
    "LeafledgerError",
    "ListedRun",
    "Manifest",
    "Model",
    "Plan",
    "Provenance",
    "Pruned",
    "Report",
    "WrittenReport",
    "attribute",
    "check_run",
    "compare",
    "curves",
    "drift",
    "encoder_groups",
    "explain",
    "gradient",
    "inspect_model",
    "leaf_tables",
    "list_runs",
    "load_ensemble",
    "prediction_gap",
    "prepare",
    "prune",
    "rank_by_gap",
    "read_latest",
    "read_manifest",
    "read_run",
    "report",
    "sampling_bound",
    "save_model",
]

_HOMES = {
    "kernels.methods": ("METHODS",),
    "pipeline.comparisons.compare": ("compare",),
    "pipeline.drift.drift": ("Drift", "drift"),
    "pipeline.errors": ("LeafledgerError",),
    "pipeline.in_memory.attribute": ("attribute",),
    "pipeline.in_memory.attributions": ("Attributions",),
    "pipeline.in_memory.explainer": ("Explainer", "prepare"),
    "pipeline.in_memory.finished": ("FinishedRun", "read_run"),
    "pipeline.in_memory.inspection": ("Inspection", "inspect_model"),
    "pipeline.in_memory.leaf_tables": ("leaf_tables",),
    "pipeline.in_memory.prediction_gap": ("prediction_gap", "rank_by_gap"),
    "pipeline.in_memory.rankings": ("Curves", "Gradient", "curves", "gradient"),
    "pipeline.in_memory.sampling_bound": ("sampling_bound",),
    "pipeline.models": ("load_ensemble", "save_model"),
    "pipeline.models.model": ("Model",),
    "pipeline.models.sklearn_groups": ("encoder_groups",),
    "pipeline.report.report": ("WrittenReport", "report"),
    "pipeline.nights.listed": ("ListedRun", "list_runs"),
    "pipeline.nights.prune": ("Pruned", "prune"),
    "pipeline.runs.check": ("Report", "check_run"),
    "pipeline.runs.explain": ("explain",),
    "pipeline.runs.latest": ("Latest", "read_latest"),
    "pipeline.runs.plan": ("Plan",),
    "pipeline.runs.provenance": ("Provenance",),
    "pipeline.runs.publish": ("Manifest", "read_manifest"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def _refuse_shadowed() -> None:
    """ImportError where Python would find somebody else's ``pipeline`` or ``kernels`` in the place of ours; ours of ``flows`` is found here, too."""
    root = Path(__file__).resolve().parents[1]
    for name in ("kernels", "pipeline"):
        found, ours = find_spec(name), root / name / "__init__.py"
        if found is not None and found.origin is not None and Path(found.origin).resolve() != ours:
            raise ImportError(f"{found.origin} hides {ours}, a package of leafledger; rename it, or keep it off Python's path", name=name)


if not TYPE_CHECKING:  # or a misspelt name would pass for one of any type

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, and keep it: it is the same object at every access."""
        if name == "__version__":
            found = version("leafledger")
        elif name in _HOME_OF:
            found = getattr(import_module(_HOME_OF[name]), name)
        else:
            raise AttributeError(f"module 'leafledger' has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """The public names alone."""
    return sorted([*__all__, "__version__"])


_refuse_shadowed()
