"""Figures of interactions, as a matrix, and of curves over steps, as lines."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .figure import Figure, Matrix, Plane, Shape, Table
from .scale import Axis, make_axis, shorten_names, write_number
from .sets import name_sets, read_sets, tabulate_sets

PLAYERS = 10
PAIRS = 20  # pairs in the table
DARKEST = 6
STEPS = 40  # steps in the table
POINTS = 400  # points of a line
NAMES = 22  # characters of a name
Row = Mapping[str, Any]


def draw_interactions(rows: Sequence[Row], unit: str) -> Figure | None:
    """Draw the interactions of pairs of features.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of interactions, of one output.

    Returns
    -------
    Figure or None
        None where nothing interacts.
    """
    pairs = [each for each in read_sets(rows) if len(each.members) == 2]
    found = {each.members: each.size for each in pairs}
    total: dict[str, float] = {}
    for each in pairs:
        for name in each.members:
            total[name] = total.get(name, 0.0) + each.size
    names = sorted(total, key=lambda name: -total[name])[:PLAYERS]
    if not names:
        return None
    largest = max(found.values())
    cells = tuple(
        tuple(_level(found.get((name, other), found.get((other, name))), largest) if other != name else -1 for other in names[: i + 1])
        for i, name in enumerate(names)
    )
    shown = pairs[:PAIRS]
    some = f" The {len(names)} features that interact most are shown." if len(total) > len(names) else ""
    return Figure(
        "Which features act together",
        f"Mean size of interactions, in units of the {unit}: the stronger the colour, the larger. {name_sets(shown)[0]} interact most.{some}",
        Matrix(tuple(shorten_names(names, NAMES)), cells, "0", write_number(largest)),
        tabulate_sets(shown, len(pairs), "pairs"),
    )


def _level(size: float | None, largest: float) -> int:
    return 0 if not size else max(1, math.ceil(DARKEST * math.sqrt(size / largest) - 1e-9))


def _every(n: int, most: int) -> list[int]:
    """Return evenly spaced numbers below n, including the first and the last."""
    return sorted({round(i * (n - 1) / (min(n, most) - 1)) for i in range(min(n, most))}) if n > 1 else [0] * n


def draw_lines(title: str, description: str, lines: Mapping[str, Sequence[tuple[float, float]]], axis: str, side: str) -> Figure | None:
    """Draw curves over steps, each by its points (step, number); nothing where there are none."""
    points = [point for line in lines.values() for point in line if math.isfinite(point[1])]
    if not points:
        return None
    across, upright = make_axis(x for x, _ in points), make_axis(y for _, y in points)
    kinds = tuple((f"l{i}", name) for i, name in enumerate(lines))
    shapes = tuple(Shape(kind, _write_line(lines[name], across, upright)) for kind, name in kinds)
    steps = sorted({x for x, _ in points})
    found = {name: dict(line) for name, line in lines.items()}
    rows = tuple((f"{steps[i]:g}", *(write_number(found[name].get(steps[i])) for name in lines)) for i in _every(len(steps), STEPS))
    zero = upright.at(0) if upright.low <= 0 <= upright.high else None
    plane = Plane(100, 100, (), shapes, across.ticks(), upright.ticks(4), zero, axis, side, kinds if len(kinds) > 1 else ())
    return Figure(title, description, plane, Table((axis, *lines), rows))


def _write_line(points: Sequence[tuple[float, float]], across: Axis, upright: Axis) -> str:
    known = [point for point in points if math.isfinite(point[1])]
    kept = [known[i] for i in _every(len(known), POINTS)]
    return "".join(f"{'L' if i else 'M'}{across.at(x):g} {round(100 - upright.at(y), 2):g}" for i, (x, y) in enumerate(kept))


def draw_objective(rows: Sequence[Row]) -> Figure | None:
    """Draw the objective of the ranker, step by step.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of it, of one output.
    """
    points = {"objective": [(row["step"], row["mean"]) for row in rows if row["mean"] is not None]}
    return draw_lines("How the ranker got there", "Mean of the ranker's objective over all rows, step by step.", points, "step", "objective")


def draw_curves(rows: Sequence[Row], unit: str) -> Figure | None:
    """Draw insertion and deletion curves of rankings.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of them, of one output.
    unit : str
        Of the model.
    """
    lines = {
        name: [(row["present"], row["mean"]) for row in rows if row["curve"] == name and row["mean"] is not None]
        for name in dict.fromkeys(row["curve"] for row in rows)
    }
    said = "Mean of the model while features come in the order of each row's ranking (insertion), or go in it (deletion)."
    return draw_lines("Insertion and deletion", said, lines, "features present", f"mean, {unit}")
