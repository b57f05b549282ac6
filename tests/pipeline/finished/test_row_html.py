"""A page of rows holds everything itself, runs and fetches nothing, and shows names as they are."""

from html.parser import HTMLParser

import pytest

from leafledger.pipeline.display.waterfall import Step
from leafledger.pipeline.errors import RunConflict
from leafledger.pipeline.finished.row_data import ShownRow
from leafledger.pipeline.finished.row_page import save_page, write_page
from tests.pipeline.showing import one, shown

HOSTILE = "<script>alert(1)</script><img src=x onerror=y>\" ' & \x00\x1b[31m\u202e"


TAGS = {"strong", "html", "head", "meta", "title", "style", "body", "div", "section", "h2", "h3", "p", "table", "tr", "td", "i"}
TAGS |= {"details", "summary", "footer", "br"}


class _Reader(HTMLParser):
    """Tags with their attributes, texts, and that everything that is opened is closed."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(page):
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def hostile():
    reason = {"rank": 1, "code": HOSTILE, "text": HOSTILE, "feature": HOSTILE, "phi": 1.0, "share": 0.5, "value": HOSTILE}
    steps = [Step(HOSTILE, HOSTILE, 2.0), Step("b", None, -1.0)]
    row = one(steps, base=1.0, total=2.0, output=HOSTILE, interactions=(((HOSTILE, "b"), 1.0),), reasons=(reason,), scores={HOSTILE: 1.0})
    other = one(steps, total=1.0, output=HOSTILE).outputs
    return ShownRow(row.place, HOSTILE, 0, {HOSTILE: HOSTILE}, {HOSTILE: HOSTILE, "none": None}, (*row.outputs, *other))


@pytest.mark.parametrize("kind", [{}, {"ranks": True}, {"additive": False}, {"n_found": 1000}])
def test_all_texts_are_escaped(kind):
    """No tag but our own, no address anywhere, and the names as texts."""
    reader = read(write_page(shown(hostile(), **kind), note=HOSTILE))
    assert {tag for tag, _ in reader.tags} <= TAGS
    assert {name for _, given in reader.tags for name in given} <= {"lang", "charset", "http-equiv", "content", "name", "class", "style"}
    shown_name = "<script>alert(1)</script><img src=x onerror=y>\" ' & \\x00\\x1b[31m\\u202e"
    assert any(shown_name in text for text in reader.texts)
    page = write_page(shown(hostile(), **kind))
    assert not {"\x00", "\x1b", "\u202e"} & set(page)
    assert "url(" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_the_page_forbids_scripts_and_requests_and_knows_dark_systems():
    page = write_page(shown(hostile()))
    assert "default-src 'none'" in page
    assert '<meta name="color-scheme" content="light dark">' in page
    assert "prefers-color-scheme: dark" in page


def test_numbers_and_bars_are_the_row_s():
    """The largest bar is the widest; what lowers is of the other colour; other outputs and all values can be opened."""
    page = shown(hostile())._repr_html_()
    assert '<i style="width:100.0%"></i>' in page
    assert '<i class=d style="width:50.0%"></i>' in page
    texts = read(page).texts
    assert {"+2", "-1", "base value", "margin", "interactions", "reasons", "all values"} <= set(texts)
    assert "–" in read(shown(one([Step("a", 1, float("nan"))]), additive=False)._repr_html_()).texts


def test_a_page_is_written_once(tmp_path):
    """Another one there is not overwritten."""
    save_page(str(tmp_path / "row.html"), write_page(shown(one())))
    assert (tmp_path / "row.html").read_text(encoding="utf-8") == write_page(shown(one()))
    save_page(str(tmp_path / "row.html"), write_page(shown(one())))
    with pytest.raises(RunConflict, match=r"row\.html"):
        save_page(str(tmp_path / "row.html"), write_page(shown(one(total=4.0))))
