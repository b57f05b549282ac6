"""Pictures of attributions in memory: the figures of a report, drawn from arrays, each with a sentence that says what it shows."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np

from leafledger.kernels.methods import METHODS

from ..arguments.choices import LOSS
from ..errors import UsageError
from ..finished.row_data import ShownOutput, ShownRow, Wording
from ..in_memory.explain.attributions import Attributions
from ..in_memory.explain.picked import find_interactions, find_player, find_position
from ..in_memory.pictures.picture import Picture
from ..methods.output_space import TOTALS
from ..report.figures.bars import draw_importance, draw_losses, draw_ranks, draw_shares
from ..report.figures.dependence import draw_dependence
from ..report.figures.figure import Figure
from ..report.figures.matrix import draw_curves, draw_interactions, draw_objective
from ..report.figures.scale import shorten_name, write_number
from ..report.figures.sets import draw_sets
from ..report.figures.swarm import correlate_ranks, draw_swarm
from ..report.figures.waterfalls import draw_waterfall
from ..runs.lookup.row_lookup import RowAddress
from .coloured import draw_coloured
from .colours import write_plain
from .findings import say_curves, say_dependence, say_directions, say_ends, say_parts, say_places, say_shares, say_sizes, say_together, say_way
from .heat import TENTH, draw_heat
from .material import count_player, read_values, share_axis
from .svg import draw_picture

CURVES = ("insertion", "deletion")  # in the order in which they are kept
OUTPUTS = 3  # drawn one below the other
Drawn = tuple[Figure, str]  # and what it shows


def _bar(found: Attributions, output: int, top: int) -> Drawn:
    if METHODS[found.method].phi.ranks:
        return _bar_ranks(found, output, top)
    table = found.importance()
    if "output" in table:
        table = table[table["output"] == found.outputs[output]]
    rows = [{**{str(key): value for key, value in row.items()}, "rank": rank} for rank, row in enumerate(table.to_dict("records"), 1)]
    names = table["feature"].tolist()
    if "r2" in table:
        return draw_shares(rows, top), say_shares(names, table["r2"].tolist())
    if found.space == LOSS:
        return draw_losses(rows, top), say_parts(names, table["mean"].tolist())
    background = dict(zip(names, table["background_error"], strict=True)) if "background_error" in table else {}
    said = say_sizes(names, table["mean_abs"].tolist(), table["share"].tolist(), TOTALS[found.space])
    return draw_importance(rows, len(found), found.space, background, top), said


def _bar_ranks(found: Attributions, output: int, top: int) -> Drawn:
    """Draw mean places in the rows' rankings; a feature that a row does not rank comes behind those that it does."""
    places, names = found.phi[:, output, : len(found.names)], found.names
    places = np.where(places == 0, len(names) + 1, places)
    means = places.mean(axis=0) if len(places) else np.zeros(len(names))
    order = np.argsort(means, kind="stable").tolist()
    rows = [
        {"feature": names[j], "rank": rank, "mean": means[j], "std": places[:, j].std(), "min": places[:, j].min(), "max": places[:, j].max()}
        for rank, j in enumerate(order if len(places) else (), 1)
    ]
    return draw_ranks(rows, METHODS[found.method].phi.ranks, top), say_places([names[j] for j in order], means[order].tolist())


def _curves(found: Attributions, output: int) -> Drawn:
    """Draw what a method keeps step by step, its mean over rows: curves of a ranking, or the ranker's objective."""
    if found.path is None:
        raise UsageError(f"plot.curves is of methods 'curves' and 'ranker', but method {found.method!r} has no steps")
    means = found.path[:, output].mean(axis=0) if len(found) else np.zeros(0)
    if not METHODS[found.method].phi.ranks:
        figure = draw_objective([{"step": step, "mean": mean} for step, mean in enumerate(means.tolist(), 1)])
        said = f"The ranker's objective comes to {write_number(means[-1])} in {means.size} steps." if means.size else ""
    else:
        kinds = means.reshape(len(CURVES), -1).tolist()
        rows = [{"curve": kind, "present": n, "mean": mean} for kind, line in zip(CURVES, kinds, strict=True) for n, mean in enumerate(line)]
        figure = draw_curves(rows, found.space)
        said = say_curves(kinds[0], kinds[1], TOTALS[found.space]) if means.size else ""
    if figure is None:
        raise UsageError("plot.curves is of rows, and there are none")
    return figure, said


def _first(found: Attributions, output: int, top: int) -> list[str]:
    """Return the players with the largest mean attributions."""
    known = np.nan_to_num(found.phi[:, output, : len(found.names)])
    sizes = np.abs(known).mean(axis=0) if len(known) else np.zeros(len(found.names))
    return [found.names[j] for j in np.argsort(-sizes, kind="stable")[:top] if sizes[j] > 0]


def _beeswarm(found: Attributions, output: int, top: int) -> Drawn:
    names, shared = _first(found, output, top), share_axis(found, output)
    if not names:
        raise UsageError("a beeswarm is of attributions, and all of them are 0")
    asked, counts = zip(*(count_player(found, name, output, shared) for name in names), strict=True)
    correlations = [correlate_ranks(each.ranks) for each in counts]
    return draw_swarm(names, asked, counts, found.space), say_directions(names, correlations, TOTALS[found.space])


def _scatter(found: Attributions, output: int, feature: str, color: str | None) -> Drawn:
    j = find_player(found, feature, found.names)
    phi, values = found.phi[:, output, j], read_values(found, feature, truth=True)
    if values is None:
        raise UsageError(f"a scatter plot needs values, and {shorten_name(feature)!r} has none: it is a group, or rows are not kept")
    said = say_dependence(feature, values, phi)
    if color is not None:
        find_player(found, color, found.names)
        colour = read_values(found, color, truth=True)
        if colour is None:
            raise UsageError(f"color needs values, and {shorten_name(color)!r} has none: it is a group, or rows are not kept")
        return draw_coloured(feature, values, phi, color, colour, found.space), said
    counted = count_player(found, feature, output, share_axis(found, output), truth=True)
    figure = draw_dependence(shorten_name(feature), *counted, found.space)
    if figure is None:
        raise UsageError(f"a scatter plot needs values that differ, and {shorten_name(feature)!r} has one alone")
    return figure, said


def _mean(phi: np.ndarray) -> np.ndarray:
    return np.nan_to_num(phi).mean(axis=0)


def _heatmap(found: Attributions, output: int, top: int) -> Drawn:
    names = _first(found, output, top)
    if not names:
        raise UsageError("a heat map is of attributions, and all of them are 0")
    phi = found.phi[:, output][:, [found.names.index(name) for name in names]]
    totals = found.prediction[:, output]
    ordered = phi[np.argsort(totals, kind="stable")]
    tenth = max(1, len(phi) // TENTH)
    said = say_ends(names, _mean(ordered[:tenth]), _mean(ordered[-tenth:]), TOTALS[found.space])
    return draw_heat(names, phi, totals, found.space), said


def _interactions(found: Attributions, output: int) -> Drawn:
    values, sets = find_interactions(found, "plot.interactions")
    of = values[:, output]
    sizes = np.abs(of).mean(axis=0) if len(of) else np.zeros(of.shape[1])
    order = np.argsort(-sizes, kind="stable")
    several = [k for k in order.tolist() if len(sets[k]) > 1 and sizes[k] > 0]
    if not several:
        raise UsageError("plot.interactions draws what acts together, and nothing does")
    rows = [
        {"features": list(sets[k]), "rank": rank, "mean_abs": sizes[k], "mean": of[:, k].mean(), "min": of[:, k].min(), "max": of[:, k].max()}
        for rank, k in enumerate(several, 1)
    ]
    figure = draw_interactions(rows, found.space) if found.pairs is not None else draw_sets(rows, found.space)
    if figure is None:
        raise UsageError("plot.interactions draws what acts together, and nothing does")
    return figure, say_together([sets[k] for k in several], [float(sizes[k]) for k in several])


def _waterfall(found: Attributions, row: int, output: str | int | None, top: int) -> Drawn:
    way = found.waterfall(row, output, top)
    place = RowAddress(0, "", 0)
    shown = ShownOutput("", way.base, way.total, way.steps, {}, {}, 0, None, None)
    figure = draw_waterfall(Wording("phi", False, way.total_name, True), ShownRow(place, "", 0, {}, {}, (shown,)), shown, "")
    said = say_way(way.title, way.base, way.total, way.total_name, [(step.label, step.phi) for step in way.steps])
    title = f"{way.title[:1].upper()}{way.title[1:]}"
    return replace(figure, title=shorten_name(title, 80), description="From the base value to the prediction, the largest step first."), said


BY_OUTPUT: Mapping[str, Callable[..., Drawn]] = {
    "bar": _bar,
    "curves": _curves,
    "beeswarm": _beeswarm,
    "scatter": _scatter,
    "heatmap": _heatmap,
    "interactions": _interactions,
}


OF_RANKS = ("bar", "curves")  # what rankings can be drawn as


def _mirrored(found: Attributions) -> bool:
    """Return whether two classes have the same attributions with other signs, as shares of a whole have."""
    return found.of_classes and len(found.outputs) == 2 and not METHODS[found.method].phi.ranks and np.allclose(found.phi[:, 0], -found.phi[:, 1])


def _compose(drawn: list[Drawn], more: str) -> Picture:
    """Make a picture of figures, one below the other."""
    figures = [replace(figure, description=f"{said} {figure.description}".strip()) for figure, said in drawn]
    svg = draw_picture(*figures)
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    size = int(root.get("width", "0")), int(root.get("height", "0"))
    alt = " ".join([said for _, said in drawn] + ([more] if more else []))
    return Picture(figures[0].title, alt, write_plain(svg), write_plain(svg, dark=False), size)


def draw_waterfall_of(found: Attributions, row: int, output: str | int | None, top: int) -> Picture:
    """Draw a row's way from the base value to its prediction."""
    return _compose([_waterfall(found, row, output, top)], "")


def draw_outputs(found: Attributions, kind: str, output: str | int | None, asked: Mapping[str, Any]) -> Picture:
    """Draw one output, or the first of several, one below the other."""
    if kind not in OF_RANKS and METHODS[found.method].phi.ranks:
        called = "plot.bar() draws mean places" + ", plot.curves() the curves" * (found.path is not None)
        raise UsageError(f"plot.{kind} is of attributions, but method {found.method!r} ranks features; {called}")
    n = len(found.outputs)
    if output is not None or n == 1:
        numbers, more = [find_position(found, output)], ""
    elif _mirrored(found):
        numbers, more = [1], f"Output {shorten_name(found.outputs[0], 40)} has the same with the other sign."
    else:
        numbers = list(range(min(n, OUTPUTS)))
        more = f"The first {OUTPUTS} of {n:,} outputs." if n > OUTPUTS else ""
    drawn = [BY_OUTPUT[kind](found, k, **asked) for k in numbers]
    if n > 1:
        drawn = [
            (
                replace(figure, title=f"{figure.title}, output {shorten_name(found.outputs[k], 40)}"),
                f"Output {shorten_name(found.outputs[k], 40)}: {said}",
            )
            for k, (figure, said) in zip(numbers, drawn, strict=True)
        ]
    return _compose(drawn, more)
