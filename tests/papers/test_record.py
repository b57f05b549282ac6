"""What is kept of figures is what they say."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.papers.figures import Claim, Figure, Line
from tests.papers.record import name_of, save, verdict

LINES = (Line((5, "a"), {"ours: x": 0.0, "printed": 1.5}), Line((20, "b"), {"ours: x": np.inf}))
FIGURE = Figure("Somebody 2020, Figure 1: error of R²", ("D", "data"), LINES, plot="error")


def test_numbers_pictures_and_verdicts_are_kept(tmp_path):
    """Numbers of every column, with those that are missing or infinite; a picture of what has one."""
    table = replace(FIGURE, title="Somebody 2020, Table 1", plot="", other_data="drawn")
    path = save(tmp_path, [(FIGURE, [Claim("small", True)]), (table, [Claim("ordered", False)])], {"quick": True})
    found = pq.read_table(tmp_path / f"{name_of(FIGURE)}.parquet")
    assert found.to_pydict() == {"D": [5, 20], "data": ["a", "b"], "printed": [1.5, None], "ours: x": [0.0, np.inf]}
    assert {file.name for file in tmp_path.glob("*.svg")} == {"somebody-2020-figure-1-error-of-r2.svg"}
    assert "ours: x" in "".join(ElementTree.parse(tmp_path / "somebody-2020-figure-1-error-of-r2.svg").getroot().itertext())
    kept = json.loads(path.read_text())
    assert kept["quick"] is True
    assert [entry["claims"][0]["verdict"] for entry in kept["figures"]] == ["holds", "FAILS, on other data"]
    assert kept["figures"][0]["lines"][1] == {"labels": [20, "b"], "numbers": {"ours: x": np.inf}}


def test_pictures_are_the_same_whenever_they_are_drawn(tmp_path):
    first, second = (save(tmp_path / name, [(FIGURE, [])], {}).with_name(f"{name_of(FIGURE)}.svg").read_bytes() for name in "ab")
    assert first == second


def test_files_do_not_overwrite_each_other(tmp_path):
    with pytest.raises(ValueError, match="two figures of one name"):
        save(tmp_path, [(FIGURE, []), (FIGURE, [])], {})


def test_what_is_claimed_on_other_data_is_called_so():
    other = replace(FIGURE, other_data="of scikit-learn")
    assert [verdict(figure, Claim("", True)) for figure in (FIGURE, other)] == ["holds", "holds, on other data"]
