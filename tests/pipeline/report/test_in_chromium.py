"""Pages in a real browser: nothing is fetched or said, nothing overflows, links lead somewhere, and axe-core finds nothing to complain of."""

import os

import pytest

from leafledger import explain, report
from tests.chromium import BROWSER, find_axe, open_tab
from tests.pipeline.drift.loss_nights import explain_losses, make_inputs

WIDTHS = (360, 800, 1200, 1600)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium")


@pytest.fixture(scope="module")
def tab():
    with open_tab() as opened:
        yield opened


@pytest.fixture(scope="module")
def compared(example, reported, tmp_path_factory):
    """A run of a month, against that of all."""
    out = tmp_path_factory.mktemp("compared") / "run"
    explain(example.model, f"{example.data}/month=1", out, values=True, scheduler="serial")
    report(out, against=reported, scheduler="serial")
    return out


@pytest.fixture(scope="module")
def losses(tmp_path_factory):
    """A loss run of a night, against that of another."""
    folder = tmp_path_factory.mktemp("losses")
    make_inputs(folder)
    before, now = (explain_losses(folder, name, folder / f"run-{name}", values=True) for name in ("before", "now"))
    report(now, against=before, scheduler="serial")
    return now


@pytest.fixture(scope="module")
def hostile(odd):
    return odd(300)


@pytest.fixture(scope="module")
def empty(odd):
    return odd(0)


PAGES = ("reported", "classes", "compared", "losses", "acting", "hostile", "empty")


@pytest.fixture(scope="module", params=PAGES)
def page(request):
    return report(request.getfixturevalue(request.param), scheduler="serial").uri


def test_a_page_asks_for_nothing_and_says_nothing(tab, page):
    tab.requests.clear()
    tab.open(page)
    tab.evaluate("new Promise(done => setTimeout(done, 200))")
    assert [os.path.basename(url) for url in tab.requests] == ["index.html"]
    assert tab.messages == []


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows(tab, page, width):
    """With all numbers unfolded too, which scroll in their own boxes; nothing is cut off on the right, and no text leaves the page."""
    tab.resize(width)
    tab.open(page)
    for _ in range(2):
        assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        beyond = """[...document.querySelectorAll("main *, nav *")].filter(found => !found.closest(".scroll, svg, .hidden")
            && found.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(found => found.outerHTML.slice(0, 100))"""
        assert tab.evaluate(beyond) == []
        tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


def test_links_lead_to_sections(tab, page):
    tab.resize(800)
    tab.open(page)
    inner = "[...document.querySelectorAll('a')].map(link => link.getAttribute('href')).filter(to => to.startsWith('#'))"
    assert tab.evaluate(f"{inner}.filter(to => !document.querySelector(to))") == []
    last = "document.querySelector('nav li:last-child a')"
    tab.evaluate(f"{last}.click()")
    assert tab.evaluate("location.hash") == "#provenance"
    assert tab.evaluate("document.querySelector('#provenance').getBoundingClientRect().top < innerHeight")


def test_a_keyboard_reaches_links_and_numbers(tab, page):
    """Tab goes to the link past the contents first; Enter unfolds a figure's numbers."""
    tab.resize(800)
    tab.open(page)
    for event in ("rawKeyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=event, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert tab.evaluate("document.activeElement.className") == "skip"
    if not tab.evaluate("document.querySelectorAll('summary').length"):
        return  # of no rows there are no figures
    tab.evaluate("document.querySelector('summary').focus()")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    assert tab.evaluate("document.querySelector('details').open")


# Every page as it is first seen; in dark, on a phone and on paper that of losses, which has nearly all that there is.
SEEN = [(800, False, ""), (800, True, ""), (390, False, ""), (680, False, "print")]
LOOKS = [pytest.param(page, *seen, marks=pytest.mark.more if page != "losses" and seen != SEEN[0] else ()) for page in PAGES for seen in SEEN]


@pytest.mark.parametrize(("page", "width", "dark", "media"), LOOKS, indirect=["page"])
@pytest.mark.slow
def test_axe_has_nothing_to_complain_of(tab, page, width, dark, media):
    """Contrast, roles, names and order, in light and in dark, on a phone and on paper, with all numbers unfolded."""
    axe = find_axe()
    if axe is None:
        pytest.skip("axe-core is not installed: pip install axe-core-python")
    tab.call("Page.enable")
    tab.call("Page.setBypassCSP", enabled=True)
    tab.resize(width, dark=dark, media=media)
    tab.open(page)
    tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    tab.evaluate(f"{axe}; 1")
    found = tab.evaluate("axe.run().then(said => said.violations.map(each => [each.id, each.nodes.length, each.nodes[0].html]))")
    tab.call("Page.setBypassCSP", enabled=False)
    assert found == []
    wanted, shown = (
        "rgb(18, 20, 23)" if dark else "rgb(255, 255, 255)" if media else "rgb(252, 252, 250)",
        tab.evaluate("getComputedStyle(document.body).backgroundColor"),
    )
    assert shown == wanted


def test_paper_has_the_figures_and_no_contents(tab, page):
    tab.open(page)
    tab.resize(800, media="print")
    assert tab.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert tab.evaluate("[...document.querySelectorAll('figure .drawing')].every(each => each.getBoundingClientRect().height > 30)")
    shown = "[...document.querySelectorAll('details')].every(each => each.querySelector('table').getBoundingClientRect().height > 10)"
    assert tab.evaluate(shown)  # the numbers of figures are printed
    tab.resize(800)


def test_no_table_is_cut_on_paper(tab, page):
    """On A4 between its margins, where figures stand side by side with their numbers unfolded; and no heading is parted from what it is of."""
    tab.open(page)
    tab.resize(680, media="print")
    tables = "[...document.querySelectorAll('table')].map(each => [each, each.closest('figure, section')])"
    cut = f"{tables}.filter(([table, around]) => table.getBoundingClientRect().right > around.getBoundingClientRect().right + 1)"
    assert tab.evaluate(f"{cut}.map(([table, _]) => table.outerText.slice(0, 200))") == []
    parted = """[...document.querySelectorAll('h2, h3')].map(each => [each, each.nextElementSibling]).filter(([head, next]) => next &&
        getComputedStyle(head).breakAfter !== 'avoid').map(([head, _]) => head.outerText)"""
    assert tab.evaluate(parted) == []
    assert tab.evaluate("[...document.querySelectorAll('.figures')].filter(each => !each.children.length).length") == 0
    tab.resize(800)


def test_wide_tables_say_on_a_phone_that_they_scroll(tab, page):
    said = "[...document.querySelectorAll('.swipe')].filter(each => each.checkVisibility()).length"
    tab.open(page)
    tab.resize(800)
    tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert tab.evaluate(said) == 0
    tab.resize(390)
    wide = "[...document.querySelectorAll('table')].filter(each => each.querySelectorAll('thead th').length > 4).length"
    assert tab.evaluate(said) == tab.evaluate(wide)
