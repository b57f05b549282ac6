"""Validation of background counts read from a file, so that tables made of them stay within bounds."""

from typing import Any

import numpy as np

from ..method.method import refuse_arrays, refuse_other, refuse_unless
from ..trees.lookup import WORD_BITS
from .background import Background, distinct, first_codes, n_words
from .subtrees import Partitioning


def check_counts(partitioning: Partitioning, counted: Any, n_rows: int) -> None:
    """Refuse counts that no background rows can have."""
    refuse_other(partitioning, counted, (Partitioning, Background))
    coded, deep = partitioning
    first, words = first_codes(coded), n_words(deep)
    kinds = {"counts": (first[-1],), "start": (deep.size + 1,), "patterns": (-1, words), "times": (-1,)}
    refuse_arrays(counted, {name: (np.int64, shape) for name, shape in kinds.items()})
    totals = np.add.reduceat(counted.counts, first[:-1]) if coded.size else np.zeros(0)
    refuse_unless((counted.counts >= 0) & (counted.counts <= n_rows), f"counts from 0 to {n_rows}")
    refuse_unless(totals == n_rows, f"{n_rows} rows at every subtree")

    start, times = counted.start, counted.times
    refuse_unless(start[0] == 0 and start[-1] == len(counted.patterns) == times.size and (np.diff(start) > 0).all(), "patterns at every leaf")
    refuse_unless((times > 0) & (times <= n_rows), f"times from 1 to {n_rows}")
    refuse_unless(np.add.reduceat(times, start[:-1]) == n_rows if deep.size else True, f"{n_rows} rows at every leaf")
    subtree = np.repeat(np.arange(deep.size), np.diff(start))
    room = np.clip(deep.bits[:, None] - WORD_BITS * np.arange(words), 0, WORD_BITS)
    refuse_unless((counted.patterns >= 0) & (counted.patterns >> room[subtree] == 0), "patterns of the players of their leaves")
    refuse_unless(distinct(subtree, counted.patterns, times)[1].shape == counted.patterns.shape, "every pattern once")
    refuse_unless(distinct(subtree, counted.patterns, times)[1] == counted.patterns, "patterns in ascending order")
