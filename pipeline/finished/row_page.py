"""Rows of a finished run as a self-contained HTML page."""

from collections.abc import Sequence

from ..stores import commit, storage
from ..stores.uris import normalise
from .row_data import STEPS, row_title
from .row_html import text_of, write_rows
from .row_view import Shown

# Tells browsers to run no script and send no request, whatever a name contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
FOOTER = '<footer class="leafledger"><p>'  # what pages of rows are known by


def _write(title: str, body: str, about: str, note: str) -> str:
    about += f"<br>{text_of(note)}" if note else ""
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="color-scheme" content="light dark">'
    head += f'<meta name="viewport" content="width=device-width"><title>{text_of(title)}</title>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}{FOOTER}{about}</p></footer></body></html>\n'


def _say_internal(never: Sequence[str]) -> str:
    """Say that a page is not for those whom its rows are about."""
    named = f", {text_of(', '.join(never))} too, which a customer is never to be told" if never else ""
    return (
        f'<p class="leafledger"><strong>For internal use.</strong> This page has every feature{named}. leafledger reasons writes what may leave.</p>'
    )


def write_page(shown: Shown, top: int = STEPS, note: str = "", never: Sequence[str] = ()) -> str:
    """Write rows as an HTML page; ``never`` are features that are no reason to be told."""
    about = f"run {text_of(shown.run)}<br>method {text_of(shown.method)}<br>SHA-256 of manifest.json {text_of(shown.manifest)}"
    return _write(
        f"{row_title(shown.rows[0])}: {shown.run}", _say_internal(never) + write_rows(shown.wording, shown.rows, shown.n_found, top), about, note
    )


def write_page_of_runs(folder: str, found: Sequence[Shown], top: int = STEPS, note: str = "") -> str:
    """Write rows of several runs as an HTML page, those of every run below its name."""
    sections = (f"<h1>{text_of(each.run)}</h1>{write_rows(each.wording, each.rows, each.n_found, top)}" for each in found)
    about = "<br>".join(f"SHA-256 of manifest.json of {text_of(each.run)} {text_of(each.manifest)}" for each in found)
    return _write(f"{row_title(found[0].rows[0])}: {folder}", _say_internal(()) + "".join(sections), about, note)


def save_page(uri: str, page: str) -> None:
    """Save a page of rows.

    Parameters
    ----------
    uri : str
        Of the object; one that is there already must hold the same bytes.
    page : str
        As of `write_page`.

    Raises
    ------
    RunConflict
        There is another file.
    """
    with storage.scratch() as local:
        (local / "page.html").write_text(page, encoding="utf-8")
        commit.create_once(normalise(uri), local / "page.html")
