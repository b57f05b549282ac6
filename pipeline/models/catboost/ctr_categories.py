"""Recovery of categories from the hashed keys of target statistics."""

import numpy as np

from leafledger.kernels.trees.statistics import CATEGORY, EQUAL, MULTIPLIER, Statistics

INVERSE = np.uint64(pow(int(MULTIPLIER), -1, 1 << 64))
MOST_BITS = 3  # bits after a category, each of which doubles the candidates of a key


def _invert(key: np.ndarray, n_bits: int) -> np.ndarray:
    """Return the hashes ``(n,) uint32`` of keys with one category and ``n_bits`` bits; other numbers are rarely so small."""
    for _ in range(n_bits):
        key = key * INVERSE
        key = np.concatenate((key, key - MULTIPLIER))  # the bit was 0 or 1
    hashes = (key * INVERSE * INVERSE).view(np.int64)
    return hashes[hashes == hashes.astype(np.int32)].astype(np.uint32)  # hashes in keys are signed


def known_hashes(statistics: Statistics) -> dict[int, np.ndarray]:
    """Recover the categories that statistics know.

    Returns
    -------
    dict of int to np.ndarray
        From columns of the ensemble to ``(n,) uint32``, the hashes of their categories, ascending; none of those that are only asked whether they are
        one that the model lists. Without columns whose categories only stand beside others: of such keys they cannot be told.
    """
    element, kind = statistics.element, statistics.kind
    listed = np.setdiff1d(element[kind == EQUAL], element[kind == CATEGORY])
    found = {int(statistics.source[each]): [np.zeros(0, np.uint32)] for each in listed}
    for p in range(statistics.key_start.size - 1):
        begin, end = statistics.element_start[p], statistics.element_start[p + 1]
        n_bits = int((kind[begin:end] != CATEGORY).sum())
        if end - begin - n_bits == 1 and n_bits <= MOST_BITS:  # categories come first
            keys = statistics.key[statistics.key_start[p] : statistics.key_start[p + 1]]
            found.setdefault(int(statistics.source[element[begin]]), []).append(_invert(keys, n_bits))
    return {column: np.unique(np.concatenate(hashes)) for column, hashes in found.items()}
