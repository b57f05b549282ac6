"""Groups of two nights side by side: each as its rows by themselves, new and gone ones said first, few rows not tested, all tests corrected."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from leafledger import check_run, drift, explain
from leafledger.pipeline.dataset.columns.grouping import GroupColumn
from leafledger.pipeline.drift.compare.groups import FEW_ROWS, SOME, GroupDrift, list_states
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.runs.formats.numbers import FORMAT
from tests.pipeline.conftest import FEATURES, train, write_data
from tests.pipeline.running import attributions


def refuse_constants(text):
    raise ValueError(text)


@pytest.fixture(scope="module")
def compared(nights):
    a, b = nights
    return drift(b, against=a, by="carrier", scheduler="serial")


def carriers(run):
    """Rows of the parts by carrier, "-" for none."""
    table = attributions(run).to_pandas()
    return dict(list(table.groupby(table["value_carrier"].fillna("-"))))


def test_groups_are_in_order_and_new_ones_are_said_first(compared, nights):
    """By pandas' counts: '<b>' came, nobody went, rows without a carrier are the last group."""
    before, now = map(carriers, nights)
    assert [group.values for group in compared.groups] == [("<b>",), ("AA",), ("B6",), ("DL",), ("UA",), (None,)]
    for group in compared.groups:
        name = group.values[0] or "-"
        assert (group.reference_rows, group.rows) == (len(before.get(name, ())), len(now.get(name, ())))
    first = compared.groups[0]
    assert (first.state, first.outputs, first.shifts) == ("new", (), ())
    assert compared.differs[0] == f"groups by carrier that are new: carrier=<b> ({first.rows} rows)"
    assert [group.state for group in compared.groups[1:5]] == ["tested"] * 4


def test_a_group_is_compared_as_its_rows_alone(compared, nights):
    """Means, standard errors, shares and tests by pandas and SciPy; what the change of its mean margin is made of adds up."""
    before, now = map(carriers, nights)
    for group in compared.groups:
        if group.state != "tested":
            continue
        old, new = (night[group.values[0] or "-"] for night in (before, now))
        shifts = {(shift.kind, shift.feature): shift for shift in group.shifts}
        assert {json.loads(shift.group)[0] for shift in group.shifts} == {group.values[0]}
        sizes = np.array([[rows[f"phi_{name}"].abs().mean() for name in FEATURES] for rows in (old, new)], float)
        for j, name in enumerate(FEATURES):
            shift, columns = shifts["phi", name], [rows[f"phi_{name}"].astype(float) for rows in (old, new)]
            assert_allclose(shift.change, columns[1].mean() - columns[0].mean(), atol=1e-9)
            assert_allclose(shift.standard_error, np.hypot(*(column.sem() for column in columns)), rtol=1e-6, atol=1e-12)
            assert_allclose([shift.reference_share, shift.share], sizes[:, j] / sizes.sum(axis=1), rtol=1e-6)
            assert (shift.reference_rows, shift.rows) == (len(old), len(new))
        margin = stats.ks_2samp(old["margin"], new["margin"])
        assert abs(shifts["margin", ""].distance - margin.statistic) < 0.02  # counted in cells
        assert shifts["missing", "delay"].change == pytest.approx(new["value_delay"].isna().mean() - old["value_delay"].isna().mean())
        (split,) = group.outputs
        assert_allclose(split.change, new["margin"].astype(float).mean() - old["margin"].astype(float).mean(), atol=1e-9)
        assert_allclose(split.base + split.features + split.rounding, split.change, atol=1e-9)


def test_mix_and_within_are_the_change_of_the_mean_margin(compared):
    """Of all rows, to the rounding of sums."""
    (mix,), (split,) = compared.mix, compared.outputs
    assert_allclose(mix.change, split.change, atol=1e-9)
    assert_allclose(mix.mix + mix.within, split.change, atol=1e-9)
    assert [group.values for group in mix.groups] == [group.values for group in compared.groups]
    assert_allclose(sum(group.share for group in mix.groups), 1)
    assert mix.mix != 0


def test_all_tests_are_corrected_together(compared, nights):
    """By SciPy's correction of the tests of all rows and of all groups; all rows' own p are as without groups, and corrected for more."""
    every = [*compared.shifts, *(shift for group in compared.groups for shift in group.shifts)]
    tested = [shift for shift in every if not np.isnan(shift.p)]
    assert_allclose([shift.corrected for shift in tested], stats.false_discovery_control([shift.p for shift in tested]), rtol=1e-10)
    alone = drift(nights[1], against=nights[0])
    assert [shift.p for shift in alone.shifts] == pytest.approx([shift.p for shift in compared.shifts if shift.kind != "groups"], nan_ok=True)
    assert (alone.by, alone.groups, alone.mix) == ((), (), ())
    (sizes,) = (shift for shift in compared.shifts if shift.kind == "groups")
    counts = np.array([(group.reference_rows, group.rows) for group in compared.groups]).T
    assert_allclose(sizes.distance, np.abs(np.diff(counts / counts.sum(axis=1, keepdims=True), axis=0)).sum() / 2)
    assert sizes.drifted


def test_thresholds_are_those_of_every_group(compared, nights):
    """Alarms name the group; with a threshold that nothing crosses there are none."""
    lines = [line for line in compared.alarms if line.startswith("carrier=AA: ")]
    assert any(line.startswith("carrier=AA: value of delay: differs by ") for line in lines)
    assert len(lines) == sum(shift.drifted for shift in compared.groups[1].shifts)
    assert not drift(nights[1], against=nights[0], by=["carrier"], thresholds={"false_discovery_rate": 0, "ndcg": 0}).crossed
    orders = drift(nights[1], against=nights[0], by=["carrier"], thresholds={"false_discovery_rate": 0, "ndcg": 1.0}).alarms
    below = [group.group for group in compared.groups if group.state == "tested" and group.outputs[0].ndcg < 1]
    assert [line.split(": ")[0] for line in orders if line.startswith("carrier=")] == below


def test_what_is_written(compared, nights):
    """Strict JSON, a table with the rows of all groups, the same bytes a second time; without groups they are gone, and the run is sound."""
    b, again = nights[1], drift(nights[1], against=nights[0], by="carrier")
    document = json.loads((b / "after" / "drift.json").read_text(), parse_constant=refuse_constants)
    assert document.pop("format_version") == FORMAT
    assert document == json.loads(json.dumps(compared.to_dict())) == json.loads(json.dumps(again.to_dict()))
    rows = pq.read_table(b / "after" / "drift.parquet").to_pylist()
    assert rows == [*document["shifts"], *(shift for group in document["groups"] for shift in group["shifts"])]
    assert {row["group"] for row in rows} == {"", '["AA"]', '["B6"]', '["DL"]', '["UA"]', "[null]"}
    assert "and 6 groups" in repr(compared)
    assert check_run(b).sound
    drift(b, against=nights[0])
    assert {row["group"] for row in pq.read_table(b / "after" / "drift.parquet").to_pylist()} == {""}
    assert check_run(b).sound


@pytest.mark.parametrize("more", [0, 1])
def test_the_first_groups_are_named_and_the_others_counted(more):
    """Nothing more is said where there are no more."""
    found = [GroupDrift(f"k={k}", (k,), "new", 0, 7, (), ()) for k in range(SOME + more)]
    (said,) = list_states([GroupColumn("k", "string")], found)
    assert said.endswith(f"; and {more} more" if more else f"k={SOME - 1} (7 rows)")


def test_groups_of_few_rows_are_said_and_not_tested(example, frames, tmp_path):
    """And those that are gone; their rows are in the mix."""
    before = frames[0].assign(kind=np.where(np.arange(len(frames[0])) < FEW_ROWS - 1, "few", "many"))
    before.loc[100:150, "kind"] = "gone"
    now = frames[1].assign(kind=np.where(np.arange(len(frames[1])) < 500, "few", "many"))
    for name, frame in (("a", before), ("b", now)):
        explain(example.model, write_data(frame, tmp_path / f"data-{name}"), tmp_path / name, ids="kind", scheduler="serial")
    found = drift(tmp_path / "b", against=tmp_path / "a", by=("kind",))
    assert [(group.group, group.state) for group in found.groups] == [("kind=few", "few"), ("kind=gone", "gone"), ("kind=many", "tested")]
    assert found.differs[:2] == (
        "groups by kind that are gone: kind=gone (51 rows)",
        f"groups by kind of fewer than {FEW_ROWS} rows in a night, which are not tested: kind=few",
    )
    assert [bool(group.shifts) for group in found.groups] == [False, False, True]
    assert [len(group.outputs) for group in found.groups] == [1, 0, 1]
    assert not any("kind=few" in line for line in found.alarms)
    assert_allclose(found.mix[0].mix + found.mix[0].within, found.outputs[0].change, atol=1e-9)


@pytest.mark.slow
def test_several_outputs(frames, tmp_path, example):
    """Each has its mix; probabilities too."""
    train(frames[0], objective="multiclass", num_class=3).save_model(tmp_path / "model.txt")
    for name, frame in zip("ab", frames, strict=True):
        data = write_data(frame, tmp_path / f"data-{name}")
        explain(tmp_path / "model.txt", data, tmp_path / name, space="probability", values=True, scheduler="serial")
    found = drift(tmp_path / "b", against=tmp_path / "a", by=["carrier", "month"])
    assert [mix.output for mix in found.mix] == [split.output for split in found.outputs]
    for mix, split in zip(found.mix, found.outputs, strict=True):
        assert_allclose(mix.mix + mix.within, split.change, atol=1e-9)
    for group in found.groups:
        for split in group.outputs:
            assert_allclose(split.base + split.features + split.rounding, split.change, atol=1e-9)


def test_a_night_without_rows(example, nights, tmp_path):
    """All groups are new, or gone; nothing is tested, and the document is JSON."""
    write_data(example.frame.iloc[:1], tmp_path / "data")
    path = next((tmp_path / "data").rglob("*.parquet"))
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    explain(example.model, tmp_path / "data", tmp_path / "run", values=True, scheduler="serial")
    for run, against, state in ((tmp_path / "run", nights[0], "gone"), (nights[0], tmp_path / "run", "new")):
        found = drift(run, against=against, by="carrier")
        assert {group.state for group in found.groups} == {state}
        json.loads(found.text, parse_constant=refuse_constants)
        assert found.alarms == (("no rows, before 3,000",) if state == "gone" else ())


def test_columns_that_do_not_fit_are_refused(example, nights, frames, tmp_path):
    """Of values of another kind than before, not written, named twice: one line."""
    frame = frames[1].assign(kind=1)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for name, column in (("a", table["kind"]), ("b", pa.array(["1"] * len(frame)))):
        (tmp_path / f"data-{name}").mkdir()
        at = table.schema.get_field_index("kind")
        pq.write_table(table.set_column(at, "kind", column), tmp_path / f"data-{name}" / "x.parquet")
        explain(example.model, tmp_path / f"data-{name}", tmp_path / name, ids="kind", scheduler="serial")
    with pytest.raises(UsageError, match=r"/b: 'kind' is string, .*/a has int64; expected the same of both$"):
        drift(tmp_path / "b", against=tmp_path / "a", by="kind")
    with pytest.raises(UsageError, match=r"/b: by has 'kind', of which it has no column") as caught:
        drift(nights[1], against=tmp_path / "a", by="kind")
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match=r"by has 'carrier' twice, expected once"):
        drift(nights[1], against=nights[0], by=["carrier", "carrier"])
    assert pd.notna(frame["kind"]).all()
