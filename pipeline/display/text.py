"""How results print: one line that counts, in a notebook a table of their first rows; and names that came with the data, as text and nothing else."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

ROWS, COLUMNS = 5, 8  # of a table
DIGITS, MOST_DIGITS = 4, 10  # of one of two numbers
MARKDOWN = re.compile(r"[\\`*\[\]<>|#!~&]|(?<![^\W_])_|_(?![^\W_])")  # what means something wherever it stands; _ within a word does not


def count(n: int, noun: str) -> str:
    """Write a number of things, as ``1 row`` or ``1,234 rows``.

    Parameters
    ----------
    noun : str
        In the singular; its plural takes an s.
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def write_two(first: float, second: float) -> tuple[str, str]:
    """Write two numbers that are set side by side, with more digits where they would read the same: dates as 20260302 do with four.

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
    """Tell whether a text can be written at all: one from JSON may have half a character, a surrogate without its other half."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """Write a text so that a terminal or a log shows it and does nothing else: what is not printed is escaped as Python escapes it.

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
    """Write a text so that Markdown shows it as it is.

    Returns
    -------
    str
        One line, escaped.
    """
    return MARKDOWN.sub(lambda found: f"\\{found[0]}", printable(text))


def _cell(value: Any) -> str:
    return escape(f"{value:.4g}" if isinstance(value, float) else printable(str(value)))


def as_html(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], n_rows: int = ROWS) -> str:
    """Write the first rows of a table below a title.

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
