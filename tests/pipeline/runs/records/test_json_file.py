"""Records as JSON objects: what is there is read or refused in one line, and created once."""

from dataclasses import dataclass

import pytest

from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.json_records import iterate_text
from leafledger.pipeline.runs.records.json_file import JsonFile, create_same, refuse_other


@dataclass(frozen=True)
class Night:
    """A record."""

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
