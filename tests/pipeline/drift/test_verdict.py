"""What was found of a run is read as it was said, of this very run alone."""

import json

import pytest

from leafledger import drift, read_manifest
from leafledger.pipeline.drift.verdict import DriftVerdict, read_verdict
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.records.derived import write_derived


def test_what_was_found_is_read_again(nights, serial):
    """The lines that the comparison said; of a run that was not compared, or of another manifest, there are none."""
    a, b = nights
    said = drift(b, against=a)
    manifest = read_manifest(str(b)).sha256
    assert read_verdict(str(b), manifest) == DriftVerdict(str(b), str(a), said.alarms, said.differs)
    assert read_verdict(str(b), "0" * 64) is None
    out, run = serial
    assert read_verdict(str(out), run.sha256) is None


@pytest.mark.parametrize("text", ["[]", "{", json.dumps({"alarms": 1, "differs": [], "reference": ""}), json.dumps({"alarms": [], "differs": []})])
def test_what_is_something_else_is_refused(tmp_path, text):
    """In one line."""
    write_derived(str(tmp_path), "0" * 64, {"after/drift.json": text.encode()})
    with pytest.raises(InvalidRun, match=r"after/drift\.json: is not as leafledger writes it"):
        read_verdict(str(tmp_path), "0" * 64)
