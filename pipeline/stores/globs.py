"""Walking below a folder and matching of globs, on any store that lists folders; no input or output of its own."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, reduce

from .store import Entry

HIDDEN = ("_", ".")  # what names of other programs' files begin with
LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi", "_spark_metadata": "Spark's streaming"}  # folders that say which files of a table count
EVERY = "**"  # the part of a glob that stands for any folders
WILDCARD = re.compile(r"[*?\[]")
_QUERY = re.compile(r"[?#]")


def _let(entry: Entry, root: str) -> None:
    """Go into every folder."""


@dataclass(frozen=True, slots=True)
class Steps:
    """How one steps from folder to folder of a store."""

    children: Callable[[str, str], Iterable[Entry]]  # of a folder; those that begin with a stem, and maybe others
    is_folder: Callable[[Entry], bool]
    check: Callable[[Entry, str], None] = _let  # raises where one may not step into a folder from those below a root
    fixed: int = 0  # parts of a path that are no names
    has_queries: bool = False  # a name with "?" or "#" is another way to a file that is listed without


def is_hidden(path: str) -> bool:
    """Tell whether a file lies in a folder of other programs, or is called as theirs are."""
    return any(map(_hides, path.split("/")))


def _hides(name: str) -> bool:
    """But ``_key=value`` is a column called ``_key``, as Spark has it."""
    return name.startswith(HIDDEN) and not (name.startswith("_") and "=" in name)


def _below(path: str, folder: str) -> str:
    return path[len(folder.rstrip("/")) + 1 :].rstrip("/")


def _goes_into(steps: Steps, entry: Entry, root: str) -> bool:
    if not steps.is_folder(entry):
        return False
    steps.check(entry, root)
    return True


def walk_folders(steps: Steps, root: str) -> Iterator[Entry]:
    """All files below a folder, folder by folder, and folders that are logs of tables, with a slash at the end."""
    pending = [root]
    while pending:
        folder = pending.pop()
        for entry in steps.children(folder, ""):
            below = _below(entry.path, folder)
            if below in LOGS and steps.is_folder(entry):
                yield Entry(f"{entry.path.rstrip('/')}/", entry.said)
            if is_hidden(below) or (steps.has_queries and _QUERY.search(below)):
                continue
            if _goes_into(steps, entry, root):
                pending.append(entry.path)
            else:
                yield entry


def _reach(parts: list[str], places: Iterable[int]) -> frozenset[int]:
    """Places in a glob, with those behind a ``**``, which stands for no folder too."""
    reached = set[int]()
    for place in places:
        reached.add(place)
        while place < len(parts) and parts[place] == EVERY:
            place += 1
            reached.add(place)
    return frozenset(reached)


def _fits(name: str, part: str, has_queries: bool) -> bool:
    """Whether a part of a glob finds a name: hidden ones, and those with a query, have to be spelled out."""
    if (_hides(name) and not part.startswith(HIDDEN)) or (has_queries and _QUERY.search(name) and not _QUERY.search(part)):
        return False
    return part == EVERY or fnmatchcase(name, part)


def _stepping(parts: list[str], has_queries: bool) -> Callable[[frozenset[int], str], frozenset[int]]:
    """What says where one is in a glob after one more name, from all the places where one may be before it."""

    @cache  # a folder's name comes with each of its files
    def step(places: frozenset[int], name: str) -> frozenset[int]:
        return _reach(parts, [place + (parts[place] != EVERY) for place in places if place < len(parts) and _fits(name, parts[place], has_queries)])

    return step


def split_glob(pattern: str, fixed: int = 0) -> tuple[str, list[str]]:
    """The folder that a glob begins in, and its parts from the first wildcard on."""
    parts = pattern.rstrip("/").split("/")
    first = next((k for k, part in enumerate(parts) if k >= fixed and WILDCARD.search(part)), None)
    if first is None:
        raise FileNotFoundError(pattern)
    return "/".join(parts[:first]) or "/", parts[first:]


def match_glob(steps: Steps, pattern: str, find_all: Callable[[str, str], Iterable[Entry]] | None = None) -> list[Entry]:
    """Find what a glob means, files and folders: by one list of all below its first folder, where there is such a list, or folder by folder."""
    root, parts = split_glob(pattern, steps.fixed)
    step, pending = _stepping(parts, steps.has_queries), [(root, _reach(parts, [0]))]
    found = dict[tuple[str, str | None], Entry]()  # an object may be called as a folder is
    if len(parts) in pending[0][1]:
        found[root, "directory"] = Entry(root, {"type": "directory"})
    while pending:
        folder, places = pending.pop()
        stem = WILDCARD.split(parts[min(places)])[0]
        for entry in (find_all or steps.children)(folder, stem):
            after = reduce(step, _below(entry.path, folder).split("/"), places)
            if find_all is None and after - {len(parts)} and _goes_into(steps, entry, root):
                pending.append((entry.path, after))
            if len(parts) in after:
                found[entry.path, entry.kind] = entry
    return [*found.values()]
