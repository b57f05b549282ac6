"""Actual labels against predictions: the mean label of rows with about one prediction, beside the line of perfect ones."""

from collections.abc import Sequence

from .figure import Figure, Plane, Shape, Table
from .scale import NARROW, make_axis, write_number

SIZE = 100  # of the box


def draw_actual(cells: Sequence[tuple[int, float, float]], total: str, rows: str, unit: str) -> Figure | None:
    """Draw mean labels against mean predictions.

    Parameters
    ----------
    cells : sequence of (int, float, float)
        Rows, mean prediction and mean label of each cell that has rows, ascending.
    total, rows, unit : str
        What is predicted, what rows are called, and the unit of both.

    Returns
    -------
    Figure or None
        None of fewer than two cells.
    """
    if len(cells) < 2:
        return None
    axis = make_axis(end for _, *ends in cells for end in ends)
    points = "L".join(f"{axis.at(predicted):g} {SIZE - axis.at(actual):g}" for _, predicted, actual in cells)
    farthest = max(cells, key=lambda cell: abs(cell[2] - cell[1]))
    of = f" {unit}" if unit else ""
    said = (
        f"Mean label of {rows} with about one {total}; on the grey line both are equal. Farthest from it: {write_number(farthest[1], digits=3)}{of} "
    )
    said += f"where the mean label is {write_number(farthest[2], digits=3)}{of}."
    lines = (Shape("l2", f"M0 {SIZE}L{SIZE} 0"), Shape("mean", f"M{points}"))
    across, upright = axis.ticks(4, NARROW), axis.ticks(4)
    side, keys = "mean label" + (f", {unit}" if unit else ""), (("mean", "mean label"), ("l2", "as predicted"))
    plane = Plane(SIZE, SIZE, (), lines, across, upright, None, f"{total}, {unit}" if unit else total, side, keys)
    table = tuple((write_number(predicted), write_number(actual), f"{n:,}") for n, predicted, actual in cells)
    return Figure(f"Actual against {total}", said, plane, Table((f"mean {total}", "mean label", rows), table), small=True)
