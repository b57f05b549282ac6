"""The Plan record: everything that determines a run's output, and its JSON text with digests."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import pyarrow as pa

from leafledger.kernels.method.jackknife import BACKGROUND_ERRORS, LOSS_ERRORS
from leafledger.kernels.method.method import Check
from leafledger.kernels.methods import METHODS
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.reductions.input_counts import INPUTS
from leafledger.kernels.reductions.loss_shares import LOSS_SHARES
from leafledger.kernels.reductions.summary import Summary, list_grouped
from leafledger.kernels.set_indices import Sets
from leafledger.kernels.slices.links import Link

from ...arguments.choices import LOSS, MARGIN, Device, Precision, Space
from ...dataset.columns import schema
from ...dataset.columns.grouping import GroupColumn
from ...dataset.columns.labels import LabelColumns
from ...dataset.columns.partition import Groups
from ...dataset.files.identity import mark_of
from ...dataset.files.listing import Rejected, WorkItem
from ...display.text import as_html, count
from ...json_records import EMPTY, UNWRITTEN, as_text, digest_text, written_fields
from ...methods.interaction_lists import find_summary
from ...methods.output_space import TOTALS
from ...methods.tables import player_names
from ...models.model import Feature
from ...models.row_output import OUTPUT, RowOutput
from ..columns import reason_columns as told
from ..columns.change_columns import CHANGES
from ..columns.reasons import Reasons
from ..columns.top_attributions import TOP, Top
from ..formats.earlier import list_scores, list_summaries
from ..formats.numbers import FORMAT

LABEL = "label"  # column of labels
CHANGED = {
    "features": "features",
    "groups": "groups",
    "background_digest": "the background's files",
    "reasons": "reasons",
    "rejected": "the files that cannot be read",
}  # of what differs but is not shown


@dataclass(frozen=True, slots=True)
class Earlier:
    """What parts and manifest know a plan of an earlier format by: digests of its text as it was written."""

    digest: str  # SHA-256, hexadecimal
    recipe: str  # what footers of its parts name


@dataclass(frozen=True)
class Plan:
    """A run before it runs: everything that decides its output, and nothing else. Names of columns, which may be many, are made once."""

    format_version: int = field(default=FORMAT, kw_only=True)  # of its text
    earlier: Earlier | None = field(default=None, kw_only=True, compare=False, metadata={UNWRITTEN: True})  # None for a text of today's format
    version: str
    model: str  # its file, or what MLflow calls it, by its version
    model_digest: str  # of the file
    method: str
    parameters: tuple[tuple[str, Any], ...]  # numbers, and tuples of them
    groups: Groups
    interactions: int | str | None  # kept of every row: a number, "all", or None
    precision: Precision
    device: Device  # "cpu" or "cuda", whose last bits differ
    space: Space
    link: Link | None  # that attributions are carried through, along a line; None for margins, and where there is a quantity
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
    sets: Sets | None = field(default=None, metadata={EMPTY: True})  # that interactions are of; None for pairs
    quantity: Quantity | None = field(default=None, metadata={EMPTY: True})  # that attributions are carried to, background row by background row
    predicts: bool = field(default=False, compare=False, metadata={EMPTY: True})  # margins are predictions in the label's units: the model says so

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

    @property
    def total(self) -> str:
        """What people call the sum of base value and attributions: prediction, margin or loss."""
        return "prediction" if self.space == MARGIN and self.predicts else TOTALS[self.space]

    @cached_property
    def columns(self) -> tuple[list[str], list[str], list[str]]:
        """Names of a part's columns of margins or predictions, attributions and interactions."""
        phi, taken = METHODS[self.method].phi, (*self.ids, *self.chosen)
        names = TOTALS[self.space], phi.column
        players = self.players if self.wide else ()
        return schema.output_columns(players, self.written_outputs, taken, self.interactions is not None, names, len(self.scores) * self.wide)

    @cached_property
    def base_columns(self) -> list[str]:
        """Names of a part's columns of base values, where each row has its own."""
        totals, phi, _ = self.columns
        return schema.name_columns(schema.BASE, self.written_outputs, (*self.ids, *self.chosen, *totals, *phi)) if self.space == LOSS else []

    @property
    def wide(self) -> bool:
        """There is a column for every player."""
        return self.top is None or self.top.wide

    def _take(self, *further: Sequence[str]) -> list[str]:
        """Names of columns that are taken: of ids, margins, attributions and interactions, and of further ones."""
        return [*self.ids, *self.chosen, *chain(*self.columns, self.base_columns, *further)]

    @cached_property
    def top_columns(self) -> list[str]:
        """Names of a part's columns of the largest attributions, one for each output."""
        return [] if self.top is None else schema.name_columns(TOP, self.written_outputs, self._take(self.error_columns))

    @cached_property
    def error_columns(self) -> list[str]:
        """Names of a part's columns of standard errors, one for each of attributions."""
        asked = self.background_errors and self.wide
        return schema.player_columns(schema.ERROR, self.players, self.written_outputs, self._take()) if asked else []

    @cached_property
    def value_columns(self) -> list[str]:
        """Names of a part's columns of values, one for each feature."""
        names, taken = [feature.name for feature in self.features], self._take(self.error_columns, self.top_columns)
        return schema.player_columns(schema.VALUE, names, ("",), taken) if self.values else []

    @property
    def label_column(self) -> str:
        """The name of a part's column of labels, an id column or one of its own; empty where there are none, as in parts of 0.1."""
        if self.labels is None:
            return ""
        if self.labels.label in self.ids:
            return self.labels.label
        return schema.name_columns(LABEL, ("",), self.ids)[0] if self.format_version > 1 else ""

    @cached_property
    def reason_columns(self) -> list[str]:
        """Names of a part's columns of reasons, those of an output together."""
        taken = self._take(self.error_columns, self.top_columns, self.value_columns)
        stems = () if self.reasons is None else told.reason_column_types(pa.float64(), self.background_errors)
        named = [schema.name_columns(stem, self.written_outputs, taken) for stem in stems]
        return [name for of_output in zip(*named, strict=True) for name in of_output]

    @cached_property
    def change_columns(self) -> list[str]:
        """The name of a part's column of nearest changes, if there is one."""
        asked = self.reasons is not None and self.reasons.changes is not None
        taken = self._take(self.error_columns, self.top_columns, self.value_columns, self.reason_columns)
        return schema.name_columns(CHANGES, ("",), taken) if asked else []

    @property
    def part_columns(self) -> list[str]:
        """Names of all columns of a part."""
        label = [self.label_column] if self.label_column else []
        told = [*self.reason_columns, *self.change_columns]
        return [*dict.fromkeys(self._take(self.error_columns, self.top_columns, told, self.value_columns, label))]

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
        names = player_names(METHODS[self.method], self.groups, self.features, self.combinations)
        return (*names[: len(names) - len(METHODS[self.method].phi.scores)], *self.scores)

    @property
    def scores(self) -> tuple[str, ...]:
        """The last of the players, which are scores of a row."""
        return list_scores(self.method, self.format_version)

    @property
    def n_steps(self) -> int:
        """Of the way that the method goes for every row."""
        phi = METHODS[self.method].phi
        return phi.n_steps(dict(self.parameters), len(self.players) - len(self.scores))

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
        of_loss = self.space == LOSS
        errors = LOSS_ERRORS if of_loss else BACKGROUND_ERRORS
        asked = (*((find_summary(self.sets, of_loss),) if self.interactions is not None else ()), *((errors,) if self.background_errors else ()))
        own = (LOSS_SHARES,) if of_loss else list_summaries(self.method, self.format_version)
        counted = (INPUTS,) if self.format_version > 1 else ()
        return tuple(dict.fromkeys((*own, *(list_grouped(own) if self.by else ()), *asked, *counted)))


def to_json(plan: Plan) -> str:
    """Write the text of plan.json, the same for the same plan."""
    return as_text(plan, sort_keys=True)


@lru_cache(maxsize=2)
def digest(plan: Plan) -> str:
    """Make the digest of plan.json, which every part and the manifest carry.

    Returns
    -------
    str
        SHA-256, hexadecimal.
    """
    return digest_text(plan, sort_keys=True) if plan.earlier is None else plan.earlier.digest


def without_rows(plan: Plan) -> Plan:
    """Leave out which rows a plan is of, and what its files are called."""
    return dataclasses.replace(plan, model="", data="", items=(), rejected=())


def recipe(plan: Plan) -> str:
    """Make the digest of a plan without its rows: plans with one recipe may have parts in common.

    Returns
    -------
    str
        SHA-256, hexadecimal.
    """
    return digest(without_rows(plan)) if plan.earlier is None else plan.earlier.recipe


def _list_files(plan: Plan, by_marks: bool) -> list[tuple[str, str]]:
    return [(uri, mark_of(etag) if by_marks else etag) for uri, etag in plan.files]


def is_same(old: Plan, new: Plan) -> bool:
    """Tell whether a plan asks for what another one did: of one version all of it, of two versions all but how rows go together.

    Parameters
    ----------
    old : Plan
        Of a run that is there, perhaps of an earlier version.
    new : Plan
        Of this version.
    """
    if old.version == new.version:
        return old == new
    told = ("format_version", "version", "slice_rows", "group_rows", "items")
    by_marks = old.format_version == 1
    return _list_files(old, by_marks) == _list_files(new, by_marks) and dataclasses.replace(old, **{name: getattr(new, name) for name in told}) == new


def differences(old: Plan, new: Plan) -> str:
    """Say in a few words what two plans do not agree on.

    Returns
    -------
    str
        Empty where they are equal.
    """
    changes = []
    for each in written_fields(Plan):
        was, now = getattr(old, each.name), getattr(new, each.name)
        if was == now or not each.compare or each.name == "format_version":  # of another version, which is told
            continue
        if each.name == "items":
            changed = sorted({uri for uri, _ in {*old.files} ^ {*new.files}})
            several = f"input files ({', '.join(changed[:3])}{' …' if len(changed) > 3 else ''})"
            changes.append(several if changed else "work items, as by --item-rows")
        elif each.name in CHANGED:
            changes.append(CHANGED[each.name])
        elif each.name == "model_digest":
            if old.model == new.model:
                changes.append(f"the model, which is another one at the same place (SHA-256 was {was[:12]}, is {now[:12]})")
        else:
            changes.append(f"{each.name} (was {was!r}, is {now!r})")
    return ", ".join(changes)
