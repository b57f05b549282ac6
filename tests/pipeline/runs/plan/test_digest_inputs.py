"""A run with digests of its inputs is the run without them; it notices a change that leaves size, time, footer and sampled bytes as they were."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import check_run, explain
from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import InvalidRun, RunConflict
from leafledger.pipeline.runs.records.input_digests import read_inputs
from leafledger.pipeline.runs.records.manifest import read_manifest
from tests.pipeline.conftest import FEATURES, write_data
from tests.pipeline.running import contents

ROWS = 60_000


def write_plain(path, seed=0):
    """Rows whose bytes can be changed one by one: neither compressed nor checked."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.normal(100, 30, ROWS) for name in ("distance", "delay")}).assign(carrier="UA", month=1.0)
    pq.write_table(pa.Table.from_pandas(frame[FEATURES], preserve_index=False), path, compression="none", use_dictionary=False)


def change_secretly(path):
    """Another value in one row, within the column's range, where nothing but a digest of all bytes finds it."""
    before, data = os.stat(path), bytearray(Path(path).read_bytes())
    values = pq.read_table(path, columns=["delay"])["delay"].to_numpy()
    place, ends = data.index(values[3000:3002].tobytes()), np.quantile(values, [0.01, 0.99])
    data[place : place + 8] = ends[np.abs(ends - values[3000]).argmax()].tobytes()
    Path(path).write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_the_run_is_the_same(example, serial, tmp_path):
    """But for the record, which has what sha256sum would say of each file."""
    out = tmp_path / "run"
    explain(example.model, example.data, out, ids=["flight", "name"], scheduler="serial", digest_inputs=True)
    found = contents(out)
    held = json.loads(found.pop("inputs.json"))
    assert found == contents(serial[0])
    assert [(file["uri"], file["size"], file["sha256"]) for file in held["data"]] == [
        (str(path), path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()) for path in sorted(Path(example.data).rglob("*.parquet"))
    ]
    assert (held["plan"], held["background"]) == (hashlib.sha256(found["plan.json"]).hexdigest(), [])
    assert "digesting" in json.loads((out / "provenance.json").read_text())["seconds"]
    report = check_run(out, deep=True)
    assert (report.sound, report.n_digested) == (True, 4)
    assert check_run(out).n_digested == 0


def test_a_background_is_digested_too(example, tmp_path):
    background = write_data(example.frame[::3], tmp_path / "background")
    explain(example.model, example.data, tmp_path / "run", background=background, scheduler="serial", digest_inputs=True)
    held = read_inputs(str(tmp_path / "run"))
    assert [file.uri for file in held.background] == [str(path) for path in sorted(Path(background).rglob("*.parquet"))]
    assert check_run(tmp_path / "run", deep=True).n_digested == 8
    path = Path(held.background[1].uri)
    path.write_bytes(path.read_bytes() + b"x")
    report = check_run(tmp_path / "run", deep=True)
    assert (report.n_digested, report.n_again) == (7, 0)
    assert [said.partition(":")[0] for said in report.unverified] == [
        "1 of 8 input files",
        "no row was explained again, nor what the manifest says of the model",
    ]


def unfinish(out):
    """What a client leaves that ends between two parts."""
    for name in ("manifest.json", "provenance.json", "attributions/part-00000.parquet"):
        (out / name).unlink()


@pytest.fixture(scope="module")
def secret(example, tmp_path_factory):
    """A run whose data changed afterwards, where only digests can tell."""
    folder = tmp_path_factory.mktemp("secret")
    write_plain(folder / "data.parquet")
    explain(example.model, folder / "data.parquet", folder / "with", scheduler="serial", digest_inputs=True)
    explain(example.model, folder / "data.parquet", folder / "without", scheduler="serial")
    change_secretly(folder / "data.parquet")
    return folder


def test_a_run_that_goes_on_compares_them(example, secret, tmp_path):
    """Asked for again or not; a run without digests takes the file for the one that it was."""
    data = secret / "data.parquet"
    for asked in (True, False):
        unfinish(secret / "with") if asked else None
        with pytest.raises(RunConflict, match=r"data\.parquet: SHA-256 is \w{12}, when the run was begun it was \w{12}; choose another output"):
            explain(example.model, data, secret / "with", scheduler="serial", digest_inputs=asked)
        assert read_manifest(str(secret / "with")) is None
    explain(example.model, data, secret / "without", scheduler="serial")


@pytest.mark.slow
def test_a_check_blames_the_data_and_not_the_run(example, tmp_path):
    """Where digests tell that a file is another one, its rows are not explained again; where there are none, the rows differ."""
    data = tmp_path / "data.parquet"
    write_plain(data)
    for name, asked in (("with", True), ("without", False)):
        explain(example.model, data, tmp_path / name, scheduler="serial", digest_inputs=asked)
    change_secretly(data)
    report = check_run(tmp_path / "with", all_rows=True)
    assert (report.sound, report.n_digested, report.n_again) == (False, 0, 0)
    assert [said.split(": SHA")[0] for said in report.unverified] == [
        f"1 of 1 input files: {data}",
        f"rows of 1 of 1 parts were not explained again: {data}",
    ]
    with pytest.raises(InvalidRun, match="explained again differ"):
        check_run(tmp_path / "without", all_rows=True)
    data.unlink()
    assert "no such file" in check_run(tmp_path / "with", deep=True).unverified[0]


def test_a_check_knows_the_record(example, tmp_path):
    """It has to be of the run's plan and of its files, also where nothing is read again."""
    out = tmp_path / "run"
    explain(example.model, example.data, out, scheduler="serial", digest_inputs=True)
    held = json.loads((out / "inputs.json").read_text())
    for changed, message in (
        (held | {"plan": "0" * 64}, "is of a plan with"),
        (held | {"data": held["data"][1:]}, "lists 3 files"),
        ({}, "not a record"),
    ):
        (out / "inputs.json").write_text(json.dumps(changed, indent=1))
        with pytest.raises(InvalidRun, match=rf"inputs\.json: {message}"):
            check_run(out)


@pytest.mark.slow
def test_on_an_object_store_and_on_a_cluster(example, bucket, forked):
    out = f"{bucket}/run"
    explain(example.model, example.data, out, workers=1, digest_inputs=True)
    assert [file.uri for file in read_inputs(out).data] == [str(path) for path in sorted(Path(example.data).rglob("*.parquet"))]
    assert check_run(out, deep=True).n_digested == 4


@pytest.mark.slow
def test_the_command_says_where_they_are(example, tmp_path, capsys):
    """With the digest to keep, as text and in the document; a run that was finished without them says so."""
    arguments = ["explain", example.model, example.data, "--scheduler", "serial", "--out"]
    assert cli.main([*arguments, str(tmp_path / "run"), "--digest-inputs"]) == 0
    said, log = capsys.readouterr()
    digest = hashlib.sha256((tmp_path / "run" / "inputs.json").read_bytes()).hexdigest()
    assert f"inputs:       {tmp_path}/run/inputs.json\nSHA-256:      {digest}\n" in said
    assert "digesting inputs: part 0: " in log
    assert cli.main([*arguments, str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inputs"] == digest
    assert cli.main(["check", str(tmp_path / "run"), "--deep"]) == 0
    assert ", 4 input files as digested\n" in capsys.readouterr().out
    assert cli.main([*arguments, str(tmp_path / "other"), "--quiet"]) == 0
    assert cli.main([*arguments, str(tmp_path / "other"), "--json", "--digest-inputs"]) == 0
    said, log = capsys.readouterr()
    assert json.loads(said)["inputs"] is None
    assert log == f"leafledger: {tmp_path}/other: was finished before, without digests of its inputs\n"
    assert cli.main([*arguments, str(tmp_path / "run"), "--digest-inputs", "--replace", "--precision", "float64"]) == 0
    (named,) = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("inputs:")]
    assert named == f"{tmp_path}/run/inputs.json"
    assert Path(named).read_bytes() == Path(f"{read_manifest(str(tmp_path / 'run')).home(str(tmp_path / 'run'))}/inputs.json.own").read_bytes()
