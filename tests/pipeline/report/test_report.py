"""A report is written once and whole, of any run there is, the same wherever its rows were counted."""

import re
import shutil
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

from leafledger import check_run, explain, read_run, report
from pipeline.errors import InvalidRun
from pipeline.runs.after import read_after
from pipeline.stores import storage
from tests.pipeline.running import contents


def written(run, **where):
    uri = report(run, **({"scheduler": "serial"} | where)).uri
    return contents(run)[uri.removeprefix(f"{run}/")].decode()


def test_a_report_is_listed_beside_the_manifest_and_the_run_stays_sound(reported):
    before = contents(reported)
    page = report(reported, scheduler="serial")
    after = contents(reported)
    assert page.uri == f"{reported}/report/index.html"
    assert page.size == len(after["report/index.html"]) < 1_000_000
    assert {name: after[name] for name in before} == before
    assert "report/index.html" in [entry["uri"] for entry in read_after(str(reported), read_run(reported).manifest.sha256).objects]
    assert check_run(reported, deep=True).sound
    (reported / "report/index.html").write_text("changed")
    with pytest.raises(InvalidRun, match=r"index\.html"):
        check_run(reported)
    report(reported, scheduler="serial")
    assert contents(reported) == after


def test_the_page_is_the_same_on_dask(reported, tmp_path):
    """Two processes count what one counts."""
    copy = shutil.copytree(reported, tmp_path / "run", ignore=shutil.ignore_patterns("after*", "report"))
    serial = written(copy)
    shutil.rmtree(copy / "report")
    with patch("pipeline.report.report.FEW", 0):
        assert written(copy, scheduler=None, workers=2) == serial


def test_everything_of_the_run_is_on_the_page(reported):
    page = written(reported)
    titles = re.findall(r"<h3 id=[^>]*>([^<]*)", page)
    assert titles[:2] == ["How much each feature moves predictions", "Which way features move predictions"]
    assert {"How delay acts", "How carrier acts", "Which features act together"} <= set(titles)
    assert [title.partition(":")[0] for title in titles[-4:-1]] == ["Highest margin", "Lowest margin", "Median margin"]


def test_classes_have_a_section_each(classes):
    page = written(classes)
    assert re.findall(r'<section id="([^"]*)"', page) == ["output-1", "output-2", "output-3", "rows", "inputs", "provenance"]
    assert "explain --values keeps them" in page


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("ranker", {}), ("curves", {}), ("gap_greedy", {"parameters": {"top": 2}}), ("r2", {"label": "delay", "missing_labels": "count"})],
)
def test_every_kind_of_method_has_a_page(example, tmp_path, method, arguments):
    explain(example.model, f"{example.data}/month=1", tmp_path / "run", method=method, scheduler="serial", **arguments)
    assert "<figure" in written(tmp_path / "run")


@pytest.mark.parametrize("arguments", [{"global_only": True}, {"top": 2, "columns": "top"}, {"space": "response"}])
def test_what_a_run_does_not_keep_is_not_drawn(example, tmp_path, arguments):
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", **arguments)
    page = written(tmp_path / "run")
    assert ("is not drawn" in page) == ("space" not in arguments)


@pytest.mark.parametrize("n", [0, 1, 300])
def test_a_page_is_made_of_whatever_rows_there_are(odd, n):
    """None, one, or some with all values missing and some infinite; names that are markup are texts."""
    page = written(odd(n))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert ("No rows were explained" in page) == (n == 0)
    assert "nan" not in re.sub(r"[A-Za-z]nan|nan[A-Za-z]", "", page)


def test_what_changed_comes_first_and_stays(example, reported, tmp_path):
    """Against another run, and afterwards without naming it again, the page is the same."""
    explain(example.model, f"{example.data}/month=1", tmp_path / "run", values=True, scheduler="serial")
    against = written(tmp_path / "run", against=reported)
    assert re.findall(r'<section id="([^"]*)"', against)[:2] == ["changes", "output-1"]
    assert re.search(r'<p class="lede">Compared with run of 3,000 rows, its mean margin is ', against)
    assert written(tmp_path / "run") == against


def test_a_run_in_an_object_store_has_its_page_there(example, bucket):
    explain(example.model, f"{example.data}/month=1", f"{bucket}/run", scheduler="serial")
    page = report(f"{bucket}/run", scheduler="serial")
    assert page.uri == f"{bucket}/run/report/index.html"
    assert len(storage.read(page.uri)) == page.size
    assert check_run(f"{bucket}/run").sound


def test_no_run_and_a_damaged_one_are_one_line(reported, tmp_path):
    with pytest.raises(InvalidRun, match="not a finished run"):
        report(tmp_path)
    copy = shutil.copytree(reported, tmp_path / "run", ignore=shutil.ignore_patterns("after*", "report"))
    part = copy / "attributions/part-00001.parquet"
    group, damaged = pq.read_metadata(part).row_group(0), bytearray(part.read_bytes())
    offset = next(group.column(c).data_page_offset for c in range(group.num_columns) if group.column(c).path_in_schema == "phi_distance")
    damaged[offset + 60 : offset + 90] = bytes(each ^ 255 for each in damaged[offset + 60 : offset + 90])
    part.write_bytes(damaged)
    with pytest.raises(InvalidRun, match=r"part-00001.parquet"):
        report(copy, scheduler="serial")
    assert not (copy / "report").exists()
    part.unlink()
    with pytest.raises(InvalidRun, match=r"part-00001.parquet"):
        report(copy, scheduler="serial")
