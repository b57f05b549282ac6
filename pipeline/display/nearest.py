"""The known name that a misspelt one is nearest to, for messages."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

ALIKE = 0.65  # of difflib's ratio: one letter of three may differ, and two of six
LONGEST, MOST = 100, 10_000  # characters of a name, and names, that are compared, since each takes microseconds


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """Ask for the known name that is nearest, in whatever case, for the end of a message.

    Parameters
    ----------
    name : Any
        As it was given; what is no text has no nearest name.
    known : iterable
        Names that could have been given.

    Returns
    -------
    str
        As ``; did you mean 'shapley'?``; empty where no name is near.
    """
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST:
        return ""
    written: dict[str, str] = {}
    for each in known:
        if isinstance(each, str) and len(written) < MOST:
            written.setdefault(each.casefold(), each)
    found = get_close_matches(name.casefold(), written, 1, ALIKE)
    return f"; did you mean {written[found[0]]!r}?" if found else ""
