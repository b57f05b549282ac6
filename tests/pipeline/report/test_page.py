"""A page holds everything itself, every text of it escaped, and each figure has its words and its numbers."""

from html.parser import HTMLParser

from leafledger.pipeline.report.figures.figure import Figure, Mark, Matrix, Plane, Shape, Strip, Strips, Table, Track, Tracks
from leafledger.pipeline.report.figures.scale import Axis
from leafledger.pipeline.report.page import Page, Section, Verdict, write_page

HOSTILE = "<script>alert(1)</script><img src=x onerror=y>\" ' & {{ 7 * 7 }} \x00\x1b[31m‮\ud800"
TICKS = Axis(0, 1).ticks()
TABLE = Table((HOSTILE, HOSTILE), ((HOSTILE, HOSTILE),), HOSTILE)
DRAWINGS = (
    Tracks((Track(HOSTILE, (Mark(0, 50, "up"),), ((1, 2),), (3,), HOSTILE),), TICKS, 0.0, HOSTILE),
    Strips((Strip(HOSTILE, (Shape("v0", "M0 0h1v1h-1z"),)),), 10, TICKS, None, HOSTILE, True),
    Plane(10, 10, (Shape("d1", "M0 0h1v1h-1z"),), (Shape("mean", "M0 0L1 1"),), TICKS, TICKS, 50.0, HOSTILE, HOSTILE, (("mean", HOSTILE),)),
    Matrix((HOSTILE, HOSTILE), ((-1,), (3, -1)), HOSTILE, HOSTILE),
)
FIGURES = tuple(Figure(HOSTILE, HOSTILE, drawing, TABLE) for drawing in DRAWINGS)
SECTION = Section("one", HOSTILE, (HOSTILE,), (HOSTILE,), FIGURES, ((HOSTILE, TABLE),), ((HOSTILE, HOSTILE),), HOSTILE)
PAGE = Page(HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), Verdict("sound", HOSTILE, HOSTILE), ((HOSTILE, HOSTILE),), (SECTION,), HOSTILE)


class _Reader(HTMLParser):
    """Tags with their attributes, texts, and that everything that is opened is closed."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(page):
    reader = _Reader()
    reader.feed(write_page(page))
    reader.close()
    assert reader.open == []
    return reader


def test_all_texts_are_escaped():
    """No tag but our own, no address anywhere, and names as they are."""
    page, reader = write_page(PAGE), read(PAGE)
    assert not {"script", "img", "iframe", "object"} & {tag for tag, _ in reader.tags}
    assert not any(name.startswith("on") or name in ("src", "srcset") for _, given in reader.tags for name in given)
    assert {given["href"] for _, given in reader.tags if "href" in given} == {"#one", "#content", "data:,"}
    assert any("<script>alert(1)</script><img src=x onerror=y>\" ' & {{ 7 * 7 }} \\x00\\x1b[31m\\u202e\\ud800" in text for text in reader.texts)
    assert not {"\x00", "\x1b", "‮", "\ud800"} & set(page)
    assert "url(" not in page
    assert "//" not in page.replace("<!DOCTYPE", "")


def test_the_page_forbids_scripts_and_requests_and_knows_dark_systems_and_paper():
    page = write_page(PAGE)
    assert "default-src 'none'" in page
    for wanted in ("prefers-color-scheme: dark", "@media print", "prefers-reduced-motion"):
        assert wanted in page


def test_each_figure_is_an_image_with_a_title_a_description_and_its_numbers():
    reader = read(PAGE)
    ids = [given["id"] for _, given in reader.tags if "id" in given]
    assert len(ids) == len(set(ids))
    images = [given for _, given in reader.tags if given.get("role") == "img"]
    assert len(images) == len(FIGURES)
    assert all(given["aria-labelledby"] in ids and given["aria-describedby"] in ids for given in images)
    assert sum(tag == "details" for tag, _ in reader.tags) == len(FIGURES)


def test_a_page_is_the_same_every_time():
    assert write_page(PAGE) == write_page(PAGE)
