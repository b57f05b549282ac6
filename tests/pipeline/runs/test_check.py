"""The verifier finds whatever is wrong with a finished run, from its footers or from every byte."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from kernels.methods import METHODS
from leafledger import check_run, explain
from pipeline.errors import InvalidRun, LeafledgerError


def test_a_finished_run_verifies(serial):
    """``check_run`` finds rows and summaries sound, and digests, additivity and values where it is asked to."""
    report = check_run(str(serial[0]))
    assert (report.parts, report.n_rows, report.n_again) == (4, 3000, 0)
    assert report.residual < 1e-6
    deep = check_run(str(serial[0]), deep=True)
    assert (deep.parts, deep.n_rows, deep.n_again) == (4, 3000, 4 * 64)
    assert deep.residual < 1e-6


@pytest.mark.parametrize("target", ["attributions/part-00001.parquet", "summary/importance.parquet", "summary/importance.json"])
def test_damage_is_found(serial, tmp_path, target):
    """A flipped bit in any published object is named."""
    shutil.copytree(serial[0], tmp_path / "run")
    path = tmp_path / "run" / target
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(InvalidRun, match=f"{target}: SHA-256 is"):
        check_run(str(tmp_path / "run"), deep=True)


@pytest.mark.parametrize(
    ("act", "says"), [(Path.unlink, "no such file or object"), (lambda path: path.write_bytes(b"PAR1"), "has 4 bytes, the manifest says")]
)
def test_a_part_that_is_not_whole_is_found_by_its_size(serial, tmp_path, act, says):
    """Without reading it."""
    shutil.copytree(serial[0], tmp_path / "run")
    act(tmp_path / "run" / "attributions" / "part-00001.parquet")
    with pytest.raises(LeafledgerError, match=rf"part-00001\.parquet: .*{says}"):
        check_run(str(tmp_path / "run"))


def test_values_that_another_kernel_gave_are_found(example, tmp_path, monkeypatch):
    """They add up, and every digest is right; explained again they are others."""
    wrong = METHODS["shapley"]

    def moved(buffers, tables):
        wrong.kernel(buffers, tables)
        buffers.phi[:, 0] += 0.25
        buffers.phi[:, 1] -= 0.25

    with monkeypatch.context() as patch:
        patch.setitem(METHODS, "shapley", dataclasses.replace(wrong, kernel=moved))
        explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    assert check_run(tmp_path / "run").n_rows == 3000
    with pytest.raises(InvalidRun, match=r"part-00000\.parquet: the first 64 rows explained again differ in column 'phi_"):
        check_run(tmp_path / "run", deep=True)


def test_a_run_whose_input_is_gone_is_sound(example, tmp_path):
    """Its values cannot be computed again, and the report says so."""
    shutil.copytree(example.data, tmp_path / "data")
    shutil.copy(example.model, tmp_path / "model.txt")
    explain(tmp_path / "model.txt", tmp_path / "data", tmp_path / "run", scheduler="serial")
    shutil.rmtree(tmp_path / "data" / "month=2")
    assert 0 < check_run(tmp_path / "run", deep=True).n_again < 4 * 64
    (tmp_path / "model.txt").write_text("tree\n")
    assert check_run(tmp_path / "run", deep=True).n_again == 0


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"\xff\xfe", b"[]", b"{}", b"null", b'{"items": [1], "features": []}', b'{"parts": [{}], "summaries": [1]}']
)
@pytest.mark.parametrize("name", ["plan.json", "manifest.json"])
def test_damaged_plans_and_manifests_are_named(example, serial, tmp_path, name, damage):
    """Whatever stands in their place is one line, to the verifier and to a rerun."""
    shutil.copytree(serial[0], tmp_path / "run")
    (tmp_path / "run" / name).write_bytes(damage)
    for act in (
        lambda: check_run(str(tmp_path / "run")),
        lambda: explain(example.model, example.data, tmp_path / "run", ids=["flight", "name"], scheduler="serial"),
    ):
        with pytest.raises(InvalidRun, match=rf"{name}: not a (plan|manifest)( of this version, it has no 'features';|: )") as refusal:
            act()
        assert "\n" not in str(refusal.value)


def test_a_manifest_whose_parts_are_others_is_refused(serial, tmp_path):
    """Entries without their part are not those of the plan."""
    shutil.copytree(serial[0], tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    manifest["parts"] = [{key: value for key, value in entry.items() if key not in ("part", "n_rows")} for entry in manifest["parts"]]
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidRun, match="the manifest's 4 parts and 0 rejected ones differ from the plan's 4"):
        check_run(str(tmp_path / "run"))


def test_an_unfinished_run_is_not_a_run(serial, tmp_path):
    """Without its manifest nothing is a run."""
    shutil.copytree(serial[0], tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()
    with pytest.raises(InvalidRun, match="not a finished run"):
        check_run(str(tmp_path / "run"))


@pytest.mark.parametrize("name", ["manifest.json", "plan.json"])
def test_json_without_end_is_one_line(example, tmp_path, name):
    """Deeper than a parser goes."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    (tmp_path / "run" / name).write_text("[" * 100_000)
    with pytest.raises(InvalidRun, match=rf"{name}: not a (manifest|plan): RecursionError"):
        check_run(str(tmp_path / "run"))
