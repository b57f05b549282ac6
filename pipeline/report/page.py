"""The report's page: text, figures and tables, and the templates that make one HTML file."""

import hashlib
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
    alarms: str = ""  # how many alarms there are, in a link to what changed
    links: tuple[tuple[str, str], ...] = ()  # to other pages: texts and addresses


def name_anchor(run: str, manifest: str) -> str:
    """Name a run's line in the overview of runs, by the last name of its folder and its manifest's SHA-256, which runs of the same rows share."""
    named = f"{run.rpartition('/')[2]} {manifest}".encode(errors="surrogateescape")
    return f"run-{hashlib.sha256(named).hexdigest()[:16]}"


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


def write_head(text: str) -> str:
    """Write the style of printed pages: a head with a text, in which nothing ends the string, and their numbers."""
    plain = "".join(char if char.isalnum() or char in " .,:-_/=" else "?" for char in printable(text))
    boxes = f'@top-left {{ content: "{plain}" }} @bottom-right {{ content: counter(page) " / " counter(pages) }}'
    return f"@page {{ margin: 18mm 15mm; font: 8.5pt sans-serif; color: #444; {boxes} }}\n"


def write_page(page: Page) -> str:
    """Render a page as one HTML file."""
    from markupsafe import Markup

    files = "".join((TEMPLATES / name).read_text("utf-8") for name in ("colours.css", "style.css"))
    style = Markup(files + write_head(page.eyebrow))  # noqa: S704 - our own, and a text without quotes
    return _environment().get_template("page.html.jinja").render(page=page, style=style)
