"""The record of a part: refused where its object is gone, without what it took where that is not asked for, and with the files left out of it."""

import pytest

from leafledger.pipeline.cluster.resource_usage import PartTimings
from leafledger.pipeline.cluster.worker_identity import Machine, Worker
from leafledger.pipeline.dataset.files.listing import Joined, Rejected, WorkItem
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.records.folder import RunFolder
from leafledger.pipeline.runs.records.part import Part, check_there, list_sizes, reject, without_costs
from leafledger.pipeline.stores import storage
from leafledger.pipeline.stores.traffic import Moved


def made(number, size=4, **given):
    """A part of so many bytes."""
    return Part(number, 1, size, "0" * 64, None, 2.0, given.pop("states", {}), Worker(Machine("here", "a cpu"), 1), **given)


def listed(number, size=4):
    """Such a part as a manifest has it."""
    return {"part": number, "uri": f"attributions/part-{number:05d}.parquet", "n_rows": 1, "size": size, "sha256": "0" * 64}


def test_parts_that_are_not_there_any_more_are_refused(tmp_path):
    """Or are of another size; where there is no folder of parts none is there."""
    folder, parts = RunFolder(str(tmp_path)), [listed(0), listed(1)]
    with pytest.raises(InvalidRun, match=r"part-00000\.parquet: was removed while the run was made; run the same again$"):
        check_there(folder.uri, parts)
    for part in parts:
        path = storage.local_path(folder.part(part["part"]))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"PAR1")
    check_there(folder.uri, parts)
    with pytest.raises(InvalidRun, match=r"part-00001\.parquet: has 4 bytes, expected the 1,000 that were written$"):
        check_there(folder.uri, [parts[0], listed(1, 1000)])
    with pytest.raises(InvalidRun, match=r"part-00002\.parquet: was removed"):
        check_there(folder.uri, [*parts, listed(2)])
    assert list_sizes(folder.uri, [*parts, listed(2), {"uri": "nowhere/a"}]) == {part["uri"]: 4 for part in parts}


def test_what_a_part_took_is_left_out():
    """But for the seconds, by which it is told from one that was found."""
    part = made(0, states={"importance": "a long text"}, moved=Moved(retried=3), spent=PartTimings(cpu=1.0))
    found = without_costs(part)
    assert (found.states, found.moved, found.spent) == ({}, Moved(), PartTimings())
    assert (found.part, found.seconds, found.worker) == (0, 2.0, part.worker)


def test_files_are_left_out_with_their_reasons():
    """In their order, with the rows and row groups that they would have had; of an item of one file, and of several."""
    more = tuple(Joined(f"{k}.parquet", "", (0, 1), 10 * k) for k in (2, 3))
    item = WorkItem(7, "1.parquet", "", (0,), 0, 60, 0, (), more)
    found = reject(item, {"3.parquet": "damaged", "1.parquet": "changed"})
    assert found == (Rejected(7, "1.parquet", (0,), 10, "changed"), Rejected(7, "3.parquet", (0, 1), 30, "damaged"))
    assert reject(item, {}) == ()
