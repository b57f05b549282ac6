"""Bundles: every item once, in its place, and no fewer tasks than keep many workers busy."""

import dataclasses

import pytest

from leafledger.kernels.reductions.reduction import merge_all
from leafledger.pipeline.dataset.files.listing import Rejected, WorkItem
from leafledger.pipeline.errors import InvalidData
from leafledger.pipeline.methods.reduction_states import pack_state, unpack_state
from leafledger.pipeline.runs.execute import bundles
from leafledger.pipeline.runs.execute import make_part as part
from leafledger.pipeline.runs.execute.bundles import Bundle, BundleResult, Task, choose_level, do_bundle, make_bundles
from leafledger.pipeline.runs.records import part as part_
from tests.pipeline.conftest import write_data
from tests.pipeline.running import ready


def items(n, n_rows):
    return [WorkItem(k, f"f{k}.parquet", "", (0,), 0, n_rows, 0, ()) for k in range(n)]


@pytest.mark.parametrize(
    ("n", "n_rows", "level"),
    [
        *((1, 10, 0), (1000, 10, 0), (1024, 10, 1), (1024, 4096, 1), (1024, 4097, 0), (8192, 10, 2), (9000, 4096, 1)),
        *((10_000, 200_000, 0), (10_001, 200_000, 1), (80_000, 200_000, 1), (80_001, 200_000, 2), (1_000_000, 200_000, 2)),
    ],
)
def test_small_items_and_many_are_done_together(n, n_rows, level):
    """32,768 rows and 64 items in a task at most, and 128 tasks at least; of larger items, 10,000 tasks at most."""
    assert choose_level(items(1, n_rows) * n) == level


@pytest.mark.parametrize("level", [0, 1, 2])
def test_every_item_is_in_the_bundle_of_its_place(level):
    """Where some are done already, those left stay in their places; what an earlier run has goes along."""
    left, size = [item for item in items(200, 1) if item.part not in (3, 64, *range(72, 80))], 8**level
    earlier = {5: ("there", left[0]), 199: ("there", left[1])}
    made = make_bundles(left, earlier, level)
    assert [item for bundle in made for item in bundle.items] == left
    assert all(item.part // size == bundle.place for bundle in made for item in bundle.items)
    assert len({bundle.place for bundle in made}) == len(made) == len({bundle.name for bundle in made})
    assert {part: found for bundle in made for part, found in bundle.earlier.items()} == earlier
    alone = [one for bundle in made for one in bundle.split()]
    assert [one.items for one in alone] == [(item,) for item in left]
    assert all((one.level, one.place) == (0, one.items[0].part) for one in alone)
    assert {part: found for one in alone for part, found in one.earlier.items()} == earlier


def test_other_work_has_another_name():
    """Two attempts may have other items left of a bundle: Dask would take the one's result for the other's."""
    some = tuple(items(8, 1))
    names = {Bundle(1, 0, some).name, Bundle(1, 0, some[1:]).name, Bundle(1, 0, some[:-1]).name, Bundle(0, 0, some[:1]).name}
    assert len(names) == 4
    assert Bundle(1, 0, some).name == Bundle(1, 0, some).name


@pytest.mark.parametrize(
    "change", [{"uri": "f9.parquet"}, {"etag": "1"}, {"row_groups": (1,)}, {"skip": 1}, {"n_rows": 2}, {"partition": (("month", "1"),)}]
)
def test_the_same_part_of_other_rows_has_another_name(change):
    """The folder of a run may have been removed, and the next run there be of other data; one client may still hold what the first returned."""
    (item,) = items(1, 1)
    assert Bundle(0, 0, (item,)).name != Bundle(0, 0, (dataclasses.replace(item, **change),)).name
    assert Bundle(0, 0, (item,)).name == Bundle(0, 0, (dataclasses.replace(item),)).name


def test_other_reasons_have_another_name():
    """They are written with the part."""
    some = tuple(items(1, 1))
    names = {Bundle(0, 0, some, rejected=rejected).name for rejected in ({}, {"f0.parquet": "died"}, {"f0.parquet": "damaged"})}
    assert len(names) == 3


def test_two_attempts_of_a_run_share_its_name_and_no_other_run_does():
    """Neither another recipe nor other tables in the same folder."""
    names = {bundles.name_run(*given) for given in (("a", "b", "c"), ("b", "b", "c"), ("a", "a", "c"), ("a", "b", "b"), ("ab", "", "c"))}
    assert len(names) == 5
    assert bundles.name_run("a", "b", "c") in names


def test_a_bundle_is_its_items_and_their_states_merged(example, tmp_path, monkeypatch):
    """Of parts without what was rejected, whose states would be those of nobody."""
    write_data(example.frame, tmp_path / "data")
    run, tables = ready(example, tmp_path / "run", data=f"{tmp_path}/data")
    task, make = Task(run.job.out, tables.recipe, tables.uri), part.make_or_fetch_part

    def fail_second(where, made_by, uri, item, *rest):
        if item.part == 1:
            raise InvalidData("f.parquet: damaged")
        return make(where, made_by, uri, item, *rest)

    alone = [do_bundle(task, bundle) for bundle in make_bundles(run.plan.items, {}, 0)]
    assert [(done.level, done.place) for done in alone] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert [done.pieces[0].states for done in alone] == [{}] * 4
    monkeypatch.setattr(part, "make_or_fetch_part", fail_second)
    (bundle,) = make_bundles(run.plan.items, {}, 1)
    done = do_bundle(task, bundle)
    assert (done.level, done.place) == (1, 0)
    assert [(type(piece), piece.part) for piece in done.pieces] == [(part_.Part, 0), (Rejected, 1), (part_.Part, 2), (part_.Part, 3)]
    for summary in run.plan.summaries:
        left = [unpack_state(summary.reduction, alone[k].states[summary.name]) for k in (0, 2, 3)]
        assert done.states[summary.name] == pack_state(merge_all(summary.reduction, left, 1, 1))
    assert do_bundle(task, Bundle(0, 1, (run.plan.items[1],))) == BundleResult(0, 1, (done.pieces[1],), None, tables.recipe)
