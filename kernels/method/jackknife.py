"""Standard errors of values against a sampled background, by the delete-a-group jackknife.

The background's rows are assigned to N_GROUPS groups, equal up to one row, in pseudorandom order: the errors are those of independent draws however
the rows are sorted. Values are computed once without each group (Efron and Stein 1981). The standard error of a value, or of any statistic of values,
is

    sqrt((N_GROUPS - 1) / N_GROUPS * sum over groups of (what it is without the group - what it is with all)²)
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..arrays.pseudorandom import permute
from ..errors import InvalidParameters
from ..reductions.reduction import MEANS, Moments
from ..reductions.summary import Subject, Summary, Table, label_players, tabulate_moments
from ..reductions.weighted_moments import WEIGHTED_MEANS
from ..slices.buffers import Buffers
from ..trees.binning import BinTables, padded
from ..trees.forest import Forest
from .method import refuse_arrays, refuse_unless

DEALING = "permuted"  # assignment of rows to groups; part of the name of cached statistics
N_GROUPS = 20  # with fewer, two standard errors cover less than 94 of 100 attributions: of ten groups, t with 9 degrees of freedom, 92.4


class JackknifeGroups(NamedTuple):
    """Background statistics of every group."""

    parts: tuple[Any, ...]  # statistics
    n_rows: np.ndarray  # (N_GROUPS,) int64

    def merge(self, others: Sequence["JackknifeGroups"]) -> "JackknifeGroups":
        """Add the statistics of other parts of the background, group by group."""
        merged = (part.merge([other.parts[k] for other in others]) for k, part in enumerate(self.parts))
        return JackknifeGroups(tuple(merged), np.sum([self.n_rows, *(other.n_rows for other in others)], axis=0))

    def together(self, without: int | None = None) -> Any:
        """Add up all groups, or all but one.

        Parameters
        ----------
        without : int, optional
            the group that is left out
        """
        first, *others = (part for k, part in enumerate(self.parts) if k != without)
        return first.merge(others)


def assign_groups(first_row: int, n_rows: int, n_all: int) -> np.ndarray:
    """Assign rows to groups."""
    return (permute(np.arange(first_row, first_row + n_rows, dtype=np.uint64), n_all) % np.uint64(N_GROUPS)).astype(np.int64)


class JackknifeQuery(NamedTuple):
    """A background query that is made for every group."""

    query: Any  # a BackgroundQuery
    n_bytes: np.ndarray  # (1,) int64, bytes of the prepared tables, at most
    n_rows: np.ndarray  # (1,) int64, of the whole background

    @property
    def bins(self) -> BinTables:
        """Binning of rows."""
        return self.query.bins

    @property
    def players(self) -> np.ndarray:
        """As ``Prepared.players``."""
        return self.query.players

    @property
    def pairs(self) -> np.ndarray:
        """As ``Pairs.players``; empty without interactions."""
        return self.query.pairs

    def measure(self, values: np.ndarray, bins: np.ndarray, n_rows: int, first_row: int) -> JackknifeGroups:
        """Measure the rows of every group.

        Parameters
        ----------
        values : (used, n) float64
        bins : (used, n) unsigned integers, n a multiple of BATCH
        n_rows : int
            how many of the rows count, the first
        first_row : int
            number of the first; a row's number in the whole background says which group it belongs to
        """
        parts, counts, groups = [], [], assign_groups(first_row, n_rows, int(self.n_rows[0]))
        for group in range(N_GROUPS):
            rows = np.flatnonzero(groups == group)
            mine = [np.zeros((len(each), padded(rows.size)), each.dtype) for each in (values, bins)]
            for held, each in zip(mine, (values, bins), strict=True):
                held[:, : rows.size] = each[:, rows]
            parts.append(self.query.measure(*mine, rows.size, 0))
            counts.append(rows.size)
        return JackknifeGroups(tuple(parts), np.array(counts))

    def check(self, statistics: Any, n_rows: int) -> None:
        """Refuse statistics that no background rows can have.

        Parameters
        ----------
        n_rows : int
            that were measured
        """
        refuse_unless(
            isinstance(statistics, JackknifeGroups) and isinstance(statistics.parts, tuple) and len(statistics.parts) == N_GROUPS,
            f"{N_GROUPS} groups",
        )
        refuse_arrays(statistics, {"n_rows": (np.int64, (N_GROUPS,))})
        refuse_unless(statistics.n_rows >= 0, "numbers of rows")
        refuse_unless(statistics.n_rows.sum() == n_rows, f"{n_rows} rows in all groups")
        for part, size in zip(statistics.parts, statistics.n_rows.tolist(), strict=True):
            self.query.check(part, size)

    def weigh_leaves(self, forest: Forest) -> JackknifeGroups:  # noqa: ARG002 - the shape of a query
        """Refuse leaf weights as background: they have no rows to assign to groups.

        Returns
        -------
        JackknifeGroups
            never

        Raises
        ------
        InvalidParameters
            always
        """
        raise InvalidParameters("the model's own leaf weights are no rows that samples could be drawn from; errors need a background of rows")


def standard_errors(without: np.ndarray, with_all: np.ndarray) -> np.ndarray:
    """Estimate standard errors.

    Parameters
    ----------
    without : (groups, …) float64
        what is asked about, without each group of the background
    with_all : (…) float64
        the same with all of them

    Returns
    -------
    (…) float64, in the same units
        of the background as a sample
    """
    n_groups = max(1, len(without))  # without groups there is no variance
    total = np.zeros(with_all.shape)
    for each in without:
        total += (each - with_all) ** 2
    return np.sqrt(total * ((n_groups - 1) / n_groups))


def find_errors(buffers: Buffers) -> np.ndarray:
    """Estimate standard errors of attributions.

    Parameters
    ----------
    buffers : Buffers
        as ``batch.attribute_batch`` left them

    Returns
    -------
    (outputs, rows, n) float64, margin units
    """
    return standard_errors(buffers.without, buffers.phi)


def _read(buffers: Buffers) -> np.ndarray:
    """Return attributions without each group, with all, and their errors, ``(outputs, (N_GROUPS + 2) * rows, n)``."""
    return np.concatenate([*buffers.without, buffers.phi, find_errors(buffers)], axis=1)


def _tabulate(state: Moments, subject: Subject) -> dict[str, Table]:
    labels, place = label_players(subject)
    outputs, n_places = len(subject.outputs), len(subject.players)
    found, size = {}, (outputs, N_GROUPS + 2, place.size)
    means_of_groups, absolute = (means.reshape(size) if state.rows[0] else np.zeros(size) for means in (state.mean, state.mean_abs))
    for name, groups in (("mean_abs", absolute), ("mean", means_of_groups)):
        of_all = groups[:, N_GROUPS]
        found[name], found[f"{name}_error"] = of_all, standard_errors(groups[:, :N_GROUPS].swapaxes(0, 1), of_all)
    found["error"] = means_of_groups[:, N_GROUPS + 1]
    everywhere = {name: np.zeros((outputs, n_places)) for name in found}
    for name, values in found.items():
        everywhere[name][:, place] = values
    return tabulate_moments("background_errors", everywhere, labels, subject)


BACKGROUND_ERRORS = Summary(
    name="background_errors",
    reduction=MEANS,
    reads=_read,
    tabulate=_tabulate,
    columns=("output", "feature", "mean_abs", "mean_abs_error", "mean", "mean_error", "error"),
    description="how much attributions and their means depend on the background as a sample",
)
LOSS_ERRORS = replace(BACKGROUND_ERRORS, reduction=WEIGHTED_MEANS)  # of rows that count by their weights
