"""Interactions of pairs or sets: what is asked of a method, and columns of lists, the largest of every row first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from leafledger.kernels.method.method import Method
from leafledger.kernels.reductions.reduction import MOMENTS
from leafledger.kernels.reductions.summary import INTERACTIONS, SET_INTERACTIONS, Summary
from leafledger.kernels.reductions.weighted_moments import WEIGHTED_MEANS
from leafledger.kernels.set_indices import INDICES, Sets
from leafledger.kernels.slices.top_k import find_largest

from ..arguments.readers import ALL, read_choice, read_number
from ..cluster.resources import table_budget
from ..dataset.columns.partition import Groups
from ..dataset.columns.players import number_players
from ..display.text import count
from ..errors import UsageError
from ..models.model import Model
from .top_k_lists import choose_largest

FIRST, SECOND, FEATURES, VALUE = "first", "second", "features", "value"  # fields of an entry
BY_WEIGHT = replace(WEIGHTED_MEANS, name="moments by weight", finalize=MOMENTS.finalize)


def name_entries(names: Sequence[Sequence[str]], of_sets: bool) -> dict[str, pa.Array]:
    """Name what interacts.

    Parameters
    ----------
    names : sequence of sequences of str
        The players of every pair or set.
    of_sets : bool
        Whether these are sets, of any size.

    Returns
    -------
    dict of str to pa.Array
        By fields of an entry: of pairs the first and the second player, of sets a list of them.
    """
    if of_sets:
        return {FEATURES: pa.array(names, pa.list_(pa.string()))}
    return {name: pa.array([pair[side] for pair in names], pa.string()) for side, name in enumerate((FIRST, SECOND))}


def column_type(number: pa.DataType, of_sets: bool = False) -> pa.DataType:
    """Make the Arrow type of an interactions column: a list of pairs, or sets, with values per row.

    Parameters
    ----------
    number : pa.DataType
        Of the values.
    of_sets : bool
        Whether these are sets.
    """
    named = [(name, names.type) for name, names in name_entries((), of_sets).items()]
    return pa.list_(pa.struct([*named, (VALUE, number)]))


def list_leaves(of_sets: bool) -> tuple[str, ...]:
    """List the fields of an entry with names, as Parquet calls them; of a list within, its elements."""
    return (f"{FEATURES}.list.element",) if of_sets else (FIRST, SECOND)


def count_kept(n_pairs: int, keep: int | str | None) -> int:
    """Return the maximal number of entries of a row.

    Parameters
    ----------
    n_pairs : int
        Pairs that interact.
    keep : int or "all", optional
        How many are asked for; None where interactions are not.
    """
    return 0 if keep is None else n_pairs if keep == ALL else min(int(keep), n_pairs)


def keep_largest(values: np.ndarray, n_kept: int) -> None:
    """Set all but each row's and output's largest values by magnitude to 0; ties keep the order of pairs.

    Parameters
    ----------
    values : (n, outputs, pairs) float64, margin units
        Changed in place.
    n_kept : int
        How many of a row and output are kept, at most ``pairs``.
    """
    if n_kept == values.shape[2]:
        return
    for k in range(values.shape[1]):
        pairs = np.ascontiguousarray(values[:, k].T)
        kept = np.zeros(pairs.shape, bool)
        np.put_along_axis(kept, find_largest(pairs, n_kept), True, axis=0)
        values[:, k][~kept.T] = 0


def make_column(values: np.ndarray, n_kept: int, dtype: np.dtype, names: Mapping[str, pa.Array]) -> pa.Array:
    """Make the interactions column of one output.

    Parameters
    ----------
    values : (pairs, n) float64, margin units
    n_kept : int
        Entries of a row, at most.
    dtype : float32 or float64
        In which values are stored.
    names : mapping of str to pa.Array of (pairs,)
        As `name_entries` makes them.

    Returns
    -------
    pa.ListArray
        n lists of entries, the largest by magnitude first.
    """
    offset, chosen, value = choose_largest(values, n_kept, dtype)
    pair = pa.array(chosen)
    entries = pa.StructArray.from_arrays([*(some.take(pair) for some in names.values()), pa.array(value)], [*names, VALUE])
    return pa.ListArray.from_arrays(pa.array(offset), entries)


def choose_sets(method: Method, interactions: int | str | None, order: int | None, index: str | None) -> Sets | None:
    """Read what sets of players interactions are asked of.

    Parameters
    ----------
    interactions : int or "all", optional
        How many are kept; None where none are asked for.
    order : int, optional
        Of up to how many players; None for pairs.
    index : str, optional
        One of `INDICES`; None for the method's own.

    Returns
    -------
    Sets or None
        None for pairs, and where nothing is asked for.

    Raises
    ------
    UsageError
        An order or an index without what it is of, one that there is not, or an index for a method with a measure of its own.
    """
    if index is not None:
        read_choice("index", index, tuple(INDICES))
        if order is None:
            raise UsageError(f"index is {index!r}, and there is no order, the largest size of a set; give one, as 2")
    if order is None:
        return None
    order = read_number("order", order, 1)
    if interactions is None:
        raise UsageError(f"order is {order}, but no interactions are asked for; say how many, or 'all', as interactions")
    if not method.games.value:
        raise UsageError(f"method {method.name!r} has no interactions")
    if index is not None and not method.games.index:
        raise UsageError(f"index is {index!r}, but method {method.name!r} weighs sets by its own measure; leave it out, or take method 'shapley'")
    return Sets(order, index or method.games.index)


def find_summary(sets: Sets | None, of_loss: bool = False) -> Summary:
    """Find the summary of interactions: of pairs, or of sets; of a loss rows count by their weights, and those without a label do not."""
    found = INTERACTIONS if sets is None else SET_INTERACTIONS
    return replace(found, reduction=BY_WEIGHT) if of_loss else found


def refuse_large(n_rows: int, n_outputs: int, n_sets: int) -> None:
    """Refuse interactions in memory that do not fit there.

    Raises
    ------
    UsageError
        They take more than half of it.
    """
    needed, most = 8 * n_rows * n_outputs * n_sets, table_budget()
    if needed > most:
        raise UsageError(
            f"{count(n_sets, 'set')} of {count(n_rows, 'row')} and {count(n_outputs, 'output')} take {needed / 2**30:,.1f} GiB, expected at most "
            f"{most / 2**30:,.1f}, half of the memory; take fewer rows at a time or a lower order, or explain into files and keep the largest"
        )


def check_order(sets: Sets | None, model: Model, groups: Groups, own: bool) -> None:
    """Refuse sets of more players than there are.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    own : bool
        Combinations of features are players of their own.

    Raises
    ------
    UsageError
        There are fewer.
    """
    if sets is None:
        return
    n_players = len(groups or model.features) + (len(number_players(model, groups).combinations) if own else 0)
    if sets.order > n_players:
        raise UsageError(f"order is {sets.order}, expected at most {n_players}, as there are {count(n_players, 'group' if groups else 'feature')}")
