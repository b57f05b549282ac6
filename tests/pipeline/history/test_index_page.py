"""The index over the nights: a page that is well formed, fetches nothing, keeps names as text, and is the same for the same runs."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from leafledger.pipeline.history.importance_shares import Importances, Kind, Line, OutputLines
from leafledger.pipeline.history.index_page import link_to, save_index, write_index
from leafledger.pipeline.history.listed_runs import ListedRun

NASTY = '<script>alert("1")</script>&\x1b'
VOID = {"meta", "polyline", "circle", "br"}


class Page(HTMLParser):
    """Tags in balance, links, and everything that a browser would fetch or run."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.fetched, self.tags = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        found = dict(attrs)
        if tag == "a":
            self.links.append(found["href"])
        self.fetched += [name for name in found if name in ("src", "srcset", "action", "data") or name.startswith("on")]

    def handle_startendtag(self, tag, attrs):
        self.tags += [tag, *dict(attrs)]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def night(name, **said):
    return ListedRun(**{"run": f"/nights/{name}", "name": name, "date": "2026-03-02", "state": "finished", "method": "shapley", "n_rows": 5} | said)


RUNS = (
    night("2026-03-01", report=True, alarms=(), r2=0.5, residual=1e-16, n_rejected=0, model_digest="ab" * 32),
    night(NASTY, alarms=(NASTY, "b"), report=True, method=NASTY, model_digest=NASTY),
    night("c", state="unfinished", n_parts=3, n_planned=40),
    night("d", state="damaged", why=NASTY),
    night("e", state="unfinished"),
)
LINES = (Line(NASTY, (0.5, None, 0.25, 0.75)), Line("b", (None, 0.0, 0.0, None)))
KIND = Kind(NASTY, NASTY, "{}", "margin", "", "without a background", (NASTY, "b"))
FOUND = Importances(RUNS, (OutputLines(NASTY, LINES, 30, (20.0, None, -10.0, 50.0)), OutputLines("b", LINES, 2)), 12, 1, KIND, total="prediction")


def test_the_page_is_well_formed_and_names_are_text():
    """No script, no request; the browser is told so too."""
    text = write_index(NASTY, RUNS, FOUND, "/nights/index.html")
    page = Page(text)
    assert page.open == []
    assert page.fetched == []
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert "\x1b" not in text
    assert text == write_index(NASTY, RUNS, FOUND, "/nights/index.html")


def test_what_a_reader_sees():
    """Counts, states, alarms, what is left out, and a link to each report."""
    text = write_index("/nights", RUNS, FOUND, "/nights/index.html")
    counted = ("5 runs in nights", "2 finished, 2 unfinished, 1 damaged: /nights", "28 more features", "10 more outputs")
    for said in (*counted, "3 of 40 parts", "2 alarms"):
        assert said in text
    assert "None" not in text
    assert "1 finished run of other jobs, methods, spaces, backgrounds or outputs, or without importances, left out" in text
    assert "space margin, without a background; the bottom is 0, or the lowest if that is below." in text
    assert "<h2>2026-03-02</h2>" in text
    links = Page(text).links
    assert [unquote(link) for link in links] == [f"./{NASTY}/report/index.html", "./2026-03-01/report/index.html"]


def test_a_column_that_no_run_has_anything_in_is_left_out():
    """Of what one has, the others have a dash; drift stands among the first, which a phone shows."""
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)', write_index("/nights", RUNS, Importances((), (), 0, 0), "/nights/index.html"))
    assert heads == ["date", "run", "state", "drift", "rows", "rejected", "R²", "adds up", "method", "model"]
    text = write_index("/nights", (night("a", date=None), night("b", date=None, r2=0.5)), Importances((), (), 0, 0), "/nights/index.html")
    assert re.findall(r'<th scope="col"[^>]*>([^<]*)', text) == ["run", "state", "rows", "R²", "method"]
    assert text.count('<td class="n">–</td>') == 1


def test_lines_break_where_a_run_lacks_the_feature():
    """From 0 at the bottom to the highest at the top; a single night is a point."""
    text = write_index("/nights", RUNS, FOUND, "/nights/index.html")
    assert '<polyline points="159.0,23.0 237.0,3.0"/>' in text
    assert '<circle cx="3.0" cy="13.0" r="2"/>' in text
    assert '<polyline points="81.0,33.0 159.0,33.0"/>' in text


def test_the_mean_prediction_has_a_line_of_its_own():
    """Down to the lowest, where that is below 0; a number for each end and extreme; outputs that have none have no line."""
    text = write_index("/nights", RUNS, FOUND, "/nights/index.html")
    assert text.count('<th scope="row">mean prediction</th>') == 1
    row = text.partition('<th scope="row">mean prediction</th>')[2].partition("</tr>")[0]
    assert '<polyline points="159.0,33.0 237.0,3.0"/>' in row
    assert re.findall(r'<td class="n">([^<]*)', row) == ["20", "-10", "50", "50"]


def test_names_that_are_no_utf_8(tmp_path):
    """The page is, and links to the bytes that the name has."""
    run = night("2026-03-01\udcff", report=True)
    save_index(str(tmp_path / "index.html"), "/nights\udcff", (run,))
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert [link.rpartition("/nights/")[2] for link in Page(text).links] == ["2026-03-01%FF/report/index.html"]


def test_no_runs_at_all():
    text = write_index("/nights", (), Importances((), (), 0, 0), "/nights/index.html")
    assert "0 runs in nights" in text
    assert Page(text).open == []


@pytest.mark.parametrize(
    ("page", "target", "link"),
    [
        ("/a/index.html", "/a/b c/report/index.html", "./b%20c/report/index.html"),
        ("/a/x/index.html", "/a/b/r.html", "./../b/r.html"),
        ("s3://k/a/index.html", "s3://k/a/javascript:x/r.html", "./javascript%3Ax/r.html"),
        ("s3://k/index.html", "s3://other/a/r.html", "s3://other/a/r.html"),
        ("/a/index.html", "s3://k/a/r.html", "s3://k/a/r.html"),
        ("/a/index.html", "/a/b\udcff/r.html", "./b%FF/r.html"),
        ("s3://k/index.html", "/a/b\udcff/r.html", "/a/b%FF/r.html"),
    ],
)
def test_links_are_relative_where_they_can_be(page, target, link):
    """So that a folder can be copied, and nothing in a name is a scheme."""
    assert link_to(page, target) == link
