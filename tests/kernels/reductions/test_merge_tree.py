"""The tree of merges is one and the same, in whatever order states come, one by one or merged before."""

from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.reductions.merge_tree import MergeTree


def fold(states):
    """The definition: eight neighbours at a time, left to right, level by level; what is not there is left out, and single ones stay."""
    while len(states) > 1:
        eights = ([state for state in states[i : i + 8] if state is not None] for i in range(0, len(states), 8))
        states = [(f"({''.join(some)})" if len(some) > 1 else some[0]) if some else None for some in eights]
    return states[0] if states else None


def tree():
    return MergeTree(lambda states: f"({''.join(states)})")


def named(n, missing):
    return [None if k in missing else f"{k}." for k in range(n)]


some_places = st.integers(0, 600).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, max(0, n - 1))), st.randoms(use_true_random=False)))


@given(some_places, st.booleans())
def test_the_order_does_not_show(given_places, told):
    """Nor whether it is told that there is nothing in a place."""
    n, missing, random = given_places
    states, merged = named(n, missing), tree()
    places = [k for k in range(n) if told or k not in missing]
    random.shuffle(places)
    for k in places:
        merged.add(k, states[k])
    assert merged.total() == fold(states)
    assert merged.total() is None


@given(some_places, st.sampled_from([1, 2]))
def test_what_was_merged_before_has_its_place(given_places, level):
    """Trees of 8 or 64 neighbours, of which some are merged elsewhere, in any order, and some come one by one."""
    n, missing, random = given_places
    states, merged, size = named(n, missing), tree(), 8**level
    starts = list(range(0, n, size))
    random.shuffle(starts)
    for start in starts:
        some = {k: states[k] for k in range(start, min(n, start + size))}
        if random.random() < 0.3:
            for k, state in some.items():
                merged.add(k, state)
            continue
        part = tree()
        for k, state in some.items():
            part.add(k, state)
        merged.add(start // size, part.total(), level)
    assert merged.total() == fold(states)


def test_few_are_held_of_what_comes_in_turn():
    """At most seven on each level, so that a hundred thousand states take the memory of some thirty."""
    merged = tree()
    for k in range(5000):
        merged.add(k, "x")
        assert sum(len(node) for node in merged._waiting.values()) <= 7 * 5
