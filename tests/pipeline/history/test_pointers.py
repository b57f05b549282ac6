"""Objects that name the latest run follow a run whose manifest is another by now, and no other."""

import json
from dataclasses import replace

import pytest

from leafledger import read_latest
from leafledger.pipeline.history.pointers import find_objects, find_pointers, refresh_pointer


@pytest.fixture
def manifest(serial):
    """Of a run that replaced another one."""
    return replace(serial[1], place=f"_replacements/{'a' * 16}-{'b' * 16}")


def told(**changed):
    return json.dumps({"format_version": 3, "date": "2026-11-01", "run": "/runs/a", "manifest": "b" * 64, "n_rows": 1, "share": 0.5} | changed)


def test_a_pointer_is_refreshed_once(manifest, tmp_path):
    pointer = tmp_path / "latest.json"
    pointer.write_text(told())
    assert refresh_pointer(str(pointer), "/runs/a", manifest)
    named = read_latest(pointer)
    assert (named.run, named.date, named.manifest, named.n_rows, named.share) == ("/runs/a", "2026-11-01", manifest.sha256, 3000, 1.0)
    assert not refresh_pointer(str(pointer), "/runs/a", manifest)


@pytest.mark.parametrize("text", [told(run="/runs/b"), told(manifest="c" * 64), "[]", "{}", "\x00"])
def test_others_stay_as_they_are(manifest, tmp_path, text):
    """Those that name another run, or another manifest of the same; and what is no pointer."""
    pointer = tmp_path / "latest.json"
    pointer.write_text(text)
    assert not refresh_pointer(str(pointer), "/runs/a", manifest)
    assert pointer.read_text() == text
    assert not refresh_pointer(str(tmp_path / "gone.json"), "/runs/a", manifest)
    assert not refresh_pointer(str(pointer), "/runs/a", replace(manifest, place=""))


def test_they_are_looked_for_on_the_way_to_runs(tmp_path):
    """Small objects in the folder and between it and runs; not within runs."""
    for name in ("latest.json", "job/newest", "job/run/plan.json", "other/x.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "large.json").write_text("x" * (1 << 15))
    assert find_objects(str(tmp_path), ["job/run"]) == {f"{tmp_path}/latest.json", f"{tmp_path}/job/newest"}
    assert find_pointers(str(tmp_path), ["job/run"]) == find_objects(str(tmp_path), ["job/run"])
    assert find_pointers(f"{tmp_path}/job/run", [""]) == {f"{tmp_path}/job/newest"}
