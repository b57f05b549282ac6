"""Rankings to compare, as requested: methods with parameters, or earlier runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leafledger.kernels.method.open_parameters import find_open
from leafledger.kernels.methods import METHODS

from ..arguments.choices import MARGIN
from ..dataset.files.listing import Listing, WorkItem, make_items
from ..dataset.files.matching import ExtraColumns
from ..display.text import count
from ..errors import NotFinished, UsageError
from ..methods.parameters import read_entry
from ..methods.worker_memory import ITEM_ROWS
from ..models.model import Model
from ..models.row_output import RowOutput
from ..runs.formats.numbers import refuse_version
from ..runs.plan.existing_run import ExistingRun, read_existing_run
from ..runs.records.plan import Plan
from ..stores.uris import normalise

RUN = "run:"  # prefix of an earlier run


@dataclass(frozen=True, slots=True)
class Entry:
    """A requested ranking: a method with parameters, or an earlier run."""

    name: str
    method: str  # empty for a run
    parameters: dict[str, Any]
    run: str | None


def parse_entry(text: str) -> Entry:
    """Parse the text of a ranking."""
    if text.startswith(RUN):
        return Entry(text, "", {}, normalise(text[len(RUN) :]))
    method, parameters = read_entry(text)
    if find_open(method, parameters):
        raise UsageError(f"{text!r}: leaves a parameter open, which explain and attribute choose; give the number that they chose")
    if method.labelled:
        raise UsageError(f"{text!r} shares out an error, not a margin; expected a method that needs no labels")
    return Entry(text, method.name, parameters, None)


def read_run(run: str, model: Model, row_output: RowOutput | None = None) -> ExistingRun:
    """Read the plan of a finished run."""
    standing = read_existing_run(run)
    if standing is None or standing.manifest is None:
        raise NotFinished(f"{run}: not a finished run")
    rejected, plan = standing.manifest.rejected, standing.plan
    if rejected:
        raise UsageError(f"{run}: lacks rows that it had to reject ({rejected[0].reason})")
    if standing.manifest.forgotten:
        raise UsageError(f"{run}: lacks {count(standing.manifest.n_forgotten, 'row')} that were forgotten; expected attributions of every row")
    if METHODS[plan.method].labelled or plan.global_only or plan.space != MARGIN:
        shared = "an error" if plan.space == MARGIN else "predictions"
        what = "has summaries and no rows" if plan.global_only else f"shares out {shared}, not a margin"
        raise UsageError(f"{run}: {what}; expected attributions of every row")
    if not plan.wide:
        raise UsageError(f"{run}: has the largest attributions of a row alone; expected a column for every feature")
    missing = sorted({feature.name for feature in model.features} - set(plan.players))
    if missing or (plan.outputs, plan.row_output) != (model.outputs, row_output):
        what = f"has no values of feature {missing[0]!r}" if missing else f"has outputs {', '.join(plan.written_outputs)}"
        raise UsageError(f"{run}: {what}; expected those of the model's features and outputs")
    taken = {feature.name: feature.missing for feature in plan.features}
    otherwise = [feature for feature in model.features if taken.get(feature.name, feature.missing) != feature.missing]
    if otherwise:
        name, here = otherwise[0].name, otherwise[0].missing
        raise UsageError(f"{run}: {_say_missing(taken[name])} stands for a missing value of feature {name!r}, expected {_say_missing(here)}, as here")
    return standing


def _say_missing(number: float | None) -> str:
    return "no number" if number is None else f"{number:g}"


def _pieces(items: Sequence[WorkItem]) -> set[tuple[str, str, int]]:
    return {(piece.uri, piece.etag, group) for item in items for piece in item.pieces for group in piece.row_groups}


def asked_by(plan: Plan) -> ExtraColumns:
    """Collect a run's columns besides the features, which its files were matched with."""
    numbers = () if plan.labels is None else plan.labels.numbers
    return ExtraColumns(plan.ids, (*numbers, *plan.predictions), tuple(column.name for column in plan.by), plan.values)


def choose_items(list_files: Callable[[ExtraColumns], Listing], asked: ExtraColumns, plans: dict[str, Plan]) -> tuple[WorkItem, ...]:
    """Choose work items: those of earlier runs, if compared, since parts are read alongside."""
    items = make_items(list_files(asked), ITEM_ROWS)
    for n_before, (run, plan) in enumerate(plans.items()):
        if plan.format_version == 1:
            raise refuse_version(run, plan.version, "what it says of its files does not tell whether they have changed since")
        if _pieces(plan.items) != _pieces(make_items(list_files(asked_by(plan)), ITEM_ROWS)):
            raise UsageError(f"{run}: is about other rows, or they have changed since")
        if n_before and plan.items != items:
            raise UsageError(f"{run}: has its rows in other parts than the run before it")
        items = plan.items
    return items
