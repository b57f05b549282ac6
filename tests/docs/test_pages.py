"""README and documentation say what comes of what they tell a reader to type, and what is generated for them is what they hold."""

import re

import pytest

from docs import generated
from tests.docs.blocks import agrees
from tests.docs.places import PAGES, ROOT, TYPED, make_folder, serve_objects
from tests.docs.reader import read_page, reading


@pytest.fixture(scope="module", autouse=True)
def _object_store():
    """Pages may read and write objects."""
    with serve_objects():
        yield


@pytest.mark.parametrize("page", TYPED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_says_what_its_blocks_print(page, tmp_path):
    """Every block of a page, typed in turn in a fresh folder with the demo's flights and models, prints what the page says."""
    with reading(make_folder(tmp_path)) as reader:
        for found in read_page(page, reader):
            assert agrees(found.expected, found.got), f"{page}:{found.line} prints\n{found.got}\nthe page says\n{found.expected}"


def test_the_readme_has_the_table_of_methods():
    """README.md is read where nothing is built: it holds the table that ``docs/generated.py`` makes of the methods."""
    text = (ROOT / "README.md").read_text()
    assert generated.put_methods(text) == text
    assert generated.put_methods("a\n<!-- methods -->\nold\n<!-- end of methods -->\nb\n").splitlines()[2] == generated.methods().splitlines()[0]


def test_fractions_have_braces():
    r"""What makes MathML of formulas takes ``\\frac12 x`` for 12 over x."""
    assert [(page, found) for page in PAGES for found in re.findall(r"\\t?frac[^{].*", page.read_text())] == []
