"""The overview of nights: a page that is well formed, fetches nothing, keeps names as text, and is the same for the same runs."""

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

from leafledger import drift, explain, list_runs, report
from leafledger.pipeline.finished.names import Name, Names
from leafledger.pipeline.history.importance_shares import Importances, Kind, Line, OutputLines
from leafledger.pipeline.history.listed_runs import ListedRun
from leafledger.pipeline.report.overview import Said, Told, save_index, write_index
from leafledger.pipeline.report.page import name_anchor
from leafledger.pipeline.report.vocabulary import Vocabulary
from tests.pipeline.report.reading import read_section

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


TOLD = Told(Vocabulary(Names({"b": Name("a feature's title")}, Name("delay", "min")), "margin", "delay", "min"))
RUNS = (
    night("2026-03-01", report=True, alarms=(), r2=0.5, residual=1e-16, n_rejected=0, model_digest="ab" * 32),
    night(NASTY, alarms=(NASTY, "b"), report=True, method=NASTY, model_digest=NASTY),
    night("c", state="unfinished", n_parts=3, n_planned=40),
    night("d", state="damaged", why=NASTY),
    night("e", state="unfinished"),
)
LINES = (Line(NASTY, (0.5, None, 0.25, 0.75)), Line("b", (None, 0.0, 0.0, None)))
KIND = Kind(NASTY, NASTY, "{}", "margin", "", "without a background", (NASTY, "b"))
FOUND = Importances(RUNS, (OutputLines(NASTY, LINES, 30, (20.0, None, -10.0, 50.0)), OutputLines("b", LINES, 2)), 12, 1, KIND)


def test_the_page_is_well_formed_and_names_are_text():
    """No script, no request; the browser is told so too."""
    text = write_index(NASTY, RUNS, FOUND, "/nights/index.html", TOLD)
    page = Page(text)
    assert page.open == []
    assert page.fetched == []
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert "\x1b" not in text
    assert text == write_index(NASTY, RUNS, FOUND, "/nights/index.html", TOLD)


def test_what_a_reader_sees():
    """Counts, states, alarms, what is left out, and a link to each report."""
    text = write_index("/nights", RUNS, FOUND, "/nights/index.html", TOLD)
    counted = ("5 runs in nights", "2 finished, 2 unfinished, 1 damaged: /nights", "28 more features", "10 more outputs")
    for said in (*counted, "3 of 40 parts", "2 alarms"):
        assert said in text
    assert "None" not in text
    assert "1 finished run of other jobs, methods, spaces, backgrounds or outputs, or without importances, left out" in text
    assert ", without a background); its bottom is 0, or its lowest number where that is below 0." in text
    assert "space margin" not in text
    assert "<h2>2026-03-02</h2>" in text
    links = Page(text).links
    assert [unquote(link) for link in links] == [f"./{NASTY}/report/index.html", "./2026-03-01/report/index.html"]


def test_a_column_that_no_run_has_anything_in_is_left_out():
    """Of what one has, the others have a dash; drift stands among the first, which a phone shows."""
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)', write_index("/nights", RUNS, Importances((), (), 0, 0), "/nights/index.html", TOLD))
    assert heads == ["date", "run", "state", "drift", "rows", "rejected", "R²", "adds up", "method", "model"]
    text = write_index("/nights", (night("a", date=None), night("b", date=None, r2=0.5)), Importances((), (), 0, 0), "/nights/index.html", TOLD)
    assert re.findall(r'<th scope="col"[^>]*>([^<]*)', text) == ["run", "state", "rows", "R²", "method"]
    assert text.count('<td class="n">–</td>') == 1


def test_lines_break_where_a_run_lacks_the_feature():
    """From 0 at the bottom to the highest at the top; a single night is a point."""
    text = write_index("/nights", RUNS, FOUND, "/nights/index.html", TOLD)
    assert '<polyline points="159.0,23.0 237.0,3.0"/>' in text
    assert '<circle cx="3.0" cy="13.0" r="2"/>' in text
    assert '<polyline points="81.0,33.0 159.0,33.0"/>' in text


def test_features_and_the_prediction_are_called_by_their_names():
    """With the unit of the prediction, once; a comma or bracket before every clause."""
    text = write_index("/nights", RUNS, FOUND, "/nights/index.html", TOLD)
    assert '<th scope="row">a feature&#x27;s title</th>' in text
    assert '<th scope="row">b</th>' not in text
    flights = replace(TOLD, words=replace(TOLD.words, names=replace(TOLD.words.names, rows="flights")))
    assert '<th scope="col" class="n">flights</th>' in write_index("/nights", RUNS, FOUND, "/nights/index.html", flights)
    assert f"<caption>Mean delay, output {html.escape(NASTY[:-1])}" in text
    assert ", min</caption>" in text
    assert "Each line is one number over 5 runs (of &lt;script" in text


def test_a_comparison_is_told_as_its_report_tells_it():
    """With as many alarms as were found, a line for each thing; beside it the run that is compared with, by its report where it has one."""
    same = "1" * 64  # rows that are the same make the same manifest
    runs = (night("a", manifest=same, report=True), night("b", manifest=same, alarms=("x", "y", "z")), night("c", manifest="3" * 64, alarms=()))
    said = {"/nights/b": Said(("a", same), ("b: <rose>",)), "/nights/c": Said(("b", same), ())}
    text = write_index("/nights", runs, Importances((), (), 0, 0), "/nights/index.html", Told(TOLD.words, said))
    rows = re.findall(r"<tr id=.*?</tr>", text)
    assert [re.findall(r' id="(.*?)"', row) for row in rows] == [[name_anchor(run.run, run.manifest)] for run in reversed(runs)]
    assert len({row.partition(">")[0] for row in rows}) == 3
    assert '<details><summary class="drifted">3 alarms</summary><ul><li>b: &lt;rose&gt;</li></ul></details>' in rows[1]
    assert '<td class="run"><a href="./a/report/index.html">a</a></td>' in rows[1]
    assert '<td class="run">b</td>' in rows[0]
    assert Page(text).open == []


def test_nights_are_linked_with_their_reports(example, tmp_path):
    """From a line to the report and to that of the night before, and back to the line; features, prediction and unit as they are called."""
    names = {"features": {"delay": {"title": "departure delay"}}, "prediction": {"title": "arrival", "unit": "min"}}
    nights = [tmp_path / f"2026-0{month}-01" for month in (1, 2)]
    for month, run in enumerate(nights, 1):
        explain(example.model, f"{example.data}/month={month}", run, values=True, scheduler="serial")
        against = nights[0] if month > 1 else None
        if against:
            drift(run, against=against, thresholds={"distance": 0.0, "share": 0.0, "mean": 0.0, "false_discovery_rate": 1.0})
        report(run, against=against, names=names, overview=tmp_path / "index.html", scheduler="serial")
    save_index(str(tmp_path / "index.html"), str(tmp_path), list_runs(tmp_path), names)
    text = (tmp_path / "index.html").read_text()
    lines = dict(re.findall(r'<tr id="(.*?)">(.*?)</tr>', text))
    for run in nights:
        (anchor,) = re.findall(r'<a href="./../../index.html#(.*?)">This run in', (run / "report/index.html").read_text())
        assert f'<a href="./{run.name}/report/index.html">{run.name}</a>' in lines[anchor]
    second = lines[anchor]
    assert '<td class="run"><a href="./2026-01-01/report/index.html">2026-01-01</a></td>' in second
    n_alarms = len(json.loads((nights[1] / "after/drift.json").read_text())["alarms"])
    told, said = re.findall("<li>(.*?)</li>", second), read_section(nights[1], "changes")
    assert f"{n_alarms} alarms</summary>" in second
    assert f"{n_alarms} alarms about {len(told)} things: see what changed" in (nights[1] / "report/index.html").read_text()
    assert html.unescape(" ".join(told[:3])) in said
    assert any(line.startswith("departure delay: ") for line in told)
    assert ">delay<" not in text
    assert "<caption>Mean arrival, min</caption>" in text


def test_the_mean_prediction_has_a_line_of_its_own():
    """Down to the lowest, where that is below 0; a number for each end and extreme; outputs that have none have no line."""
    text = write_index("/nights", RUNS, FOUND, "/nights/index.html", TOLD)
    assert text.count('<th scope="row">mean delay</th>') == 1
    row = text.partition('<th scope="row">mean delay</th>')[2].partition("</tr>")[0]
    assert '<polyline points="159.0,33.0 237.0,3.0"/>' in row
    assert re.findall(r'<td class="n">([^<]*)', row) == ["20", "−10", "50", "50"]


def test_names_that_are_no_utf_8(tmp_path):
    """The page is, and links to the bytes that the name has."""
    run = night("2026-03-01\udcff", report=True)
    save_index(str(tmp_path / "index.html"), "/nights\udcff", (run,))
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert [link.rpartition("/nights/")[2] for link in Page(text).links] == ["2026-03-01%FF/report/index.html"]


def test_no_runs_at_all():
    text = write_index("/nights", (), Importances((), (), 0, 0), "/nights/index.html", TOLD)
    assert "0 runs in nights" in text
    assert Page(text).open == []
