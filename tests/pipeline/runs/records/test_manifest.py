"""A manifest reads back as it was written, leads nowhere but below its run, and is refused in one line where it is damaged."""

import json
import shutil

import pytest

from leafledger import check_run, explain
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.records.folder import MANIFEST
from leafledger.pipeline.runs.records.manifest import read_manifest


@pytest.mark.parametrize("uri", ["../elsewhere.parquet", "/etc/passwd", "s3://other/part.parquet", ""])
def test_a_manifest_that_leads_elsewhere_is_refused(example, tmp_path, uri):
    """What a manifest lists stays below the run's folder."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    manifest["parts"][0]["uri"] = uri
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidRun, match="leads out of the run's folder"):
        check_run(tmp_path / "run")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: b"",
        lambda text: text[:-5],
        lambda text: b"[]",
        lambda text: b"\xff" + text,
        lambda text: b"[" * 100_000,
        lambda text: text.replace(b'"outputs"', b'"output"'),
        lambda text: text.replace(b'"sha256"', b'"sha1"', 1),
        lambda text: text.replace(b'"n_rows": ', b'"rows": ', 2),
        lambda text: text.replace(b'"method"', b'"means"'),
    ],
)
def test_a_damaged_manifest_is_named(serial, tmp_path, damage):
    """In one line; none is none."""
    shutil.copy(serial[0] / MANIFEST, tmp_path / MANIFEST)
    assert read_manifest(str(tmp_path)) == serial[1]
    (tmp_path / MANIFEST).write_bytes(damage((tmp_path / MANIFEST).read_bytes()))
    with pytest.raises(InvalidRun, match=r"manifest\.json: not a manifest: [^\n]+$"):
        read_manifest(str(tmp_path))
    assert read_manifest(str(tmp_path / "nowhere")) is None
