"""Work items of several small files: rows, their order and their files stay what they are, and a file that cannot be read takes no other with it."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger import check_run, compare, explain, read_run
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.dataset.files.bundling import fill_items
from leafledger.pipeline.dataset.files.listing import Joined, WorkItem
from leafledger.pipeline.dataset.files.pieces import leave_out, split_files, take_rows
from leafledger.pipeline.runs.check.verify_rows import verify_rows
from leafledger.pipeline.runs.records.plan_file import from_json
from tests.pipeline.conftest import SMALL, damage, write_small
from tests.pipeline.running import attributions, contents

ROWS = 100  # of an item, at most


@pytest.fixture(scope="module")
def small(example, tmp_path_factory):
    """Small files, and runs of them in parts of one file each, and of several."""
    folder = tmp_path_factory.mktemp("small")
    data = write_small(example.frame, folder / "data")
    explain(example.model, data, folder / "apart", ids=["flight", "name", "month"], scheduler="serial", item_rows="file")
    explain(example.model, data, folder / "joined", ids=["flight", "name", "month"], scheduler="serial", item_rows=ROWS)
    return data, folder / "apart", folder / "joined"


def read_all(run):
    """All parts of a run, with texts in the place of dictionaries, and without what a column may not be, which differ from part to part."""
    tables = [pq.read_table(path) for path in sorted(run.glob("attributions/*"))]
    kinds = [(each.name, pa.string() if each.name == "name" else each.type) for each in tables[0].schema]
    return pa.concat_tables([table.cast(pa.schema(kinds)) for table in tables])


@pytest.mark.slow
def test_rows_of_several_files_are_what_they_are_apart(small):
    """The same values bit by bit, in the same order, with ids and the columns of paths; no part is of two partitions, or of more rows than asked."""
    data, apart, joined = small
    mine, theirs = read_all(joined), read_all(apart)
    assert mine.equals(theirs)
    items = json.loads((joined / "plan.json").read_text())["items"]
    assert [item["n_rows"] for item in items] == [82, 99, 2, 120, 32] * 2
    assert all(
        {f"/month={m}/" in file["uri"] for file in (item, *item.get("joined", ())) for m in [item["partition"][0][1]]} == {True} for item in items
    )
    assert {file["uri"] for item in items for file in (item, *item.get("joined", ()))} == {str(path) for path in data.rglob("*.parquet")}
    means = [pq.read_table(run / "summary" / "importance.parquet").to_pydict() for run in (joined, apart)]
    np.testing.assert_allclose(means[0]["mean_abs"], means[1]["mean_abs"], rtol=1e-12)
    assert "joined" not in (apart / "plan.json").read_text()
    assert check_run(joined, deep=True, all_rows=True).n_again == 2 * sum(SMALL)
    assert check_run(joined, deep=True).n_again == 2 * (64 + 64 + 2 + 64 + 32)


@pytest.mark.parametrize("made", ["kept", "lost"])
@pytest.mark.slow
def test_a_run_of_joined_files_goes_on_from_where_it_stopped(example, small, tmp_path, made, two_workers):
    """With two workers too: the bytes are those of one process."""
    data, _, joined = small
    whole = contents(joined)
    if made == "kept":
        shutil.copytree(joined, tmp_path / "run")
        for name in ("manifest.json", "provenance.json", "attributions/part-00001.parquet", "summary/importance.json"):
            (tmp_path / "run" / name).unlink()
    explain(example.model, data, tmp_path / "run", ids=["flight", "name", "month"], item_rows=ROWS, scheduler=two_workers)
    assert contents(tmp_path / "run") == whole


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_files_that_cannot_be_read_take_no_others_with_them(example, small, tmp_path, capsys):
    """One in the middle of a part, its first two, and all of a part: each file is rejected by its name, with its rows, and all else is there."""
    shutil.copytree(small[0], tmp_path / "data")
    bad = [
        tmp_path / "data" / name
        for name in ("month=1/02.parquet", "month=1/04.parquet", "month=1/05.parquet", "month=2/00.parquet", "month=2/01.parquet")
    ]
    for path in bad:
        damage(path)
    command = ["explain", example.model, str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--id", "flight", "--id", "month"]
    command += ["--item-rows", str(ROWS)]
    assert main([*command, "--scheduler", "serial"]) == 3
    said = capsys.readouterr().err
    assert all(f"rejected: {path}: row group 0: column 'delay': cannot read" in said for path in bad)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    sizes = dict(zip(map(str, bad), (1, 60, 39, 7, 30), strict=True))
    assert {entry["uri"]: entry["n_rows"] for entry in manifest["rejected"]} == sizes
    assert [entry["part"] for entry in manifest["parts"]] == [0, *range(2, 10)]
    lost = np.concatenate([pq.read_table(small[0] / path.relative_to(tmp_path / "data"))["flight"].to_numpy() for path in bad])
    found = attributions(tmp_path / "run")
    whole = read_all(small[1]).drop_columns("name").to_pandas()
    assert found.to_pandas().equals(whole[~whole["flight"].isin(lost)].reset_index(drop=True))
    report = check_run(tmp_path / "run", deep=True, all_rows=True)
    assert (report.n_rows, report.n_again, report.n_rejected) == (2 * sum(SMALL) - 137, 2 * sum(SMALL) - 137, 5)
    before = contents(tmp_path / "run")
    for name in ("manifest.json", "provenance.json", "attributions/part-00005.parquet"):
        (tmp_path / "run" / name).unlink()
    assert main([*command, "--workers", "2"]) == 3  # parts that are there say what they leave out, and those that are made find the same
    assert contents(tmp_path / "run") == before
    shutil.rmtree(tmp_path / "run")
    assert main([*command, "--scheduler", "serial", "--max-rejected", "4"]) == 8
    assert "(5 of 20 pieces of the data rejected, at most 4 may be)" in capsys.readouterr().err


@pytest.mark.slow
def test_a_row_behind_a_file_that_is_left_out_is_shown_with_its_own(example, small, tmp_path):
    """Its file and its number in that, and explained again it is the same."""
    shutil.copytree(small[0], tmp_path / "data")
    damage(tmp_path / "data" / "month=1" / "02.parquet")
    explain(example.model, tmp_path / "data", tmp_path / "run", ids=["flight"], scheduler="serial", item_rows=ROWS)
    path = tmp_path / "data" / "month=1" / "03.parquet"
    flight = pq.read_table(path)["flight"][5].as_py()
    run = read_run(tmp_path / "run")
    found = run.find({"flight": flight})
    (row,) = run.describe(found).rows
    assert (row.file, row.file_row, row.place.row) == (str(path), 5, 7 + 30 + 5)
    verify_rows(run.uri, run.manifest, run.plan, found)


def test_a_change_of_what_a_part_leaves_out_is_found(example, small, tmp_path):
    """A footer that says otherwise than the manifest, and the manifest that says otherwise than footers."""
    shutil.copytree(small[0], tmp_path / "data")
    damage(tmp_path / "data" / "month=1" / "02.parquet")
    explain(example.model, tmp_path / "data", tmp_path / "run", scheduler="serial", item_rows=ROWS)
    manifest, listed = tmp_path / "run" / "manifest.json", tmp_path / "run" / "rejected.json"
    for path in (manifest, listed):
        path.write_text(path.read_text().replace("cannot read", "could not read"))
    with pytest.raises(Exception, match=r"part-00000\.parquet: leaves out 1 file, otherwise than the manifest says"):
        check_run(tmp_path / "run")


@pytest.mark.slow
def test_parts_of_several_files_are_compared_row_by_row(example, small, tmp_path):
    """With the same measures as parts of single files, and rows that differ most by their own file and number; rounding apart."""
    data, *runs = small
    found = []
    for run in runs:
        out = tmp_path / run.name / "compared.parquet"
        compare(example.model, data, out, methods=["banzhaf", f"run:{run}"], ids=["flight"], gap_rows=10_000, scheduler="serial")
        tables = [pq.read_table(out.with_suffix(f"{kind}.parquet")).to_pandas() for kind in ("", ".features", ".rows")]
        found.append([table.assign(**{name: table[name].str.replace(f"run:{run}", "run") for name in ("ranking", "other")}) for table in tables])
    for apart, joined in zip(*found, strict=True):
        pd.testing.assert_frame_equal(apart, joined, rtol=1e-12)
    rows = found[0][2]
    assert rows["file"].nunique() > 3
    for row in rows.itertuples():
        assert pq.read_table(row.file, columns=["flight"], partitioning=None)["flight"][row.row].as_py() == row.flight


@pytest.mark.parametrize("change", [{"n_rows": 0}, {"row_groups": [-1]}, {"uri": None}])
def test_a_plan_of_files_that_cannot_be_is_refused(small, change):
    """A file of no rows, or that is in an item twice."""
    text = (small[2] / "plan.json").read_text()
    plan = json.loads(text)
    first, *others = plan["items"][0]["joined"]
    plan["items"][0]["joined"] = [first | (change if change.get("uri", "") is not None else {"uri": plan["items"][0]["uri"]}), *others]
    with pytest.raises(Exception, match=r"item 0 has (rows that no file has|a file twice)"):
        from_json(json.dumps(plan, indent=1, sort_keys=True), "plan.json")


@st.composite
def items(draw):
    """Items as a listing gives them: of whole files, some of which are cut."""
    made = []
    for k in range(draw(st.integers(1, 8))):
        partition = (("day", draw(st.sampled_from("12"))),)
        for start in range(draw(st.integers(1, 2))):
            made.append(WorkItem(len(made), f"f{k}", "e", (start,), 0, draw(st.integers(1, 9)), 10 * start, partition))
    return made


def rows_of(item):
    """Every row by its file and its number."""
    return [(piece.uri, piece.first_row + i) for piece in item.pieces for i in range(piece.n_rows)]


@given(items(), st.integers(1, 20), st.data())
def test_every_row_stays_where_it_is(made, most, data):
    """Joined items have all rows in their order, those of one partition, and as many as fit; some of them are those of a list of rows."""
    joined = fill_items(made, most)
    assert [row for item in joined for row in rows_of(item)] == [row for item in made for row in rows_of(item)]
    assert [item.part for item in joined] == list(range(len(joined)))
    cut = {item.uri for item in made if sum(other.uri == item.uri for other in made) > 1}
    for item in joined:
        assert len({piece.partition for piece in item.pieces}) == 1
        assert not item.joined or (item.n_rows <= most and not {piece.uri for piece in item.pieces} & cut)
    for first, second in pairwise(joined):
        fits = first.n_rows + second.pieces[0].n_rows <= most and first.partition == second.partition
        assert not fits or {first.uri, second.uri} & cut
    item = data.draw(st.sampled_from(joined))
    skip = data.draw(st.integers(0, item.n_rows - 1))
    n = data.draw(st.integers(1, item.n_rows - skip))
    assert rows_of(take_rows(item, skip, n)) == rows_of(item)[skip : skip + n]
    assert take_rows(item, 0, item.n_rows) == item
    out = data.draw(st.sets(st.sampled_from([piece.uri for piece in item.pieces]), max_size=len(item.joined)))
    assert rows_of(leave_out(item, out)) == [row for row in rows_of(item) if row[0] not in out]
    assert leave_out(replace(item, part=3), out).part == 3


@given(st.integers(1, 40), st.integers(1, 9))
def test_groups_of_files_are_the_files_in_their_order(n, most):
    """Each in one group, of no more groups than asked for, none of which is larger than another by more than what the last one lacks."""
    joined = tuple(Joined(f"f{k}", f"e{k}", (k,), k) for k in range(1, n))
    item = WorkItem(3, "f0", "e0", (0,), 0, 5 + n * (n - 1) // 2, 0, (("a", "1"),), joined)
    groups = split_files(item, most)
    assert [piece for group in groups for piece in group.pieces] == [*item.pieces]
    assert [group.n_rows for group in groups] == [sum(piece.n_rows for piece in group.pieces) for group in groups]
    sizes = [len(group.pieces) for group in groups]
    assert len(groups) <= most
    assert {*sizes[:-1]} <= {max(sizes)}
