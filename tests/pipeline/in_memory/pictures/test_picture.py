"""A picture in a notebook, in a file, and in words."""

import shutil
import sys
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest

from leafledger import Picture
from leafledger.pipeline.errors import StorageError, UsageError
from leafledger.pipeline.in_memory.pictures import picture as module
from tests.chromium import BROWSER

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20" fill="#3d6a99"/></svg>'
PICTURE = Picture("Bars", 'a <b> "moves" it most', SVG, SVG.replace("3d6a99", "000000"), (40, 20))
PNG = b"\x89PNG\r\n\x1a\n"


def test_a_notebook_shows_an_image_with_its_words():
    """By itself, so that styles of the page and of the picture do not meet; nothing in the words is markup."""
    html = PICTURE._repr_html_()
    assert 'alt="a &lt;b&gt; &quot;moves&quot; it most"' in html
    assert b64decode(html.split("base64,")[1].split('"')[0]).decode() == SVG
    assert 'width="40" height="20"' in html
    assert repr(PICTURE) == "Picture('Bars': a <b> \"moves\" it most)"


def test_it_is_saved_and_replaced(tmp_path):
    place = tmp_path / "it.svg"
    place.write_text("before")
    PICTURE.save(str(place))
    assert place.read_text() == SVG


@pytest.mark.parametrize("name", ["it.jpg", "it", "svg"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(UsageError, match=r"expected one that ends in \.svg or \.png$"):
        PICTURE.save(tmp_path / name)


def test_a_place_that_is_not_there_is_an_error_of_ours(tmp_path):
    with pytest.raises(StorageError, match="cannot write"):
        PICTURE.save(tmp_path / "none" / "it.svg")


def test_a_script_shows_it_in_the_browser(monkeypatch):
    """From a file, since a script has nothing to show it in; without a browser it says what to do."""
    opened = []
    monkeypatch.setattr(module.webbrowser, "open", lambda uri: opened.append(uri) or True)
    PICTURE.show()
    place = Path(url2pathname(urlparse(opened[0]).path))
    assert place.read_text() == SVG
    shutil.rmtree(place.parent)
    monkeypatch.setattr(module.webbrowser, "open", lambda _: False)
    monkeypatch.setattr(module.tempfile, "mkdtemp", lambda **_: place.parent.mkdir() or str(place.parent))
    with pytest.raises(UsageError, match=r"^there is no browser that shows the picture; save it: picture\.save\('picture\.svg'\)$"):
        PICTURE.show()
    shutil.rmtree(place.parent)


def test_a_notebook_shows_it_below_the_cell(monkeypatch):
    shown = []
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1), display=SimpleNamespace(display=shown.append))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    PICTURE.show()
    assert shown == [PICTURE]


def test_a_png_is_drawn_by_cairosvg_in_light_colours(tmp_path, monkeypatch):
    given = {}
    monkeypatch.setitem(sys.modules, "cairosvg", SimpleNamespace(svg2png=lambda **asked: given.update(asked) or PNG))
    PICTURE.save(tmp_path / "it.png")
    assert (tmp_path / "it.png").read_bytes() == PNG
    assert given["bytestring"].decode() == PICTURE.light


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.slow
def test_a_png_is_drawn_by_a_browser_where_cairosvg_is_not(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    PICTURE.save(tmp_path / "it.png")
    data = (tmp_path / "it.png").read_bytes()
    assert data.startswith(PNG)
    assert (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == (80, 40)


def test_without_either_the_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    monkeypatch.setattr(module, "BROWSERS", ("no-browser-of-this-name",))
    with pytest.raises(UsageError, match=r"^a \.png needs cairosvg, or Chromium, and neither is there: pip install cairosvg, or save it as \.svg$"):
        PICTURE.save(tmp_path / "it.png")
    monkeypatch.setattr(module, "BROWSERS", ("false",))
    with pytest.raises(UsageError, match=r"and .*false drew none: pip install cairosvg, or save it as \.svg$"):
        PICTURE.save(tmp_path / "it.png")
