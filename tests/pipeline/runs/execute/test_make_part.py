"""A part is made once, found afterwards, and believed only if its bytes are those that were written; rows that cannot be read are tried twice."""

import dataclasses
import hashlib

import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.dataset.files.listing import Rejected
from leafledger.pipeline.errors import ClusterLost, InvalidData, InvalidLabel, InvalidRun, StorageError
from leafledger.pipeline.runs.execute import make_part as part
from leafledger.pipeline.runs.records import folder as folder_
from leafledger.pipeline.stores import commit, storage
from tests.pipeline.running import ready


@pytest.fixture
def where(example, tmp_path):
    """Where a worker finds what it needs, and the first item."""
    run, tables = ready(example, tmp_path / "run", ids=["flight"])
    return (run.job.out, tables.recipe, tables.uri), run.plan.items[0]


def test_a_part_is_made_once(where):
    """The second attempt finds the first one's, and says that it took no time; size and digest are the object's own."""
    names, item = where
    assert part.fetch_part(*names[:2], item) is None
    first, second = (part.make_or_fetch_part(*names, item) for _ in range(2))
    uri = folder_.RunFolder(names[0]).part(first.part)
    data = storage.read(uri)
    assert (first.size, first.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert first.seconds > 0
    assert second == dataclasses.replace(first, seconds=0.0) == part.fetch_part(*names[:2], item)
    assert uri == f"{names[0]}/attributions/part-00000.parquet"
    assert first.n_rows == item.n_rows == pq.read_metadata(uri).num_rows


def test_an_attempt_that_was_overtaken_takes_the_other_s(where, monkeypatch):
    """Both looked and found nothing; the store lets one create the object."""
    names, item = where
    create, made = commit.create, []

    def overtaken(uri, local):
        if not made:
            made.append(None)
            made.append(part.make_or_fetch_part(*names, item))
        return create(uri, local)

    monkeypatch.setattr(commit, "create", overtaken)
    found = part.make_or_fetch_part(*names, item)
    assert found == dataclasses.replace(made[1], seconds=0.0)


def test_a_part_that_is_damaged_where_it_lies_is_named(where):
    """A page, or a state; nothing is written over it."""
    names, item = where
    uri = folder_.RunFolder(names[0]).part(part.make_or_fetch_part(*names, item).part)
    sound = storage.read(uri)
    chunk = pq.read_metadata(uri).row_group(0).column(1)
    states = sound.rindex(b'"importance": "') + 200
    for at in (chunk.data_page_offset + chunk.total_compressed_size - 1, states):
        damaged = sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :]
        with open(uri, "wb") as file:
            file.write(damaged)
        with pytest.raises(InvalidRun, match=r"part-00000\.parquet: damaged, or arrived damaged, remove it if it stays so[^\n]*$"):
            part.make_or_fetch_part(*names, item)
        assert storage.read(uri) == damaged
    storage.local_path(uri).unlink()
    assert storage.read(folder_.RunFolder(names[0]).part(part.make_or_fetch_part(*names, item).part)) == sound


def test_a_part_of_another_plan_is_refused(where):
    """It is of another run, and stays."""
    names, item = where
    uri = folder_.RunFolder(names[0]).part(part.make_or_fetch_part(*names, item).part)
    with pytest.raises(InvalidRun, match="a part of another plan"):
        part.read_part(uri, item, storage.local_path(uri), "b" * 64, 0.0)
    storage.local_path(uri).rename(folder_.RunFolder(names[0]).part(1))
    with pytest.raises(InvalidRun, match=r"part-00001\.parquet: says that it is of other rows than the plan's part 1$"):
        part.fetch_part(*names[:2], dataclasses.replace(item, part=1, first_row=item.first_row + 1))


@pytest.mark.parametrize(
    ("raised", "becomes", "n_tries"),
    [
        ([], "part", 1),
        ([InvalidData("flipped on its way")], "part", 2),
        ([InvalidData("once"), InvalidData("f.parquet: damaged")], "rejected", 2),
        ([InvalidLabel("once"), InvalidLabel("f.parquet: row 3: label is inf")], InvalidLabel, 2),
        ([InvalidRun("another plan's")], InvalidRun, 1),
        ([StorageError("away")], StorageError, 1),
        ([InvalidData("once"), ClusterLost("away")], ClusterLost, 2),
    ],
)
def test_rows_that_cannot_be_read_are_tried_twice(where, monkeypatch, raised, becomes, n_tries):
    """Then the item is left out with the second reason; a label that cannot be shared out and whatever is wrong elsewhere end the run."""
    names, item = where
    tries, make = [], part.make_or_fetch_part

    def fail_first(*given):
        tries.append(given)
        if len(tries) <= len(raised):
            raise raised[len(tries) - 1]
        return make(*given)

    monkeypatch.setattr(part, "make_or_fetch_part", fail_first)
    if isinstance(becomes, str):
        found = part.make_part_or_reject(*names, item)
        expected = Rejected(item.part, item.uri, item.row_groups, item.n_rows, "f.parquet: damaged")
        assert found == (expected,) if becomes == "rejected" else [each.part for each in found] == [item.part]
    else:
        with pytest.raises(becomes):
            part.make_part_or_reject(*names, item)
    assert tries == [(*names, item, {}, map)] * n_tries
