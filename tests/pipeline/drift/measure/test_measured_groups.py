"""A run measured group by group: pandas' groups, the same bytes on a cluster, kept by the columns that make them, and a bounded number of them."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import explain
from leafledger.kernels.distributions.histogram import coarsen
from leafledger.pipeline.cluster.placement import make_placement
from leafledger.pipeline.drift.measure import measured_groups as grouped
from leafledger.pipeline.drift.measure.distribution import Categories
from leafledger.pipeline.drift.measure.measured_groups import count_rows, measure_groups, refuse_ungrouped, say_group, values_of
from leafledger.pipeline.drift.measure.measured_run import measure_run
from leafledger.pipeline.errors import InvalidRun, SchemaMismatch, UsageError
from leafledger.pipeline.methods import worker_memory as sizes
from leafledger.pipeline.progress import no_progress
from tests.pipeline.conftest import FEATURES, write_data
from tests.pipeline.running import attributions

BY = ("carrier", "month")


@pytest.fixture(scope="module")
def runs(example, tmp_path_factory):
    """The same run twice, in many parts of several row groups, with ids and values."""
    folder = tmp_path_factory.mktemp("grouped")
    data = write_data(example.frame, folder / "data", row_group_size=75)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "ITEM_ROWS", 150)
        for name in ("serial", "two"):
            explain(example.model, data, folder / name, values=True, ids=["flight", "name"], precision="float64", scheduler="serial")
    return folder / "serial", folder / "two"


def measure(run, by=BY, **where):
    found = measure_run(run)
    placement = make_placement(where.get("scheduler"), None, where.get("workers"))
    return measure_groups(placement, found, tuple(by), no_progress)


@pytest.mark.slow
def test_groups_are_those_of_pandas(runs):
    """Moments, counts and categories of every column, also of rows without a carrier; the value of the path is a text."""
    found, table = measure(runs[0]), attributions(runs[0]).to_pandas()
    types = pq.read_schema(next((runs[0] / "attributions").iterdir()))
    assert [(column.name, column.type) for column in found.by] == [(name, str(types.field(f"value_{name}").type)) for name in BY]
    assert found.by[1].type == "string"
    expected = {
        json.dumps([None if pd.isna(carrier) else carrier, month]): rows
        for (carrier, month), rows in table.groupby(["value_carrier", "value_month"], dropna=False)
    }
    assert list(found.groups) == sorted(expected)
    assert count_rows(found.groups) == {name: len(expected[name]) for name in sorted(expected)}
    assert '[null, "1"]' in found.groups
    for name, rows in expected.items():
        mine = found.groups[name]
        assert mine.group == name
        for feature in FEATURES:
            phi, column = mine.phi("0", feature), rows[f"phi_{feature}"]
            assert_allclose([phi.mean, phi.std, phi.mean_abs], [column.mean(), column.std(ddof=0), column.abs().mean()], rtol=1e-9, atol=1e-12)
            assert (phi.rows, phi.low, phi.high, phi.counts.sum()) == (len(rows), column.min(), column.max(), len(rows))
        assert_allclose(mine.total("0").mean, rows["margin"].mean(), rtol=1e-10)
        assert mine.value("delay").missing == rows["value_delay"].isna().sum()
        assert dict(mine.value("carrier").counts) == rows["value_carrier"].value_counts().to_dict()


@pytest.mark.slow
def test_all_groups_together_are_all_rows(runs):
    """Counts of every column add up."""
    found, whole = measure(runs[0]), measure_run(runs[0])
    for at, each in enumerate(whole.found):
        mine = [group.found[at] for group in found.groups.values()]
        assert sum(one.rows for one in mine) == each.rows
        assert sum(one.missing for one in mine) == each.missing
        if isinstance(each, Categories):
            continue
        counts = pd.Series(each.found.counts, each.found.cells)
        coarse = [coarsen(one.found, each.found.level) for one in mine]
        parts = pd.concat([pd.Series(one.counts, one.cells) for one in coarse]).groupby(level=0).sum()
        assert_array_equal(parts.index, counts.index)
        assert_array_equal(parts, counts)


@pytest.mark.slow
def test_a_cluster_gives_the_same_bytes_and_they_are_kept(runs, monkeypatch, two_workers):
    """By the columns that make the groups: other columns are measured anew, none is mixed with all rows, and a second time no part is read."""
    one, two = measure(runs[0]), measure(runs[1], scheduler=two_workers)
    assert repr({name: each.found for name, each in one.groups.items()}) == repr({name: each.found for name, each in two.groups.items()})
    kept = [sorted((run / "after").glob("distributions*.parquet")) for run in runs]
    assert [path.name for path in kept[0]] == [path.name for path in kept[1]]
    assert len(kept[0]) == 2
    assert [path.read_bytes() for path in kept[0]] == [path.read_bytes() for path in kept[1]]
    measure(runs[0], ["month"])
    assert len(list((runs[0] / "after").glob("distributions*.parquet"))) == 3
    monkeypatch.setattr(grouped, "measure_groups_of_item", None)
    again = measure(runs[0])
    assert again.by == one.by
    assert repr({name: each.found for name, each in again.groups.items()}) == repr({name: each.found for name, each in one.groups.items()})


@pytest.mark.slow
def test_what_is_not_sound_is_made_again(runs):
    """As of all rows."""
    first = measure(runs[1], ["month"])
    for path in (runs[1] / "after").glob("distributions-*.parquet"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    again = measure(runs[1], ["month"])
    assert repr({name: each.found for name, each in again.groups.items()}) == repr({name: each.found for name, each in first.groups.items()})


def test_groups_by_ids_of_any_type(example, tmp_path):
    """Dates, booleans and categories; values of groups are as JSON has them."""
    table = pa.Table.from_pandas(example.frame[:200], preserve_index=False)
    columns = {
        "day": pa.array([date(2026, 1, 1 + i % 3) for i in range(200)]),
        "yes": pa.array([i % 2 == 0 if i % 5 else None for i in range(200)]),
        "kind": pa.array(["a", "b"] * 100).dictionary_encode(),
        "all": pa.nulls(200, pa.int16()),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    pq.write_table(table, tmp_path / "data.parquet")
    explain(example.model, tmp_path / "data.parquet", tmp_path / "run", ids=[*columns], scheduler="serial")
    found = measure(tmp_path / "run", [*columns])
    assert [column.type for column in found.by] == ["date32[day]", "bool", "string", "int16"]
    frame = pd.DataFrame({name: column.to_pandas() for name, column in columns.items() if name != "all"})
    sizes = frame.groupby(["day", "yes", "kind"], dropna=False, observed=True).size()
    expected = {(str(day), None if pd.isna(yes) else bool(yes), kind, None): n for (day, yes, kind), n in sizes.items()}
    assert {values_of(name): n for name, n in count_rows(found.groups).items()} == expected
    assert say_group(found.by, '["2026-01-01", true, "a", null]') == "day=2026-01-01, yes=True, kind=a, all=–"


def test_too_many_groups_are_refused(runs, monkeypatch):
    """In a part, and in all of them; and where groups and columns together are too many."""
    with pytest.raises(UsageError, match=r"^'flight' make \d+ groups or more, expected at most 128 where runs have 9 columns$"):
        measure(runs[0], ["flight"])
    monkeypatch.setattr(grouped, "MOST_GROUPS", 3)
    with pytest.raises(UsageError, match=r"^'month' make 4 groups or more, expected at most 3 where runs have"):
        _anew(runs[0], ["month"])
    monkeypatch.setattr(grouped, "MOST_GROUPS", 128)
    monkeypatch.setattr(grouped, "MOST_FOUND", 20)
    with pytest.raises(UsageError, match=r"groups or more, expected at most 2 where runs have 9 columns$"):
        _anew(runs[0], ["carrier"])


def _anew(run, by):
    """Whatever was kept."""
    for path in (run / "after").glob("distributions-*.parquet"):
        path.unlink()
    return measure(run, by)


@pytest.mark.slow
def test_what_makes_no_groups_is_refused(example, runs, tmp_path):
    """Columns that were not written, or of floats; runs without columns of attributions; a damaged part: one line each."""
    found = measure_run(runs[0])
    refuse_ungrouped(found, ["flight", "carrier"])
    says = r"serial: by has 'no', of which it has no column; expected an id or a value that it wrote: flight, name, distance, "
    with pytest.raises(UsageError, match=says):
        refuse_ungrouped(found, ["no"])
    with pytest.raises(SchemaMismatch, match=r"column 'distance' is double, expected texts, integers or dates to group rows by$"):
        measure(runs[0], ["distance"])
    for name, options, what in (("top", {"top": 1, "columns": "top"}, "only the largest"), ("none", {"global_only": True}, "summaries alone")):
        explain(example.model, example.data, tmp_path / name, scheduler="serial", **options)
        with pytest.raises(UsageError, match=rf"{name}: has {what}.*, which cannot be compared by month; expected a column for every feature$"):
            refuse_ungrouped(measure_run(tmp_path / name), ["month"])
    explain(example.model, example.data, tmp_path / "plain", scheduler="serial")
    with pytest.raises(UsageError, match=r"expected an id or a value that it wrote: none$"):
        refuse_ungrouped(measure_run(tmp_path / "plain"), ["month"])
    explain(example.model, example.data, tmp_path / "run", values=True, scheduler="serial")
    measure_run(tmp_path / "run")
    part = tmp_path / "run" / "attributions" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:-10])
    with pytest.raises(InvalidRun, match=r"part-00001\.parquet: "):
        measure(tmp_path / "run", ["month"])


def test_no_rows_have_no_groups(example, tmp_path):
    """An empty run is measured and kept."""
    write_data(example.frame.iloc[:1], tmp_path / "data")
    path = next((tmp_path / "data").rglob("*.parquet"))
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    explain(example.model, tmp_path / "data", tmp_path / "run", values=True, scheduler="serial")
    for _ in range(2):
        found = measure(tmp_path / "run", ["carrier"])
        assert found.groups == {}
        assert np.size(found.by) == 1
