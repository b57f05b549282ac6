"""What is written of drift is the same bytes wherever runs are measured: in this process, on one worker, on two, in whatever order tasks end."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import drift, explain
from leafledger.pipeline.drift.measure import measured_groups, measured_run
from leafledger.pipeline.methods import worker_memory as sizes
from tests.more import more
from tests.pipeline.conftest import local_workers, train, write_data
from tests.pipeline.running import contents

ROW_GROUP = 250
FEW_ROWS, MANY_ROWS = ROW_GROUP, 1 << 18  # that a work item aims at: a part of every row group, and of every file
PARTS = {FEW_ROWS: 15, MANY_ROWS: 4}
MOMENTS = ("mean", "spread", "mean_abs", "spread_abs")
RTOL = 1e-12  # of sums of 3,000 numbers that are added up in another order


@pytest.fixture(scope="module", params=[FEW_ROWS, MANY_ROWS], ids=["many parts", "few parts"])
def nights(request, example, frames, tmp_path_factory):
    """Two nights, the second by a model of its own, and what is written of their drift when all is done in this process."""
    folder = tmp_path_factory.mktemp("same")
    train(frames[1].assign(delay=frames[1]["delay"] * 2)).save_model(folder / "second.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "ITEM_ROWS", request.param)
        for name, model, frame in zip("ab", (example.model, folder / "second.txt"), frames, strict=True):
            data = write_data(frame, folder / f"data-{name}", row_group_size=ROW_GROUP)
            explain(model, data, folder / name, values=True, ids=["flight"], scheduler="serial")
        assert len(list((folder / "a" / "attributions").iterdir())) == PARTS[request.param]
        yield folder, compared(folder, scheduler="serial")


@pytest.fixture(scope="module", params=[*more(1), 2], ids=["one worker", "two workers"])
def scheduler(request):
    """Of a local cluster."""
    with local_workers(request.param) as address:
        yield address


def compared(folder, **where):
    """Every object that comes of a comparison in which nothing was measured before."""
    for name in "ab":
        shutil.rmtree(folder / name / "after", ignore_errors=True)
        (folder / name / "after.json").unlink(missing_ok=True)
    drift(folder / "b", against=folder / "a", by="carrier", both_ways=True, **where)
    return {f"{name}/{uri}": data for name in "ab" for uri, data in contents(folder / name).items() if uri.startswith("after")}


@pytest.mark.slow
def test_a_cluster_writes_the_same_bytes(nights, scheduler):
    """The comparison as table and document, what was counted of both nights, of all rows and group by group, and the record of these."""
    folder, expected = nights
    found = compared(folder, scheduler=scheduler)
    assert sorted(name.partition("-")[0] for name in found) == [
        *("a/after.json", "a/after/distributions", "a/after/distributions.parquet"),
        *("b/after.json", "b/after/distributions", "b/after/distributions.parquet", "b/after/drift.json", "b/after/drift.parquet"),
    ]
    document = json.loads(found["b/after/drift.json"])
    assert document["alarms"]
    assert document["groups"]
    assert document["parts"][0]["model"] != 0.0
    assert found == expected


@pytest.mark.parametrize("seed", [0, *more(1)])
@pytest.mark.slow
def test_tasks_may_end_in_any_order(nights, monkeypatch, seed):
    """Counts add up exactly, moments are merged by the number of the part."""
    folder, expected = nights
    rng, orders = np.random.default_rng(seed), []

    def shuffled(where, work, warm, task, items, memory):
        order = rng.permutation(len(items)).tolist()
        orders.append(order)
        return ((items[place], work(task, items[place])) for place in order)

    for module in (measured_run, measured_groups):
        monkeypatch.setattr(module, "map_items", shuffled)
    assert compared(folder, scheduler="serial") == expected
    assert len(orders) == 4
    assert any(order != sorted(order) for order in orders)


@pytest.mark.slow
def test_more_parts_count_the_same(example, frames, tmp_path, monkeypatch):
    """How rows are cut into parts changes no count and no extreme; of moments the last digits alone."""
    tables, data = [], [write_data(frame, tmp_path / f"data-{name}", row_group_size=ROW_GROUP) for name, frame in zip("ab", frames, strict=True)]
    for rows in (FEW_ROWS, MANY_ROWS):
        monkeypatch.setattr(sizes, "ITEM_ROWS", rows)
        runs = [tmp_path / f"{rows}-{name}" for name in "ab"]
        for night, run in zip(data, runs, strict=True):
            explain(example.model, night, run, values=True, scheduler="serial")
        drift(runs[1], against=runs[0], scheduler="serial")
        tables.append(pq.read_table(pa.BufferReader(contents(runs[0])["after/distributions.parquet"])))
    few, many = tables
    assert few.drop(MOMENTS).equals(many.drop(MOMENTS))
    for name in MOMENTS:
        assert_allclose(few[name].drop_null().to_numpy(), many[name].drop_null().to_numpy(), rtol=RTOL)
