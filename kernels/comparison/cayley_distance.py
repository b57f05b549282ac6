"""Modified Cayley distances of two rankings' first k players, in swaps (Karczmarz et al. 2022, Table 1)."""

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
def _count_cycles(leads: np.ndarray, size: int, seen: np.ndarray) -> int:
    """Count the cycles of a permutation of the first ``size`` positions."""
    seen[:] = False
    n_cycles = 0
    for place in range(size):
        n_cycles += not seen[place]
        at = place
        while not seen[at]:
            seen[at] = True
            at = leads[at]
    return n_cycles


@jit
def _count_swaps(a: np.ndarray, b: np.ndarray, k: int, out: np.ndarray) -> None:
    """Count the swaps that sort list a by list b; what only a has comes last."""
    of_a, of_b = np.zeros((k, out.shape[1]), np.int64), np.zeros((k, out.shape[1]), np.int64)
    leads, seen = np.zeros(k, np.int64), np.zeros(k, np.bool_)
    for o in range(out.shape[0]):
        _list_first(a[o], of_a)
        _list_first(b[o], of_b)
        for i in range(out.shape[1]):
            n_placed = 0
            for place in range(k):
                in_a = a[o, of_b[place, i], i]
                if in_a <= k:
                    leads[in_a - 1] = n_placed
                    n_placed += 1
            for place in range(k):
                if b[o, of_a[place, i], i] > k:
                    leads[place] = n_placed
                    n_placed += 1
            out[o, i] = k - _count_cycles(leads, k, seen)


@jit
def _count_list_swaps(a: np.ndarray, b: np.ndarray, k: int, out: np.ndarray) -> None:
    """Count the swaps that turn list a, with what only b has at its end, into list b, with what only a has at its end."""
    of_a, of_b = np.zeros((k, out.shape[1]), np.int64), np.zeros((k, out.shape[1]), np.int64)
    leads, seen = np.zeros(2 * k, np.int64), np.zeros(2 * k, np.bool_)
    for o in range(out.shape[0]):
        _list_first(a[o], of_a)
        _list_first(b[o], of_b)
        for i in range(out.shape[1]):
            n_of_a = n_of_b = k
            for place in range(k):
                in_b = b[o, of_a[place, i], i]
                leads[place] = in_b - 1 if in_b <= k else n_of_b
                n_of_b += in_b > k
                if a[o, of_b[place, i], i] > k:
                    leads[n_of_a] = place
                    n_of_a += 1
            out[o, i] = n_of_a - _count_cycles(leads, n_of_a, seen)


def count_swaps(k: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Count the swaps that put one ranking's first k players in another's order (Karczmarz et al. 2022, Table 1).

    To the other's first k those that only the one has are added at the end, in their order there; the one's are then sorted by this list. This is not
    symmetric, and 0 where the players in common have the same order and come before the others.
    """
    out = np.zeros((a.shape[0], a.shape[2]))
    _count_swaps(np.ascontiguousarray(a, np.int64), np.ascontiguousarray(b, np.int64), min(k, a.shape[1]), out)
    return out


def count_list_swaps(k: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Count the swaps that turn one ranking's list of its first k players into another's.

    Players in only one of the two lists are appended to the other in their order there. Both lists are then permutations of the same players, and
    their Cayley distance is players less cycles: a distance, 0 for equal lists alone.
    """
    out = np.zeros((a.shape[0], a.shape[2]))
    _count_list_swaps(np.ascontiguousarray(a, np.int64), np.ascontiguousarray(b, np.int64), min(k, a.shape[1]), out)
    return out
