"""Whatever is changed in a manifest, a plan or a footer is refused in one line; ``make fuzz`` tries every change."""

import shutil

import pytest

from leafledger import explain
from tests import tampering
from tests.more import one_in

CHANGES = 15  # of each file of each run


@pytest.mark.parametrize("kind", one_in(2, [*tampering.KINDS, *tampering.EARLIER]))
@pytest.mark.slow
def test_changed_manifests_and_plans_are_refused(kind):
    """Seeded; also where the plan's digest is made again, and where parts are."""
    assert tampering.try_changes(kind, CHANGES) == []


@pytest.mark.parametrize("global_only", [False, True])
def test_parts_have_rows_where_the_plan_says_so(tmp_path, global_only):
    """Whoever turns rows into summaries alone, or the other way, and makes all digests true, leaves rows that nobody would look at."""
    run = tampering.make_run(tmp_path, "marginal")
    if global_only:
        shutil.rmtree(run)
        given = tampering.KINDS["marginal"] | {"background": str(tmp_path / "data/part=1")}
        explain(tmp_path / "model.txt", tmp_path / "data", run, scheduler="serial", global_only=True, **given)
        (run / "provenance.json").unlink()
    plan = tampering._read(run / tampering.PLAN)
    change = tampering.Change("turned", "global_only", lambda: plan | {"global_only": not global_only})
    assert tampering.try_change(run, tampering.PLAN, change, "all digests", deep=True) is None


def test_a_plan_of_an_output_that_the_model_has_not_is_refused(tmp_path):
    """It ended in a traceback, where all digests were true."""
    run = tampering.make_run(tmp_path, "told")
    plan = tampering._read(run / tampering.PLAN)
    change = tampering.Change("output", "output", lambda: plan | {"output": 2})
    assert tampering.try_change(run, tampering.PLAN, change, "all digests", deep=True) is None


@pytest.mark.slow
def test_an_unchanged_run_is_sound(tmp_path):
    """As it is, and written anew by who changes it: what is refused is refused for its change."""
    run = tampering.make_run(tmp_path, "interactions")
    for name, seal in tampering.TRIED:
        held = tampering.Change("nothing", "", lambda name=name: tampering._read(run / name))
        assert tampering.try_change(run, name, held, seal, deep=True) == "nothing: sound"


def test_every_kind_of_change_is_made():
    """Values of all types, more, less, and others of the same type, at every depth."""
    found = [change.where for change in tampering.list_changes({"a": [1, {"b": "xy"}]})]
    for expected in ("['a'] = null", "['a'][0] = 2", "['a'][0] = [1]", "['a'][1]['b'] = \"yx\"", "del ['a'][1]['b']", "del ['a']", "one more"):
        assert expected in found


@pytest.mark.parametrize("share", [-1.0, float("nan")])
def test_no_part_has_a_residual_below_zero(tmp_path, share):
    """The manifest has the largest of all parts, so that nothing else tells of another one's."""
    run = tampering.make_run(tmp_path, "interactions")
    parts = sorted((run / "attributions").glob("*.parquet"), key=lambda path: tampering._read(path)["residual"])
    footer = tampering._read(parts[0])
    place = str(parts[0].relative_to(run))
    change = tampering.Change("residual", "residual", lambda: footer | {"residual": share * footer["residual"] - 1e-300})
    assert tampering.try_change(run, place, change, "digests of parts", deep=False) is None


@pytest.mark.parametrize("field", ["text", "code"])
def test_words_that_nobody_can_write_are_refused(tmp_path, field):
    """JSON may hold half of a character; explaining the rows again would write it."""
    run = tampering.make_run(tmp_path, "told")
    plan = tampering._read(run / tampering.PLAN)
    for words in (plan["reasons"]["default"], plan["reasons"]["worded"][0]["bands"][0]):
        held, words[field] = words[field], "\ud800"
        change = tampering.Change("words", "reasons", lambda: plan)
        assert tampering.try_change(run, tampering.PLAN, change, "all digests", deep=True) is None
        words[field] = held


@pytest.mark.parametrize("bound", ["above", "below"])
@pytest.mark.slow
def test_reasons_that_no_file_says_are_refused(tmp_path, bound):
    """A name twice, words of a feature twice, and bounds beyond all numbers tell no row anything else."""
    run = tampering.make_run(tmp_path, "told")
    plan = tampering._read(run / tampering.PLAN)
    told = plan["reasons"]
    band = told["worded"][0]["bands"][0]
    beyond = {"above": -float("inf"), "below": float("inf")}
    for reasons in (
        told | {"never": told["never"] * 2},
        told | {"worded": told["worded"] * 2},
        told | {"worded": [told["worded"][0] | {"bands": [band | {bound: beyond[bound]}]}]},
    ):
        change = tampering.Change("reasons", "reasons", lambda reasons=reasons: plan | {"reasons": reasons})
        assert tampering.try_change(run, tampering.PLAN, change, "all digests", deep=True) is None
