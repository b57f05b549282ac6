"""Text and HTML for people: counts, numbers, small tables, and names escaped for their medium."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

ROWS, COLUMNS = 5, 8  # rows and columns of a table
SHOWN = 10  # names listed in a message
DIGITS, MOST_DIGITS = 4, 10  # digits of one of two numbers
MARKDOWN = re.compile(r"[\\`*\[\]<>|#!~&]|(?<![^\W_])_|_(?![^\W_])")  # characters with a meaning in Markdown anywhere; _ inside a word has none


def count(n: int, noun: str) -> str:
    """Format a count, as ``1 row`` or ``1,234 rows``.

    Parameters
    ----------
    noun : str
        In the singular; its plural takes an s.
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def list_some(names: Sequence[str]) -> str:
    """Name the first SHOWN of several, and say how many more there are."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def write_two(first: float, second: float) -> tuple[str, str]:
    """Format two numbers to compare, with more digits if they would look equal, as dates like 20260302 with four.

    Parameters
    ----------
    first, second : float

    Returns
    -------
    (str, str)
        The same where they differ by less than MOST_DIGITS tell, or not at all.
    """
    written = [(f"{first:.{digits}g}", f"{second:.{digits}g}") for digits in range(DIGITS, MOST_DIGITS + 1)]
    return next((two for two in written if two[0] != two[1]), written[0])


def is_whole(text: str) -> bool:
    """Return whether a text can be encoded; one from JSON may have a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """Escape nonprintable characters as Python does, so that a terminal or a log shows a text without effects.

    Parameters
    ----------
    text : str
        A line, with names that may hold anything: control characters, line ends, halves of characters, marks that turn the direction of writing.

    Returns
    -------
    str
        One line.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def as_markdown(text: str) -> str:
    """Escape a text for Markdown.

    Returns
    -------
    str
        One line, escaped.
    """
    return MARKDOWN.sub(lambda found: f"\\{found[0]}", printable(text))


def _cell(value: Any) -> str:
    return escape(f"{value:.4g}" if isinstance(value, float) else printable(str(value)))


def as_html(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], n_rows: int = ROWS) -> str:
    """Write the first rows of a table as HTML, below a title.

    Parameters
    ----------
    rows : iterable of sequences
        Values of the columns. No more of it is taken than is shown. Floats are written with four digits.
    n_rows : int
        How many are shown, at most.

    Returns
    -------
    str
        HTML, in which all texts are escaped.
    """
    head = "".join(f"<th>{escape(printable(name))}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in islice(rows, n_rows))
    return f"<div><p>{escape(printable(title))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
