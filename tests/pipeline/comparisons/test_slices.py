"""A slice of rows: columns of earlier runs read along with them, whatever the part's own row groups."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from pipeline.comparisons.comparison import Ranking
from pipeline.comparisons.slices import Columns
from pipeline.errors import InvalidRun


@given(sizes=st.lists(st.integers(0, 90), max_size=8))
def test_columns_of_a_run_are_read_along_with_the_rows(part, sizes):
    """So many rows at a time as are asked for, whatever the part's own row groups; every row once."""
    table, ranking = part
    columns, done = Columns(ranking, 0), 0
    for n in sizes:
        if done + n > table.num_rows:
            with pytest.raises(InvalidRun, match=r"part-00000\.parquet: has fewer rows than the data$"):
                columns.take(n)
            return
        found = columns.take(n) if n else np.zeros((2, 2, 0))
        for k, names in enumerate(ranking.columns):
            for j, name in enumerate(names):
                assert_array_equal(found[k, j], table[name].slice(done, n))
        done += n


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    """A part of two outputs and two players, and the ranking that its columns are."""
    run = tmp_path_factory.mktemp("part")
    names = (("phi_0_a", "phi_0_b"), ("phi_1_a", "phi_1_b"))
    values = np.random.default_rng(1).normal(size=(4, 250)).astype(np.float32)
    table = pa.table({"margin": np.zeros(250), **dict(zip((name for some in names for name in some), values, strict=True))})
    (run / "attributions").mkdir()
    pq.write_table(table, run / "attributions" / "part-00000.parquet", row_group_size=70)
    return table, Ranking("run:x", "shapley", "", str(run), names)
