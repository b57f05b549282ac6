"""What a notebook and a line show: numbers with their nouns, the first rows of a table, and no markup that came with the data."""

import math
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.display.text import ROWS, as_html, as_markdown, count, is_whole, printable, write_two


@pytest.mark.parametrize(
    ("n", "noun", "said"), [(0, "row", "0 rows"), (1, "row", "1 row"), (2, "part", "2 parts"), (1234567, "row", "1,234,567 rows")]
)
def test_nouns_follow_their_numbers(n, noun, said):
    """Thousands are set off."""
    assert count(n, noun) == said


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((1.23456, 2.0), ("1.235", "2")),
        ((20260302.0, 20260303.0), ("20260302", "20260303")),
        ((1.0, 1.0 + 1e-15), ("1", "1")),
        ((5.0, 5.0), ("5", "5")),
        ((math.nan, 1.0), ("nan", "1")),
    ],
)
def test_two_numbers_read_differently_where_they_differ(numbers, said):
    """With four digits where these tell them apart, and where ten do not."""
    assert write_two(*numbers) == said


class _Reader(HTMLParser):
    """Texts of a document by the tags that they stand in."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.tags = [], [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        assert not attributes
        self.tags.add(tag)
        self.open.append(tag)
        if tag in {"td", "th", "p"}:
            self.texts.append((tag, ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        tag, before = self.texts[-1]
        self.texts[-1] = (tag, before + data)


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0", exclude_categories=("Cc", "Cs")), max_size=12)


@given(title=WORDS, columns=st.lists(WORDS, max_size=3), n_rows=st.integers(0, 2 * ROWS), data=st.data())
@pytest.mark.slow
def test_a_table_holds_the_first_rows_whatever_they_say(title, columns, n_rows, data):
    """An HTML reader finds the texts that were given, in their places, and no tag of theirs."""
    rows = [[data.draw(WORDS) for _ in columns] for _ in range(n_rows)]
    found = _Reader(as_html(title, columns, iter(rows)))
    assert found.open == []
    assert found.tags <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    said = [("p", title), *(("th", name) for name in columns), *(("td", cell) for row in rows[:ROWS] for cell in row)]
    expected = [(tag, printable(text)) for tag, text in said]  # marks that turn the direction of writing are shown, not obeyed
    assert found.texts == expected


def test_numbers_are_short():
    """Four digits of a fraction, all of a whole number."""
    assert "<td>0.1235</td><td>1234567</td><td>nan</td>" in as_html("", ("a", "b", "c"), [(0.123456, 1234567, float("nan"))])


@given(st.text())
def test_names_are_one_line_that_does_nothing(text):
    """No control characters, no marks of direction, no halves of characters; Python reads it back."""
    shown = printable(text)
    assert shown.isprintable()
    assert is_whole(shown)
    if "\\" not in text:
        assert shown.encode("latin-1", "backslashreplace").decode("unicode_escape") == text


def test_what_is_printable_stays_as_it_is():
    """In every language."""
    assert printable("Größe [/] 深さ 🌳") == "Größe [/] 深さ 🌳"
    assert printable("a\x1b[31m\nb\u202e\ud800") == "a\\x1b[31m\\nb\\u202e\\ud800"
    assert not is_whole("a\ud800")


@pytest.mark.parametrize(
    ("text", "written"),
    [("/data/dep_delay.parquet", "/data/dep_delay.parquet"), ("_x_", r"\_x\_"), ("[a](b)", r"\[a\](b)"), ("<b>`*\n", r"\<b\>\`\*\\n")],
)
def test_markdown_shows_names_as_they_are(text, written):
    """What means something there is escaped; underscores within words mean nothing."""
    assert as_markdown(text) == written
