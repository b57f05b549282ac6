"""The report's page: text, figures and tables, and the templates that make one HTML file."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display.text import printable
from .figures.figure import Figure, Table

if TYPE_CHECKING:
    from jinja2 import Environment


MOST_BYTES = 1_000_000
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the run is sound, in a word and a sentence."""

    kind: str  # "sound", "partly" or "none", a class of the style sheet
    word: str
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page."""

    id: str  # its anchor
    title: str
    text: tuple[str, ...] = ()  # paragraphs
    items: tuple[str, ...] = ()  # list items
    figures: tuple[Figure, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    terms: tuple[tuple[str, str], ...] = ()
    menu: str = ""  # title in the contents; by default that of the section


@dataclass(frozen=True, slots=True)
class Page:
    """Content of a report."""

    title: str  # of the window
    eyebrow: str
    headline: str
    lede: tuple[str, ...]
    verdict: Verdict
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str


def _show(value: Any) -> Any:
    """Escape and clean any text; output of macros is HTML already."""
    return printable(value) if type(value) is str else value


@lru_cache(maxsize=1)
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_show,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )


def write_page(page: Page) -> str:
    """Render a page as one HTML file."""
    from markupsafe import Markup

    style = Markup("".join((TEMPLATES / name).read_text("utf-8") for name in ("colours.css", "style.css")))  # noqa: S704 - our own
    return _environment().get_template("page.html.jinja").render(page=page, style=style)
