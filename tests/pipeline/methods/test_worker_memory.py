"""How many rows are held, written together and explained by a task: bounds that hold whatever a row has."""

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger import explain, read_run
from leafledger.kernels.trees.binning import BATCH
from leafledger.pipeline.methods import worker_memory as sizes
from leafledger.pipeline.methods.worker_memory import ITEM_CHUNKS, ITEM_ROWS, SLICE_BYTES, SLICE_ROWS, max_group_rows, max_item_rows, max_slice_rows


@given(cells=st.integers(0, 10**7), written=st.integers(1, 10**8), n_columns=st.integers(1, 10**6))
def test_sizes_stay_within_their_bounds(cells, written, n_columns):
    """Slices are whole batches, row groups whole slices; only where one of them is too much already do bytes and chunks exceed their bound."""
    slice_rows = max_slice_rows(cells)
    assert BATCH <= slice_rows <= SLICE_ROWS
    assert slice_rows % BATCH == 0
    assert slice_rows == BATCH or slice_rows * cells * 8 <= SLICE_BYTES
    group_rows = max_group_rows(slice_rows, written)
    assert slice_rows <= group_rows <= SLICE_ROWS
    assert group_rows % slice_rows == 0
    assert group_rows == slice_rows or group_rows * written <= SLICE_BYTES
    item_rows = max_item_rows(group_rows, n_columns)
    assert item_rows <= ITEM_ROWS
    assert item_rows <= group_rows or -(-item_rows // group_rows) * n_columns <= ITEM_CHUNKS


def test_bounds_stay_as_they_are():
    """States are merged slice by slice and part by part: with other bounds summaries would have other bits, and workers other peaks of memory."""
    assert max_item_rows(2048, 32) == 262_144  # rows, or row groups of 65,536 column chunks
    assert max_item_rows(2048, 32 * 32) == 2048 * 64
    assert max_slice_rows(1) == max_slice_rows(256) == 32_768  # rows, or 64 MiB
    assert max_slice_rows(256 * 128) == 256
    assert max_group_rows(BATCH, 1) == max_group_rows(BATCH, 2048) == 32_768
    assert max_group_rows(BATCH, 2048 * 128) == 256


@pytest.mark.parametrize(("columns", "groups"), [("top", [512, 252]), ("both", [384, 380])])
def test_slices_are_gathered_into_row_groups(example, tmp_path, monkeypatch, columns, groups):
    """Where few of many attributions are kept a row group has several slices, the last what is left; rows are those of one slice."""
    asked = {"top": 1, "columns": columns, "ids": "flight", "scheduler": "serial"}
    explain(example.model, example.data, tmp_path / "whole", **asked)
    written = 8 * (1 + 1 + 3) + sizes.ENTRY_BYTES  # of a row: its id and margin, and a list of one entry; with "both" 4 attributions more
    monkeypatch.setattr(sizes, "SLICE_ROWS", 1 << 10)
    monkeypatch.setattr(sizes, "SLICE_BYTES", 512 * written)
    monkeypatch.setattr("leafledger.pipeline.runs.plan.planner.max_slice_rows", lambda _: BATCH)
    explain(example.model, example.data, tmp_path / "cut", **asked)
    first = pq.read_metadata(min((tmp_path / "cut" / "attributions").glob("*.parquet")))
    assert [first.row_group(k).num_rows for k in range(first.num_row_groups)] == groups
    whole, cut = (read_run(tmp_path / name).attributions().sort_by("flight") for name in ("whole", "cut"))
    assert cut.equals(whole)
