"""Footers are read each once and in order, and let go; see test_listing for what is made of them."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

import polars
import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.dataset.files import footers
from leafledger.pipeline.dataset.files.listing import list_data
from leafledger.pipeline.errors import InvalidData
from leafledger.pipeline.models import load_ensemble
from tests.pipeline.running import write_copies


@pytest.mark.parametrize(("few", "seconds", "waits", "asked"), [(0, 0.0, 2, [3, 3, 2]), (2, 0.2, 5, [3, 3]), (2, 0.0, 1e9, [])])
def test_files_are_read_each_once_and_in_order(example, tmp_path, monkeypatch, few, seconds, waits, asked):
    """Several at a time where they take their time to come, as the first ones tell. What waits for a reader takes more memory than what is kept
    of its footer, so that of a hundred thousand files few may wait."""
    waiting, read = [], footers.read_footer

    class Readers(ThreadPoolExecutor):
        def map(self, work, files):
            waiting.append(len(files))
            return super().map(work, files)

    def read_late(live, matching):
        time.sleep(seconds)
        return read(live, matching)

    monkeypatch.setattr(footers, "FEW", few)
    monkeypatch.setattr(footers, "WAITS", waits)
    monkeypatch.setattr(footers, "BLOCK", 3)
    monkeypatch.setattr(footers, "ThreadPoolExecutor", Readers)
    monkeypatch.setattr(footers, "read_footer", read_late)
    write_copies(example, tmp_path, *(f"month=1/{k}.parquet" for k in range(8)))
    (tmp_path / "month=1" / "3.parquet").write_bytes(b"PAR1 and no more")
    found = list_data(str(tmp_path), load_ensemble(example.model))
    assert [file.uri[-9:] for file, _, _ in found.files] == [f"{k}.parquet" for k in (0, 1, 2, 4, 5, 6, 7)]
    assert [entry.uri[-9:] for entry in found.rejected] == ["3.parquet"]
    assert waiting == asked


def count_footers():
    """Those that are alive. Types alone are looked at: a weak proxy whose object is gone, left by another test, has nothing else to look at."""
    return sum(issubclass(type(each), pq.FileMetaData) for each in gc.get_objects())


@pytest.mark.slow
def test_footers_are_let_go_as_soon_as_they_are_read(example, tmp_path):
    """None waits to be found as garbage, which comes late where much is alive: a footer has tens of kilobytes."""
    write_copies(example, tmp_path, *(f"month=1/{k}.parquet" for k in range(20)))
    model = load_ensemble(example.model)
    gc.collect()
    gc.disable()
    try:
        before = count_footers()
        found = list_data(str(tmp_path), model)
        after = count_footers()
    finally:
        gc.enable()
    assert (len(found.files), after) == (20, before)


def test_what_arrow_does_not_read_is_no_damage(example, tmp_path):
    """As a column that nobody asks for, of Polars' integers of 128 bits."""
    polars.DataFrame({"large": [7]}, schema={"large": polars.Int128}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InvalidData, match=r"^[^\n]+/a\.parquet: has what Arrow does not read: Integers with more than 64 bits not implemented"):
        list_data(str(tmp_path), load_ensemble(example.model))
