"""Records of a report's figures: title, description, drawing in percent of its box, and table."""

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
        the first cell of each names the row
    note : str
        text below, such as the number of omitted rows
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
        in percent of the track
    kind : str
        a class of the style sheet: "up", "down", "plain", "total", "box", "before"
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
        whiskers: from and to, in percent
    points : tuple of float
        medians, in percent
    text : str
        the number at the end
    """

    label: str
    marks: tuple[Mark, ...]
    lines: tuple[tuple[float, float], ...] = ()
    points: tuple[float, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tracks:
    """Tracks on a common axis.

    Attributes
    ----------
    tracks : tuple of Track
    ticks : tuple of Tick
    zero : float or None
        position of the zero line, in percent
    axis : str
        label of the axis
    """

    tracks: tuple[Track, ...]
    ticks: tuple[Tick, ...]
    zero: float | None
    axis: str


@dataclass(frozen=True, slots=True)
class Shape:
    """Paths of one colour.

    Attributes
    ----------
    kind : str
        a class of the style sheet
    path : str
        attribute ``d`` of an SVG path
    """

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Strip:
    """One distribution.

    Attributes
    ----------
    label : str
    shapes : tuple of Shape
        in a box from 0 to the figure's number of bins, and from -1 to 1
    text : str
    """

    label: str
    shapes: tuple[Shape, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Strips:
    """Distributions on a common axis.

    Attributes
    ----------
    strips : tuple of Strip
    bins : int
    ticks : tuple of Tick
    zero : float or None
    axis : str
    coloured : bool
        colours show how high values are
    """

    strips: tuple[Strip, ...]
    bins: int
    ticks: tuple[Tick, ...]
    zero: float | None
    axis: str
    coloured: bool


@dataclass(frozen=True, slots=True)
class Plane:
    """A plane with two axes.

    Attributes
    ----------
    width, height : int
        of the box of its shapes
    shapes : tuple of Shape
    lines : tuple of Shape
        lines of constant width
    across, upright : tuple of Tick
        ticks of the horizontal axis, and of the vertical one, in percent from below
    zero : float or None
        position of the zero line, in percent from below
    axis, side : str
        labels of the axes
    keys : tuple of (str, str)
        kinds of lines, and their names
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
    """A triangular matrix.

    Attributes
    ----------
    names : tuple of str
    cells : tuple of tuple of int
        darkness of every name with those before it and itself, from 0 to 6; -1 for none
    low, high : str
        labels of the lightest and the darkest cell
    """

    names: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    low: str
    high: str


Drawing = Tracks | Strips | Plane | Matrix


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its text and numbers.

    Attributes
    ----------
    title : str
    description : str
        in a sentence or two
    drawing : Tracks, Strips, Plane or Matrix
    table : Table
    small : bool
        it may be beside others
    """

    title: str
    description: str
    drawing: Drawing
    table: Table
    small: bool = False

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
