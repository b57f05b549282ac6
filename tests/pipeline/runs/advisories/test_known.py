"""Every advisory names runs that it may concern and leaves others alone; check, runs and explain tell of them."""

import json
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from leafledger import check_run, explain, list_runs
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.command import cli
from leafledger.pipeline.runs.advisories.known import ADVISORIES, find_advisories
from leafledger.pipeline.runs.records.current_run import read_finished
from tests.earlier.moving import RUNS, copy_run, move_run

CHANGELOG = (Path(__file__).parents[4] / "CHANGELOG.md").read_text()


def names_of(manifest, plan):
    return {each.name for each in find_advisories(manifest, lambda: plan)}


def test_advisories_are_numbered_and_of_released_versions():
    """In the order in which they were told; a version that mended something has a section of changes."""
    assert [each.name for each in ADVISORIES] == [f"2026-{number:02d}" for number in range(1, len(ADVISORIES) + 1)]
    released = [tuple(map(int, found)) for found in re.findall(r"^## (\d+)\.(\d+)\.(\d+)", CHANGELOG, re.MULTILINE)]
    for each in ADVISORIES:
        since, mended = (tuple(map(int, version.split("."))) for version in (each.since, each.mended))
        assert since < mended
        assert {since, mended} <= set(released)
        assert set(each.methods) <= set(METHODS)
        assert each.library in ("", "xgboost", "lightgbm", "catboost", "scikit-learn")


CONCERNED = {  # the kept run that is concerned, and what of its manifest and plan is changed for that
    "2026-01": ("0.1.0/plain", {"bound": (3e7,)}),
    "2026-02": ("0.1.0/plain", {"base": (-1e300,)}),
    "2026-03": ("0.1.0/steps", {}),
    "2026-04": ("0.1.0/gaps", {"method": "gap_greedy"}),
    "2026-05": ("0.1.0/gaps", {"used": (0, 1)}),
    "2026-06": ("0.1.0/plain", {"method": "probabilistic", "parameters": {"sizes": (1.0, 1.0), "weights": ()}}),
    "2026-07": ("0.1.0/plain", {"method": "semivalue", "parameters": {"atoms": ((1e-160, 1.0),), "density": ()}}),
    "2026-08": ("0.1.0/marginal", {"parameters": {"alpha": 1e-4, "beta": 1e-6}}),
    "2026-09": ("0.1.0/shares", {}),
    "2026-10": ("0.1.0/gaps", {"parameters": {"approximate": "yes"}}),
    "2026-11": ("0.1.0/classes", {}),
    "2026-12": ("0.1.0/plain", {}),
    "2026-13": ("0.1.0/plain", {"library": "catboost"}),
    "2026-14": ("0.1.0/plain", {}),
    "2026-15": ("0.1.0/plain", {}),
    "2026-16": ("0.1.0/plain", {}),
    "2026-17": ("0.1.0/marginal", {}),
    "2026-18": ("0.1.0/plain", {}),
    "2026-19": ("0.2.0/classes", {}),
    "2026-20": ("0.2.0/classes", {}),
    "2026-21": ("0.2.0/plain", {"library": "scikit-learn"}),
    "2026-22": ("0.2.0/classes", {"library": "scikit-learn"}),
    "2026-23": ("0.2.0/told", {"missing": -99.9}),
}
SPARED = {  # the same, of runs that are not, though version, library and method are those of the advisory
    "2026-01": ("0.1.0/plain", {}),
    "2026-02": ("0.1.0/plain", {"bound": (3e7,)}),
    "2026-03": ("0.1.0/steps", {"categorical": False}),
    "2026-05": ("0.1.0/gaps", {}),
    "2026-06": ("0.1.0/plain", {"method": "probabilistic", "parameters": {"sizes": (), "weights": ()}}),
    "2026-07": ("0.1.0/plain", {"method": "banzhaf", "parameters": {"p": 0.0}}),
    "2026-08": ("0.1.0/marginal", {}),
    "2026-10": ("0.1.0/gaps", {}),
    "2026-11": ("0.1.0/classes", {"categorical": False}),
    "2026-12": ("0.1.0/plain", {"categorical": False}),
    "2026-14": ("0.1.0/plain", {"categorical": False}),
    "2026-17": ("0.1.0/marginal", {"background": "model"}),
    "2026-22": ("0.2.0/plain", {"library": "scikit-learn"}),
    "2026-23": ("0.2.0/told", {"missing": -99.5}),
}


def changed(name, changes):
    manifest, plan = read_finished(str(RUNS / name))
    if "categorical" in changes:
        plan = replace(plan, features=tuple(replace(feature, categorical=False) for feature in plan.features))
    if "missing" in changes:
        plan = replace(plan, features=tuple(replace(feature, missing=changes["missing"]) for feature in plan.features))
    return replace(manifest, **{field: value for field, value in changes.items() if field not in ("categorical", "missing")}), plan


@pytest.mark.parametrize("name", [each.name for each in ADVISORIES])
def test_an_advisory_names_a_run_that_it_concerns(name):
    """Of its version; the same run by the version that mended it is left alone."""
    manifest, plan = changed(*CONCERNED[name])
    assert name in names_of(manifest, plan)
    mended = next(each.mended for each in ADVISORIES if each.name == name)
    assert name not in names_of(replace(manifest, version=mended), plan)


@pytest.mark.parametrize("name", SPARED)
def test_an_advisory_leaves_runs_alone_that_their_manifest_clears(name):
    """By what else has to hold."""
    assert name not in names_of(*changed(*SPARED[name]))
    assert {each.name for each in ADVISORIES if each.may_be.__name__ != "<lambda>"} == {*SPARED}


def test_plans_are_read_where_a_version_has_advisories():
    """And not of this version's runs."""
    manifest, _ = read_finished(str(RUNS / "0.2.0/plain"))
    assert find_advisories(replace(manifest, version="99.0.0"), partial(pytest.fail, "the plan was read")) == ()


def test_check_and_runs_tell_of_advisories(tmp_path, capsys):
    """One names their words, the other the runs; a run of this version has none."""
    runs = tmp_path / "runs"
    copy_run("0.2.0/classes", runs)
    assert [each[:16] for each in check_run(runs / "0.2.0/classes").advisories] == ["advisory 2026-19", "advisory 2026-20"]
    assert [each.advisories for each in list_runs(runs)] == [("2026-19", "2026-20")]
    assert cli.main(["check", str(runs / "0.2.0/classes"), "--json"]) == 0
    said = capsys.readouterr()
    assert len(json.loads(said.out)["advisories"]) == 2
    line = "advisory 2026-19 may concern it (xgboost: estimators of versions 1.0 to 1.7 with missing= other than NaN): the number"
    assert f"{runs / '0.2.0/classes'}: {line}" in said.err
    assert cli.main(["runs", str(runs)]) == 0
    line = "advisories 2026-19, 2026-20 may concern 1 run (0.2.0/classes); check says what they are, see docs/advisories.md\n"
    assert line in capsys.readouterr().err


def test_many_runs_are_named_together(tmp_path, capsys):
    """The first few, and how many there are."""
    for day in range(7):
        shutil.copytree(RUNS / "0.2.0/classes", tmp_path / f"{day}")
    assert cli.main(["runs", str(tmp_path)]) == 0
    assert "may concern 7 runs (0, 1, 2, 3, 4 and 2 more); check says" in capsys.readouterr().err


@pytest.mark.slow
def test_a_finished_run_given_again_is_told_of_its_advisories(tmp_path, capsys):
    """On the screen and in the document; once it was made again there are none."""
    run, night = move_run("0.2.0/classes", tmp_path), tmp_path / "night"
    given = ["explain", str(night / "classes.ubj"), str(night / "data"), "--out", str(run), "--id", "id", "--scheduler", "serial"]
    cli.main(given)
    assert f"{run}: advisory 2026-20 may concern it (xgboost: " in capsys.readouterr().err
    cli.main([*given, "--json"])
    assert [each[:16] for each in json.loads(capsys.readouterr().out)["advisories"]] == ["advisory 2026-19", "advisory 2026-20"]
    explain(night / "classes.ubj", night / "data", run, ids=["id"], scheduler="serial", if_changed="replace")
    cli.main(given)
    assert "advisory" not in capsys.readouterr().err
    cli.main([*given, "--json"])
    assert json.loads(capsys.readouterr().out)["advisories"] == []


def test_python_warns_of_the_advisories_of_a_finished_run(tmp_path):
    """In one line a run, at the line that called; once it was made again there is none."""
    run, night = move_run("0.2.0/classes", tmp_path), tmp_path / "night"
    given = partial(explain, night / "classes.ubj", night / "data", run, ids=["id"], scheduler="serial")
    with pytest.warns(UserWarning, match="advisories") as found:
        given()
    (warned,) = found
    assert warned.filename == __file__
    assert str(warned.message) == (
        f"{run}: advisories 2026-19, 2026-20 may concern it, made by leafledger 0.2.0: "
        'make it again with if_changed="replace", see docs/advisories.md'
    )
    given(if_changed="replace")
    given()  # warnings are errors
