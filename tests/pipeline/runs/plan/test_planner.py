"""What is planned of a job: groups by their content, work items of a size that fits, and the memory that they take."""

from leafledger.kernels.trees.binning import BATCH
from leafledger.pipeline.methods import worker_memory as sizes
from leafledger.pipeline.runs.records import plan
from tests.pipeline.running import planned


def test_the_content_of_a_partition_is_planned(example, tmp_path):
    """A changed file is another run, the same groups written otherwise are the same one."""
    path = tmp_path / "groups.json"
    digests = []
    for text in ('{"b": ["month", "delay"]}', '{"b": ["delay", "month"], "carrier": ["carrier"]}', '{"b": ["delay", "carrier"]}'):
        path.write_text(text)
        digests.append(plan.digest(planned(example, example.data, partition=path)[0]))
    assert digests[0] == digests[1] != digests[2]
    assert planned(example, example.data, partition=str(path))[0].groups == (
        ("distance", ("distance",)),
        ("b", ("delay", "carrier")),
        ("month", ("month",)),
    )


def test_memory_is_projected(example):
    """A slice shrinks with the number of values of a row, so that a worker's memory does not grow with it; interactions count."""
    made, memory = planned(example, example.data)
    assert made.slice_rows == sizes.SLICE_ROWS
    wide = sizes.max_slice_rows(1_000_000)
    assert wide == BATCH
    assert sizes.max_slice_rows(2000) * 2000 * 8 <= sizes.SLICE_BYTES
    assert memory.row_group > 0
    _, more = planned(example, example.data, interactions="all")
    assert more.slice > memory.slice
    assert more.tables > memory.tables
    assert more.total == sizes.WORKER_OVERHEAD + more.tables + more.slice + more.row_group + more.footer


def test_wide_outputs_are_cut_into_smaller_items(example, monkeypatch):
    """A part has so many column chunks at most, unless one row group of the input has more; its footer is projected."""
    monkeypatch.setattr(sizes, "SLICE_ROWS", BATCH)
    one, _ = planned(example, f"{example.data}/month=1")
    monkeypatch.setattr(sizes, "ITEM_CHUNKS", 5 * 400 // BATCH)  # of 5 columns, so many rows that one row group of 300 fits
    made, memory = planned(example, f"{example.data}/month=1")
    assert len(one.items) == 1
    assert [item.n_rows for item in made.items][:-1] == [300] * (len(made.items) - 1)
    assert sum(item.n_rows for item in made.items) == one.n_rows
    assert memory.footer >= -(-300 // BATCH) * 5 * sizes.CHUNK_BYTES
