"""Summaries of a run: a reduction over all rows, its tables, and how they are displayed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..slices.buffers import Buffers
from ..slices.labels import check_groups
from .group_moments import GROUP_MOMENTS, GroupMoments, moments_of, sort_groups
from .reduction import MOMENTS, Moments, Reduction

Column = Sequence[Any] | np.ndarray  # texts and integers as lists, other numbers as arrays with NaN for none


@dataclass(frozen=True, slots=True)
class Subject:
    """Names and dimensions of a run that its summaries use."""

    outputs: tuple[str, ...]
    players: tuple[str, ...]  # all players, then the method's scores
    place: np.ndarray  # (rows,) int64, player of each row of phi; other players have 0 on every row
    pairs: np.ndarray  # (pairs, 2) int32 or (sets, order), players that interact, -1 behind smaller sets
    n_steps: int  # steps of a row's path
    by: tuple[str, ...] = ()  # data columns whose values group the rows
    inputs: tuple[str, ...] = ()  # features in splits
    untold: frozenset[str] = frozenset()  # those of the inputs whose training categories the model does not record


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length by name, and totals over all rows."""

    columns: Mapping[str, Column]
    totals: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """Display of a column."""

    column: str
    title: str
    form: str | None = None  # format of numbers, as for ``format``; None for texts


@dataclass(frozen=True, slots=True)
class Summary:
    """A reduction over all rows, and its presentation."""

    name: str  # of files, and of states in the footers of parts
    reduction: Reduction
    reads: Callable[[Buffers], np.ndarray]  # input of the reduction, ``(outputs, values, n)``
    tabulate: Callable[[Any, Subject], dict[str, Table]]  # tables by name, the first with the summary's name
    columns: tuple[str, ...]  # of all tables; grouping columns must have other names
    description: str  # of the tables, in a few words
    display: tuple[Shown, ...] = ()  # displayed columns, by rank; empty for hidden summaries
    headline: Callable[[Mapping[str, Any]], str] | None = None  # ``(totals) -> line`` displayed above, unless empty
    grouped: bool = False  # the reduction separates groups of rows, see ``Subject.by``
    by: "Summary | None" = None  # the summary by group; None if unsupported, or if this one is ``grouped``

    def init(self, buffers: Buffers) -> Any:
        """Make the state before the first row.

        Parameters
        ----------
        buffers : Buffers
            of the run, for the shape of what is read; their values do not count
        """
        return self.reduction.init(*self.reads(buffers).shape[:2])

    def update(self, state: Any, buffers: Buffers, n_rows: int) -> Any:
        """Update the state with a batch of rows.

        Parameters
        ----------
        state : of the reduction, left as it is
        buffers : Buffers
            as ``batch.attribute_batch`` left them
        n_rows : int
            how many of their rows count, the first

        Returns
        -------
        state : of the reduction
            with the rows of the slice after those of ``state``
        """
        return self.reduction.update(state, self.reads(buffers), n_rows, buffers.labels)


def list_grouped(summaries: Sequence[Summary]) -> tuple[Summary, ...]:
    """List the summaries by group of rows, if there are groups.

    Parameters
    ----------
    summaries : sequence of Summary
        of a method

    Returns
    -------
    tuple of Summary
        empty of a method that writes ranks
    """
    return tuple(found for summary in summaries if (found := summary if summary.grouped else summary.by) is not None)


Labels = dict[str, list[Any]]  # labels of a table's rows, the same for every output
ABOUT_VALUES = ("mean_abs", "mean", "std", "min", "max")  # columns of moments
ABOUT_STEPS = ABOUT_VALUES[1:]


def label_players(subject: Subject) -> tuple[Labels, np.ndarray]:
    """Label a row for every player, in a column ``feature`` whether players are features or groups.

    Returns
    -------
    labels : dict
        the column's name and its texts
    place : (rows,) int64
        where the state's values stand among these rows
    """
    return {"feature": list(subject.players)}, subject.place


def label_pairs(subject: Subject) -> tuple[Labels, np.ndarray]:
    """Label a row for every pair of players that interact."""
    first, second = ([subject.players[i] for i in numbers] for numbers in subject.pairs.T.tolist())
    return {"first": first, "second": second}, np.arange(len(subject.pairs))


def label_sets(subject: Subject) -> tuple[Labels, np.ndarray]:
    """Label a row for every set of players that interacts, by a list of them."""
    members = [[subject.players[i] for i in numbers if i >= 0] for numbers in subject.pairs.tolist()]
    return {"features": members}, np.arange(len(members))


def tabulate_moments(name: str, moments: Mapping[str, np.ndarray], labels: Labels, subject: Subject) -> dict[str, Table]:
    """Tabulate moments, a row per output and label.

    Parameters
    ----------
    name : str
        of the table
    moments : mapping
        from the name of a column to ``(outputs, rows)``, float64 or, of ranks, int64
    labels : dict
        from the name of a column to what it says of every row, see ``label_players``; at least one
    subject : Subject
        for the names of outputs

    Returns
    -------
    dict
        from the name to the table: columns ``output``, the labels, the moments; all rows of the first output before those of the next
    """
    n_rows = len(next(iter(labels.values())))
    named = {"output": [output for output in subject.outputs for _ in range(n_rows)]}
    named |= {label: list(some) * len(subject.outputs) for label, some in labels.items()}
    texts = {label: some or np.zeros(0, str) for label, some in named.items()}
    return {name: Table({**texts, **{column: values.ravel() for column, values in moments.items()}})}


def find_importance(state: Moments, subject: Subject) -> dict[str, np.ndarray]:
    """Return columns of importances, ``(outputs, players)`` each."""
    moments = MOMENTS.finalize(state, subject.place, len(subject.players))
    rank, mean_abs = moments.pop("rank"), moments["mean_abs"]
    total = mean_abs.sum(axis=1, keepdims=True)
    share = np.divide(mean_abs, total, out=np.zeros_like(mean_abs), where=total > 0)
    return {**moments, "share": share, "rank": rank}


def _tabulate_importance(state: Moments, subject: Subject) -> dict[str, Table]:
    return tabulate_moments("importance", find_importance(state, subject), label_players(subject)[0], subject)


def _tabulate_importance_by(state: GroupMoments, subject: Subject) -> dict[str, Table]:
    """Tabulate importances by group: group values first, ascending with None last, numbers of rows last."""
    n = len(subject.outputs) * len(subject.players)
    check_groups(subject.by, state.names.size, n)
    order, values = sort_groups(state.names)
    found = [find_importance(moments_of(state, g), subject) for g in order]
    columns: dict[str, Column] = {name: [group[k] for group in values for _ in range(n)] for k, name in enumerate(subject.by)}
    columns["output"] = [output for output in subject.outputs for _ in subject.players] * len(order) or np.zeros(0, str)
    columns["feature"] = list(subject.players) * len(subject.outputs) * len(order) or np.zeros(0, str)
    for name in (*ABOUT_VALUES, "share", "rank"):
        kind = np.int64 if name == "rank" else np.float64
        columns[name] = np.concatenate([np.zeros(0, kind), *(group[name].ravel() for group in found)])
    columns["rows"] = np.repeat(state.moments.rows[order].astype(np.int64), n)
    return {"importance_by": Table(columns)}


def _tabulate_interactions(state: Any, subject: Subject) -> dict[str, Table]:
    labels, place = label_pairs(subject)
    return tabulate_moments("interactions", MOMENTS.finalize(state, place, len(subject.pairs)), labels, subject)


def _tabulate_sets(state: Any, subject: Subject) -> dict[str, Table]:
    labels, place = label_sets(subject)
    return tabulate_moments("interactions", MOMENTS.finalize(state, place, len(subject.pairs)), labels, subject)


IMPORTANCE_BY = Summary(
    name="importance_by",
    reduction=GROUP_MOMENTS,
    reads=lambda buffers: buffers.phi,
    tabulate=_tabulate_importance_by,
    columns=("output", "feature", *ABOUT_VALUES, "share", "rank", "rows"),
    description="the same of every group of rows, with `--by`",
    grouped=True,
)
IMPORTANCE = Summary(
    name="importance",
    reduction=MOMENTS,
    reads=lambda buffers: buffers.phi,
    tabulate=_tabulate_importance,
    columns=("output", "feature", *ABOUT_VALUES, "share", "rank"),
    description="mean size of attributions and their other moments",
    display=(
        Shown("rank", "rank", "d"),
        Shown("feature", "feature"),
        Shown("mean_abs", "mean |phi|", ".4g"),
        Shown("mean", "mean phi", ".4g"),
        Shown("std", "std", ".4g"),
        Shown("share", "share", ".1%"),
    ),
    by=IMPORTANCE_BY,
)
INTERACTIONS = Summary(
    name="interactions",
    reduction=MOMENTS,
    reads=lambda buffers: buffers.pairs,
    tabulate=_tabulate_interactions,
    columns=("output", "first", "second", *ABOUT_VALUES, "rank"),
    description="mean size of interactions and their other moments",
    display=(
        Shown("rank", "rank", "d"),
        Shown("first", "first"),
        Shown("second", "second"),
        Shown("mean_abs", "mean |value|", ".4g"),
        Shown("mean", "mean value", ".4g"),
        Shown("std", "std", ".4g"),
    ),
)
SET_INTERACTIONS = replace(
    INTERACTIONS,
    tabulate=_tabulate_sets,
    columns=("output", "features", *ABOUT_VALUES, "rank"),
    description="mean size of interactions of sets and their other moments, with `--order`",
    display=(INTERACTIONS.display[0], Shown("features", "features"), *INTERACTIONS.display[3:]),
)
