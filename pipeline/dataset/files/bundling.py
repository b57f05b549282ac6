"""Small files put together into work items, at boundaries that follow from the files near them alone.

As in content-defined chunking, where an item begins depends on names and sizes of files within a number of rows, not on how many files there are. So
a file that comes late or changes costs its own item, and at most the items beside it; the parts of all others can be reused.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, groupby

from .listing import Joined, WorkItem


def _draw(item: WorkItem) -> int:
    """Draw a number by a file's name and size."""
    name = item.uri.rpartition("/")[2]
    return int.from_bytes(hashlib.blake2b(f"{item.n_rows} {name}".encode(errors="surrogatepass"), digest_size=8).digest())


def find_boundaries(numbers: Sequence[int], starts: Sequence[int], least: int) -> list[int]:
    """Find the files whose number is the smallest of all that begin fewer than ``least`` rows before or after; of equal ones the first."""
    far = [True] * len(numbers)
    smaller = list[int]()  # positions of ever larger numbers
    for k, number in enumerate(numbers):
        while smaller and numbers[smaller[-1]] > number:
            larger = smaller.pop()
            far[larger] &= starts[k] - starts[larger] >= least
        far[k] = not smaller or starts[k] - starts[smaller[-1]] >= least
        smaller.append(k)
    return [k for k, is_far in enumerate(far) if is_far]


def _split(first: int, last: int, numbers: Sequence[int], starts: Sequence[int], least: int, most: int) -> list[int]:
    """Return where the items begin that files ``first`` to ``last - 1`` are put into, none with more than ``most`` rows if files are smaller."""
    if starts[last] - starts[first] <= most or last - first == 1:
        return [first]
    inner = [k for k in range(first + 1, last) if starts[k] - starts[first] >= least and starts[last] - starts[k] >= least]
    middle = (starts[first] + starts[last]) / 2
    cut = min(inner, key=lambda k: (numbers[k], k)) if inner else min(range(first + 1, last), key=lambda k: abs(starts[k] - middle))
    return [*_split(first, cut, numbers, starts, least, most), *_split(cut, last, numbers, starts, least, most)]


def _bundle(files: Sequence[WorkItem], least: int, most: int) -> list[Sequence[WorkItem]]:
    """Divide consecutive files of one partition."""
    numbers, starts = [*map(_draw, files)], [0, *accumulate(item.n_rows for item in files)]
    inner = [k for k in find_boundaries(numbers, starts, least) if starts[k] >= least and starts[-1] - starts[k] >= least]
    begins = [first for a, b in zip([0, *inner], [*inner, len(files)], strict=True) for first in _split(a, b, numbers, starts, least, most)]
    return [files[a:b] for a, b in zip(begins, [*begins[1:], len(files)], strict=True)]


def _join(files: Sequence[WorkItem]) -> WorkItem:
    """Make one item of whole files."""
    first, *others = files
    joined = tuple(Joined(each.uri, each.etag, each.row_groups, each.n_rows) for each in others)
    return replace(first, n_rows=sum(each.n_rows for each in files), joined=joined)


def _number(items: Iterable[WorkItem]) -> tuple[WorkItem, ...]:
    return tuple(replace(item, part=part) for part, item in enumerate(items))


def bundle_small(items: Sequence[WorkItem], least: int, most: int) -> tuple[WorkItem, ...]:
    """Put small files together where they follow each other in one partition.

    Parameters
    ----------
    items : sequence of WorkItem
        Of single files, in order.
    least, most : int
        Rows that an item aims at. A file with at least ``least`` is an item of its own.

    Returns
    -------
    tuple of WorkItem
        Of the same rows in the same order, and item i has part number i.
    """
    pieces, bundled = Counter(item.uri for item in items), list[WorkItem]()
    for (is_small, _), some in groupby(items, lambda item: (pieces[item.uri] == 1 and item.n_rows < least, item.partition)):
        files = list(some)
        bundled += map(_join, _bundle(files, least, most)) if is_small else files
    return _number(bundled)


def fill_items(items: Sequence[WorkItem], item_rows: int) -> tuple[WorkItem, ...]:
    """Put whole files together, where they follow each other in one partition, until an item has a number of rows.

    Parameters
    ----------
    items : sequence of WorkItem
        Of single files, in order.
    item_rows : int
        Rows that an item has at most, unless a file has more.

    Returns
    -------
    tuple of WorkItem
        Of the same rows in the same order, and item i has part number i.
    """
    pieces, joined, held, n_rows = Counter(item.uri for item in items), list[WorkItem](), list[WorkItem](), 0
    for item in items:
        if held and (pieces[item.uri] > 1 or pieces[held[0].uri] > 1 or item.partition != held[0].partition or n_rows + item.n_rows > item_rows):
            joined.append(_join(held))
            held, n_rows = [], 0
        held, n_rows = [*held, item], n_rows + item.n_rows
    return _number([*joined, _join(held)] if held else joined)
