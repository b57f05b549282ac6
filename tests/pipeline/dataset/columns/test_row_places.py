"""Places of a slice's rows, against a list of them."""

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.dataset.columns.row_places import RowPlaces

FILES = st.lists(st.tuples(st.sampled_from(["a.parquet", "b.parquet", ""]), st.integers(0, 1 << 40), st.integers(1, 5)), min_size=1, max_size=5)


@given(files=FILES)
def test_a_row_is_named_by_its_file_and_its_number_there(files):
    """Of several files, one of them perhaps twice, and of rows that are of no file; the numbers of rows that pad follow the last."""
    where, first_row, sizes = zip(*files, strict=True)
    starts = [0, *accumulate(sizes)]
    places, listed = RowPlaces(where, first_row, tuple(starts[:-1])), [(k, i) for k, n in enumerate(sizes) for i in range(n)]
    assert [places.name(row) for row in range(len(listed))] == [
        f"{where[k]}: row {first_row[k] + i}" if where[k] else f"row {first_row[k] + i}" for k, i in listed
    ]
    assert places.numbers(len(listed)).tolist() == [first_row[k] + i for k, i in listed]
    assert places.numbers(len(listed) + 3).tolist()[len(listed) :] == [first_row[-1] + sizes[-1] + i for i in range(3)]
    assert places.spans(len(listed)) == [*pairwise(starts)]
    assert [places.span_of(row, len(listed)) for row in range(len(listed))] == [(starts[k], starts[k + 1]) for k, _ in listed]


def test_rows_of_one_file():
    """Go on from the number of the first."""
    assert RowPlaces.one("a", 7).name(3) == "a: row 10"
    assert RowPlaces.one("", 7).name(3) == "row 10"
