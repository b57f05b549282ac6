"""Exact explanations of tree ensembles: attribute rows in memory, explain a data set, compare rankings, check what was published."""

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors read; everything is imported on first use, so that ``import leafledger`` compiles nothing
    import leafledger.duckdb
    import leafledger.mlflow
    import leafledger.spark  # noqa: F401 - modules that others complete
    from leafledger.kernels.methods import METHODS
    from leafledger.pipeline.comparisons.compare import compare
    from leafledger.pipeline.drift.drift import Drift, drift
    from leafledger.pipeline.effects.check import EffectsReport, check_effects
    from leafledger.pipeline.effects.effects import effects
    from leafledger.pipeline.effects.feature_effects import FeatureEffects, feature_effects
    from leafledger.pipeline.effects.partial_dependence import PartialDependence, partial_dependence
    from leafledger.pipeline.errors import (
        AdditivityBreach,
        ClusterLost,
        InvalidColumn,
        InvalidData,
        InvalidLabel,
        InvalidModel,
        InvalidRun,
        LeafledgerError,
        NoSuchRow,
        NotAFile,
        NotFinished,
        NotRepeatable,
        NotThere,
        OtherVersion,
        PredictionMismatch,
        RunConflict,
        SchemaMismatch,
        StorageError,
        UnfitCluster,
        UnknownStore,
        UnlikeRuns,
        UnsupportedModel,
        UnusablePlace,
        UsageError,
        WorkersDied,
    )
    from leafledger.pipeline.explain import explain
    from leafledger.pipeline.finished.finished_run import FinishedRun, read_run
    from leafledger.pipeline.finished.given_reasons import WrittenReasons, write_reasons
    from leafledger.pipeline.finished.rows_of_runs import FoundInRuns, find_in_runs
    from leafledger.pipeline.forgetting.forget import ForgottenRows, forget
    from leafledger.pipeline.history.listed_runs import ListedRun, list_runs
    from leafledger.pipeline.history.prune import Pruned, prune
    from leafledger.pipeline.history.rollback import RolledBack, rollback
    from leafledger.pipeline.in_memory.changes.nearest_changes import NearestChanges, nearest_changes
    from leafledger.pipeline.in_memory.explain.attribute import attribute
    from leafledger.pipeline.in_memory.explain.attributions import Attributions
    from leafledger.pipeline.in_memory.explain.explainer import Explainer, prepare
    from leafledger.pipeline.in_memory.explain.loaded import load_attributions
    from leafledger.pipeline.in_memory.inspect.inspection import Inspection, inspect_model
    from leafledger.pipeline.in_memory.inspect.leaf_tables import leaf_tables
    from leafledger.pipeline.in_memory.inspect.sampling_bound import sampling_bound, sampling_rows
    from leafledger.pipeline.in_memory.pictures.picture import Picture
    from leafledger.pipeline.in_memory.pictures.plots import Plots
    from leafledger.pipeline.in_memory.rankings.curves import Curves, coalition_values, curves
    from leafledger.pipeline.in_memory.rankings.explained_share import ExplainedShare, explained_share
    from leafledger.pipeline.in_memory.rankings.gradient import Gradient, gradient
    from leafledger.pipeline.in_memory.rankings.prediction_gap import prediction_gap, rank_by_gap
    from leafledger.pipeline.models import load_ensemble, save_model
    from leafledger.pipeline.models.model import Model
    from leafledger.pipeline.models.sklearn.encoder_groups import encoder_groups
    from leafledger.pipeline.report.report import WrittenReport, report
    from leafledger.pipeline.runs.check.check import Report, check_run
    from leafledger.pipeline.runs.records.latest import Latest, read_latest
    from leafledger.pipeline.runs.records.manifest import Manifest, read_manifest
    from leafledger.pipeline.runs.records.plan import Plan
    from leafledger.pipeline.runs.records.provenance import Provenance

    __version__: str

__all__ = [
    "METHODS",
    "AdditivityBreach",
    "Attributions",
    "ClusterLost",
    "Curves",
    "Drift",
    "EffectsReport",
    "ExplainedShare",
    "Explainer",
    "FeatureEffects",
    "FinishedRun",
    "ForgottenRows",
    "FoundInRuns",
    "Gradient",
    "Inspection",
    "InvalidColumn",
    "InvalidData",
    "InvalidLabel",
    "InvalidModel",
    "InvalidRun",
    "Latest",
    "LeafledgerError",
    "ListedRun",
    "Manifest",
    "Model",
    "NearestChanges",
    "NoSuchRow",
    "NotAFile",
    "NotFinished",
    "NotRepeatable",
    "NotThere",
    "OtherVersion",
    "PartialDependence",
    "Picture",
    "Plan",
    "Plots",
    "PredictionMismatch",
    "Provenance",
    "Pruned",
    "Report",
    "RolledBack",
    "RunConflict",
    "SchemaMismatch",
    "StorageError",
    "UnfitCluster",
    "UnknownStore",
    "UnlikeRuns",
    "UnsupportedModel",
    "UnusablePlace",
    "UsageError",
    "WorkersDied",
    "WrittenReasons",
    "WrittenReport",
    "attribute",
    "check_effects",
    "check_run",
    "coalition_values",
    "compare",
    "curves",
    "drift",
    "effects",
    "encoder_groups",
    "explain",
    "explained_share",
    "feature_effects",
    "find_in_runs",
    "forget",
    "gradient",
    "inspect_model",
    "leaf_tables",
    "list_runs",
    "load_attributions",
    "load_ensemble",
    "nearest_changes",
    "partial_dependence",
    "prediction_gap",
    "prepare",
    "prune",
    "rank_by_gap",
    "read_latest",
    "read_manifest",
    "read_run",
    "report",
    "rollback",
    "sampling_bound",
    "sampling_rows",
    "save_model",
    "write_reasons",
]

_HOMES = {
    "leafledger.kernels.methods": ("METHODS",),
    "leafledger.pipeline.comparisons.compare": ("compare",),
    "leafledger.pipeline.drift.drift": ("Drift", "drift"),
    "leafledger.pipeline.effects.check": ("EffectsReport", "check_effects"),
    "leafledger.pipeline.effects.effects": ("effects",),
    "leafledger.pipeline.effects.feature_effects": ("FeatureEffects", "feature_effects"),
    "leafledger.pipeline.effects.partial_dependence": ("PartialDependence", "partial_dependence"),
    "leafledger.pipeline.errors": (
        "AdditivityBreach",
        "ClusterLost",
        "InvalidColumn",
        "InvalidData",
        "InvalidLabel",
        "InvalidModel",
        "InvalidRun",
        "LeafledgerError",
        "NoSuchRow",
        "NotAFile",
        "NotFinished",
        "NotRepeatable",
        "NotThere",
        "OtherVersion",
        "PredictionMismatch",
        "RunConflict",
        "SchemaMismatch",
        "StorageError",
        "UnfitCluster",
        "UnknownStore",
        "UnlikeRuns",
        "UnsupportedModel",
        "UnusablePlace",
        "UsageError",
        "WorkersDied",
    ),
    "leafledger.pipeline.explain": ("explain",),
    "leafledger.pipeline.in_memory.changes.nearest_changes": ("NearestChanges", "nearest_changes"),
    "leafledger.pipeline.in_memory.explain.attribute": ("attribute",),
    "leafledger.pipeline.in_memory.explain.attributions": ("Attributions",),
    "leafledger.pipeline.in_memory.explain.explainer": ("Explainer", "prepare"),
    "leafledger.pipeline.in_memory.explain.loaded": ("load_attributions",),
    "leafledger.pipeline.in_memory.pictures.picture": ("Picture",),
    "leafledger.pipeline.in_memory.pictures.plots": ("Plots",),
    "leafledger.pipeline.finished.finished_run": ("FinishedRun", "read_run"),
    "leafledger.pipeline.finished.given_reasons": ("WrittenReasons", "write_reasons"),
    "leafledger.pipeline.in_memory.inspect.inspection": ("Inspection", "inspect_model"),
    "leafledger.pipeline.in_memory.inspect.leaf_tables": ("leaf_tables",),
    "leafledger.pipeline.forgetting.forget": ("ForgottenRows", "forget"),
    "leafledger.pipeline.finished.rows_of_runs": ("FoundInRuns", "find_in_runs"),
    "leafledger.pipeline.in_memory.rankings.prediction_gap": ("prediction_gap", "rank_by_gap"),
    "leafledger.pipeline.in_memory.rankings.curves": ("Curves", "coalition_values", "curves"),
    "leafledger.pipeline.in_memory.rankings.explained_share": ("ExplainedShare", "explained_share"),
    "leafledger.pipeline.in_memory.rankings.gradient": ("Gradient", "gradient"),
    "leafledger.pipeline.in_memory.inspect.sampling_bound": ("sampling_bound", "sampling_rows"),
    "leafledger.pipeline.models": ("load_ensemble", "save_model"),
    "leafledger.pipeline.models.model": ("Model",),
    "leafledger.pipeline.models.sklearn.encoder_groups": ("encoder_groups",),
    "leafledger.pipeline.report.report": ("WrittenReport", "report"),
    "leafledger.pipeline.history.listed_runs": ("ListedRun", "list_runs"),
    "leafledger.pipeline.history.rollback": ("RolledBack", "rollback"),
    "leafledger.pipeline.history.prune": ("Pruned", "prune"),
    "leafledger.pipeline.runs.check.check": ("Report", "check_run"),
    "leafledger.pipeline.runs.records.latest": ("Latest", "read_latest"),
    "leafledger.pipeline.runs.records.plan": ("Plan",),
    "leafledger.pipeline.runs.records.provenance": ("Provenance",),
    "leafledger.pipeline.runs.records.manifest": ("Manifest", "read_manifest"),
}
_DOORS = ("duckdb", "mlflow", "spark")  # modules for other systems; not in __all__, or they would stand for those systems' own
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # or a misspelt name would pass for one of any type

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, and keep it: it is the same object at every access."""
        if name == "__version__":
            found = import_module("importlib.metadata").version("leafledger")
        elif name in _HOME_OF:
            found = getattr(import_module(_HOME_OF[name]), name)
            if isinstance(found, FunctionType):
                found.__module__ = __name__  # what help and pickles say; a class is found by its source, which is where it is
        elif name in _DOORS:
            found = import_module(f"leafledger.{name}")
        else:
            raise AttributeError(f"module 'leafledger' has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """The public names alone."""
    return sorted([*__all__, "__version__"])
