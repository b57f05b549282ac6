"""The report and the overview that are published with the documentation."""

import re

import pytest

from docs import live
from tests.docs.places import ROOT, find_inputs


@pytest.mark.more  # make docs writes them too
def test_every_page_is_there_and_names_no_folder_of_this_machine(tmp_path):
    """Links of the overview, and those of README and the documentation to it, lead to pages."""
    inputs = find_inputs()
    live.write_pages(inputs / "flights", inputs / "models" / "lightgbm.txt", tmp_path)
    overview = (tmp_path / "index.html").read_text()
    reports = [tmp_path / link for link in sorted({*re.findall(r'href="([^"#]+)"', overview)})]
    assert len(reports) == len(live.MONTHS)
    for page in (tmp_path / "index.html", *reports):
        text = page.read_text()
        assert str(ROOT) not in text
        assert str(tmp_path.parent) not in text
    linked = re.findall(r'href="live/([^"]+)"', (ROOT / "docs" / "report.md").read_text())
    assert len(linked) == 2
    assert all((tmp_path / link).exists() for link in linked)
    assert "(docs/report.md)" in (ROOT / "README.md").read_text().splitlines()[2]
