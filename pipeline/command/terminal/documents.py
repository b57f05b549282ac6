"""JSON documents of commands with ``--json``, and their documented fields."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .terminal import open_console, say


@dataclass(frozen=True, slots=True)
class Entry:
    """A field of a document."""

    name: str
    kind: str  # JSON type: string, integer, number, boolean, array or object, or "or null"
    meaning: str


RUN = (
    Entry("run", "string", "folder of the run"),
    Entry("finished_before", "boolean", "nothing was left to do"),
    Entry("version", "string", "of leafledger that made the run"),
    Entry("place", "string", "as in the manifest: empty but for a run that took the place of another"),
    Entry("kept", "string", "in what it differs from what was asked for, where it was kept all the same"),
    Entry("n_rows", "integer", "rows explained"),
    Entry("n_parts", "integer", "objects that hold them"),
    Entry("share", "number", "of the data's rows that are explained"),
    Entry("residual", "number or null", "as in the manifest"),
    Entry("manifest", "string", "SHA-256 of manifest.json"),
    Entry("inputs", "string or null", "SHA-256 of inputs.json, with `--digest-inputs`"),
    Entry("rejected", "array", "as in rejected.json"),
    Entry("latest", "object or null", "what `--latest` names now: `date`, `run`, `manifest`, `n_rows`, `share`"),
    Entry("advisories", "array", "what is known to be wrong in its version and may concern it, in words, where it was finished before"),
    Entry("drift", "object or null", "what changed since the run of `--against`: `reference`, `alarms`, `differs`; null where nothing was compared"),
    Entry("said", "array", "lines that tell what was asked for and not done, for which the exit code is 3"),
)
SCHEMAS: dict[str, tuple[Entry, ...]] = {
    "explain": RUN,
    "explain --dates": (Entry("runs", "array", "a document of explain for every date, or one with the error that kept it from being explained"),),
    "plan": (
        Entry("run", "string", "folder of the run"),
        Entry("finished", "boolean", "nothing is left to do"),
        Entry("kept", "string", "in what it differs from what was asked for, where it would be kept all the same"),
        Entry("replaces", "string or null", "in what the run differs whose place it would take; empty of the same one, which is made anew"),
        Entry("model", "string", "URI, of a model in MLflow with its version"),
        Entry("model_digest", "string", "SHA-256 of the model's file"),
        Entry("library", "string", "that the model is of"),
        Entry("n_features", "integer", "of the model"),
        Entry("outputs", "array", "their names"),
        Entry("method", "string", ""),
        Entry("parameters", "object", "of the method"),
        Entry("space", "string", "units of attributions"),
        Entry("n_rows", "integer", "of the data"),
        Entry("n_files", "integer", "of the data"),
        Entry("n_items", "integer", "pieces of work, a part each"),
        Entry("where", "string", "in this process, on so many threads, on a local cluster of so many workers, or on the scheduler at an address"),
        Entry("slice_rows", "integer", "rows that a thread holds at a time"),
        Entry("memory", "integer", "bytes that a worker with one thread needs at most"),
        Entry("memory_allowed", "integer", "bytes that this process, or a worker, may take"),
        Entry("rejected", "array", "files that cannot be listed, as in rejected.json"),
        Entry(
            "forecast",
            "object or null",
            "what the run will take, with `--forecast` and if it is not finished: `seconds`, `cpu_seconds`, `workers`, `memory` of all processes, "
            "`read_bytes`, `written_bytes`, `objects`; `stages`, seconds of each; `row`, seconds of a thread that a row takes; `tried_rows` and "
            "`tried_seconds`, on how many rows and in what time that was measured",
        ),
    ),
    "compare": (
        Entry("measures", "string", "URI of the measures"),
        Entry("features", "string", "URI of the differences by feature"),
        Entry("rows", "string", "URI of the rows that differ most"),
        Entry("table", "array", "the measures, an object a row"),
    ),
    "check": (
        Entry("run", "string", "folder of the run"),
        Entry("sound", "boolean", "all that was asked for was verified"),
        Entry("manifest", "string", "SHA-256 of manifest.json"),
        Entry("parts", "integer", ""),
        Entry("n_rows", "integer", "rows explained"),
        Entry("n_rejected", "integer", "pieces of the data that were rejected"),
        Entry("residual", "number or null", "largest of any row, as a fraction of the bound"),
        Entry("total", "string", "what attributions and base value add up to"),
        Entry("as_stored", "boolean", "the residual is that of the stored numbers, not of those computed"),
        Entry("n_again", "integer", "rows explained again"),
        Entry("n_digested", "integer", "input files that have the SHA-256 that they had"),
        Entry("unverified", "array", "what could not be done again, and why"),
        Entry("left", "array", "what lies in the folder besides the run, where a replacement was interrupted or is under way"),
        Entry("advisories", "array", "what is known to be wrong in its version and may concern it, in words"),
        Entry("kept", "string or null", "what is kept of the run that it replaced, in words"),
        Entry("n_forgotten", "integer", "rows that were taken out since, with which the summaries were computed"),
    ),
    "show": (
        Entry("run", "string", "folder of the run"),
        Entry("manifest", "string", "SHA-256 of manifest.json"),
        Entry("method", "string", ""),
        Entry("n_found", "integer", "rows that match"),
        Entry("rows", "array", "those that are shown, with `ids`, `outputs`, and where each is in the data"),
        Entry("verified", "boolean or null", "explained again, they are the same, with `--verify`; false where that could not be done"),
    ),
    "show of a folder of runs": (
        Entry("folder", "string", "that was searched"),
        Entry("n_searched", "integer", "finished runs that were searched"),
        Entry("n_found", "integer", "rows that match, of all runs"),
        Entry("runs", "array", "a document of show for every run that has such rows, with its `name` below the folder"),
        Entry("not_searched", "array", "`name` and `why` of runs that are unfinished or unreadable, or have no such column"),
        Entry("verified", "boolean or null", "as of show, of all runs"),
    ),
    "drift": (
        Entry("run", "string", "folder of the run"),
        Entry("manifest", "string", "SHA-256 of its manifest.json"),
        Entry("n_rows", "integer", "its rows"),
        Entry("reference", "string", "folder of the run that it is compared with"),
        Entry("reference_manifest", "string", "SHA-256 of its manifest.json"),
        Entry("reference_n_rows", "integer", "its rows"),
        Entry("space", "string", "units of attributions"),
        Entry("thresholds", "object", "what counts as drift"),
        Entry("differs", "array", "what differs besides the rows, in words"),
        Entry("outputs", "array", "of every output, what the change of the mean is made of"),
        Entry("parts", "array", "what the data did and what the model did, with `--both-ways`"),
        Entry("shifts", "array", "an object for every column"),
        Entry("by", "array", "columns that make groups of rows, with `--by`"),
        Entry("groups", "array", "an object for every group, with `outputs` and `shifts` of its own"),
        Entry("mix", "array", "of every output, what comes of the mix of groups and what of the groups themselves"),
        Entry("alike", "boolean", "both runs have one model and one background, so that base values of losses differ by labels alone"),
        Entry("total", "string", "what attributions add up to, in words: margin, prediction or loss"),
        Entry("alarms", "array", "where a threshold is crossed, in words"),
        Entry("worse", "array", "what made the predictions worse, or better, in a sentence; of losses only"),
    ),
    "report": (
        Entry("run", "string", "folder of the run"),
        Entry("page", "string", "URI of the page"),
        Entry("size", "integer", "its bytes"),
    ),
    "reasons": (
        Entry("n_rows", "integer", "rows that were taken"),
        Entry("n_without", "integer", "those that have no reason"),
        Entry("csv", "string or null", "URI of the table"),
        Entry("letters", "string or null", "URI of the folder of letters"),
    ),
    "effects": (
        Entry("out", "string", "folder of tables and pictures"),
        Entry("n_rows", "integer", "of the background"),
        Entry("objects", "array", "names of what lies there, besides effects.json, which has their SHA-256"),
        Entry("notes", "array", "which curves are flat, and which pairs never meet, in words"),
        Entry("found", "boolean", "the same effects were there already"),
    ),
    "inspect": (
        Entry("library", "string", "that the model is of"),
        Entry("digest", "string", "SHA-256 of the model's file"),
        Entry("objective", "string", "what it was trained for"),
        Entry("margin", "string", "what a margin is"),
        Entry("outputs", "array", "their names"),
        Entry("base", "array", "margins before any tree"),
        Entry("single_precision", "boolean", "values are rounded to single precision before they are compared"),
        Entry("missing", "number or null", "that stands for missing values besides null and NaN, where the model says one"),
        Entry("n_trees", "integer", ""),
        Entry("n_leaves", "integer", ""),
        Entry("leaves", "object", "of a tree: `mean` and `most`"),
        Entry("depth", "object", "of a tree"),
        Entry("distinct_features", "object", "of a tree"),
        Entry("features", "array", "an object for each"),
        Entry("statistics", "object or null", "CatBoost's"),
        Entry("refused", "array", "what cannot be had, and why"),
        Entry("costs", "array", "of the methods that were asked for"),
    ),
    "runs": (
        Entry("folder", "string", "that was listed"),
        Entry("runs", "array", "an object for each, by date, with the fields of `leafledger.list_runs`"),
    ),
    "forget": (
        Entry("folder", "string", "whose runs were searched"),
        Entry("column", "string", "id column that the person is found by"),
        Entry("value", "string", "in it"),
        Entry("dry_run", "boolean", "nothing was changed"),
        Entry("n_runs", "integer", "finished runs that were searched"),
        Entry("n_rows", "integer", "rows that are gone, or would go"),
        Entry("runs", "array", "`name`, `n_rows`, `n_parts` and `of_parts` of every run that held such rows"),
        Entry("untouched", "array", "`name` and `why` of runs that could not be searched or changed"),
        Entry("pages", "array", "pages of such rows that were removed, or would be"),
        Entry("kept", "array", "kept runs, which others replaced, with such rows or beside a run that changes: removed whole, or would be"),
        Entry("pointers", "array", "objects that name the latest run, and name it by its new manifest now"),
        Entry("n_objects", "integer", "objects that were searched at the end"),
        Entry("holding", "array", "`uri` and `what` of those that hold the value; of a dry run all that do now"),
        Entry(
            "older",
            "array",
            "of every table its older `versions` that name other files, how many are `gone`, which are `holding`, `expire`",
        ),
        Entry("proved", "boolean", "all runs were searched, and nothing holds the value"),
    ),
    "rollback": (
        Entry("run", "string", "folder of the run"),
        Entry("finished_before", "boolean", "it was put back by a command that was interrupted, and what that left to do is done"),
        Entry("n_rows", "integer", "its rows"),
        Entry("manifest", "string", "SHA-256 of its manifest.json"),
        Entry("replaced", "string", "SHA-256 of the manifest.json that it replaced, or its first digits"),
        Entry("pointers", "array", "objects that name the latest run, and name it by its new manifest now"),
    ),
    "prune": (
        Entry("folder", "string", ""),
        Entry("before", "string", "YYYY-MM-DD: runs of earlier days are old"),
        Entry("dry_run", "boolean", "nothing was removed"),
        Entry("removed", "array", "runs, as of runs"),
        Entry("kept", "array", "`run` and `why`, of those that are old or have no day"),
        Entry("held", "array", "names of those that could not be taken out of their table"),
    ),
    "certificates": (
        Entry("folder", "string", ""),
        Entry("hosts", "array", "names and addresses that they are made out to"),
        Entry("expires", "string", "when they do, in UTC"),
        Entry("files", "array", "names in the folder"),
    ),
    "warm": (
        Entry("cpu", "string", "processor that kernels are compiled for, as LLVM calls it"),
        Entry("folder", "string or null", "where they are kept; null where no folder can be written, and then nothing is compiled"),
        Entry("methods", "array", "names"),
        Entry("compiled", "integer", "functions that were not there"),
        Entry("seconds", "number", "that it took"),
    ),
    "deploy": (
        Entry("deployment", "string", "its name after that of the flow"),
        Entry("entrypoint", "string", "of the flow"),
        Entry("pool", "string", "name of the work pool"),
        Entry("schedules", "array", "an object for each: `cron`, `timezone`, `slug`"),
        Entry("parameters", "object", "of the flow, those that are not as by default"),
        Entry("id", "string or null", "of the deployment on the server, with `--apply`"),
    ),
    "config": (
        Entry("command", "string", "whose options they are"),
        Entry("settings", "array", "an object for every option: `option`, `value`, `source`"),
    ),
    "any, with an error": (Entry("error", "object", "`type`, the error's name; `exit_code`; `message`, its line"),),
}


def _strict(value: Any) -> Any:
    """Convert NaN to null, and infinities to text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): _strict(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_strict(each) for each in value]
    return value


def write_document(document: Mapping[str, Any]) -> None:
    """Write a document on standard output.

    Parameters
    ----------
    document : mapping of str to Any
        Numbers that are not finite become null, or a text where they are infinite; what else JSON does not have, such as a date, becomes its text.
    """
    say(open_console(), json.dumps(_strict(document), allow_nan=False, default=str))


def error_document(kind: str, exit_code: int, message: str) -> dict[str, Any]:
    """Make the document of an error."""
    return {"error": {"type": kind, "exit_code": int(exit_code), "message": message}}


def write_error(kind: str, exit_code: int, message: str) -> None:
    """Write the document of an error.

    Parameters
    ----------
    kind : str
        Name of the error.
    exit_code : int
    message : str
        Its line.
    """
    write_document(error_document(kind, exit_code, message))
