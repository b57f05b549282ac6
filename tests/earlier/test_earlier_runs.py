"""Runs that earlier versions published are read as those of this one, kept by ``make`` as files for good."""

import hashlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest

import leafledger
from leafledger import attribute, check_run, compare, drift, explain, forget, list_runs, read_latest, read_run, report
from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import Exit, OtherVersion, RunConflict, UsageError
from tests.more import one_in

from .make import CLASSES, INPUTS, KINDS, MODEL, NIGHT, SINCE_2
from .moving import RUNS, copy_run, list_kept, move_run, read_json, seal_run, write_json

KEPT = list_kept()
WIDE = ("plain", "pairs", "marginal", "owen", "steps", "classes", "errors", "digested")  # a column for every player
ROUNDING = 2.0**-22  # of float32: twice that of a number, since attributions are sums
VERSIONS = ("0.1.0", "0.2.0")


def asked_for(kind):
    """Model and arguments of a kind of run, where the inputs are kept."""
    model, asked = {**KINDS, **SINCE_2, "next": SINCE_2["digested"]}[kind]
    return INPUTS / model.relative_to(NIGHT), json.loads(json.dumps(asked).replace(str(NIGHT), str(INPUTS)))


def in_memory(kind):
    """Arguments of ``attribute``, with the rows of the background."""
    model, asked = asked_for(kind)
    options = {key: value for key, value in asked.items() if key in ("method", "parameters", "partition", "interactions")}
    if "background" in asked:
        options["background"] = pd.read_parquet(asked["background"])
    return model, options.pop("method", "shapley"), options


def rows_of(kind):
    if kind == "next":
        return pd.read_parquet(INPUTS / "next")
    return pd.concat([pd.read_parquet(INPUTS / f"data/part={i}/rows.parquet") for i in range(2)], ignore_index=True)


def test_runs_of_every_version_are_kept():
    """Of all kinds that the version knew; what is released is never made again."""
    assert {name.partition("/")[0] for name in KEPT} >= {*VERSIONS, leafledger.__version__}
    for version in (*VERSIONS, leafledger.__version__):
        kinds = {*KINDS, *(SINCE_2 if version != "0.1.0" else ()), *(["next"] if version != "0.1.0" else [])}
        assert {name.partition("/")[2] for name in KEPT if name.startswith(f"{version}/")} == kinds


@pytest.mark.parametrize("name", KEPT)
def test_kept_runs_are_sound(tmp_path, name):
    """By footers, and by every byte; that rows are not explained again is said, for the version is another one, or the model is elsewhere."""
    run = copy_run(name, tmp_path)
    manifest = (run / "manifest.json").read_bytes()
    report = check_run(run)
    assert (report.sound, report.n_rows, report.manifest) == (True, 40, hashlib.sha256(manifest).hexdigest())
    assert {each.state for each in list_runs(run)} == {"finished"}
    again = [each.partition(": ")[0] for each in check_run(run, deep=True).unverified if each.startswith("no row")]
    assert set(again) <= {"no row was explained again, nor what the manifest says of the model"}
    assert again or json.loads(manifest)["version"] == leafledger.__version__


@pytest.mark.parametrize("name", [name for name in KEPT if name.partition("/")[2] in WIDE])
def test_kept_attributions_are_those_of_today(name):
    """In the rows and the columns of the run, as this version computes them in memory."""
    kind = name.partition("/")[2]
    model, method, options = in_memory(kind)
    found, expected = read_run(RUNS / name), attribute(model, rows_of(kind), method, **options)
    stored = found.attributions().to_pandas()
    for k, output in enumerate(expected.outputs):
        columns = [f"phi_{output}_{player}" if len(expected.outputs) > 1 else f"phi_{player}" for player in expected.players]
        phi = expected.phi[:, k] if expected.phi.ndim == 3 else expected.phi
        np.testing.assert_allclose(stored[columns].to_numpy(), phi, rtol=ROUNDING, atol=1e-6)


@pytest.mark.parametrize("kind", ["plain", "pairs", "marginal", "owen", "steps", "classes"])
def test_nights_of_two_versions_are_compared(tmp_path, kind):
    """The same night has not drifted, whichever version made it, in both directions."""
    old, new = (copy_run(f"{version}/{kind}", tmp_path) for version in VERSIONS)
    for run, against in ((old, new), (new, old)):
        found = drift(run, against=against)
        assert not found.alarms
        assert max(shift.distance for shift in found.shifts) <= 1 / 40 + 1e-12


@pytest.mark.parametrize("version", VERSIONS)
def test_tonight_is_compared_with_last_night_of_another_version(tmp_path, version):
    """On the day of an upgrade: means are those of the columns of both nights."""
    last, tonight = copy_run(f"{version}/plain", tmp_path), tmp_path / "tonight"
    explain(INPUTS / "model.txt", INPUTS / "next", tonight, ids=["id"], scheduler="serial")
    found = {shift.feature: shift for shift in drift(tonight, against=last).shifts if shift.kind == "phi"}
    new, old = (read_run(run).attributions().to_pandas() for run in (tonight, last))
    assert sorted(found) == ["a", "b", "c", "k"]
    for name, shift in found.items():
        assert (shift.mean, shift.reference_mean) == (pytest.approx(new[f"phi_{name}"].mean()), pytest.approx(old[f"phi_{name}"].mean()))


@pytest.mark.parametrize("name", one_in(2, [name for name in KEPT if not name.endswith("/sums")]))
def test_kept_runs_have_reports(tmp_path, name):
    """One page of figures for each, which the list of runs knows."""
    run = copy_run(name, tmp_path)
    report(run)
    assert [each.report for each in list_runs(run)] == [True]


@pytest.mark.parametrize(
    "name", one_in(2, [name for name in KEPT if name.partition("/")[2] not in ("marginal", "owen", "steps", "ranks", "sums", "next")])
)
def test_rows_of_kept_runs_are_shown(tmp_path, capsys, name):
    """By their ids, with the margin that today's code computes."""
    kind = name.partition("/")[2]
    model, method, options = in_memory(kind)
    assert cli.main(["show", str(copy_run(name, tmp_path)), "--where", "id=3", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    if kind in WIDE:
        expected = attribute(model, rows_of(kind)[3:4], method, **options).margin.ravel()
        shown = {output["output"]: output["margin"] for output in row["outputs"]}
        np.testing.assert_allclose([shown[name] for name in sorted(shown)], expected, rtol=ROUNDING, atol=1e-7)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_latest_run_of_every_version_is_read(version):
    """Of which 0.1 did not say how much is explained."""
    found = read_latest(RUNS / version / "latest.json")
    assert (found.date, found.run) == ("2026-03-02", str(NIGHT / "runs" / "plain"))
    assert (found.n_rows, found.share) == ((None, None) if version == "0.1.0" else (40, pytest.approx(2 / 3)))


@pytest.mark.filterwarnings("ignore:.*advisories .* may concern it")  # those of XGBoost
@pytest.mark.parametrize(
    "name", one_in(2, [name for name in KEPT if name.startswith("0.2.0/") and name.partition("/")[2] not in ("marginal", "errors")])
)
def test_last_nights_folder_is_finished_tonight(tmp_path, name):
    """The same command finds it done, and changes no byte of it; given --replace it is made again, by this version."""
    run = move_run(name, tmp_path)
    assert check_run(run).sound
    model, asked = asked_for(name.partition("/")[2])
    asked = json.loads(json.dumps(asked).replace(str(INPUTS), str(tmp_path / "night")))
    model, data = tmp_path / "night" / model.name, tmp_path / "night" / ("next" if name.endswith("next") else "data")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    made = explain(model, data, run, scheduler="serial", **asked)
    assert made.version == "0.2.0"
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    again = explain(model, data, run, scheduler="serial", if_changed="replace", **asked)
    assert again.version == leafledger.__version__
    assert check_run(run, all_rows=True).sound


def test_the_command_says_by_which_version_a_finished_run_was_made(tmp_path, capsys):
    """And what makes it again."""
    run = move_run("0.2.0/plain", tmp_path)
    arguments = ["explain", str(tmp_path / "night/model.txt"), str(tmp_path / "night/data"), "--out", str(run), "--scheduler", "serial"]
    assert cli.main([*arguments, "--id", "id"]) == Exit.PARTLY  # a file that cannot be read
    said = f"made by leafledger 0.2.0, this is {leafledger.__version__}, and --if-changed replace makes it again"
    assert said in capsys.readouterr().out
    assert cli.main([*arguments]) == Exit.CONFLICT
    assert "different in version (was '0.2.0', is" in capsys.readouterr().err


def test_what_an_earlier_version_left_unfinished_is_told(tmp_path):
    """Its parts are not those of this version: replace it."""
    run = move_run("0.2.0/plain", tmp_path)
    (run / "manifest.json").unlink()
    given = tmp_path / "night/model.txt", tmp_path / "night/data", run
    with pytest.raises(RunConflict, match=r"different in version \(was '0\.2\.0', is '[\d.]+'\); choose another output, or replace it"):
        explain(*given, ids=["id"], scheduler="serial")
    explain(*given, ids=["id"], scheduler="serial", if_changed="replace")
    assert check_run(run, deep=True).sound


def test_a_kept_run_is_replaced_whatever_it_was(tmp_path):
    """Nothing of the other version stays."""
    run = move_run("0.1.0/plain", tmp_path)
    made = explain(tmp_path / "night/model.txt", tmp_path / "night/data", run, ids=["id"], scheduler="serial", if_changed="replace")
    assert check_run(run, deep=True).sound
    assert made.sha256 == hashlib.sha256((run / "manifest.json").read_bytes()).hexdigest()


def later(run):
    """What a later version would write."""
    manifest = read_json(run / "manifest.json")
    write_json(run / "manifest.json", {"format_version": 99, **manifest, "version": "7.1.0", "more": 1})
    return run


@pytest.mark.parametrize("command", ["check", "show", "drift", "report", "runs"])
def test_a_run_of_a_later_version_is_named(tmp_path, capsys, command):
    """In one line with both versions and what to do, exit code 7; the list of runs does not call it damaged."""
    run, other = later(copy_run("0.2.0/plain", tmp_path)), copy_run("0.1.0/plain", tmp_path)
    more = {"show": ["--where", "id=3"], "drift": ["--against", str(other)]}
    code = cli.main([command, str(run), *more.get(command, [])])
    said = capsys.readouterr()
    assert f"made by leafledger 7.1.0, this is {leafledger.__version__}: it is of format 99" in said.err
    assert "read it with the version that made it, or make the run again" in said.err
    assert len([line for line in said.err.splitlines() if not line.startswith("measuring: ")]) == 1
    if command == "runs":
        assert (code, "unreadable" in said.out, "damaged" in said.out + said.err) == (0, True, False)
    else:
        assert code == Exit.CONFLICT


def test_a_run_of_a_later_version_is_not_taken_for_damaged_where_it_is_in_the_way(tmp_path):
    """Tonight's command says what it is; --replace takes its place."""
    run = later(move_run("0.2.0/plain", tmp_path))
    given = tmp_path / "night/model.txt", tmp_path / "night/data", run
    with pytest.raises(RunConflict, match=r"different in version \(was '7\.1\.0', is"):
        explain(*given, ids=["id"], scheduler="serial")
    assert explain(*given, ids=["id"], scheduler="serial", if_changed="replace").version == leafledger.__version__


def test_versions_in_the_making_are_told(tmp_path):
    """They wrote no number, and no version that wrote none has their name."""
    run = copy_run("0.2.0/plain", tmp_path)
    write_json(run / "manifest.json", read_json(run / "manifest.json") | {"version": "0.3.0"})
    with pytest.raises(OtherVersion, match=r"made by leafledger 0\.3\.0, this is .*: it has no number of its format"):
        read_run(run)


@pytest.mark.parametrize("field", ["place", "reasons", "space", "n_files", "used", "model", "totals"])
def test_manifests_from_before_the_release_of_0_2_are_read(tmp_path, field):
    """They lacked one field or another, which is told by the plan, or means that there was nothing of the kind."""
    run = copy_run("0.2.0/plain", tmp_path)
    manifest = read_json(run / "manifest.json")
    whole = read_run(run).manifest
    write_json(run / "manifest.json", {name: value for name, value in manifest.items() if name != field})
    found = read_run(run).manifest
    assert getattr(found, field) == ({} if field == "totals" else getattr(whole, field))


@pytest.mark.parametrize("version", VERSIONS)
def test_runs_of_0_2_are_compared_as_rankings_and_those_of_0_1_are_told(tmp_path, version):
    """0.1 knew files by size and time alone, which do not tell whether rows have changed since."""
    run = move_run(f"{version}/plain", tmp_path)
    (tmp_path / "night/data/broken.parquet").unlink()
    plan = read_json(run / "plan.json")
    write_json(run / "plan.json", plan | {"rejected": []})
    write_json(run / "manifest.json", read_json(run / "manifest.json") | {"rejected": []})
    seal_run(run, plan=True)
    given, methods = (tmp_path / "night/model.txt", tmp_path / "night/data", tmp_path / "compared.parquet"), ["shapley", f"run:{run}"]
    if version == "0.1.0":
        with pytest.raises(OtherVersion, match=r"plain: made by leafledger 0\.1\.0, this is .*: what it says of its files does not tell whether"):
            compare(*given, methods=methods, scheduler="serial")
    else:
        found = compare(*given, methods=methods, scheduler="serial").to_pandas()
        apart = found[found["measure"].isin(["top 1", "correlation"]) & found["other"].notna()]
        assert apart["mean"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_data_and_model_did_between_versions_is_told_apart(tmp_path, version):
    """Both nights are explained by both models, though another version made one of them."""
    last, night = move_run(f"{version}/plain", tmp_path), tmp_path / "night"
    (night / "other.txt").write_text((night / "model.txt").read_text().replace("leaf_value=-", "leaf_value=0", 1))
    explain(night / "other.txt", night / "next", tmp_path / "tonight", ids=["id"], scheduler="serial")
    (parts,) = drift(tmp_path / "tonight", against=last, both_ways=True, scheduler="serial").parts
    margins = [read_run(run).attributions().to_pandas()["margin"].mean() for run in (tmp_path / "tonight", last)]
    assert parts.data + parts.model == pytest.approx(margins[0] - margins[1], abs=1e-6)


@pytest.mark.slow
def test_drift_names_mistakes_that_one_night_may_hold(tmp_path):
    """Of nights of two versions; those that both may hold make no difference, unless this version explains their rows again, by two models."""
    night, (old, new) = tmp_path / "night", ("0.2.0/classes", "0.3.0/classes")
    last, current = move_run(old, tmp_path), copy_run(new, tmp_path)
    line = f"{last}: advisories may concern it (2026-19, 2026-20): if so, what was mended since is told as"
    for run, against in ((current, last), (last, current)):
        assert [said for said in drift(run, against=against).differs if "advisories" in said] == [f"{line} drift; make it again first"]
    same = shutil.copytree(last, tmp_path / "same")
    assert not any("advisories" in said for said in drift(same, against=last).differs)
    explain(night / "classes.ubj", night / "data", tmp_path / "tonight", ids=["id"], trees=1, scheduler="serial")
    found = drift(tmp_path / "tonight", against=last, both_ways=True, scheduler="serial")
    assert [said for said in found.differs if "advisories" in said] == [f"{line} what data and models did; make it again first"]


def test_a_field_that_nothing_tells_is_named_with_the_version(tmp_path):
    """Not as damage, for its version may have written it so."""
    run = copy_run("0.1.0/plain", tmp_path)
    manifest = read_json(run / "manifest.json")
    del manifest["bound"]
    write_json(run / "manifest.json", manifest)
    with pytest.raises(OtherVersion, match=r"made by leafledger 0\.1\.0, this is .*: it has no 'bound'; read it with the version that made it"):
        read_run(run)


def test_moved_runs_are_as_they_were(tmp_path):
    """What is tested above with inputs in another place is the kept run, but for the names of places."""
    run = move_run("0.2.0/told", tmp_path)
    kept, found = (read_run(each).attributions().to_pandas() for each in (RUNS / "0.2.0/told", run))
    pd.testing.assert_frame_equal(kept, found)
    with pytest.raises(UsageError):
        drift(run, against=run)
    shutil.rmtree(run)


def test_models_are_those_of_the_kinds():
    """Every kind is of a model that is kept."""
    assert {model for model, _ in {**KINDS, **SINCE_2}.values()} == {MODEL, CLASSES}


@pytest.mark.parametrize("name", one_in(2, [name for name in KEPT if "id" in read_run(RUNS / name).plan.ids]))
def test_rows_of_kept_runs_are_forgotten(tmp_path, name):
    """A row in the middle and, of what is left, the first: all others are as they were, and the run is sound, by a manifest of today's format."""
    run = copy_run(name, tmp_path)
    before = read_run(run).attributions().to_pandas()
    for number, gone in enumerate((before["id"][20], before["id"][0]), 1):
        assert forget(run, {"id": gone}).proved
        found = check_run(run, deep=True)
        without_data = any(each.startswith("no row was explained again") for each in found.unverified)
        assert (found.sound or without_data, found.left, found.n_forgotten) == (True, (), number)
    left = before.drop(index=[20, 0]).reset_index(drop=True)
    pd.testing.assert_frame_equal(read_run(run).attributions().to_pandas(), left)
    (listed,) = list_runs(run)
    assert (listed.state, listed.n_rows, listed.n_forgotten) == ("finished", 38, 2)
    assert read_run(run).show({"id": before["id"][1]}).rows[0].file_row == 1
    manifest = json.loads((run / "manifest.json").read_text())
    assert (manifest["format_version"], manifest["version"]) == (3, name.partition("/")[0])
