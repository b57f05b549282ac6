"""Records of a report's figures: title, description, drawing in percent of its box, and table."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...arguments.choices import LOSS
from .scale import Axis, Tick


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a figure."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # the first cell of each names the row
    note: str = ""  # text below, such as the number of omitted rows
    statistics: bool = False  # its heads are words of the glossary


@dataclass(frozen=True, slots=True)
class Mark:
    """A rectangle on a track."""

    start: float  # in percent of the track
    width: float
    kind: str  # a class of the style sheet: "up", "down", "plain", "total", "box", "before"


@dataclass(frozen=True, slots=True)
class Track:
    """A line of a figure: a name, marks along an axis, and a number."""

    label: str
    marks: tuple[Mark, ...]
    lines: tuple[tuple[float, float], ...] = ()  # whiskers: from and to, in percent
    points: tuple[float, ...] = ()  # medians, in percent
    text: str = ""  # the number at the end


@dataclass(frozen=True, slots=True)
class Tracks:
    """Tracks on a common axis."""

    tracks: tuple[Track, ...]
    ticks: tuple[Tick, ...]
    zero: float | None  # position of the zero line, in percent
    axis: str  # label of the axis
    keys: tuple[tuple[str, str], ...] = ()  # kinds of marks, and what they mean


@dataclass(frozen=True, slots=True)
class Shape:
    """Paths of one colour."""

    kind: str  # a class of the style sheet
    path: str  # attribute ``d`` of an SVG path


@dataclass(frozen=True, slots=True)
class Strip:
    """One distribution."""

    label: str
    shapes: tuple[Shape, ...]  # in a box from 0 to the figure's number of bins, and from -1 to 1
    text: str = ""


@dataclass(frozen=True, slots=True)
class Strips:
    """Distributions on a common axis."""

    strips: tuple[Strip, ...]
    bins: int
    ticks: tuple[Tick, ...]
    zero: float | None
    axis: str
    coloured: bool  # colours show how high values are
    shades: tuple[str, ...] = ("low value", "high value", "no order or missing")  # what the first colour, the last, and grey mean


@dataclass(frozen=True, slots=True)
class Plane:
    """A plane with two axes."""

    width: int  # of the box of its shapes
    height: int
    shapes: tuple[Shape, ...]
    lines: tuple[Shape, ...]  # lines of constant width
    across: tuple[Tick, ...]  # ticks of the horizontal axis
    upright: tuple[Tick, ...]  # ticks of the vertical axis, in percent from below
    zero: float | None  # position of the zero line, in percent from below
    axis: str  # label of the horizontal axis
    side: str  # label of the vertical axis
    keys: tuple[tuple[str, str], ...] = ()  # kinds of lines, and their names
    shades: tuple[str, ...] = ()  # what the first colour, the last, and grey mean, where shapes have such colours


@dataclass(frozen=True, slots=True)
class Matrix:
    """A triangular matrix."""

    names: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]  # darkness of every name with those before it and itself, from 0 to 6; -1 for none
    low: str  # label of the lightest cell
    high: str  # label of the darkest cell


@dataclass(frozen=True, slots=True)
class Column:
    """A bar, and which lines of a matrix are its members."""

    at: float  # middle, in percent from the left
    mark: Mark  # from below, in percent of the height
    members: tuple[int, ...]  # lines, ascending


@dataclass(frozen=True, slots=True)
class Sets:
    """Bars above a matrix of members."""

    names: tuple[str, ...]  # of lines
    columns: tuple[Column, ...]
    width: float  # of a bar, in percent
    ticks: tuple[Tick, ...]  # of the bars' axis, in percent from below
    axis: str  # its label
    keys: tuple[tuple[str, str], ...]  # kinds of bars, and what they mean


@dataclass(frozen=True, slots=True)
class Node:
    """A circle with a name."""

    label: str
    x: float  # in percent from the left
    y: float  # in percent from the top
    radius: float  # in pixels
    side: str  # of the circle where the name stands: "left" or "right"


@dataclass(frozen=True, slots=True)
class Link:
    """A line between nodes, or an area."""

    kind: str  # a class of the style sheet
    path: str  # attribute ``d`` of an SVG path, in percent
    size: float  # width in pixels, or opacity


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes on a circle, with lines between two and areas between more of them."""

    nodes: tuple[Node, ...]
    lines: tuple[Link, ...]
    areas: tuple[Link, ...]
    keys: tuple[tuple[str, str], ...]  # kinds of lines, and what they mean


Drawing = Tracks | Strips | Plane | Matrix | Sets | Network


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its text and numbers."""

    title: str
    description: str  # in a sentence or two
    drawing: Drawing
    table: Table
    small: bool = False  # it may be beside others

    @property
    def kind(self) -> str:
        """Name of the drawing's type in the template."""
        return type(self.drawing).__name__.lower()


def draw_bar(axis: Axis, start: float, end: float, kind: str) -> Mark:
    """Draw a bar from one number to another.

    Parameters
    ----------
    start, end : float
        In any order.
    """
    low, high = sorted((axis.at(start), axis.at(end)))
    return Mark(low, round(high - low, 2), kind)


def draw_whisker(axis: Axis, middle: float, error: float) -> tuple[tuple[float, float], ...]:
    """Draw an error bar around a number."""
    return ((axis.at(middle - error), axis.at(middle + error)),) if error > 0 else ()


def directions(space: str) -> tuple[tuple[str, str], ...]:
    """List what the colours of attributions mean, for a legend."""
    return (("up", "made predictions worse"), ("down", "made them better")) if space == LOSS else (("up", "raises it"), ("down", "lowers it"))


def say_moved(space: str) -> str:
    """Name what features move, in a title."""
    return "the loss" if space == LOSS else "predictions"


def say_first(found: Sequence[tuple[str, str]], of: str) -> str:
    """Say which is the first of some names, and how large; empty where there is none."""
    return f" {found[0][0][:1].upper()}{found[0][0][1:]} is first, with {found[0][1]} {of}." if found else ""


def say_left_out(shown: int, n: int, noun: str) -> str:
    """Say how many items are omitted.

    Parameters
    ----------
    noun : str
        In the plural.

    Returns
    -------
    str
        Empty where there are none.
    """
    return f"The first {shown:,} of {n:,} {noun}." if shown < n else ""


def write_path(runs: Sequence[tuple[float, float, float, float]]) -> str:
    """Write rectangles as one SVG path."""
    return "".join(f"M{left:g} {top:g}h{width:g}v{height:g}h-{width:g}z" for left, top, width, height in runs)
