"""Thresholds from Python, TOML and JSON; what is none is refused in one line."""

import pytest

from leafledger.pipeline.drift.compare.alarm_thresholds import Thresholds, read_thresholds
from leafledger.pipeline.errors import LeafledgerError, UsageError


def test_thresholds_are_read_from_files_and_mappings(tmp_path):
    """What is not named is as by default."""
    (tmp_path / "t.toml").write_text("distance = 0.1\npsi = 3\n")
    (tmp_path / "t.json").write_text('{"distance": 0.1, "psi": 3}')
    expected = Thresholds(distance=0.1, psi=3.0)
    assert (
        read_thresholds(tmp_path / "t.toml") == read_thresholds(str(tmp_path / "t.json")) == read_thresholds({"distance": 0.1, "psi": 3}) == expected
    )
    assert read_thresholds(None) == read_thresholds({}) == Thresholds()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"distance": 2}, "thresholds: distance is 2, expected a number from 0 to 1"),
        ({"ndcg": "0.9"}, "thresholds: ndcg is '0.9', expected a number from 0 to 1"),
        ({"share": float("nan")}, "thresholds: share is nan"),
        ({"psi": -1}, "thresholds: psi is -1, expected a number of at least 0"),
        ({"psi\n": 1}, r"thresholds: has 'psi\\n', expected false_discovery_rate"),
        (3, "thresholds are 3, expected a path"),
    ],
)
def test_what_is_no_threshold_is_refused(given, said):
    with pytest.raises(UsageError, match=said):
        read_thresholds(given)


@pytest.mark.parametrize("text", ["[1]", "{", "distance = 1 2"])
def test_a_file_that_is_none_is_refused(tmp_path, text):
    """Neither TOML nor JSON, or no table, or not there."""
    (tmp_path / "t").write_text(text)
    for path in (tmp_path / "t", tmp_path / "nothing"):
        with pytest.raises(LeafledgerError):
            read_thresholds(path)
