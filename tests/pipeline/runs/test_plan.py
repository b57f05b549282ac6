"""Plans: from footers alone, the same from the same input, and readable again."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.dataset import listing
from pipeline.errors import InvalidData, InvalidRun, SchemaMismatch, UsageError
from pipeline.models import load_ensemble
from pipeline.models.cityhash import HashedCategory
from pipeline.models.model import Feature
from pipeline.runs import plan
from pipeline.runs.job import make_job
from pipeline.runs.options import Options
from pipeline.runs.stages import plan_run


def planned(example, data, **arguments):
    """The plan of a job on ``data``, and the memory it takes."""
    run = plan_run(make_job(example.model, data, "/nowhere/run", Options(**arguments)), load_ensemble(example.model))
    return run.plan, run.memory


@pytest.mark.parametrize(
    ("counts", "groups"),
    [
        ([], []),
        ([5], [(0,)]),
        ([4, 4, 4], [(0, 1), (2,)]),
        ([20, 1, 1], [(0,), (1, 2)]),
        ([0, 0, 10], [(0, 1, 2)]),
        ([10, 10], [(0,), (1,)]),
    ],
)
def test_row_groups_are_grouped_in_order(counts, groups):
    """Consecutive row groups up to the aim; a larger one alone."""
    assert listing._group(counts, 10) == groups


def test_a_plan_reads_back_as_it_was(example):
    """JSON and back is the same record, hashed categories and partitions included, and has the same digest."""
    made, _ = planned(example, example.data, ids=["flight"])
    hashed = Feature("c", True, (HashedCategory(7), HashedCategory(2**32 - 1)))
    for same in (made, plan.dataclasses.replace(made, features=(hashed, Feature("d", True, ("a", "b")), Feature("e", True, (1, 2.5))))):
        assert plan.from_json(plan.to_json(same), "plan.json") == same
    again, _ = planned(example, example.data, ids=["flight"])
    assert plan.digest(again) == plan.digest(made)
    assert again == made
    assert [item.partition for item in made.items] == [(("month", month),) for month in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [
        ({"method": "semivalue", "parameters": {"density": "0:0,0.5:2,1:0"}}, {"atoms": (), "density": ((0.0, 0.0), (0.5, 2.0), (1.0, 0.0))}),
        ({"method": "semivalue", "parameters": {"atoms": [[0.1, 1], (0.3, 1e-300)]}}, {"atoms": ((0.1, 1.0), (0.3, 1e-300)), "density": ()}),
        ({"method": "probabilistic", "parameters": {"sizes": [0.1, 0.2, 1 / 3, 0]}}, {"sizes": (0.1, 0.2, 1 / 3, 0.0), "weights": ()}),
        ({"method": "owen", "partition": {"b": ["month", "delay"], "a": ["carrier"]}}, {}),
        ({"interactions": "7", "partition": {"b": ["month", "delay"]}}, {}),
        ({"interactions": "all"}, {}),
    ],
)
def test_parameters_and_partitions_read_back_as_they_were(example, arguments, parameters):
    """Numbers, lists of numbers, points, groups and interactions come back from JSON equal, with the same digest."""
    made, _ = planned(example, example.data, **arguments)
    assert dict(made.parameters) == parameters
    read = plan.from_json(plan.to_json(made), "plan.json")
    assert read == made
    assert hash(read) == hash(made)
    assert plan.to_json(read) == plan.to_json(made)


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


def test_partition_values_are_integers_or_strings():
    """As in Hive: a column of integers where every value is one, strings else, percent-encoded, with a name for null."""
    paths = ["d/a=1/b=x%2Fy/f", "d/a=-2/b=3/f", "d/a=__HIVE_DEFAULT_PARTITION__/b=z/f"]
    types = listing._partition_types(paths)
    assert types == {"a": int, "b": str}
    assert [dict(listing._partition(path, types)) for path in paths] == [{"a": 1, "b": "x/y"}, {"a": -2, "b": "3"}, {"a": None, "b": "z"}]


def test_files_that_differ_are_named(example, tmp_path):
    """A file without a column, with another type, or that is no Parquet file is refused by its name."""
    good = pq.read_table(f"{example.data}/month=1/data.parquet", partitioning=None)
    good = good.append_column("month", pa.array([1] * good.num_rows))
    pq.write_table(good, tmp_path / "a.parquet")
    for table, says in (
        (good.drop_columns("delay"), "b.parquet: column 'delay' missing"),
        (good.set_column(3, "delay", good["delay"].cast(pa.string())), "b.parquet: column 'delay' is string, the model was trained on numbers"),
        (good.set_column(0, "flight", good["flight"].cast(pa.int32())), "b.parquet: id column 'flight' is int32, it is int64 in"),
    ):
        pq.write_table(table, tmp_path / "b.parquet")
        with pytest.raises(SchemaMismatch, match=says):
            planned(example, tmp_path, ids=["flight"])
    for damage in (b"", b"PAR1", b"a,b\n1,2\n" * 100, (tmp_path / "a.parquet").read_bytes()[:-9]):
        (tmp_path / "b.parquet").write_bytes(damage)
        with pytest.raises(InvalidData, match=r"b\.parquet: not a Parquet file") as refusal:
            planned(example, tmp_path, max_rejected=0)
        assert "\n" not in str(refusal.value)


def test_a_partition_that_cannot_be_the_feature_is_refused(example, tmp_path):
    """A feature's value in the path must have the feature's type."""
    path = tmp_path / "month=January" / "f.parquet"
    path.parent.mkdir()
    pq.write_table(pq.read_table(f"{example.data}/month=1/data.parquet", partitioning=None), path)
    with pytest.raises(SchemaMismatch, match=r"f\.parquet \(its path\): column 'month' is string, the model was trained on numbers"):
        planned(example, tmp_path)


def test_an_empty_folder_is_refused(example, tmp_path):
    """No files is a mistake; files without rows are not."""
    with pytest.raises(UsageError, match="no Parquet files there"):
        planned(example, tmp_path)


def test_memory_is_projected(example):
    """A slice shrinks with the number of values of a row, so that a worker's memory does not grow with it; interactions count."""
    made, memory = planned(example, example.data)
    assert made.slice_rows == plan.SLICE_ROWS
    wide = plan.max_slice_rows(1_000_000)
    assert wide == plan.BATCH
    assert plan.max_slice_rows(2000) * 2000 * 8 <= plan.SLICE_BYTES
    assert memory.row_group > 0
    _, more = planned(example, example.data, interactions="all")
    assert more.slice > memory.slice
    assert more.tables > memory.tables
    assert more.total == plan.WORKER_OVERHEAD + more.tables + more.slice + more.row_group + more.footer


def test_wide_outputs_are_cut_into_smaller_items(example, monkeypatch):
    """A part has so many column chunks at most, unless one row group of the input has more; its footer is projected."""
    monkeypatch.setattr(plan, "SLICE_ROWS", plan.BATCH)
    one, _ = planned(example, f"{example.data}/month=1")
    monkeypatch.setattr(plan, "ITEM_CHUNKS", 5 * 400 // plan.BATCH)  # of 5 columns, so many rows that one row group of 300 fits
    made, memory = planned(example, f"{example.data}/month=1")
    assert len(one.items) == 1
    assert [item.n_rows for item in made.items][:-1] == [300] * (len(made.items) - 1)
    assert sum(item.n_rows for item in made.items) == one.n_rows
    assert memory.footer >= -(-300 // plan.BATCH) * 5 * plan.CHUNK_BYTES


def test_a_plan_of_another_version_is_refused(example):
    """What it lacks is named, and what to do."""
    fields = json.loads(plan.to_json(planned(example, example.data)[0]))
    del fields["groups"]
    with pytest.raises(InvalidRun, match=r"^run/plan\.json: not a plan of this version, it has no 'groups'; choose another output or remove it$"):
        plan.from_json(json.dumps(fields), "run/plan.json")
