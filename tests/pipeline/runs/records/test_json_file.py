"""Records as JSON objects: what is there is read or refused in one line, and created once."""

import json
from dataclasses import dataclass, field, replace

import pytest

from leafledger.pipeline.errors import InvalidRun, OtherVersion
from leafledger.pipeline.json_records import as_text, iterate_text
from leafledger.pipeline.runs.formats.numbers import FORMAT
from leafledger.pipeline.runs.records.json_file import JsonFile, create_same, refuse_other, refuse_rewritten


@dataclass(frozen=True)
class Night:
    """A record."""

    format_version: int = field(default=FORMAT, kw_only=True)
    name: str
    rows: int


def refuse_negative(night, data):
    """A check of sense."""
    if night.rows < 0:
        raise ValueError(f"{len(data)} bytes say {night.rows} rows")


FILE = JsonFile(Night, "not a night", "; remove it", refuse_negative)


def test_a_record_is_read_or_refused_in_one_line(tmp_path):
    """Nothing where there is no object; else what is wrong with it, between what it should be and what to do."""
    uri = str(tmp_path / "night.json")
    assert FILE.read(uri) is None
    assert create_same(uri, iterate_text(Night("one", 3))) is None
    assert FILE.read(uri) == Night("one", 3)
    for text, why in (('{"name": 1, "rows": 2}', "name is 1, expected a text"), ('{"name": "one", "rows": -1}', "27 bytes say -1 rows")):
        with pytest.raises(InvalidRun) as refused:
            FILE.parse(text.encode(), "there")
        assert str(refused.value) == f"there: not a night: {why}; remove it"


def test_a_record_without_a_number_is_of_an_earlier_format():
    """And has what its kind makes of it; where fields are others, its version is named, if it says one."""
    assert FILE.parse(b'{"name": "one", "rows": 2}', "there") == Night("one", 2, format_version=2)
    told = JsonFile(Night, "not a night", earlier=lambda entry, number: {"format_version": number, "rows": 0, **entry})
    assert told.parse(b'{"name": "one"}', "there") == Night("one", 0, format_version=2)
    with pytest.raises(InvalidRun, match=r"^there: not a night: it has no 'rows'; remove it$") as refused:
        FILE.parse(b'{"name": "one"}', "there")
    assert not isinstance(refused.value, OtherVersion)
    with pytest.raises(OtherVersion, match=r"^there: made by leafledger 0\.1\.7, this is [\d.]+: it has no 'rows'; read it with the version that"):
        FILE.parse(b'{"name": "one", "version": "0.1.7"}', "there")


def test_bytes_complete_a_record():
    """With what no field of the text says."""
    file = JsonFile(Night, "not a night", complete=lambda night, data: replace(night, rows=len(data)))
    text = json.dumps({"format_version": FORMAT, "name": "one", "rows": 2}).encode()
    assert file.parse(text, "there") == Night("one", len(text))


@dataclass(frozen=True)
class Reordered:
    """A record whose text is not in the order of its fields."""

    format_version: int = field(default=FORMAT, kw_only=True)
    b: int
    a: int


def test_records_are_written_as_their_version_wrote_them():
    """One of today as it is written today, one of an earlier format as its own text says; spaces are no version's."""
    today = as_text(Reordered(1, 2)).encode()
    refuse_rewritten(Reordered(1, 2), today)
    early = json.dumps({"a": 2, "b": 1}, indent=1).encode()
    refuse_rewritten(Reordered(1, 2, format_version=2), early)
    for record, text in ((Reordered(1, 2), early), (Reordered(1, 2, format_version=2), early.replace(b"\n", b""))):
        with pytest.raises(ValueError, match="written otherwise"):
            refuse_rewritten(record, text)


def test_what_was_created_is_found_and_others_are_handed_back(tmp_path):
    """The same bytes are the same record, whoever wrote them."""
    uri = str(tmp_path / "night.json")
    for _ in range(2):
        assert create_same(uri, iter(["a", "b"])) is None
    assert create_same(uri, ["other"]) == b"ab"
    assert (tmp_path / "night.json").read_bytes() == b"ab"


def test_a_record_of_another_plan_or_manifest_is_refused():
    """By the first digits of both."""
    refuse_other("there", "plan", "a" * 64, "a" * 64)
    with pytest.raises(InvalidRun, match=r"^there: is of a plan with SHA-256 aaaaaaaaaaaa, the run's has bbbbbbbbbbbb; remove it$"):
        refuse_other("there", "plan", "a" * 64, "b" * 64)
