"""What a tool leaves to look at: files, their bytes, and what their pages ask of other hosts."""

from dataclasses import dataclass
from pathlib import Path

from tests.chromium import open_tab

WAIT_SECONDS = 2  # for what a page asks for once it is there
ELSEWHERE = ("http:", "https:", "ws:", "wss:")


@dataclass(frozen=True, slots=True)
class Report:
    """Files of a report."""

    files: dict[str, int]  # how many of each kind, by their ending
    n_bytes: int
    page_bytes: int  # of these the pages'
    script_bytes: int  # of these the scripts within
    requests: tuple[str, ...]  # to other hosts


def list_requests(page: Path) -> tuple[list[str], int]:
    """Open a page: what it asks of other hosts, and how long its scripts are."""
    with open_tab() as tab:
        tab.open(page)
        tab.evaluate(f"new Promise(done => setTimeout(done, {1000 * WAIT_SECONDS}))")
        scripts = tab.evaluate("[...document.scripts].reduce((all, script) => all + new TextEncoder().encode(script.textContent).length, 0)")
        return [url for url in tab.requests if url.startswith(ELSEWHERE)], scripts


def look_at(folder: Path) -> Report:
    """Look at all files of a report."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    pages = [path for path in paths if path.suffix == ".html"]
    found = [list_requests(page) for page in pages]
    kinds = [path.suffix.removeprefix(".").upper() for path in paths]
    return Report(
        {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        sum(path.stat().st_size for path in paths),
        sum(path.stat().st_size for path in pages),
        sum(scripts for _, scripts in found),
        tuple(url for urls, _ in found for url in urls),
    )
