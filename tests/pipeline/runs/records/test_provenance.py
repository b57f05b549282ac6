"""The record of how a run was made is written once, whole or not at all, in any store, and is of one run."""

import json
from dataclasses import replace

import pytest

from leafledger import Provenance, check_run, explain
from leafledger.pipeline.cluster.worker_identity import Machine
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.records.provenance import read_provenance, write_provenance

ME, OTHER = "a" * 64, "b" * 64


HERE = Machine("here", "a cpu")


MADE = Provenance(ME, "2026-03-02T01:02:03Z", "2026-03-02T01:02:04Z", "3.11.0", {"numpy": "2"}, HERE, None, (), None, {"planning": 0.5}, 0, 0)


def test_a_record_is_written_once(tmp_path):
    """The first of a run stays; that of another run, or what is none, does not."""
    run, uri = str(tmp_path), tmp_path / "provenance.json"
    assert read_provenance(run, ME) is None
    assert write_provenance(run, MADE) is None
    assert write_provenance(run, replace(MADE, parts_made=9)) is None
    assert read_provenance(run, ME) == MADE
    assert read_provenance(run, OTHER) is None
    assert write_provenance(run, replace(MADE, manifest=OTHER)) is None
    assert read_provenance(run, OTHER) == replace(MADE, manifest=OTHER)
    uri.write_text("{")
    assert write_provenance(run, MADE) is None
    assert read_provenance(run, ME) == MADE


def test_a_check_knows_it(example, tmp_path):
    """It refuses a record of another run, and one that is none, in one line."""
    out = tmp_path / "run"
    explain(example.model, example.data, out, scheduler="serial")
    held = json.loads((out / "provenance.json").read_text())
    changes = [
        (held | {"manifest": OTHER}, r"provenance\.json: is of a manifest with SHA-256 bbbbbbbbbbbb, the run's has \w{12}; remove it"),
        (held | {"parts_made": "1"}, r"not a record of how a run was made: parts_made is \"1\", expected a whole number; remove it"),
        ({"manifest": held["manifest"]}, "not a record of how a run was made: it has no 'started'"),
        ([], "not a record of how a run was made"),
    ]
    for changed, message in changes:
        (out / "provenance.json").write_text(json.dumps(changed))
        with pytest.raises(InvalidRun, match=message):
            check_run(out)
    (out / "provenance.json").unlink()
    assert check_run(out).sound


def test_records_of_a_store(bucket, example):
    """On S3, and of another file system, as on this machine's."""
    for run in (f"{bucket}/run", "memory://provenance/run"):
        assert write_provenance(run, MADE) is None
        assert write_provenance(run, replace(MADE, parts_made=9)) is None
        assert read_provenance(run, ME) == MADE
