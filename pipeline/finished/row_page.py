"""Rows of a finished run as a self-contained HTML page."""

from ..stores import commit, storage
from ..stores.uris import normalise
from .row_data import STEPS, row_title
from .row_html import text_of, write_rows
from .row_view import Shown

# Tells browsers to run no script and send no request, whatever a name contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def write_page(shown: Shown, top: int = STEPS, note: str = "") -> str:
    """Write rows as an HTML page."""
    title = text_of(f"{row_title(shown.rows[0])}: {shown.run}")
    about = f"run {text_of(shown.run)}<br>method {text_of(shown.method)}<br>SHA-256 of manifest.json {text_of(shown.manifest)}"
    about += f"<br>{text_of(note)}" if note else ""
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="color-scheme" content="light dark">'
    head += f'<meta name="viewport" content="width=device-width"><title>{title}</title>'
    body = f'{write_rows(shown.wording, shown.rows, shown.n_found, top)}<footer class="leafledger"><p>{about}</p></footer>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def save_page(uri: str, shown: Shown, top: int = STEPS, note: str = "") -> None:
    """Save a page of rows.

    Parameters
    ----------
    uri : str
        Of the object; one that is there already must hold the same bytes.
    note : str
        As of `write_page`.

    Raises
    ------
    RunConflict
        There is another file.
    """
    with storage.scratch() as folder:
        local = folder / "page.html"
        local.write_text(write_page(shown, top, note), encoding="utf-8")
        commit.create_once(normalise(uri), local)
