"""What will be done: one record from which the output follows, what a worker needs of memory, and the text of plan.json."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.inputs import INPUTS
from kernels.links import Link
from kernels.lots import BACKGROUND_ERRORS, LOTS
from kernels.method import Check
from kernels.methods import METHODS
from kernels.summaries import INTERACTIONS, Summary, list_grouped
from kernels.trees.binning import padded

from ..dataset import schema
from ..dataset.grouping import GroupColumn, make_group_columns
from ..dataset.labels import LabelColumns
from ..dataset.listing import Listing, Rejected, WorkItem, make_items
from ..dataset.partition import Groups
from ..dataset.players import combination_names
from ..dataset.row_groups import READ_BYTES
from ..display import as_html, count
from ..models.model import Feature, Model
from ..models.row_output import OUTPUT, RowOutput
from ..records import as_text, digest_text
from . import told
from .interactions import count_kept
from .job import Job
from .options import OWN, Precision, Space
from .prepare import player_names
from .reasons import Reasons
from .reasons_file import plan_reasons
from .sizes import CHUNK_BYTES, ENTRY_BYTES, Extent, Memory, max_group_rows, max_item_rows, max_slice_rows
from .space import TOTALS, choose_link
from .top import TOP, Top, read_top

PLAN = "plan.json"
LABEL = "label"  # column of labels
STATE_BYTES = 272  # of a player and output in states of summaries: as they are, as they were before a slice, as bytes, as text, and in the footer
LABEL_BYTES = 128  # of a row's label, weight and group, as read and as laid out, and what comes of them
REASON_LEAVES = 7  # columns that a list of reasons is made of
CHANGED = {
    "features": "features",
    "groups": "groups",
    "background_digest": "the background's files",
    "reasons": "reasons",
    "rejected": "the files that cannot be read",
}  # of what differs but is not shown


@dataclass(frozen=True)
class Plan:
    """A run before it runs: everything that decides its output, and nothing else. Names of columns, which may be many, are made once."""

    version: str
    model: str  # its file, or what MLflow calls it, by its version
    model_digest: str  # of the file
    method: str
    parameters: tuple[tuple[str, Any], ...]  # numbers, and tuples of them
    groups: Groups
    interactions: int | str | None  # kept of every row: a number, "all", or None
    precision: Precision
    space: Space
    link: Link | None  # that attributions are carried through; None for margins
    data: str
    background: str | None  # "model" for its own leaf weights, None for the path-dependent game
    background_digest: str | None  # of its files
    background_errors: bool  # a standard error beside every attribution
    labels: LabelColumns | None
    by: tuple[GroupColumn, ...]  # columns whose values make groups of rows
    predictions: tuple[str, ...]  # columns with the margin of each output; none where they are not compared
    top: Top | None  # what list of the largest attributions a row has
    reasons: Reasons | None  # what is told of a row
    values: bool  # of the features, beside their attributions
    global_only: bool
    ids: tuple[str, ...]
    features: tuple[Feature, ...]
    combinations: tuple[str, ...]  # of features or groups, that are players of their own
    trees: tuple[int, int] | None  # iterations of the model, the first and that behind the last; None for all
    output: int | None  # position of the model's only output that is explained
    outputs: tuple[str, ...]
    row_output: RowOutput | None  # which of them a row is explained for, where it differs from row to row
    slice_rows: int  # that are explained at a time
    group_rows: int  # of a part's row groups
    items: tuple[WorkItem, ...]
    rejected: tuple[Rejected, ...]  # files whose footers cannot be read

    def __repr__(self) -> str:
        counts = count(self.n_rows, "row"), count(len(self.items), "item"), count(len(self.features), "feature"), count(len(self.outputs), "output")
        return f"Plan({', '.join(counts)}, method {self.method})"

    def _repr_html_(self) -> str:
        """The first work items."""
        return as_html(str(self), ("part", "file", "rows"), ((item.part, item.uri, item.n_rows) for item in self.items))

    @property
    def n_rows(self) -> int:
        """Rows of all work items."""
        return sum(item.n_rows for item in self.items)

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """URIs and etags of the files that rows are of, in their order."""
        return tuple(dict.fromkeys((piece.uri, piece.etag) for item in self.items for piece in item.pieces))

    @cached_property
    def columns(self) -> tuple[list[str], list[str], list[str]]:
        """Names of a part's columns of margins or predictions, attributions and interactions."""
        phi, taken = METHODS[self.method].phi, (*self.ids, *self.chosen)
        names = TOTALS[self.space], phi.column
        players = self.players if self.wide else ()
        return schema.output_columns(players, self.written_outputs, taken, self.interactions is not None, names, len(phi.scores) * self.wide)

    @property
    def wide(self) -> bool:
        """There is a column for every player."""
        return self.top is None or self.top.wide

    @cached_property
    def top_columns(self) -> list[str]:
        """Names of a part's columns of the largest attributions, one for each output."""
        taken = (*self.ids, *self.chosen, *(name for names in self.columns for name in names), *self.error_columns)
        return [] if self.top is None else schema.name_columns(TOP, self.written_outputs, taken)

    @cached_property
    def error_columns(self) -> list[str]:
        """Names of a part's columns of standard errors, one for each of attributions."""
        taken = (*self.ids, *self.chosen, *(name for names in self.columns for name in names))
        return schema.player_columns(schema.ERROR, self.players, self.written_outputs, taken) if self.background_errors and self.wide else []

    @cached_property
    def value_columns(self) -> list[str]:
        """Names of a part's columns of values, one for each feature."""
        taken = (*self.ids, *self.chosen, *(name for names in self.columns for name in names), *self.error_columns, *self.top_columns)
        return schema.player_columns(schema.VALUE, [feature.name for feature in self.features], ("",), taken) if self.values else []

    @property
    def label_column(self) -> str:
        """The name of a part's column of labels, an id column or one of its own; empty where there are none."""
        if self.labels is None:
            return ""
        return self.labels.label if self.labels.label in self.ids else schema.name_columns(LABEL, ("",), self.ids)[0]

    @cached_property
    def reason_columns(self) -> list[str]:
        """Names of a part's columns of reasons, those of an output together."""
        taken = (*self.ids, *self.chosen, *(name for names in self.columns for name in names), *self.error_columns, *self.top_columns)
        taken = (*taken, *self.value_columns)
        stems = () if self.reasons is None else told.column_types(pa.float64(), self.background_errors)
        named = [schema.name_columns(stem, self.written_outputs, taken) for stem in stems]
        return [name for of_output in zip(*named, strict=True) for name in of_output]

    @property
    def part_columns(self) -> list[str]:
        """Names of all columns of a part."""
        label = [self.label_column] if self.label_column else []
        of_rows = (*self.columns, self.error_columns, self.top_columns, self.reason_columns, self.value_columns, label)
        return [*dict.fromkeys(chain(self.ids, self.chosen, *of_rows))]

    @property
    def written_outputs(self) -> tuple[str, ...]:
        """What parts and summaries have in the place of the model's outputs, where each row has one of its own."""
        return self.outputs if self.row_output is None else (self.row_output.which,)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The column of the output that a row is explained for, if there is one."""
        return () if self.row_output is None else (OUTPUT,)

    @cached_property
    def players(self) -> tuple[str, ...]:
        """Whose phi a row has."""
        return player_names(METHODS[self.method], self.groups, self.features, self.combinations)

    @property
    def n_steps(self) -> int:
        """Of the way that the method goes for every row."""
        phi = METHODS[self.method].phi
        return phi.n_steps(dict(self.parameters), len(self.players) - len(phi.scores))

    @property
    def check(self) -> Check | None:
        """What the attributions of every row add up to."""
        return METHODS[self.method].check_of(dict(self.parameters))

    @property
    def additive(self) -> bool:
        """Phi sums to margin, or prediction, minus base value on every row."""
        return self.check is not None and self.check.of_margins

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """What the run keeps of all rows."""
        asked = (*((INTERACTIONS,) if self.interactions is not None else ()), *((BACKGROUND_ERRORS,) if self.background_errors else ()))
        own = METHODS[self.method].summaries
        return tuple(dict.fromkeys((*own, *(list_grouped(own) if self.by else ()), *asked, INPUTS)))


def to_json(plan: Plan) -> str:
    """Write the text of plan.json, the same for the same plan.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    str
    """
    return as_text(plan, sort_keys=True)


@lru_cache(maxsize=2)
def digest(plan: Plan) -> str:
    """Make the digest of plan.json, which every part and the manifest carry.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    str
        SHA-256, hexadecimal.
    """
    return digest_text(plan, sort_keys=True)


def without_rows(plan: Plan) -> Plan:
    """Leave out which rows a plan is of, and what its files are called.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    Plan
        All that the bytes of a part depend on, besides the rows that it is of: small, however many parts there are.
    """
    return dataclasses.replace(plan, model="", data="", items=(), rejected=())


def recipe(plan: Plan) -> str:
    """Make the digest of a plan without its rows: plans with one recipe may have parts in common.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    str
        SHA-256, hexadecimal.
    """
    return digest(without_rows(plan))


def differences(old: Plan, new: Plan) -> str:
    """Say in a few words what two plans do not agree on.

    Parameters
    ----------
    old, new : Plan

    Returns
    -------
    str
        Empty where they are equal.
    """
    changes = []
    for field in dataclasses.fields(Plan):
        was, now = getattr(old, field.name), getattr(new, field.name)
        if was == now:
            continue
        if field.name == "items":
            changed = sorted({uri for uri, _ in {*old.files} ^ {*new.files}})
            changes.append(f"input files ({', '.join(changed[:3])}{' …' if len(changed) > 3 else ''})" if changed else "work items")
        elif field.name in CHANGED:
            changes.append(CHANGED[field.name])
        else:
            changes.append(f"{field.name} (was {was!r}, is {now!r})")
    return ", ".join(changes)


def make_plan(job: Job, model: Model, groups: Groups, found: Listing, background: Listing | None, tables: Extent) -> tuple[Plan, Memory]:
    """Decide all that the output depends on, and project what a worker needs of memory.

    Parameters
    ----------
    job : Job
    model : Model
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    found : Listing
        Of the data.
    background : Listing or None
        None for the path-dependent game, and where the model's own leaf weights stand for a background.
    tables : Extent
        Of the method's tables.

    Returns
    -------
    plan : Plan
    memory : Memory
        Bytes.

    Raises
    ------
    SchemaMismatch
        Two columns of the output would have the same name.
    UsageError
        The method or the output has no attributions in the space.
    UnsupportedModel
        The model's predictions are not those of the space.
    """
    method, asked = METHODS[job.options.method], job.options.interactions is not None
    link = choose_link(job.options.space, model, method, dict(job.parameters), asked)
    draft = Plan(
        version=version("leafledger"),
        model=model.origin or job.model,
        model_digest=model.digest,
        method=job.options.method,
        parameters=job.parameters,
        groups=groups,
        interactions=job.options.interactions,
        precision=job.options.precision,
        space=job.options.space,
        link=link,
        data=found.uri,
        background=job.options.background,
        background_digest=None if background is None else background.digest,
        background_errors=job.options.background_errors,
        labels=job.labels,
        by=make_group_columns(job.options.by, found.types),
        predictions=job.options.predictions,
        top=read_top(job.options, method.attributes),
        reasons=plan_reasons(job, model, groups),
        values=job.options.values,
        global_only=job.options.global_only,
        ids=job.options.ids,
        features=model.features,
        combinations=combination_names(model, groups) if job.options.combinations == OWN else (),
        trees=job.options.trees,
        output=model.only_output,
        outputs=model.outputs,
        row_output=job.row_output,
        slice_rows=0,
        group_rows=0,
        items=(),
        rejected=found.rejected,
    )
    n_outputs, n_pairs = len(model.outputs), len(tables.pairs)
    n_columns = len(draft.ids) + len(draft.chosen) + sum(map(len, draft.columns)) + len(draft.error_columns) + 3 * len(draft.top_columns)
    n_columns += REASON_LEAVES * len(draft.reason_columns)
    n_columns += len(draft.value_columns) + bool(draft.label_column)
    lots = 2 * LOTS + 2 if draft.background_errors else 0  # phi without each lot, and all of these together
    n_kept = count_kept(n_pairs, job.options.interactions)
    slice_rows = max_slice_rows(n_outputs * (tables.n_players * (1 + lots) + n_pairs + n_kept + tables.n_steps))
    n_entries = n_kept + sum(kept.most for kept in (draft.top, draft.reasons) if kept is not None)
    written = 8 * n_columns + ENTRY_BYTES * n_entries * len(draft.written_outputs)
    group_rows = max_group_rows(slice_rows, written)
    most = max_item_rows(group_rows, n_columns)
    items = make_items(found, min(job.options.item_rows or most, most), joins=job.options.item_rows is not None)
    plan = dataclasses.replace(draft, slice_rows=slice_rows, group_rows=group_rows, items=items)
    largest = max((item.n_rows for item in items), default=0)
    n_groups, held, gathered = -(-largest // group_rows), min(slice_rows, largest), min(group_rows, largest)
    # Values, bins, kinds, columns as read; margins, attributions, interactions, checks; of what is written, a chosen output, rounded, encoded.
    n_phi, entry = tables.n_players * (1 + lots), 2 * 8 + 2 * (4 + _mean_length(tables.pairs, plan.players))
    of_output = 6 * 8 + n_phi * 8 + n_pairs * 8 + tables.n_steps * 8
    of_written = n_kept * entry + n_phi * 8 * ((draft.row_output is not None) + 2 * (draft.wide and not draft.global_only))
    row_bytes = tables.n_used * (8 + 4 + 1 + 8) + n_outputs * of_output + len(draft.written_outputs) * of_written
    row_bytes += LABEL_BYTES if job.labels or draft.by else 0
    row_bytes += len(draft.value_columns) * 3 * 8  # as read, as kept, and encoded
    read = [found] if background is None else [found, background]
    states = STATE_BYTES * tables.n_players * len(draft.written_outputs)
    # While a background is counted: values as read, together, padded and ranked.
    counted = 0 if background is None else max_slice_rows(tables.n_used) * tables.n_used * (3 * 8 + 4)
    return plan, Memory(
        tables=tables.n_bytes,
        slice=max(padded(held) * row_bytes + 2 * (gathered - held) * written + states, counted),  # gathered rows, and encoded
        row_group=max(listing.row_group for listing in read) + READ_BYTES,
        footer=(n_groups * n_columns + max(listing.n_chunks for listing in read)) * CHUNK_BYTES,
    )


def _mean_length(pairs: np.ndarray, players: Sequence[str]) -> int:
    """Bytes of the name of a pair's player."""
    numbers = pairs.reshape(-1)
    lengths = np.array([len(player.encode()) for player in players])
    return int(np.ceil(lengths[numbers].mean())) if numbers.size else 0
