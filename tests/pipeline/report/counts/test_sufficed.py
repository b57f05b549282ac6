"""How often one change would have sufficed: counted by hand, and on the page."""

import re
from pathlib import Path

import pyarrow as pa

from leafledger import explain, read_run, report
from leafledger.pipeline.report.counts.sufficed import count_sufficed
from leafledger.pipeline.runs.columns.change_columns import ENTRY


def column(*rows):
    """Rows with changes of these features, each letter one."""
    lists = [None if row is None else [{"feature": name, "value": "1", "until": None, "text": "t"} for name in row] for row in rows]
    return pa.chunked_array([pa.array(lists[:2], pa.list_(ENTRY)), pa.array(lists[2:], pa.list_(ENTRY))])


def test_rows_are_counted_by_feature():
    """Rows on the other side count nowhere, and a row with two changes once among those with any."""
    assert count_sufficed(column("ab", None, "", "b", "c"), ("a", "b", "d")) == (4, 3, 1, 2, 0)
    assert count_sufficed(column(None, None), ("a",)) == (0, 0, 0)
    assert count_sufficed(column(), ("a",)) == (0, 0, 0)


def test_the_page_says_how_often(example, tmp_path):
    """Of several parts, with the numbers of the run's own column; a run without changes has no such section."""
    told = {"direction": "raises", "default": {"text": "x"}, "changes": {"threshold": 90.0}}
    told |= {"change": [{"feature": "distance"}, {"feature": "delay", "step": 0.5, "at_least": 60}]}
    explain(example.model, example.data, tmp_path / "run", reasons=told, scheduler="serial")
    listed = read_run(tmp_path / "run").attributions()["changes"].to_pylist()
    concerned = [entries for entries in listed if entries is not None]
    some = sum(map(bool, concerned))
    assert 0 < some < len(concerned) < len(listed)
    page = report(tmp_path / "run")
    text = " ".join(re.sub("<[^>]+>", " ", Path(page.uri).read_text()).split())
    assert f"{len(concerned):,} rows reach a margin of 90. A change of one feature alone" in text
    assert f"would have carried {some:,} of them (" in text
    for name in ("distance", "delay"):
        n = sum(any(entry["feature"] == name for entry in entries) for entries in concerned)
        assert re.search(rf"{name} {n:,} [\d.]+ ?%", text)
    called = {"rows": {"one": "flight", "many": "flights"}, "features": {"delay": {"title": "Minutes late"}}}
    text = " ".join(re.sub("<[^>]+>", " ", Path(report(tmp_path / "run", names=called).uri).read_text()).split())
    assert f"{len(concerned):,} flights reach a margin of 90." in text
    assert re.search(r"flights that its change would carry across share .*Minutes late [\d,]+ [\d.]+ ?%", text)


def test_other_pages_have_no_such_section(reported):
    """Nothing was asked."""
    assert "What would have to change" not in Path(report(reported).uri).read_text()
