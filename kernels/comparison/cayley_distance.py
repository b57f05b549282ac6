"""Modified Cayley distance of two rankings' first k players, in swaps (Karczmarz et al. 2022, Table 1)."""

import numpy as np

from ..jit.decorator import jit


@jit
def _list_first(ranks: np.ndarray, first: np.ndarray) -> None:
    """List the players with ranks 1 to k, ``first (k, n)``, from ``ranks (players, n)``."""
    k = len(first)
    for j in range(ranks.shape[0]):
        for i in range(ranks.shape[1]):
            if ranks[j, i] <= k:
                first[ranks[j, i] - 1, i] = j


@jit
def _count_swaps(a: np.ndarray, b: np.ndarray, k: int, out: np.ndarray) -> None:
    """Count swaps as positions less cycles of the permutation from list a to list b."""
    n = out.shape[1]
    of_a, of_b = np.zeros((k, n), np.int64), np.zeros((k, n), np.int64)
    leads, seen = np.zeros(2 * k, np.int64), np.zeros(2 * k, np.bool_)
    for o in range(out.shape[0]):
        _list_first(a[o], of_a)
        _list_first(b[o], of_b)
        for i in range(n):
            n_of_a = n_of_b = k
            for place in range(k):
                in_b = b[o, of_a[place, i], i]
                leads[place] = in_b - 1 if in_b <= k else n_of_b
                n_of_b += in_b > k
                if a[o, of_b[place, i], i] > k:
                    leads[n_of_a] = place
                    n_of_a += 1
            seen[:] = False
            n_cycles = 0
            for place in range(n_of_a):
                n_cycles += not seen[place]
                at = place
                while not seen[at]:
                    seen[at] = True
                    at = leads[at]
            out[o, i] = n_of_a - n_cycles


def count_swaps(k: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Count the swaps that turn one ranking's first k players into another's (Karczmarz et al. 2022, Table 1).

    Players in only one of the two lists are appended to the other in their order there. Both lists are then permutations of the same players, and
    their Cayley distance is players less cycles.
    """
    outputs, players, n = a.shape
    out = np.zeros((outputs, n))
    _count_swaps(np.ascontiguousarray(a, np.int64), np.ascontiguousarray(b, np.int64), min(k, players), out)
    return out
