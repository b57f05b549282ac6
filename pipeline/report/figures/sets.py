"""Figures of the largest interactions: bars above a matrix of members, and a network."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .figure import Column, Figure, Link, Mark, Network, Node, Sets, Table, say_left_out
from .scale import NAME, WHOLE, make_axis, shorten_names, write_number

SETS = 15  # that have a bar,
PLAYERS = 12  # and members of these
NAMES = 22  # characters of a name
LINES, AREAS = 30, 5  # of a network
LEAST = 0.05  # size of one relative to the largest
ONE_WAY = 1 / 3  # of its mean size an interaction has as its mean, if it has one sign mostly
KINDS = {"up": "raises on the whole", "down": "lowers on the whole", "before": "raises and lowers"}  # what the members do together
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
    """Read a summary's interactions, of pairs or of sets, the largest first; without single features, and what has no size."""
    ranked = sorted(rows, key=lambda row: row["rank"])
    members = (tuple(row["features"]) if "features" in row else (row["first"], row["second"]) for row in ranked)
    found = (PlayerSet(names, float(row["mean_abs"] or 0.0), row) for names, row in zip(members, ranked, strict=True))
    return [each for each in found if each.size > 0 and len(each.members) > 1]


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


def name_sets(sets: Sequence[PlayerSet], most: int = NAME) -> list[str]:
    """Name sets by their members, so that different ones stay different."""
    names = iter(shorten_names([name for each in sets for name in each.members], most))
    return [" and ".join(next(names) for _ in each.members) for each in sets]


def tabulate_sets(shown: Sequence[PlayerSet], n: int, noun: str) -> Table:
    """Tabulate the first of n sets."""
    rows = tuple(
        (name, *(write_number(each.row[key]) for key in ("mean_abs", "mean", "min", "max")))
        for name, each in zip(name_sets(shown, WHOLE), shown, strict=True)
    )
    return Table(("features", "mean size", "mean", "lowest", "highest"), rows, say_left_out(len(shown), n, noun))


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
    return Figure("The largest interactions", described.strip(), drawing, tabulate_sets(shown, len(found), "interactions"))


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
    if len(names) < 3:
        return None
    between = [each for each in found if set(each.members) <= set(names)]
    pairs, larger = ([each for each in between if (len(each.members) > 2) == several] for several in (False, True))
    at, most = _place(names), max(sizes.get(name, 0.0) for name in names)
    drawn = [each for some, n in ((pairs, LINES), (larger, AREAS)) for each in some[:n] if each.size >= LEAST * some[0].size]
    lines, areas = list[Link](), list[Link]()
    for each in reversed(drawn):  # the largest on top
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in (at[name] for name in sorted(each.members, key=names.index)))
        if each in larger:
            areas.append(Link(each.kind, f"{path}z", round(CLEAREST * each.size / larger[0].size, 2)))
        else:
            lines.append(Link(each.kind, path, round(WIDEST * each.size / pairs[0].size, 2)))
    nodes = []
    for name, label in zip(names, shorten_names(names, NAMES), strict=True):
        share = sizes.get(name, 0.0) / most if most > 0 else 0.0
        nodes.append(Node(label, *at[name], round(BARE + LARGEST * math.sqrt(share), 1), "right" if at[name][0] > 50 else "left"))
    said = (
        f"A line is as wide as the mean size of an interaction, the widest {write_number(pairs[0].size)} in units of the {unit}. " if lines else "",
        f"An area is one of three features or more, the clearer, the larger, up to {write_number(larger[0].size)}. " if areas else "",
        "A circle is the larger, the larger its feature's attributions are.",
        f" {len(drawn):,} of {len(found):,} interactions are drawn." if len(drawn) < len(found) else "",
    )
    drawing = Network(tuple(nodes), tuple(lines), tuple(areas), _keys({each.kind for each in drawn}))
    return Figure("How features hang together", "".join(said), drawing, tabulate_sets(drawn, len(found), "interactions"))
