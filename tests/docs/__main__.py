"""``python -m tests.docs [PAGE...]``: type what pages say, and write what comes, and README's table, wherever they are something else."""

import re
import sys
import tempfile
from pathlib import Path

from docs.generated import put_methods
from tests.docs.blocks import agrees
from tests.docs.places import TYPED, make_folder, serve_objects
from tests.docs.reader import read_page, reading

VARIES = {  # from machine to machine, or from day to day: left open
    r"within [\d.e-]+ of": "within … of",
    r"\d+ MiB (a worker|for \d+ threads?) .*": "… MiB …",
    r"on \d+ threads": "on … threads",
    r"remainder of [\d.e-]+": "remainder of …",
    r'"manifest": "\w{64}"': '"manifest": "…"',
    r"cluster of \d+ processes": "cluster of … processes",
    r"SHA-256 \w{12}": "SHA-256 …",
    r"_leafledger/\w{64}": "_leafledger/…",
}


def settle(said: str, folder: Path) -> str:
    """What was printed, with ellipses for what varies."""
    said = said.replace(str(folder.resolve()), "…")
    for pattern, settled in VARIES.items():
        said = re.sub(pattern, settled, said)
    return said


def rewrite(page: Path, folder: Path) -> None:
    """Let a page say what its blocks print."""
    text = page.read_text()
    with reading(folder) as reader:
        changes = [found for found in read_page(page, reader) if not agrees(found.expected, found.got)]
    for found in reversed(changes):
        print(f"{page}:{found.line}: rewritten")
        said = "".join(f"{line.rstrip()}\n" for line in settle(found.got, folder).strip("\n").splitlines())
        text = text[: found.start] + (f"\n\n```text\n{said}```" if found.unsaid else said) + text[found.end :]
    page.write_text(put_methods(text))


if __name__ == "__main__":
    with serve_objects():
        for page in map(Path, sys.argv[1:] or TYPED):
            with tempfile.TemporaryDirectory() as folder:
                rewrite(page.absolute(), make_folder(Path(folder)))
