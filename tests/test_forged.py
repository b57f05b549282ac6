"""Whoever reads what somebody changed ends with a result, or in one line; ``make fuzz`` tries many more changes."""

import json
import shutil

import pytest

from leafledger.pipeline.errors import InvalidRun
from tests import forged
from tests.more import one_in
from tests.tampering import EARLIER, KINDS

CHANGES = 1  # of each file of each run
FOUND = [  # each ended in a traceback once
    ("manifest.json", ("parts", 1, "part"), 2),
    ("manifest.json", ("parts",), []),
    ("manifest.json", ("summaries", 0, "uri"), "\ud800"),
    ("manifest.json", ("n_rows",), -1),
    ("manifest.json", ("totals", "inputs", "unseen"), [0]),
    ("plan.json", ("ids", 0), "di"),
    ("plan.json", ("features", 2, "name"), "1"),
    ("after.json", ("objects", 0, "uri"), "[/]\n\x1b[31m"),
    ("after/drift.json", ("shifts", 1, "psi_expected"), "1"),
    ("after/drift.json", ("shifts",), -1),
    ("after/drift.json", ("outputs", 0), 1),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that was compared and reported, and the one that it was compared with."""
    return forged._make(tmp_path_factory.mktemp("runs"), "interactions")


@pytest.mark.parametrize("kind", one_in(2, [*KINDS, *EARLIER]))
@pytest.mark.slow
def test_readers_of_changed_files_end_in_one_line(kind):
    """Seeded: files of JSON field by field, tables with their bytes damaged and their digests true."""
    assert forged.try_readers(kind, CHANGES) == []


@pytest.mark.parametrize(("name", "place", "value"), FOUND)
def test_what_ended_in_a_traceback_ends_in_one_line(runs, name, place, value):
    """With the digests made true that whoever changes a file can make true."""
    run, other = runs
    found = json.loads((run / name).read_text())
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    data = json.dumps(found, indent=1, sort_keys=name == "plan.json").encode()
    assert list(forged.read_changed(run, other, name, data, forged.JSONS[name])) == []


def test_readers_read_what_nobody_changed(runs):
    """All of them: what is refused is refused for its change."""
    for read in forged.READERS.values():
        read(*runs)


@pytest.mark.slow
def test_counts_of_a_background_are_the_same_or_refused():
    """Also where every digest is made true."""
    assert forged.try_counts(4 * CHANGES) == []


def test_a_traceback_and_a_second_line_are_faults(runs, monkeypatch, tmp_path):
    """The comparison can fail."""

    def refuse(run, other):
        raise InvalidRun("one") if (run / "two").exists() else KeyError("no such name")

    monkeypatch.setattr(forged, "READERS", {"reader": refuse})
    run = shutil.copytree(runs[0], tmp_path / "run")
    assert list(forged.read_changed(run, run, "two", b"", "nothing")) == []
    assert list(forged.read_changed(run, run, "one", b"", "nothing")) == ["reader: KeyError: 'no such name'"]
    assert forged._answer(lambda: (_ for _ in ()).throw(ValueError("x"))) == "ValueError: x"
