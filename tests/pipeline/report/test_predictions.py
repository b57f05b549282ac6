"""Predictions are drawn as they were published, beside those of the run that is compared with, while it is there."""

import re
import shutil

import numpy as np
import pytest

from leafledger import explain, read_run, report
from leafledger.pipeline.report.page import name_anchor


@pytest.fixture
def runs(example, reported, tmp_path):
    explain(example.model, f"{example.data}/month=1", tmp_path / "now", values=True, scheduler="serial")
    before = shutil.copytree(reported, tmp_path / "before", ignore=shutil.ignore_patterns("after*", "report"))
    return before, tmp_path / "now"


def read_page(run, **asked):
    report(run, scheduler="serial", **asked)
    return (run / "report/index.html").read_text()


def middle(run):
    return np.quantile(read_run(run).attributions(["margin"])["margin"].to_numpy().astype(float), (0.25, 0.75))


def test_half_of_the_rows_lie_between_the_quartiles_of_the_parts(runs):
    before, now = runs
    page = read_page(now, against=before)
    said = re.search(
        r"half of them between ([−\d.]+) and ([−\d.]+); in before half of them between ([−\d.]+) and ([−\d.]+)\. Filled: now; line", page
    )
    quartiles = [float(each.replace("−", "-")) for each in said.groups()]
    assert quartiles == pytest.approx([*middle(now), *middle(before)], rel=0.02, abs=0.3)
    assert "prediction before" not in page
    assert '<th scope="col">rows before</th><th scope="col">rows now</th>' in page


def test_a_run_that_is_gone_has_no_line(runs):
    before, now = runs
    read_page(now, against=before)
    shutil.rmtree(before)
    page = read_page(now)
    assert "Distribution of the prediction" in page
    assert "half of them between" in page
    assert "in before half" not in page


def test_pages_link_to_the_overview_and_to_the_report_that_is_compared_with(runs):
    """If that is there; both by the way from the page, so that a copied folder keeps its links."""
    before, now = runs
    assert 'class="links"' not in read_page(now, against=before)
    read_page(before)
    page = read_page(now, overview=now.parent / "index.html")
    links = re.search(r'<p class="links">(.*?)</p>', page)[1]
    assert re.findall(r'href="([^"]*)">([^<]*)<', links) == [
        (f"./../../index.html#{name_anchor(str(now), read_run(now).manifest.sha256)}", "This run in the overview of all runs"),
        ("./../../before/report/index.html", "Report of before, which this run is compared with"),
    ]


def test_printed_pages_have_a_head_and_numbers(runs):
    page = read_page(runs[1])
    assert '@top-left { content: "Report of now" } @bottom-right { content: counter(page) " / " counter(pages) }' in page


def test_labels_stand_against_predictions(example, tmp_path):
    """Of a run that has labels, in cells of about as many rows; other runs have no such figure."""
    explain(example.model, example.data, tmp_path / "run", method="r2", label="delay", scheduler="serial")
    page = read_page(tmp_path / "run")
    assert "Actual against prediction" in page
    rows = read_run(tmp_path / "run").attributions().to_pandas()
    table = page.partition('Numbers<span class="hidden"> of Actual against prediction')[2].partition("</table>")[0]
    counted = [int(each.replace(",", "")) for each in re.findall(r"<td>([\d,]+)</td></tr>", table)]
    assert sum(counted) == len(rows.dropna(subset=["label", "margin"]))
