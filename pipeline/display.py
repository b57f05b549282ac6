"""How results print: one line that counts what they hold, and in a notebook a table of their first rows, never whole arrays."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

ROWS, COLUMNS = 5, 8  # of a table


def count(n: int, noun: str) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _cell(value: Any) -> str:
    return escape(f"{value:.4g}" if isinstance(value, float) else str(value))


def as_html(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of the first rows below a title."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in islice(rows, ROWS))
    return f"<div><p>{escape(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
