"""README and documentation say what comes of what they tell a reader to type, and what is generated for them is what they hold."""

import re

import pytest

from docs import generated
from tests.docs.blocks import agrees
from tests.docs.places import PAGES, ROOT, TYPED, make_folder, serve_objects
from tests.docs.reader import read_page, reading
from tests.more import more

# Pages that take three seconds of CPU or more, for what they train, or for servers and clusters: `make test-more`.
LONG = {f"docs/methods/{name}.md" for name in ("comparing", "interactions", "prediction-gaps", "r2", "rankings", "sequence")}
LONG |= {
    f"docs/{name}.md"
    for name in ("changes", "drift", "effects", "models", "nights", "reasons", "scale", "scripting", "statistics", "tables", "where")
}
LONG |= {"docs/deploy/kubernetes.md", "docs/gallery/what-if.md"}
PAGES_BY_NAME = {str(page.relative_to(ROOT)): page for page in TYPED}


@pytest.fixture(scope="module", autouse=True)
def _object_store():
    """Pages may read and write objects."""
    with serve_objects():
        yield


@pytest.mark.parametrize("name", [*(name for name in PAGES_BY_NAME if name not in LONG), *more(*sorted(LONG))])
def test_a_page_says_what_its_blocks_print(name, tmp_path):
    """Every block of a page, typed in turn in a fresh folder with the demo's flights and models, prints what the page says."""
    page = PAGES_BY_NAME[name]
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


def test_long_pages_are_there():
    """Or `make test-more` would type fewer than it says."""
    assert {*PAGES_BY_NAME} >= LONG
