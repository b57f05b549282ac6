"""The index over runs in a real browser: nothing is fetched, nothing overflows, axe-core has nothing to complain of."""

import os

import pytest

from leafledger import drift, explain, list_runs
from leafledger.pipeline.report.overview import save_index
from tests.chromium import BROWSER, find_axe, open_tab

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium")


@pytest.fixture(scope="module")
def page(example, tmp_path_factory):
    """Two finished runs, one that is not, in a folder with a long name."""
    folder = tmp_path_factory.mktemp("runs") / ("a-folder-with-a-long-name-" * 3)
    for month, day in enumerate(("2026-01-01", "2026-01-02"), 1):
        explain(example.model, f"{example.data}/month={month}", folder / day, values=True, scheduler="serial")
    drift(folder / "2026-01-02", against=folder / "2026-01-01", thresholds={"distance": 0.0, "mean": 0.0, "false_discovery_rate": 1.0})
    (folder / "2026-01-03").mkdir()
    (folder / "2026-01-03" / "plan.json").write_bytes((folder / "2026-01-02" / "plan.json").read_bytes())
    save_index(str(folder / "index.html"), str(folder), list_runs(folder))
    return str(folder / "index.html")


@pytest.fixture(scope="module")
def tab():
    with open_tab() as opened:
        yield opened


@pytest.mark.parametrize("width", [360, 800, 1200, 1600])
def test_nothing_is_fetched_and_nothing_overflows(tab, page, width):
    """Tables scroll in boxes of their own."""
    tab.requests.clear()
    tab.resize(width)
    tab.open(page)
    assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert [os.path.basename(url) for url in tab.requests] == ["index.html"]
    assert tab.messages == []


def test_paper_shows_the_alarms_and_cuts_nothing(tab, page):
    """On A4, between its margins: the lists of alarms are unfolded."""
    tab.resize(703, media="print")
    tab.open(page)
    assert tab.evaluate("[...document.querySelectorAll('details li')].filter(each => each.getBoundingClientRect().height > 5).length") > 1
    assert tab.evaluate("[...document.querySelectorAll('table')].filter(each => each.getBoundingClientRect().right > 703).length") == 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.slow
def test_axe_has_nothing_to_complain_of(tab, page, dark):
    """Contrast, roles and names, in light and in dark."""
    axe = find_axe()
    if axe is None:
        pytest.skip("axe-core is not installed: pip install axe-core-python")
    tab.resize(800, dark=dark)
    tab.open(page)
    tab.evaluate(f"{axe}; 1")
    assert tab.evaluate("axe.run().then(said => said.violations.map(each => [each.id, each.nodes.length, each.nodes[0].html]))") == []
