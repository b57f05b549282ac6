"""Figures of a report as SVG pictures that ask for nothing, in the light or dark colours of the reader's system."""

import re
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..report.figures.figure import Figure, Matrix, Network, Plane, Sets, Strips, Tracks
from ..report.figures.matrix import DARKEST as LEVELS
from ..report.figures.scale import Tick, shorten_names
from ..report.figures.swarm import SHADES
from ..report.page import TEMPLATES

WIDTH, EDGE, HEAD = 720, 20, 56  # pixels: of a picture, around it, and of its title
LABEL, NUMBER, GAP = 190, 80, 10  # beside a track
NAME, LETTER = 27, 8  # characters of a label, and width of one
TRACK, STRIP, FIELD, CELL = 23, 40, 260, 30  # heights
MARGIN = 4  # that texts keep from the picture's edges
NARROW, WIDE = {*"iljtfrI.,:;!|/'()[] -"}, {*"mwMW@%…—="}  # characters; the others are as wide as digits, and capitals wider
TEXT, TITLE = 13, 16  # sizes of letters
STYLE = """
rect.paper { fill: var(--paper); stroke: var(--rule) }
text { font: 13px var(--sans); fill: var(--ink); dominant-baseline: central }
.soft { fill: var(--soft) } .title { font-size: 16px; font-weight: 650 } .rule { stroke: var(--rule) }
"""


def _add(where: Element, tag: str, kind: str = "", **given: float | str) -> Element:
    numbers = {name: value if isinstance(value, str) else f"{value:.5g}" for name, value in given.items()}
    return SubElement(where, tag, ({"class": kind} if kind else {}) | numbers)


def _place(path: str, left: float, top: float, across: float, down: float) -> str:
    """Put the points of a line into the picture: cairosvg and office suites would scale the line's width with its points."""
    return re.sub(r"([^ML ]+) ([^ML ]+)", lambda point: f"{left + across * float(point[1]):.5g} {top + down * float(point[2]):.5g}", path)


def measure(text: str) -> float:
    """Estimate how wide a text is, in pixels, in a wide font such as DejaVu Sans."""
    return sum(5.0 if c in NARROW else 13.0 if c in WIDE or c > "\u2e7f" else 9.8 if c.isupper() else 8.2 for c in text)


def _write(where: Element, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
    """Write a text, smaller where it would run over the picture's edge."""
    room = {"start": WIDTH - x, "end": x, "middle": 2 * min(x, WIDTH - x)}[anchor] - MARGIN
    size, wide = (TITLE, measure(text) * TITLE / TEXT) if kind == "title" else (TEXT, measure(text))
    fit = {"style": f"font-size: {size * room / wide:.4g}px"} if wide > room else {}
    _add(where, "text", kind, x=x, y=y, **{"text-anchor": anchor}, **fit).text = text


def _draw_ticks(where: Element, ticks: tuple[Tick, ...], left: float, width: float, bottom: float, axis: str) -> float:
    """Numbers below a drawing, and what they are; where it ends."""
    _add(where, "line", "rule", x1=left, x2=left + width, y1=bottom, y2=bottom)
    for tick in ticks:
        _write(where, left + tick.at / 100 * width, bottom + 12, tick.text, "soft", tick.side)
    _write(where, left + width, bottom + 32, axis, "soft", "end")
    return bottom + 40


def _draw_grid(where: Element, ticks: tuple[Tick, ...], zero: float | None, left: float, width: float, bottom: float) -> None:
    for kind, at in (*(("grid", tick.at) for tick in ticks), ("zero", zero)):
        if at is not None:
            _add(where, "line", kind, x1=left + at / 100 * width, x2=left + at / 100 * width, y1=HEAD, y2=bottom)


def _draw_tracks(where: Element, drawing: Tracks) -> float:
    left, width = EDGE + LABEL, WIDTH - 2 * EDGE - LABEL - NUMBER
    bottom = HEAD + TRACK * len(drawing.tracks)
    _draw_grid(where, drawing.ticks, drawing.zero, left, width, bottom)
    labels = shorten_names([track.label for track in drawing.tracks], NAME)
    for i, (track, label) in enumerate(zip(drawing.tracks, labels, strict=True)):
        top, middle = HEAD + TRACK * i, HEAD + TRACK * (i + 0.5)
        _write(where, left - GAP, middle, label, anchor="end")
        for mark in track.marks:
            start, long = (each / 100 * width for each in (mark.start, mark.width))
            _add(where, "rect", mark.kind, x=left + start, width=long, y=top + 0.18 * TRACK, height=0.64 * TRACK)
        for start, end in track.lines:
            _add(where, "line", "whisker", x1=left + start / 100 * width, x2=left + end / 100 * width, y1=middle, y2=middle)
        for point in track.points:
            at = left + point / 100 * width
            _add(where, "line", "point", x1=at, x2=at, y1=top + 0.08 * TRACK, y2=top + 0.92 * TRACK)
        _write(where, left + width + GAP, middle, track.text, "soft")
    end = _draw_ticks(where, drawing.ticks, left, width, bottom, drawing.axis)
    return _draw_keys(where, drawing.keys, end) if drawing.keys else end


def _draw_strips(where: Element, drawing: Strips) -> float:
    left, width = EDGE + LABEL, WIDTH - 2 * EDGE - LABEL
    bottom = HEAD + STRIP * len(drawing.strips)
    _draw_grid(where, drawing.ticks, drawing.zero, left, width, bottom)
    labels = shorten_names([strip.label for strip in drawing.strips], NAME)
    for i, (strip, label) in enumerate(zip(drawing.strips, labels, strict=True)):
        middle = HEAD + STRIP * (i + 0.5)
        _write(where, left - GAP, middle, label, anchor="end")
        bins = _add(where, "g", transform=f"translate({left} {middle:g}) scale({width / drawing.bins:.5g} {STRIP / 2:g})")
        for shape in strip.shapes:
            _add(bins, "path", shape.kind, d=shape.path)
    end = _draw_ticks(where, drawing.ticks, left, width, bottom, drawing.axis)
    return _draw_shades(where, drawing.shades, left, end) if drawing.coloured else end


def _draw_shades(where: Element, shades: tuple[str, ...], left: float, end: float) -> float:
    """Colours from the first to the last, and grey, with what they mean; where it ends."""
    end += 24
    for level in range(SHADES):
        _add(where, "path", f"v{level}", d=f"M{left + 70 + 12 * level} {end - 13}h12v10h-12z")
    grey = max(276, 196 + LETTER * len(shades[1]))
    if shades[2]:
        _add(where, "path", "unknown", d=f"M{left + grey} {end - 13}h16v10h-16z")
    for x, text in zip((0, 186, grey + 24), shades, strict=True):
        _write(where, left + x, end - 8, text, "soft")
    return end


def _draw_plane(where: Element, drawing: Plane) -> float:
    left, width, bottom = EDGE + 50, WIDTH - 2 * EDGE - 50, HEAD + 24 + FIELD
    _write(where, EDGE, HEAD + 8, drawing.side, "soft")
    for kind, at, text in (*(("grid", tick.at, tick.text) for tick in drawing.upright), ("zero", drawing.zero, "")):
        if at is not None:
            y = bottom - at / 100 * FIELD
            _add(where, "line", kind, x1=left, x2=left + width, y1=y, y2=y)
            _write(where, left - GAP, y, text, "soft", "end")
    field = _add(where, "g", transform=f"translate({left} {bottom - FIELD}) scale({width / drawing.width:.5g} {FIELD / drawing.height:.5g})")
    for shape in drawing.shapes:
        _add(field, "path", shape.kind, d=shape.path)
    for line in drawing.lines:
        placed = _place(line.path, left, bottom - FIELD, width / drawing.width, FIELD / drawing.height)
        _add(where, "path", f"line {line.kind}", d=placed)
    end = _draw_ticks(where, drawing.across, left, width, bottom, drawing.axis)
    end = _draw_shades(where, drawing.shades, left, end) if drawing.shades else end
    return _draw_lines(where, drawing.keys, left, end) if len(drawing.keys) > 1 else end


def _draw_lines(where: Element, keys: tuple[tuple[str, str], ...], left: float, top: float) -> float:
    """Short lines of every kind, and what they mean; where it ends."""
    for i, (kind, text) in enumerate(keys):
        _add(where, "path", f"line {kind}", d=f"M{left + 200 * i} {top + 12:g}h24")
        _write(where, left + 200 * i + 32, top + 12, text, "soft")
    return top + 24


def _draw_matrix(where: Element, drawing: Matrix) -> float:
    left, n = EDGE + LABEL, len(drawing.names)
    wide = min(48.0, (WIDTH - EDGE - left) / n)
    for i, (name, cells) in enumerate(zip(drawing.names, drawing.cells, strict=True)):
        top = HEAD + CELL * i
        _write(where, left - GAP, top + CELL / 2, f"{i + 1}  {name}", anchor="end")
        _write(where, left + wide * (i + 0.5), HEAD + CELL * n + 12, str(i + 1), "soft", "middle")
        for j, cell in enumerate(cells):
            if cell >= 0:
                x, y = left + wide * j + 1, top + 1
                _add(where, "rect", "rule", fill="none", x=x, y=y, width=wide - 2, height=CELL - 2)
            if cell > 0:
                _add(where, "path", f"d{cell}", d=f"M{x:g} {y:g}h{wide - 2:g}v{CELL - 2}h-{wide - 2:g}z")
    end = HEAD + CELL * n + 50
    _write(where, left, end - 8, drawing.low, "soft")
    for level in range(1, LEVELS + 1):
        _add(where, "path", f"d{level}", d=f"M{left + 20 * level} {end - 13}h20v10h-20z")
    _write(where, left + 20 * LEVELS + 30, end - 8, drawing.high, "soft")
    return end


def _draw_keys(where: Element, keys: tuple[tuple[str, str], ...], top: float) -> float:
    """Squares in the colours of kinds, and what they mean; where it ends."""
    for i, (kind, text) in enumerate(keys):
        _add(where, "rect", kind, x=EDGE + 170 * i, width=16, y=top + 5, height=10)
        _write(where, EDGE + 170 * i + 24, top + 10, text, "soft")
    return top + 20


def _draw_sets(where: Element, drawing: Sets) -> float:
    left, width, bottom = EDGE + LABEL, WIDTH - 2 * EDGE - LABEL, HEAD + 24 + FIELD / 2
    _write(where, EDGE, HEAD + 8, drawing.axis, "soft")
    for tick in drawing.ticks:
        y = bottom - tick.at / 200 * FIELD
        _add(where, "line", "grid", x1=left, x2=left + width, y1=y, y2=y)
        _write(where, left - GAP, y, tick.text, "soft", "end")
    middles = [bottom + GAP + TRACK * (i + 0.5) for i in range(len(drawing.names))]
    for name, middle in zip(drawing.names, middles, strict=True):
        _write(where, left - GAP, middle, name, anchor="end")
    for column in drawing.columns:
        x, wide, high = left + column.at / 100 * width, drawing.width / 100 * width, column.mark.width / 200 * FIELD
        _add(where, "rect", column.mark.kind, x=x - wide / 2, width=wide, y=bottom - high, height=high)
        for middle in middles:
            _add(where, "circle", "other", cx=x, cy=middle, r=2.5)
        _add(where, "line", "tie", x1=x, x2=x, y1=middles[column.members[0]], y2=middles[column.members[-1]])
        for i in column.members:
            _add(where, "circle", "member", cx=x, cy=middles[i], r=5)
    return _draw_keys(where, drawing.keys, middles[-1] + TRACK)


def _draw_network(where: Element, drawing: Network) -> float:
    width, height = WIDTH - 2 * EDGE, 320
    field = _add(where, "g", transform=f"translate({EDGE} {HEAD}) scale({width / 100:.5g} {height / 100:.5g})")
    for area in drawing.areas:
        _add(field, "path", f"area {area.kind}", d=area.path, **{"fill-opacity": area.size})
    for line in drawing.lines:
        placed = _place(line.path, EDGE, HEAD, width / 100, height / 100)
        _add(where, "path", f"link {line.kind}", d=placed, **{"stroke-width": line.size})
    for node in drawing.nodes:
        x, y, away = EDGE + node.x / 100 * width, HEAD + node.y / 100 * height, node.radius + 5
        _add(where, "circle", "member", cx=x, cy=y, r=node.radius)
        _write(where, x + away if node.side == "right" else x - away, y, node.label, anchor="start" if node.side == "right" else "end")
    return _draw_keys(where, drawing.keys, HEAD + height)


KINDS: dict[type, Callable[[Element, Any], float]] = {
    Tracks: _draw_tracks,
    Strips: _draw_strips,
    Plane: _draw_plane,
    Matrix: _draw_matrix,
    Sets: _draw_sets,
    Network: _draw_network,
}


def _draw_card(where: Element, figure: Figure) -> int:
    """Draw a figure on its paper; its height."""
    paper = _add(where, "rect", "paper", x=0.5, y=0.5, width=WIDTH - 1, rx=6)
    _write(where, EDGE, 30, figure.title, "title")
    height = round(KINDS[type(figure.drawing)](where, figure.drawing)) + EDGE // 2
    paper.set("height", str(height - 1))
    return height


def draw_picture(*figures: Figure) -> str:
    """Draw figures, one below the other, as SVG.

    Parameters
    ----------
    *figures : Figure
        Of a report.

    Returns
    -------
    str
        A document with the first figure's title and the descriptions, for those who do not see it.
    """
    picture = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "width": str(WIDTH), "role": "img"})
    _add(picture, "title").text = figures[0].title
    _add(picture, "desc").text = " ".join(figure.description for figure in figures)
    _add(picture, "style").text = (TEMPLATES / "colours.css").read_text("utf-8") + STYLE
    top = 0
    for figure in figures:
        top += _draw_card(picture if len(figures) == 1 else _add(picture, "g", transform=f"translate(0 {top})"), figure)
    picture.set("height", str(top))
    picture.set("viewBox", f"0 0 {WIDTH} {top}")
    indent(picture, "")
    return tostring(picture, encoding="unicode") + "\n"
