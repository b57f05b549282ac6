"""Pictures in README and documentation are what a report draws today."""

import re
from xml.etree import ElementTree

import pytest

from docs import pictures
from tests.docs.places import PAGES, ROOT, find_inputs


@pytest.mark.more  # make docs draws them too
def test_pictures_are_those_of_a_report_of_today():
    """Every one is drawn again from the demo's flights, byte for byte, is whole, and fetches nothing."""
    for name, drawn in pictures.draw_pictures(find_inputs()).items():
        assert (pictures.FOLDER / name).read_text() == drawn, f"docs/figures/{name} is out of date: make docs draws it anew"
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()}
        assert tags <= {"svg", "title", "desc", "style", "rect", "line", "path", "circle", "text", "g"}
        assert "url(" not in drawn


def test_pages_show_every_picture_and_no_other():
    shown = {path for page in PAGES for path in re.findall(r"figures/([\w-]+\.\w+)", page.read_text())}
    assert shown == {path.name for path in pictures.FOLDER.iterdir()} >= {f"{name}.svg" for name in pictures.PICTURES}
    assert re.search(r"\]\(docs/figures/[\w-]+\.svg\)", (ROOT / "README.md").read_text())


def test_pictures_stay_where_the_demo_never_ran(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pictures, "DEMO", tmp_path)
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    pictures.main()
    assert list(tmp_path.iterdir()) == []
    assert "stay as they are" in capsys.readouterr().err
