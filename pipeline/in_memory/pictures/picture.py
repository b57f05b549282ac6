"""A Picture: a drawing as SVG that a notebook shows, with a sentence for those who do not see it, saved as SVG or PNG."""

import shutil
import subprocess
import sys
import tempfile
import webbrowser
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path

from ...arguments.readers import read_place
from ...display.text import printable
from ...errors import UsageError
from ...stores import storage
from ...stores.failures import reported

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
SECONDS = 60  # that a browser may take
DENSE = 2  # dots of a PNG for each of the picture


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing that a notebook shows, in its light or dark colours.

    Attributes
    ----------
    title : str
    alt : str
        What it shows, in a sentence or two, for those who do not see it.
    svg : str
        The drawing, which asks for nothing from elsewhere, in light and dark colours.
    light : str
        The same in light colours alone, for paper.
    size : (int, int)
        Width and height in pixels.
    """

    title: str
    alt: str
    svg: str
    light: str
    size: tuple[int, int]

    def save(self, path: str | PathLike) -> None:
        """Save the picture; a file that is there is replaced.

        Parameters
        ----------
        path : str or path
            Ends in ".svg", or in ".png", which takes cairosvg or a browser, Chromium or one of its kin.

        Raises
        ------
        UsageError
            It ends in something else, or nothing is there that draws a PNG.
        StorageError
            The place cannot be written.
        """
        place = Path(read_place("path", path))
        write = FORMATS.get(place.suffix.lower())
        if write is None:
            raise UsageError(f"path is {str(path)!r:.80}, expected one that ends in {' or '.join(FORMATS)}")
        data = write(self)
        with reported("write", str(place)):
            place.write_bytes(data)

    def show(self) -> None:
        """Show the picture: in a notebook below the cell, elsewhere in the browser, from a file among the temporary ones.

        Raises
        ------
        UsageError
            There is no browser.
        """
        ipython = sys.modules.get("IPython")
        if ipython is not None and hasattr(ipython.get_ipython(), "kernel"):
            ipython.display.display(self)
            return
        place = Path(tempfile.mkdtemp(prefix="leafledger-")) / "picture.svg"
        place.write_bytes(_write_svg(self))
        if not webbrowser.open(place.as_uri()):
            raise UsageError("there is no browser that shows the picture; save it: picture.save('picture.svg')")

    def __repr__(self) -> str:
        return f"Picture({printable(self.title)!r}: {printable(self.alt)})"

    def _repr_html_(self) -> str:
        """An image by itself, so that neither the page's style nor the picture's touches the other."""
        data = b64encode(self.svg.encode()).decode()
        width, height = self.size
        style = "max-width: 100%; height: auto"
        return f'<img alt="{escape(printable(self.alt))}" width="{width}" height="{height}" style="{style}" src="data:image/svg+xml;base64,{data}">'


def _write_svg(picture: Picture) -> bytes:
    return picture.svg.encode()


def _write_png(picture: Picture) -> bytes:
    """Draw by cairosvg, or by a browser."""
    try:
        from cairosvg import svg2png
    except (ImportError, OSError):  # without the library that it calls it is an OSError
        return _shoot(picture)
    return bytes(svg2png(bytestring=picture.light.encode(), scale=DENSE))


def _shoot(picture: Picture) -> bytes:
    """Let a browser draw it."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise UsageError("a .png needs cairosvg, or Chromium, and neither is there: pip install cairosvg, or save it as .svg")
    with storage.scratch() as folder:
        page, made = folder / "picture.html", folder / "picture.png"
        page.write_bytes(f'<!doctype html><meta charset="utf-8"><style>body {{ margin: 0 }} svg {{ display: block }}</style>{picture.light}'.encode())
        options = ("--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", f"--user-data-dir={folder / 'profile'}")
        size = f"--window-size={picture.size[0]},{picture.size[1]}", f"--force-device-scale-factor={DENSE}"
        try:
            command = [browser, *options, *size, f"--screenshot={made}", page.as_uri()]
            subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)  # noqa: S603 - a browser found by its name
            return made.read_bytes()
        except (subprocess.SubprocessError, OSError) as error:
            raise UsageError(f"a .png needs cairosvg, or Chromium, and {browser} drew none: pip install cairosvg, or save it as .svg") from error


FORMATS: dict[str, Callable[[Picture], bytes]] = {".svg": _write_svg, ".png": _write_png}
