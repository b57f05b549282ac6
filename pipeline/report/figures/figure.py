"""What a figure of a report is: a title, a description, a drawing in percent of its box, and its numbers as a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from .scale import Axis, Tick


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a figure.

    Attributes
    ----------
    heads : tuple of str
    rows : tuple of tuple of str
        The first cell of each names the row.
    note : str
        What is said below, such as how many rows are left out.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A rectangle on a track.

    Attributes
    ----------
    start, width : float
        In percent of the track.
    kind : str
        A class of the style sheet: "up", "down", "plain", "total", "box", "before".
    """

    start: float
    width: float
    kind: str


@dataclass(frozen=True, slots=True)
class Track:
    """A line of a figure: a name, marks along an axis, and a number.

    Attributes
    ----------
    label : str
    marks : tuple of Mark
    lines : tuple of (float, float)
        Thin lines from and to, in percent: whiskers.
    points : tuple of float
        Short upright lines, in percent: medians.
    text : str
        The number behind it.
    """

    label: str
    marks: tuple[Mark, ...]
    lines: tuple[tuple[float, float], ...] = ()
    points: tuple[float, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tracks:
    """Lines above each other on one axis.

    Attributes
    ----------
    tracks : tuple of Track
    ticks : tuple of Tick
    zero : float or None
        Where an upright line stands, in percent.
    axis : str
        What the numbers are.
    """

    tracks: tuple[Track, ...]
    ticks: tuple[Tick, ...]
    zero: float | None
    axis: str


@dataclass(frozen=True, slots=True)
class Shape:
    """Pieces of one colour.

    Attributes
    ----------
    kind : str
        A class of the style sheet.
    path : str
        As the attribute ``d`` of a path of SVG.
    """

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A line of a distribution.

    Attributes
    ----------
    label : str
    shapes : tuple of Shape
        In a box from 0 to as many bins as the figure has, and from -1 to 1.
    text : str
    """

    label: str
    shapes: tuple[Shape, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Strips:
    """Distributions above each other on one axis.

    Attributes
    ----------
    strips : tuple of Strip
    bins : int
    ticks : tuple of Tick
    zero : float or None
    axis : str
    coloured : bool
        Colours say how high values are.
    """

    strips: tuple[Strip, ...]
    bins: int
    ticks: tuple[Tick, ...]
    zero: float | None
    axis: str
    coloured: bool


@dataclass(frozen=True, slots=True)
class Plane:
    """A field with two axes.

    Attributes
    ----------
    width, height : int
        Of the box of its shapes.
    shapes : tuple of Shape
    lines : tuple of Shape
        Drawn as lines of one width whatever the box becomes.
    across, upright : tuple of Tick
        Numbers below it, and beside it, the percentage from below.
    zero : float or None
        Where a level line stands, in percent from below.
    axis, side : str
        What the numbers are.
    keys : tuple of (str, str)
        Kinds of lines and their names.
    """

    width: int
    height: int
    shapes: tuple[Shape, ...]
    lines: tuple[Shape, ...]
    across: tuple[Tick, ...]
    upright: tuple[Tick, ...]
    zero: float | None
    axis: str
    side: str
    keys: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Matrix:
    """Cells below a diagonal.

    Attributes
    ----------
    names : tuple of str
    cells : tuple of tuple of int
        Of every name with those before it and itself: how dark, from 0 to 6; -1 for none.
    low, high : str
        What the lightest and the darkest are.
    """

    names: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    low: str
    high: str


Drawing = Tracks | Strips | Plane | Matrix


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its words and numbers.

    Attributes
    ----------
    title : str
    description : str
        What is to be seen, in a sentence or two.
    drawing : Tracks, Strips, Plane or Matrix
    table : Table
    small : bool
        It may stand beside others.
    """

    title: str
    description: str
    drawing: Drawing
    table: Table
    small: bool = False

    @property
    def kind(self) -> str:
        """Which drawing it is, as the template asks."""
        return type(self.drawing).__name__.lower()


def draw_bar(axis: Axis, start: float, end: float, kind: str) -> Mark:
    """Draw a rectangle from one number to another.

    Parameters
    ----------
    start, end : float
        In any order.
    """
    low, high = sorted((axis.at(start), axis.at(end)))
    return Mark(low, round(high - low, 2), kind)


def draw_whisker(axis: Axis, middle: float, error: float) -> tuple[tuple[float, float], ...]:
    """Draw a number's error to both sides."""
    return ((axis.at(middle - error), axis.at(middle + error)),) if error > 0 else ()


def say_left_out(shown: int, n: int, noun: str) -> str:
    """Say how many are left out.

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
    """Write rectangles as one path."""
    return "".join(f"M{left:g} {top:g}h{width:g}v{height:g}h-{width:g}z" for left, top, width, height in runs)
