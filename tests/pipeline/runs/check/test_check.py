"""The verifier finds whatever is wrong with a finished run, from its footers or from every byte."""

import dataclasses
import hashlib
import json
import shutil
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import check_run, explain
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.cluster.map_items import map_items
from leafledger.pipeline.errors import InvalidRun, LeafledgerError, UsageError
from leafledger.pipeline.runs.check import check
from leafledger.pipeline.runs.check import check_parts as part_check
from leafledger.pipeline.runs.check import recompute_rows as again
from tests.pipeline.conftest import train


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
    with pytest.raises(InvalidRun, match=r"part-00000\.parquet: rows 0 to 63 explained again differ in column 'phi_"):
        check_run(tmp_path / "run", deep=True)


@pytest.fixture
def moving(example, tmp_path):
    """A run whose model and data can be taken away: folders of the model, the data and the run."""
    shutil.copytree(example.data, tmp_path / "data")
    shutil.copy(example.model, tmp_path / "model.txt")
    explain(tmp_path / "model.txt", tmp_path / "data", tmp_path / "run", scheduler="serial")
    return tmp_path / "model.txt", tmp_path / "data", tmp_path / "run"


def test_a_run_whose_input_is_gone_is_not_verified_in_full(moving):
    """Some of its values cannot be computed again, and the report says which and why."""
    _, data, run = moving
    shutil.rmtree(data / "month=2")
    report = check_run(run, deep=True)
    assert not report.sound
    assert report.n_again == 3 * 64
    (said,) = report.unverified
    assert said.startswith("rows of 1 of 4 parts were not explained again: ")
    assert said.endswith("month=2/data.parquet: removed since the run was planned")
    assert check_run(run).sound


def test_the_first_part_is_named_whichever_is_done_first(moving, monkeypatch):
    """As when parts are checked by workers, who end when they end."""
    _, data, run = moving
    for month in (2, 3):
        shutil.rmtree(data / f"month={month}")
    monkeypatch.setattr(check, "choose_level", lambda _: 0)  # a part at a time
    monkeypatch.setattr(check, "map_items", lambda *given: reversed([*map_items(*given)]))
    (said,) = check_run(run, deep=True).unverified
    assert said.startswith("rows of 2 of 4 parts were not explained again: ")
    assert said.endswith("month=2/data.parquet: removed since the run was planned")


def test_what_is_said_to_be_rejected_is_of_the_plan(example, tmp_path):
    """A file without a footer is in no part, and the rows of a part are as many, and of the file, as they were planned to be."""
    data, run = tmp_path / "data", tmp_path / "run"
    shutil.copytree(example.data, data)
    (data / "month=3" / "data.parquet").write_text("no table")
    damaged = bytearray((data / "month=2" / "data.parquet").read_bytes())
    damaged[4:40] = bytes(36)  # of its first column, the id
    (data / "month=2" / "data.parquet").write_bytes(damaged)
    manifest = explain(example.model, data, run, ids=["flight"], scheduler="serial")
    assert [entry.part for entry in manifest.rejected] == [None, 1]
    assert check_run(run, deep=True).n_rejected == 2
    for path in (run / "manifest.json", run / "rejected.json"):
        told = path.read_text()
        assert told.count(f'"uri": "{data}/month=2/') == 1
        path.write_text(told.replace(f'"uri": "{data}/month=2/', f'"uri": "{data}/month=1/'))
    with pytest.raises(InvalidRun, match=r"rejected part 1 has \d+ rows of \S+month=1/data\.parquet, the plan \d+ of \S+month=2/data\.parquet$"):
        check_run(run)


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (Path.unlink, "cannot read: no such file or object"),
        (lambda path: path.write_text("tree\n"), "model.txt: "),
        (lambda path: path.write_text(path.read_text().replace("feature_infos", "feature_infos ")), "model.txt: "),
    ],
)
def test_a_run_whose_model_is_gone_is_not_verified_in_full(example, moving, act, why):
    """It is said why, until the model is given again; another model is refused."""
    model, _, run = moving
    act(model)
    report = check_run(run, deep=True)
    assert not report.sound
    assert report.n_again == 0
    (said,) = report.unverified
    assert said.startswith("no row was explained again, nor what the manifest says of the model: ")
    assert why in said
    again = check_run(run, deep=True, model=example.model)
    assert again.sound
    assert again.n_again == 4 * 64


def test_another_model_is_refused(example, serial, tmp_path):
    """It is not that of the run; and where no row is explained again, none is of use."""
    other = tmp_path / "other.txt"
    train(example.frame, num_leaves=4).save_model(other)
    with pytest.raises(UsageError, match=r"other\.txt: SHA-256 is \w{12}, the run's model had \w{12}"):
        check_run(serial[0], deep=True, model=other)
    with pytest.raises(UsageError, match="no row is explained again"):
        check_run(serial[0], model=example.model)


def test_a_run_of_another_version_is_not_explained_again(serial, monkeypatch):
    """What that version computed may be something else."""
    monkeypatch.setattr(again, "version", lambda _: "9.9.9")
    report = check_run(serial[0], deep=True)
    assert report.unverified[0].endswith(f"the run is of leafledger {version('leafledger')}, this is 9.9.9")


def reseal(run, name):
    """Let the manifest say of a changed part what is true of it."""
    manifest = json.loads((run / "manifest.json").read_text())
    (entry,) = (entry for entry in manifest["parts"] if entry["uri"] == name)
    data = (run / name).read_bytes()
    entry |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (run / "manifest.json").write_text(json.dumps(manifest, indent=1))
    (run / "provenance.json").unlink(missing_ok=True)  # which names the manifest that it is of


def swap_two_values(path, row):
    """Exchange two attributions of a row; their sum stays."""
    table = pq.read_table(path)
    first, second = (np.array(table[name].to_pylist()) for name in ("phi_distance", "phi_delay"))
    first[row], second[row] = second[row], first[row]
    for name, values in (("phi_distance", first), ("phi_delay", second)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values, pa.float32()))
    footer = pq.read_metadata(path).metadata[b"leafledger"].decode()
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"leafledger": footer})


def test_all_rows_are_explained_again_where_asked_for(serial, tmp_path):
    """Two values swapped in a row behind the sample, digests made again: all rows show it, and nothing else does."""
    run, name = tmp_path / "run", "attributions/part-00001.parquet"
    shutil.copytree(serial[0], run)
    whole = check_run(run, all_rows=True)
    assert whole.sound
    assert whole.n_again == 3000
    swap_two_values(run / name, 500)
    reseal(run, name)
    assert check_run(run, deep=True).sound
    with pytest.raises(InvalidRun, match=r"part-00001\.parquet: rows 0 to \d+ explained again differ in column 'phi_distance'"):
        check_run(run, all_rows=True)


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
        with pytest.raises(InvalidRun, match=rf"{name}: not a (plan of this version|manifest): ") as refusal:
            act()
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda manifest: manifest["parts"].__setitem__(1, manifest["parts"][0]),
            "the manifest's 4 parts and 0 rejected ones differ from the plan's 4",
        ),
        (
            lambda manifest: manifest["parts"].reverse() or manifest["parts"].pop(),
            "the manifest's 3 parts and 0 rejected ones differ from the plan's 4",
        ),
        (
            lambda manifest: manifest["parts"][2].update(uri="attributions/part-00003.parquet"),
            r"part 2 is at '\S+3\.parquet', expected \S+2\.parquet",
        ),
        (lambda manifest: manifest["parts"][2].update(n_rows=1), r"part 2 has 1 rows, the plan says \d+"),
        (lambda manifest: manifest["parts"][2].update(n_rows=9999), r"part 2 has 9999 rows, the plan says \d+"),
        (lambda manifest: manifest.update(n_rows=2999), "the manifest counts 2999 rows and 0 rejected ones, the plan 3000"),
        (lambda manifest: manifest.update(plan="0" * 64), r"plan\.json: SHA-256 is [0-9a-f]{12}, the manifest says '0{12}'$"),
        (lambda manifest: manifest["bound"].append(0.0), "has not one base value and one bound for every output"),
        (lambda manifest: manifest["used"].append(99), "has feature 99, the plan has "),
        (lambda manifest: manifest["players"].append(-1), "has player -1, the plan has "),
    ],
    ids=["twice", "missing", "place", "fewer rows", "more rows", "all rows", "plan", "outputs", "features", "players"],
)
def test_a_manifest_that_is_not_of_the_plan_is_refused(serial, tmp_path, change, says):
    """Each part is there once, at its place, with its rows; each of its features, players and outputs is the plan's. Said from the lists alone."""
    shutil.copytree(serial[0], tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    change(manifest)
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest, indent=1))
    with pytest.raises(InvalidRun, match=says):
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
    with pytest.raises(InvalidRun, match=rf"{name}: not a (manifest|plan of this version): it is nested too deeply"):
        check_run(str(tmp_path / "run"))


def write_again(path, changed, row_group_size):
    """Write a part with other values in some columns, in groups of so many rows."""
    table, footer = pq.read_table(path), pq.read_metadata(path).metadata[b"leafledger"].decode()
    for name, values in changed.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table, row_group_size)
        writer.add_key_value_metadata({"leafledger": footer})


@pytest.fixture(scope="module")
def several(example, tmp_path_factory):
    """A run of a model with three outputs, on the last month's rows."""
    folder = tmp_path_factory.mktemp("several")
    train(example.frame, objective="multiclass", num_class=3).save_model(folder / "model.txt")
    explain(folder / "model.txt", Path(example.data) / "month=4", folder / "run", ids="flight", scheduler="serial")
    return folder / "run"


def margins_of(table, run):
    """Of every output as stored: margins less the base value, attributions, and how large margins can be."""
    manifest = json.loads((run / "manifest.json").read_text())
    margins = [name for name in table.column_names if name.startswith("margin")]
    phi = [name for name in table.column_names if name.startswith("phi")]
    values = table.select(phi).to_pandas().to_numpy(float).reshape(table.num_rows, len(margins), -1)
    return table.select(margins).to_pandas().to_numpy(float) - manifest["base"], values, np.array(manifest["bound"])


def test_what_is_stored_adds_up_as_well_as_is_reported(serial, several):
    """The largest residual of any row of any part and output, as a fraction of how large that output's margins can be."""
    for run in (serial[0], several):
        worst = 0.0
        for path in (run / "attributions").iterdir():
            margins, phi, bound = margins_of(pq.read_table(path), run)
            worst = max(worst, (np.abs(phi.sum(axis=2) - margins) / bound).max())
        report = check_run(run, deep=True)
        assert report.as_stored
        assert report.residual == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize(("size", "most"), [(1, 1), (8 * 200 * 2, 2), (8 * 200 * 100, 4)])
@pytest.mark.slow
def test_every_stored_value_counts(several, tmp_path, monkeypatch, size, most):
    """One value of one row that is off, in any column, of any output: the row is named, whatever the row groups, and however many columns are read
    together, which memory decides. Digests are made again, so nothing but the sum says so."""
    monkeypatch.setattr(part_check, "SLICE_BYTES", size)
    monkeypatch.setattr(part_check, "recompute_part", lambda *_: 0)
    reads, read = [], pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda self, group, columns: reads.append(len(columns)) or read(self, group, columns))
    name = "attributions/part-00000.parquet"
    table = pq.read_table(several / name)
    columns = [column for column in table.column_names if column.startswith(("margin", "phi"))]
    assert len(columns) == 3 * (1 + 4)
    for column in columns[:: 1 if most == 2 else 7]:
        run = tmp_path / column
        shutil.copytree(several, run)
        values = table[column].to_numpy().copy()
        values[300] += 0.01
        write_again(run / name, {column: values}, row_group_size=200)
        reseal(run, name)
        with pytest.raises(InvalidRun, match=r"part-00000\.parquet: row 300: attributions miss margin - base value by 0\.01, expected at most"):
            check_run(run, deep=True)
    assert max(reads) == most


def test_rows_of_different_outputs_add_up_to_their_own(several, example, tmp_path):
    """Each to the base value of the output that it is of; an output that the model does not have is told."""
    run, name = tmp_path / "run", "attributions/part-00000.parquet"
    model, data = several.parent / "model.txt", Path(example.data) / "month=4"
    explain(model, data, run, output="predicted", scheduler="serial")
    report = check_run(run, deep=True)
    assert report.sound
    assert report.as_stored
    assert report.residual < 1e-6
    table = pq.read_table(run / name)
    assert len(set(table["output"].to_pylist())) > 1
    write_again(run / name, {"output": ["another", *table["output"].to_pylist()[1:]]}, row_group_size=200)
    reseal(run, name)
    with pytest.raises(InvalidRun, match=r"part-00000\.parquet: has an output that the plan does not have, expected 0, 1, 2"):
        check_run(run, deep=True)
