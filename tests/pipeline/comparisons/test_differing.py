"""Rows on which two rankings differ most: the same however they are cut into slices and items, with what both rankings say of them."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.comparisons.differing import COLUMNS, Apart, DifferingRows, Named, Seen, merge_rows
from leafledger.pipeline.errors import SchemaMismatch

N, PAIRS = 30, [(0, 1), (0, 2), (1, 2)]
NAMED = Named(("no", "yes"), ("a", "b", "c"), ("one", "two", "three"), ("id",), 2, 4)


def make_rows(seed):
    """Ids, rankings of three features of which the last has no values, and how far every two are apart, with many ties."""
    rng = np.random.default_rng(seed)
    ranks = [np.argsort(rng.random((2, 3, N)), axis=1) + 1.0 for _ in range(3)]
    seen = [Seen(each, None if r == 2 else rng.normal(size=(2, 3, N))) for r, each in enumerate(ranks)]
    batch = pa.record_batch({"id": pa.array([f"row {i}" for i in range(N)]).dictionary_encode(), "a": rng.normal(size=N)})
    apart = Apart(rng.integers(0, 3, (2, 3, N)).astype(float), rng.choice([-1.0, 0.5, 1.0], (2, 3, N)), rng.choice([0.0, 1.0, 2.5], (2, 3, N)))
    apart.difference[:, 1:] = np.nan
    return batch, seen, apart


def list_rows(rows, cuts, items):
    """Of slices that end at the cuts; of two items where they are cut at ``items``."""
    batch, seen, apart = rows
    packed = []
    for start, stop in zip((0, *items), (*items, N), strict=True):
        kept, edges = DifferingRows(NAMED), [start, *sorted({cut for cut in cuts if start < cut < stop}), stop]
        for first, last in pairwise(edges):
            some = slice(first, last)
            part = [Seen(each.ranks[..., some], None if each.values is None else each.values[..., some]) for each in seen]
            if last > first:
                kept.see(batch.slice(first, last - first), "file", first, part, PAIRS, apart.take(..., some))
        packed.append(kept.pack())
    return merge_rows(packed, NAMED, PAIRS)


@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, N), max_size=6), items=st.lists(st.integers(0, N), max_size=1))
def test_the_rows_are_those_of_a_sort_of_all(seed, cuts, items):
    """By swaps, correlation, difference, and their order; not those that do not differ; at most so many of every output and two rankings."""
    rows = make_rows(seed)
    (_, _, (swaps, correlation, difference)), found = rows, list_rows(rows, cuts, items).to_pylist()
    difference = np.nan_to_num(difference)
    expected = []
    for k, output in enumerate(NAMED.outputs):
        for p, (a, b) in enumerate(PAIRS):
            order = sorted(range(N), key=lambda i, k=k, p=p: (-swaps[k, p, i], correlation[k, p, i], -difference[k, p, i], i))
            differing = [i for i in order if swaps[k, p, i] > 0 or correlation[k, p, i] < 1 or difference[k, p, i] > 0]
            expected += [(output, NAMED.rankings[a], NAMED.rankings[b], place, i) for place, i in enumerate(differing[: NAMED.n_rows], 1)]
    assert [(row["output"], row["ranking"], row["other"], row["place"], row["row"]) for row in found] == expected


def test_rows_say_what_both_rankings_say():
    """Their ids, how far apart they are, which features stand on top of each with which values; null where a ranking has none."""
    batch, seen, apart = make_rows(1)
    table = list_rows((batch, seen, apart), [], [])
    assert table.column_names == [*COLUMNS[:6], "id", *COLUMNS[6:]]
    assert table.schema.field("id").type == pa.string()
    assert {row["other"] for row in table.to_pylist()} == {"two", "three"}
    for row in table.to_pylist():
        k, i = NAMED.outputs.index(row["output"]), row["row"]
        a, b = (NAMED.rankings.index(row[name]) for name in ("ranking", "other"))
        p = PAIRS.index((a, b))
        assert (row["id"], row["file"]) == (f"row {i}", "file")
        assert (row["list_swaps"], row["size_correlation"]) == (apart.swaps[k, p, i], apart.correlation[k, p, i])
        assert row["difference"] == (None if b == 2 else apart.difference[k, p, i])
        for r, name in ((a, "first"), (b, "other_first")):
            order = np.argsort(seen[r].ranks[k, :, i])[:2]
            assert row[name] == [NAMED.features[j] for j in order]
            assert row[f"{name}_values"] == (None if r == 2 else seen[r].values[k, order, i].tolist())


def test_rows_that_differ_in_one_respect_alone_are_listed():
    """By a swap, by their correlation, or by a little in their values; one that differs in nothing is not."""
    batch, seen, _ = make_rows(4)
    apart = Apart(np.zeros((2, 3, N)), np.ones((2, 3, N)), np.zeros((2, 3, N)))
    apart.difference[0, 0, 3], apart.correlation[0, 0, 5], apart.swaps[0, 0, 9] = 0.01, 0.99, 1
    assert [(row["place"], row["row"]) for row in list_rows((batch, seen, apart), [], []).to_pylist()] == [(1, 9), (2, 5), (3, 3)]


def test_rankings_that_agree_list_no_rows():
    """Nor do items without rows, or a comparison without items: the columns are there all the same."""
    batch, seen, _ = make_rows(2)
    found = list_rows((batch, seen, Apart(np.zeros((2, 3, N)), np.ones((2, 3, N)), np.full((2, 3, N), np.nan))), [7], [15])
    nothing = merge_rows(["", DifferingRows(NAMED).pack()], NAMED, PAIRS)
    alone = merge_rows([], NAMED, [])
    for table in (found, nothing, alone):
        assert table.num_rows == 0
        assert table.column_names == [*COLUMNS[:6], "id", *COLUMNS[6:]]
    assert [field.type for field in found.schema if field.name != "id"] == [field.type for field in nothing.schema if field.name != "id"]
    assert found.schema.field("id").type == pa.string()
    lone = DifferingRows(NAMED)
    lone.see(batch, "file", 0, seen[:1], [], Apart(*np.zeros((3, 2, 0, N))))
    assert merge_rows([lone.pack()], NAMED, []).num_rows == 0


def test_ids_of_several_types_are_refused():
    """In one line: files have them otherwise."""
    _, seen, apart = make_rows(3)
    packed = []
    for kind in (pa.string(), pa.int64()):
        kept = DifferingRows(NAMED)
        kept.see(pa.record_batch({"id": pa.nulls(N, kind)}), "file", 0, seen, PAIRS, apart)
        packed.append(kept.pack())
    with pytest.raises(SchemaMismatch, match="id column 'id' is int64 in some files and string in others, expected one type"):
        merge_rows(packed, NAMED, PAIRS)
