"""Division of work items: by file, by row range, or without unreadable files."""

from collections.abc import Container, Sequence
from dataclasses import replace

from .listing import Joined, WorkItem


def _put_together(item: WorkItem, pieces: Sequence[WorkItem]) -> WorkItem:
    first, *others = pieces
    files = tuple(Joined(each.uri, each.etag, each.row_groups, each.n_rows) for each in others)
    return replace(first, part=item.part, n_rows=sum(each.n_rows for each in pieces), joined=files)


def leave_out(item: WorkItem, uris: Container[str]) -> WorkItem:
    """Remove files from an item.

    Parameters
    ----------
    uris : container of str
        Not all of its files.

    Returns
    -------
    WorkItem
        Of the other files, whose rows follow each other.
    """
    kept = [piece for piece in item.pieces if piece.uri not in uris]
    return item if len(kept) == 1 + len(item.joined) else _put_together(item, kept)


def split_files(item: WorkItem, n: int) -> list[WorkItem]:
    """Split an item into groups of consecutive files.

    Parameters
    ----------
    n : int
        How many groups at most, at least 1.

    Returns
    -------
    list of WorkItem
        Of as many files as can be the same.
    """
    pieces = item.pieces
    size = -(-len(pieces) // n)
    return [_put_together(item, pieces[first : first + size]) for first in range(0, len(pieces), size)]


def take_rows(item: WorkItem, skip: int, n_rows: int) -> WorkItem:
    """Take a range of an item's rows.

    Parameters
    ----------
    skip : int
        How many rows come before them, fewer than the item has.
    n_rows : int
        How many, at least 1 and at most those that are left.
    """
    kept = list[WorkItem]()
    for piece in item.pieces:
        taken = min(n_rows, piece.n_rows - skip)
        if taken > 0:
            kept.append(replace(piece, skip=piece.skip + skip, first_row=piece.first_row + skip, n_rows=taken))
            n_rows -= taken
        skip = max(0, skip - piece.n_rows)
        if not n_rows:
            break
    return _put_together(item, kept)
