"""Figures of the largest interactions: bars above a matrix of members, and a network."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .figure import Column, Figure, Link, Mark, Network, Node, Sets, Table, say_left_out
from .scale import WHOLE, make_axis, shorten_names, write_number

SETS = 15  # that have a bar,
PLAYERS = 12  # and members of these
NAMES = 22  # characters of a name
LINES = 30  # of a network
LEAST = 0.05  # size of a line relative to the largest
ONE_WAY = 1 / 3  # of its mean size an interaction has as its mean, if it has one sign mostly
KINDS = {"up": "raises on the whole", "down": "lowers on the whole", "before": "both"}  # what the members do together
BARE, WIDEST, CLEAREST = 5.0, 9.0, 0.4  # radius of a small node, width of the largest line, opacity of the largest area
LARGEST = 9.0  # more radius of the largest node
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlayerSet:
    """An interaction in a summary."""

    members: tuple[str, ...]
    size: float  # mean magnitude
    row: Row

    @property
    def kind(self) -> str:
        """Which way it goes, a class of the style sheet."""
        mean = float(self.row["mean"] or 0.0)
        return "before" if abs(mean) < ONE_WAY * self.size else "up" if mean > 0 else "down"


def read_sets(rows: Sequence[Row]) -> list[PlayerSet]:
    """Read a summary's interactions of two players or more, the largest first; without those of no size."""
    found = [PlayerSet((row["first"], row["second"]), float(row["mean_abs"] or 0.0), row) for row in sorted(rows, key=lambda row: row["rank"])]
    return [each for each in found if each.size > 0]


def _choose(found: Sequence[PlayerSet]) -> tuple[list[PlayerSet], list[str]]:
    """Choose the first sets that have few members in all, and these, those that interact most first."""
    shown, total = list[PlayerSet](), dict[str, float]()
    for each in found[:SETS]:
        if len(total.keys() | set(each.members)) > PLAYERS:
            break
        shown.append(each)
        for name in each.members:
            total[name] = total.get(name, 0.0) + each.size
    return shown, sorted(total, key=lambda name: -total[name])


def _tabulate(shown: Sequence[PlayerSet], n: int, noun: str) -> Table:
    names = iter(shorten_names([name for each in shown for name in each.members], WHOLE))
    rows = tuple(
        (" and ".join(next(names) for _ in each.members), *(write_number(each.row[key]) for key in ("mean_abs", "mean", "min", "max")))
        for each in shown
    )
    left = f"{n - len(shown):,} smaller ones are left out." if len(shown) < n else ""
    return Table((noun, "mean size", "mean", "lowest", "highest"), rows, left)


def _keys(kinds: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple((kind, name) for kind, name in KINDS.items() if kind in kinds)


def draw_sets(rows: Sequence[Row], unit: str) -> Figure | None:
    """Draw the largest interactions as bars, and below each bar which features are in it.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of interactions, of one output.

    Returns
    -------
    Figure or None
        None where nothing interacts.
    """
    found = read_sets(rows)
    shown, names = _choose(found)
    if not shown:
        return None
    axis, step, line = make_axis([each.size for each in shown], zero=True), 100 / len(shown), {name: i for i, name in enumerate(names)}
    columns = tuple(
        Column(round((k + 0.5) * step, 2), Mark(0.0, axis.at(each.size), each.kind), tuple(sorted(line[name] for name in each.members)))
        for k, each in enumerate(shown)
    )
    drawing = Sets(
        names=tuple(shorten_names(names, NAMES)),
        columns=columns,
        width=round(0.6 * min(step, 12.0), 2),
        ticks=axis.ticks(4),
        axis=f"mean |interaction|, {unit}",
        keys=_keys({each.kind for each in shown}),
    )
    described = (
        f"Mean size of interactions, in units of the {unit}; the dots below a bar are features that act together. Orange ones raise it on the "
        f"whole, blue ones lower it; grey ones do both, with a mean of less than a third of the mean size. "
        + say_left_out(len(shown), len(found), "interactions")
    )
    return Figure("The largest interactions", described.strip(), drawing, _tabulate(shown, len(found), "features"))


def _place(names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Place names on an ellipse, the first at the top."""
    turns = [2 * math.pi * (i + 0.5) / len(names) for i in range(len(names))]
    return {name: (round(50 + 26 * math.sin(turn), 2), round(50 - 42 * math.cos(turn), 2)) for name, turn in zip(names, turns, strict=True)}


def draw_network(rows: Sequence[Row], sizes: Mapping[str, float], unit: str) -> Figure | None:
    """Draw features as circles, and between them their interactions.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of interactions, of one output.
    sizes : mapping of str to float
        Mean magnitudes of the features' attributions.

    Returns
    -------
    Figure or None
        None where fewer than three features interact, of which there is nothing to see.
    """
    found = read_sets(rows)
    names = _choose(found)[1]
    between = [each for each in found if set(each.members) <= set(names)]
    drawn = [each for each in between if each.size >= LEAST * between[0].size][:LINES]
    if len(names) < 3:
        return None
    at, largest, most = _place(names), between[0].size, max(sizes.get(name, 0.0) for name in names)
    links = {2: list[Link](), 3: list[Link]()}
    for each in reversed(drawn):  # the largest on top
        path, share = "M" + "L".join(f"{x:g} {y:g}" for x, y in (at[name] for name in each.members)), each.size / largest
        several = len(each.members) > 2
        links[3 if several else 2].append(Link(each.kind, path + "z" * several, round((CLEAREST if several else WIDEST) * share, 2)))
    nodes = []
    for name, label in zip(names, shorten_names(names, NAMES), strict=True):
        share = sizes.get(name, 0.0) / most if most > 0 else 0.0
        nodes.append(Node(label, *at[name], round(BARE + LARGEST * math.sqrt(share), 1), "right" if at[name][0] > 50 else "left"))
    areas = " Areas are interactions of three features, the clearer, the larger." if links[3] else ""
    some = f" {len(drawn):,} of {len(found):,} interactions are drawn." if len(drawn) < len(found) else ""
    described = (
        f"A line is as wide as the mean size of an interaction, the widest {write_number(largest)} in units of the {unit}; a circle is the larger, "
        f"the larger its feature's attributions are.{areas}{some}"
    )
    drawing = Network(tuple(nodes), tuple(links[2]), tuple(links[3]), _keys({each.kind for each in drawn}))
    return Figure("How features hang together", described, drawing, _tabulate(drawn, len(found), "features"))
