"""Every record of a run carries the number of its format; those of later versions are named, not called damaged."""

import json
from importlib.metadata import version

import pyarrow.parquet as pq
import pytest

from leafledger import drift, explain
from leafledger.pipeline.errors import Exit, OtherVersion
from leafledger.pipeline.runs.formats.numbers import FORMAT, NUMBER, read_number, refuse_version, say_version
from leafledger.pipeline.runs.records.latest import FILE as LATEST


@pytest.mark.parametrize(
    ("entry", "number"),
    [
        ({NUMBER: FORMAT}, FORMAT),
        ({NUMBER: FORMAT, "version": "9.9.9"}, FORMAT),
        ({"version": "0.1.0"}, 1),
        ({"version": "0.2.0"}, 2),
        ({"version": "0.2.1.dev3"}, 2),
        ({"date": "2026-01-01"}, 2),
        ([], 2),
        (None, 2),
    ],
)
def test_a_number_is_written_or_follows_from_the_version(entry, number):
    """Versions that wrote none are 0.1 and 0.2; what names no version is read as the last of them wrote it."""
    assert read_number(entry, "there") == number


@pytest.mark.parametrize("wrong", [0, 1, 2, -1, True, 3.0, "3", None, [3]])
def test_a_number_is_one_that_was_written(wrong):
    """Those of before the first were never written."""
    with pytest.raises(ValueError, match=rf"^{NUMBER} is .*, expected {FORMAT}$"):
        read_number({NUMBER: wrong}, "there")


def test_later_formats_are_named_by_their_version():
    """In one line, with what to do, and exit code 7; where no version is told, it is a later one."""
    with pytest.raises(OtherVersion) as refused:
        read_number({NUMBER: FORMAT + 1, "version": "4.2\n0"}, "there")
    said = str(refused.value)
    assert said.startswith(
        f"there: made by leafledger 4.2\\n0, this is {version('leafledger')}: it is of format {FORMAT + 1}, and formats up to {FORMAT}"
    )
    assert said.endswith("with --if-changed replace where its folder stays")
    assert refused.value.exit_code == Exit.CONFLICT
    with pytest.raises(OtherVersion, match="made by leafledger of a later version, "):
        LATEST.parse(json.dumps({NUMBER: FORMAT + 1, "date": "2026-01-01"}).encode(), "there")


def test_a_version_is_a_text():
    """As in a record; it is cut for messages."""
    assert [say_version(entry) for entry in ({"version": "1.0"}, {"version": 1}, {}, [], None)] == ["1.0", None, None, None, None]
    assert len(say_version({"version": "x" * 1000})) == 80


def test_the_refusal_says_both_versions():
    """And what lacks."""
    said = str(refuse_version("there", "0.9", "it has no 'x'"))
    assert said.startswith(f"there: made by leafledger 0.9, this is {version('leafledger')}: it has no 'x'; read it with the version that made it")


def test_every_record_of_a_run_has_its_number(example, tmp_path):
    """All JSON objects in its folder, but for summaries, which are tables; footers of parts; what is derived; what names the latest run."""
    background = tmp_path / "counts"
    given = {"scheduler": "serial", "date": "2026-01-01", "digest_inputs": True, "latest": tmp_path / "latest.json", "tables": background}
    for name in ("one", "two"):
        explain(example.model, example.data, tmp_path / name, background=example.data, **given)
    drift(tmp_path / "two", against=tmp_path / "one")
    records = [*tmp_path.rglob("*.json")]
    numbers = {path.name: json.loads(path.read_text()).get(NUMBER) for path in records if path.parent.name != "summary"}
    assert numbers.pop("index.json") == 1  # of counted backgrounds
    assert {"manifest.json", "plan.json", "provenance.json", "inputs.json", "latest.json", "drift.json"} <= numbers.keys()
    assert set(numbers.values()) == {FORMAT}
    for part in (tmp_path / "one").rglob("part-*.parquet"):
        assert json.loads(pq.read_metadata(part).metadata[b"leafledger"])[NUMBER] == FORMAT
