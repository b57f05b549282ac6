"""Pictures of the pages: figures of a report of February's flights against January's, in SVG, by the report's own code and in its own colours.

``python -m docs.pictures`` draws them anew where the demo's flights and models are, and leaves them as they are elsewhere."""

import json
import re
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from docs.generated import SCALE
from leafledger import explain, read_run
from leafledger.pipeline.report.contents import compose
from leafledger.pipeline.report.figures.figure import Figure, Network, Plane, Sets, Shape, Strips, Table, Tracks
from leafledger.pipeline.report.figures.scale import Tick, make_axis
from leafledger.pipeline.report.figures.swarm import SHADES
from leafledger.pipeline.report.page import TEMPLATES
from leafledger.pipeline.report.report import LIMITS, gather

FOLDER = Path(__file__).parent / "figures"
DEMO = Path(__file__).parents[1] / "build" / "demo"
PICTURES = {  # titles of figures
    "report-importance": "How much each feature moves predictions",
    "report-directions": "Which way features move predictions",
    "report-dependence": "How air_time acts",
    "report-interactions": "The largest interactions",
    "report-network": "How features hang together",
    "report-row": "Lowest prediction",
    "drift-mean": "Why the mean prediction changed",
    "drift-columns": "How different each column is",
}
WIDTH, EDGE, HEAD = 720, 20, 56  # pixels: of a picture, around it, and of its title
RANKED = 60  # features in the picture of shares
LABEL, NUMBER, GAP = 190, 80, 10  # beside a track
TRACK, STRIP, FIELD = 23, 40, 260  # heights
STYLE = """
rect.paper { fill: var(--paper); stroke: var(--rule) }
text { font: 13px var(--sans); fill: var(--ink); dominant-baseline: central }
.soft { fill: var(--soft) } .title { font-size: 16px; font-weight: 650 } .rule { stroke: var(--rule) }
"""


def _add(where: Element, tag: str, kind: str = "", **given: float | str) -> Element:
    numbers = {name: value if isinstance(value, str) else f"{value:.5g}" for name, value in given.items()}
    return SubElement(where, tag, ({"class": kind} if kind else {}) | numbers)


def _write(where: Element, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
    _add(where, "text", kind, x=x, y=y, **{"text-anchor": anchor}).text = text


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
    for i, track in enumerate(drawing.tracks):
        top, middle = HEAD + TRACK * i, HEAD + TRACK * (i + 0.5)
        _write(where, left - GAP, middle, track.label, anchor="end")
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
    for i, strip in enumerate(drawing.strips):
        middle = HEAD + STRIP * (i + 0.5)
        _write(where, left - GAP, middle, strip.label, anchor="end")
        bins = _add(where, "g", transform=f"translate({left} {middle:g}) scale({width / drawing.bins:.5g} {STRIP / 2:g})")
        for shape in strip.shapes:
            _add(bins, "path", shape.kind, d=shape.path)
    end = _draw_ticks(where, drawing.ticks, left, width, bottom, drawing.axis)
    if drawing.coloured:
        end += 24
        for level in range(SHADES):
            _add(where, "path", f"v{level}", d=f"M{left + 70 + 12 * level} {end - 13}h12v10h-12z")
        _add(where, "path", "unknown", d=f"M{left + 276} {end - 13}h16v10h-16z")
        for x, text in ((0, "low value"), (186, "high value"), (300, "no order or missing")):
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
        _add(field, "path", f"line {line.kind}", d=line.path)
    return _draw_ticks(where, drawing.across, left, width, bottom, drawing.axis)


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
        _add(field, "path", f"link {line.kind}", d=line.path, **{"stroke-width": line.size})
    for node in drawing.nodes:
        x, y, away = EDGE + node.x / 100 * width, HEAD + node.y / 100 * height, node.radius + 5
        _add(where, "circle", "member", cx=x, cy=y, r=node.radius)
        _write(where, x + away if node.side == "right" else x - away, y, node.label, anchor="start" if node.side == "right" else "end")
    return _draw_keys(where, drawing.keys, HEAD + height)


def draw_picture(figure: Figure) -> str:
    """Draw a figure of a report as SVG that asks for nothing, in the light or dark colours of the reader's system."""
    picture = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "width": str(WIDTH), "role": "img"})
    _add(picture, "title").text = figure.title
    _add(picture, "desc").text = figure.description
    _add(picture, "style").text = (TEMPLATES / "colours.css").read_text() + STYLE
    paper = _add(picture, "rect", "paper", x=0.5, y=0.5, width=WIDTH - 1, rx=6)
    _write(picture, EDGE, 30, figure.title, "title")
    draw = {Tracks: _draw_tracks, Strips: _draw_strips, Plane: _draw_plane, Sets: _draw_sets, Network: _draw_network}[type(figure.drawing)]
    height = round(draw(picture, figure.drawing)) + EDGE // 2
    picture.set("height", str(height))
    picture.set("viewBox", f"0 0 {WIDTH} {height}")
    paper.set("height", str(height - 1))
    indent(picture, "")
    return tostring(picture, encoding="unicode") + "\n"


def plot_scale() -> Figure:
    """CPU time of a part, by how many workers there are: the first measurement of every number of workers."""
    cells = {found["cell"]["workers"]: found for found in reversed(json.loads(SCALE.read_text())["cells"])}
    costs = []
    for n, found in sorted(cells.items()):
        each = 1e3 / found["cell"]["parts"]
        costs.append((n, each * (found["scheduler_cpu"] - found["quiet"] * found["seconds"]), each * found["client_cpu"]))
    across, upright = make_axis((n for n, *_ in costs), zero=True), make_axis((cost for _, *both in costs for cost in both), zero=True)
    lines = []
    for kind, which in (("mean", 1), ("l1", 2)):
        points = (f"{across.at(each[0]):g} {100 - upright.at(each[which]):g}" for each in costs)
        lines.append(Shape(kind, "M" + "L".join(points)))
    plane = Plane(100, 100, (), tuple(lines), across.ticks(), upright.ticks(4), None, "workers", "milliseconds of CPU a part")
    rows = tuple((f"{n:,}", f"{scheduler:.2f}", f"{client:.2f}") for n, scheduler, client in costs)
    description = "The solid line is the scheduler, beyond what it takes without work; the broken one the client."
    return Figure("What a part costs the scheduler and the client", description, plane, Table(("workers", "scheduler", "client"), rows))


def plot_shares() -> Figure:
    """Shares of R² by rank, and their sums, as the recipe of docs/methods/r2.md finds them."""
    recipe = (Path(__file__).parent / "methods" / "r2.md").read_text().partition("## From shares to a smaller model")[2]
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()):
        exec(re.findall(r"```python\n(.*?)```", recipe, re.DOTALL)[0], names)  # noqa: S102 - the page's own block: the picture is of what readers type
    shares = names["shares"]["r2"].to_numpy()[:RANKED]
    across, upright = make_axis((0, RANKED), zero=True), make_axis((0, float(shares.sum())), zero=True)
    lines = []
    for kind, heights in (("mean", shares.cumsum()), ("l1", shares)):
        points = (f"{across.at(rank):.4g} {100 - upright.at(height):.4g}" for rank, height in enumerate(heights.tolist(), 1))
        lines.append(Shape(kind, "M" + "L".join(points)))
    plane = Plane(100, 100, (), tuple(lines), across.ticks(), upright.ticks(4), None, "features by rank", "R²")
    rows = tuple((str(rank), f"{share:.3f}", f"{shares[:rank].sum():.3f}") for rank, share in enumerate(shares.tolist(), 1))
    description = "The broken line is the share of a feature, the solid one of all up to it."
    return Figure("Shares of R² by rank, and what they add up to", description, plane, Table(("rank", "share", "together"), rows))


def draw_pictures(demo: Path) -> dict[str, str]:
    """Explain two months of the demo's flights, and draw the figures of their report, by name."""
    where = {"scheduler": "serial", "workers": None, "plain_tcp": False}
    with tempfile.TemporaryDirectory() as made:
        january, february = Path(made) / "january", Path(made) / "february"
        for month, run in enumerate((january, february), 1):
            data = demo / "flights" / f"month={month}"
            explain(demo / "models" / "lightgbm.txt", data, run, ids=["carrier", "flight"], values=True, interactions=3, scheduler="serial")
        page = compose(gather(read_run(february), january, where), LIMITS[0])
    figures = {figure.title: figure for section in page.sections for figure in section.figures}
    return {f"{name}.svg": draw_picture(figures[title]) for name, title in PICTURES.items()} | {
        "scale.svg": draw_picture(plot_scale()),
        "shares.svg": draw_picture(plot_shares()),
    }


def main() -> None:
    """Draw them anew, or say that they stay."""
    if not all((DEMO / name).exists() for name in ("models/lightgbm.txt", "flights/month=1", "flights/month=2")):
        sys.stderr.write(f"{DEMO} has no flights and models, which make demo brings: pictures stay as they are\n")
        return
    for name, picture in draw_pictures(DEMO).items():
        (FOLDER / name).write_text(picture)


if __name__ == "__main__":
    main()
