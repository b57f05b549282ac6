"""Walks as records of splits in preorder, for kernels with a row per thread; made from the steps and constants of the processor's walks.

On a card all threads of a warp are at the same split, whose numbers each of them loads; arithmetic is cheaper than loads. So a record holds few
numbers, from which every thread computes those that the processor's walk has as constants for every quadrature node (see ``quadrature`` for a, o,
F', r and G). With t a node:

* a player's first split above, where a' = o' = F' = 1: r = a + t (o - a)
* a player that was split on above: r = (a + t (o - a)) / F' where o' = 1, with F' = (1 - t) a' + t, and a / a' where o' = 0
* both children leaves, with D = G(first) - G(second) constant: change = (o - a) D, G = (G(second) + a D) + t change
"""

from typing import NamedTuple

import numpy as np

from ..errors import InvalidParameters
from ..path_dependent.walks import (
    STEP_ABOVE,
    STEP_CONSTANTS,
    STEP_FEATURE,
    STEP_GAIN,
    STEP_KIND,
    STEP_LOWER,
    STEP_MEMBERS,
    STEP_PLACE,
    STEP_SPAN,
    WALK_AGAIN,
    WALK_DOWN,
    WALK_LEAVES,
    WALK_UP_LEAF,
    Walks,
    WalkTables,
)

MOST_LEVELS = 63  # a bit of a word for each, and one for the root
BOTH_INNER, SECOND_LEAF, BOTH_LEAVES = range(3)  # which children of a split are splits
KIND, AGAIN, CATEGORICAL, ABOVE_AT, FEATURE_AT, HIGH_AT = 3, 4, 8, 4, 10, 32  # within a record's second word
MOST_FEATURES = 1 << HIGH_AT - FEATURE_AT
FIRST_NUMBER = 2  # of a record, after its words
# Numbers of a record. If both children are leaves: (a' D, a D, G(second) + a D), or (a' D, a D, D, G(second), G where o' = 0) if it is again;
# otherwise a of both children, and if it is again a / a' of both and a'. Splits that are again have 1 / F' of every node then. The last number is
# the value of a second child that is a leaf.
A, A_SECOND, NONE, NONE_SECOND, A_ABOVE = range(FIRST_NUMBER, FIRST_NUMBER + 5)
PLAIN, SECOND, NEITHER = range(FIRST_NUMBER + 2, FIRST_NUMBER + 5)
MEAN = LEAF = FIRST_NUMBER + 2


class Splits(NamedTuple):
    """Walks with the same number q of quadrature nodes, as records of splits in preorder, the first child's before the second's.

    A record is two words and some numbers. The first word is the lower end and the span of the bins that go to the first child, or where a category
    set starts and whether its members go there; the second the kind of split, the level of the edge whose bit is o', the used feature, and the row of
    phi.
    """

    start: np.ndarray  # (walks,) uint32, walk w's root is the record from start[w] on
    output: np.ndarray  # (walks,) int32, which the tree adds to
    nodes: np.ndarray  # (walks, q) float64
    weights: np.ndarray  # (walks, q) float64
    records: np.ndarray  # float64; words are the bits of numbers
    sets: np.ndarray  # uint32, sets of bins, see BinnedSplits
    rows: int  # of phi that splits add to
    levels: int  # most levels of splits


def _pair(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find every split's step down and its step up, ``(splits,)`` each, in preorder; a split with two leaves has one step."""
    kind = steps[:, STEP_KIND] % WALK_AGAIN
    alone = np.flatnonzero(kind == WALK_LEAVES)
    others = np.flatnonzero(kind != WALK_LEAVES)
    by_level = others[np.argsort(steps[others, STEP_PLACE] // 2, kind="stable")]  # of a level, every second step is the way up of the one before
    down, up = np.append(alone, by_level[::2]), np.append(alone, by_level[1::2])
    order = np.argsort(down)
    return down[order], up[order]


def _divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Divide, with 0 where b is 0: a factor that is multiplied by 0 then."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)


def _inverse(weight: np.ndarray) -> np.ndarray:
    """Return 1 / F' where o' = 1, given its square."""
    if not (weight > 0).all():
        raise InvalidParameters("a branch without training weight has no value where no player is present")
    return np.sqrt(weight)


class _Blocks(NamedTuple):
    """Constants of splits of one kind, and their nodes."""

    down: np.ndarray  # (splits, m) float64, of the step down
    up: np.ndarray  # (splits, m) float64, of the step up; the same step where both children are leaves
    t: np.ndarray  # (splits, q) float64
    width: int  # numbers in a leaf
    leaf: int  # which of them

    def numbers(self, kind: int, again: bool) -> np.ndarray:
        """Return the numbers of the splits' records, ``(splits, m) float64``."""
        q, t = self.t.shape[1], self.t
        if kind == BOTH_LEAVES:
            return self._of_leaves_again(q) if again else self._of_leaves(q)
        leaf = slice(self.up.shape[1], None) if kind == BOTH_INNER else slice(self.up.shape[1] - self.width + self.leaf, None)
        value = self.up[:, leaf][:, :1]
        if not again:
            return np.hstack((self.up[:, :1], _divided(self.down[:, 1:2], 1 - t[:, :1]), value))
        inverse = _inverse(self.up[:, 5 : 2 + 4 * q : 4])
        none, none_second, change_second = self.down[:, 0:1], self.down[:, 2:3], self.down[:, 3:4]
        second = _divided(none_second + change_second, (1 - t[:, :1]) * inverse[:, :1])
        return np.hstack((self.up[:, 1:2], second, none, none_second, self.up[:, :1], inverse, value))

    def _of_leaves(self, q: int) -> np.ndarray:
        step = self.up[:, 2 * self.leaf : 2 * self.leaf + 2]
        sums = self.up[:, 2 * self.width :].reshape(len(self.t), self.width, q, 2)[:, self.leaf]
        return np.hstack((step, sums[:, 0, :1] + self.t[:, :1] * step[:, 1:]))

    def _of_leaves_again(self, q: int) -> np.ndarray:
        inverse, t = _inverse(self.up[:, :q]), self.t
        step = self.up[:, q + 2 * self.leaf : q + 2 * self.leaf + 2]
        sums = self.up[:, q + 2 * self.width :].reshape(len(t), self.width, q, 3)[:, self.leaf]
        plain = _divided(sums[:, -1, 2:], (t * inverse)[:, -1:])
        second = sums[:, 0, :1] + sums[:, 0, 1:2] - ((1 - t) * inverse)[:, :1] * step[:, 1:]
        return np.hstack((step, plain, second, sums[:, 0, :1], inverse))


def find_obstacle(walks: Walks) -> str:
    """Say why walks cannot be taken on a card, or nothing."""
    if int(walks.levels[0]) > MOST_LEVELS:
        return f"trees have {int(walks.levels[0])} levels of splits, at most {MOST_LEVELS} are possible"
    q, steps = walks.nodes.shape[1], walks.steps
    of_step = np.repeat(np.arange(walks.start.size), walks.stop - walks.start)
    down = steps[:, STEP_KIND] == WALK_DOWN
    gain = walks.constants[steps[down, STEP_CONSTANTS][:, None] + 3 * np.arange(q) + 2] if down.any() else np.zeros((0, q))
    if (gain != walks.nodes[of_step[down]]).any():
        return "players of the same tree are present with different probabilities, as for Owen values"
    return ""


def lay_out_splits(walks: Walks, bin_bits: int, leaf: int = 0) -> Splits:
    """Lay out walks, at least one, as splits with one of the numbers in leaves; refuse those that cannot be laid out so."""
    obstacle = find_obstacle(walks)
    if obstacle:
        raise InvalidParameters(obstacle)
    steps, width = walks.steps, int(walks.width[0])
    down, up = _pair(steps)
    last, again = steps[up, STEP_KIND] % WALK_AGAIN, steps[up, STEP_KIND] >= WALK_AGAIN
    kind = np.where(last == WALK_LEAVES, BOTH_LEAVES, np.where(last == WALK_UP_LEAF, SECOND_LEAF, BOTH_INNER))
    walk = np.searchsorted(walks.stop, down, side="right")
    made, size = [], np.zeros(down.size, np.int64)
    for k in (BOTH_INNER, SECOND_LEAF, BOTH_LEAVES):
        for with_above in (False, True):
            mine = np.flatnonzero((kind == k) & (again == with_above))
            if mine.size:
                blocks = _Blocks(_gather(walks, down[mine]), _gather(walks, up[mine]), walks.nodes[walk[mine]], width, leaf)
                made.append((mine, blocks.numbers(k, with_above)))
                size[mine] = made[-1][1].shape[1]
    size += FIRST_NUMBER
    first = np.cumsum(size) - size
    records = np.zeros(size.sum())
    for mine, block in made:
        records[first[mine][:, None] + FIRST_NUMBER + np.arange(block.shape[1])] = block
    words = records.view(np.int64)
    of_down = steps[down].astype(np.int64)
    categorical = of_down[:, STEP_MEMBERS] >= 0
    lower, span, top = of_down[:, STEP_LOWER], of_down[:, STEP_SPAN], (1 << bin_bits) - 1
    members_go = (1 - lower & top) <= (span & top)
    low, high = np.where(categorical, of_down[:, STEP_MEMBERS], lower & top), np.where(categorical, members_go, span & top)
    split = kind | again * AGAIN | categorical * CATEGORICAL | of_down[:, STEP_ABOVE] // 2 << ABOVE_AT | of_down[:, STEP_FEATURE] << FEATURE_AT
    words[first], words[first + 1] = low | high << HIGH_AT, split | steps[up, STEP_GAIN].astype(np.int64) << HIGH_AT
    return Splits(
        start=first[np.searchsorted(down, walks.start)].astype(np.uint32),
        output=walks.output + leaf,
        nodes=walks.nodes,
        weights=walks.weights,
        records=records,
        sets=walks.words,
        rows=int(steps[:, STEP_GAIN].max()) + 1,
        levels=int(walks.levels[0]),
    )


def lay_out_all_splits(walked: WalkTables, bin_bits: int) -> list[Splits]:
    """Lay out all walks, those of each number of nodes and each number in leaves by themselves; refuse as ``lay_out_splits``."""
    return [lay_out_splits(walks, bin_bits, leaf) for walks in walked if walks.start.size for leaf in range(int(walks.width[0]))]


def _gather(walks: Walks, steps: np.ndarray) -> np.ndarray:
    """Return the constants of steps of one kind, ``(steps, m) float64``."""
    q, width = walks.nodes.shape[1], int(walks.width[0])
    sizes = (3 * q, 1 + 2 * q, 1 + 2 * q + width, 2 * width * (1 + q), 5 * q, 2 + 4 * q, 2 + 4 * q + width, q + 2 * width + 3 * width * q)
    size = sizes[walks.steps[steps[0], STEP_KIND]]
    return walks.constants[walks.steps[steps, STEP_CONSTANTS].astype(np.int64)[:, None] + np.arange(size)]
