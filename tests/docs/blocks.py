"""A page's fenced blocks, in their order: what a reader would type, and what the page says comes of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=ticks)[ \t]*$", re.MULTILINE | re.DOTALL)
CAPTION = re.compile(r":caption: (\S+)\n+")
COMMANDS, PYTHON, OUTPUT, FILE = "console", "python", "text", "{code-block}"
PROMPT, MORE = "$ ", "> "


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; ``start`` and ``end`` are where its text stands in the page."""

    language: str  # the first word behind the fence
    text: str
    line: int  # of the first line of the text
    start: int
    end: int
    after: int  # where the closing fence ends

    @property
    def file(self) -> tuple[str, str] | None:
        """Name and content, where the block shows a file: a code block with a caption."""
        caption = CAPTION.match(self.text) if self.language == FILE else None
        return (caption[1], self.text[caption.end() :]) if caption else None


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, and what it is said to print."""

    typed: str
    expected: str
    line: int
    start: int  # of the expected output, in the page
    end: int


def read_blocks(page: Path) -> Iterator[Block]:
    """All blocks of a page."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        language = (found["language"].split() or [""])[0]
        start, end = found.span("text")
        yield Block(language, found["text"], text.count("\n", 0, start) + 1, start, end, found.end())


def read_commands(block: Block) -> Iterator[Command]:
    """The commands of a console block: lines behind a prompt, with those that continue them."""
    lines = block.text.splitlines(keepends=True)
    i, at = 0, block.start
    while i < len(lines):
        first, typed = i, lines[i].removeprefix(PROMPT)
        if typed == lines[i]:
            raise ValueError(f"line {block.line + i}: {lines[i].rstrip()!r}, expected {PROMPT!r} and a command")
        at, i = at + len(lines[i]), i + 1
        while i < len(lines) and (lines[i].startswith(MORE) or typed.endswith("\\\n")):
            typed += lines[i].removeprefix(MORE)
            at, i = at + len(lines[i]), i + 1
        start, expected = at, ""
        while i < len(lines) and not lines[i].startswith(PROMPT):
            expected += lines[i]
            at, i = at + len(lines[i]), i + 1
        yield Command(typed.strip(), expected, block.line + first, start, at)


def agrees(expected: str, got: str) -> bool:
    """Whether a text is as expected, with anything where an ellipsis stands, and without blanks at the ends of lines."""
    wanted, found = ("\n".join(line.rstrip() for line in text.strip("\n").splitlines()) for text in (expected, got))
    return re.fullmatch(".*?".join(map(re.escape, wanted.split("…"))), found, re.DOTALL) is not None
