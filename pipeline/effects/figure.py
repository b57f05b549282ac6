"""A curve as one SVG picture, without scripts or style sheets: the mean at every value, and where the background's values lie."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from leafledger.kernels.effects.curves import Curve

from ..display.text import printable
from ..in_memory.pictures.picture import Picture
from .named_axis import INTERVAL, NamedAxis, list_states

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 620, 36, 300  # of the field
BARS = 40  # height of the histogram below the curve
COLOURS = ("#1f5f8b", "#b3541e", "#3b7d4f", "#7a4b94", "#8a8a8a")
NAME = 18  # characters of a category
MOST = 30  # categories that are drawn
THIN = 2  # width of the thinnest bar: an interval may hold one value alone
TAIL = 0.005  # share of values beyond either end of what is drawn
TICKS = 5  # about, of an axis


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(printable(text))}</text>'


def _choose_states(axis: NamedAxis, share: np.ndarray | None) -> np.ndarray:
    """Choose the states that are drawn: of numbers all but the outermost, where next to no values are; of many categories those with most rows."""
    states = list_states(axis)
    if axis.ordered and share is not None:
        numbers = np.array([axis.kinds[state] == INTERVAL for state in states])
        below = np.cumsum(np.where(numbers, share[states], 0.0))
        return states[~numbers | ((below >= TAIL * below[-1]) & (below - share[states] <= (1 - TAIL) * below[-1]))]
    if axis.ordered or states.size <= MOST:
        return states
    return states[np.sort(np.argsort(-(share[states] if share is not None else np.zeros(states.size)), kind="stable")[:MOST])]


def _ends(axis: NamedAxis, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place states along the axis: intervals by their ends, with some room outside, categories and missing values side by side."""
    numbers = np.array([axis.kinds[state] == INTERVAL for state in states])
    inner = np.concatenate((axis.lower[states][numbers], axis.upper[states][numbers]))
    inner = inner[np.isfinite(inner)]
    low, high = (inner.min(), inner.max()) if inner.size else (0.0, 1.0)
    widths = (axis.upper - axis.lower)[states][numbers]
    usual = float(np.median(widths[np.isfinite(widths)])) if np.isfinite(widths).any() else 0.0
    room = max((high - low) / 10, usual) or 1.0  # an end as narrow as a tenth would look crowded beside wide intervals
    first, last = axis.lower[states].copy(), axis.upper[states].copy()
    first[numbers], last[numbers] = np.maximum(first[numbers], low - room), np.minimum(last[numbers], high + room)
    step = (high - low + 2 * room) / 12 if numbers.any() else 1.0
    place = (high + 2 * room if numbers.any() else 0.0) + step * np.arange((~numbers).sum())
    first[~numbers], last[~numbers] = place, place + 0.8 * step
    return first, last


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Choose round numbers from one to the other, and write them; the two ends where there are no round ones."""
    span = high - low
    power = 10.0 ** np.floor(np.log10(span / TICKS)) if 0 < span < np.inf else 0.0
    if power <= 0 or span < 1e-9 * max(abs(low), abs(high)):
        return [(each, f"{each:.4g}") for each in dict.fromkeys((low, high))]
    step = next(each * power for each in (1, 2, 5, 10) if each * power * TICKS >= span)
    numbers = [k * step for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]
    return [(each, f"{each:.10g}") for each in numbers]


def _scale(values: np.ndarray, low: float, high: float, start: float, end: float) -> np.ndarray:
    return start + (values - low) / ((high - low) or 1.0) * (end - start)


@dataclass(frozen=True, slots=True)
class Spread:
    """How rows differ around one output's curve, in the units of the curve.

    Attributes
    ----------
    band : (2, states) float64
        Lower and upper end, of rows' own curves.
    edges : (n,) int64
        States between which local effects are taken; none where values have no order.
    local : (n,) float64
        Effects accumulated up to each.
    words : (str, str, str)
        What the curve is called, the band and the local effects.
    """

    band: np.ndarray
    edges: np.ndarray
    local: np.ndarray
    words: tuple[str, str, str]


def _draw_spread(spread: Spread, states: np.ndarray, x0: np.ndarray, x1: np.ndarray, height: Callable[[np.ndarray], np.ndarray]) -> list[str]:
    """Draw the band of every state, a line through local effects, and what is what."""
    upper, lower = height(spread.band[1, states]), height(spread.band[0, states])
    boxes = "".join(f"M{a:.1f} {y:.1f}H{b:.1f}V{z:.1f}H{a:.1f}Z" for a, b, y, z in zip(x0, x1, upper, lower, strict=True))
    parts = [f'<path d="{boxes}" fill="{COLOURS[0]}" fill-opacity="0.2"/>']
    there = np.isin(spread.edges, states)
    if there.any():
        places = np.searchsorted(states, spread.edges[there])
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip((x0 + x1)[places] / 2, height(spread.local[there]), strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[1]}" stroke-width="2" stroke-dasharray="6 3"/>')
    told = spread.words if there.any() else spread.words[:2]
    colours = (COLOURS[0], COLOURS[0], COLOURS[1])
    for k, (words, colour) in enumerate(zip(told, colours, strict=False)):
        parts.append(f'<g fill="{colour}">{_text(LEFT + 8 + 180 * k, TOP - 8, words, "start")}</g>')
    return parts


def draw_curve(axis: NamedAxis, curve: Curve, share: np.ndarray | None, outputs: Sequence[str], unit: str, spread: Spread | None = None) -> str:
    """Draw a curve of every output, up to five, as an SVG document, with the histogram ``share (states,)`` of values where it is known."""
    states = _choose_states(axis, share)
    first, last = _ends(axis, states)
    values = curve.value[: len(COLOURS), states]
    x0, x1 = (_scale(each, first.min(), last.max(), LEFT, RIGHT) for each in (first, last))
    drawn = values if spread is None else np.concatenate((values.reshape(-1), spread.band[:, states].reshape(-1), spread.local))
    low, high = float(drawn.min()), float(drawn.max())

    def height(number: np.ndarray) -> np.ndarray:
        return _scale(number, low, high, BOTTOM - BARS - 12, TOP + 6) if high > low else np.full(number.shape, (TOP + BOTTOM - BARS) / 2)

    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']  # text is black, and pages may be dark
    parts += [f'<rect x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}" fill="none" stroke="#cccccc"/>']
    if share is not None and share[states].max() > 0:
        numbers = np.array([axis.kinds[state] == INTERVAL for state in states])
        dense = share[states] / np.where(numbers, np.maximum(x1 - x0, THIN), 1.0)  # of intervals the area is the share, of others the height
        tallest = np.where(numbers, max(dense[numbers], default=0.0) or 1.0, max(dense[~numbers], default=0.0) or 1.0)
        for a, b, tall in zip(x0, x1, BARS * dense / tallest, strict=True):
            box = f'x="{a:.1f}" y="{BOTTOM - tall:.1f}" width="{max(b - a, THIN):.1f}" height="{tall:.1f}"'
            parts.append(f'<rect {box} fill="#dddddd"/>')
    parts.extend([] if spread is None else _draw_spread(spread, states, x0, x1, height))
    for k, line in enumerate(height(values)):
        path = "".join(f"M{a:.1f} {y:.1f}H{b:.1f}" for a, b, y in zip(x0, x1, line, strict=True))
        parts.append(f'<path d="{path}" fill="none" stroke="{COLOURS[k]}" stroke-width="2"/>')
        if len(outputs) > 1:
            parts.append(f'<g fill="{COLOURS[k]}">{_text(LEFT + 8 + 110 * k, TOP - 8, outputs[k][:NAME], "start")}</g>')
    for at, text in _ticks(low, high):
        y = float(height(np.array(at)))
        parts.append(_text(LEFT - 6, y + 4, text, "end"))
        parts.append(f'<line x1="{LEFT - 4}" x2="{LEFT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#888888"/>')
    parts.extend(_label(axis, states, first, last))
    parts.append(_text((LEFT + RIGHT) / 2, HEIGHT - 8, axis.name))
    what = f"{'mean' if spread is None else 'centred'} {unit}"
    parts.append(f'<text transform="translate(14 {(TOP + BOTTOM) / 2:.0f}) rotate(-90)" text-anchor="middle">{escape(what)}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" role="img">'
    return f"{head}<title>{escape(printable(f'{unit} by {axis.name}'))}</title>{''.join(parts)}</svg>\n"


def picture_curve(
    axis: NamedAxis, curve: Curve, share: np.ndarray | None, outputs: Sequence[str], unit: str, spread: Spread | None = None
) -> Picture:
    """Draw a curve as ``draw_curve`` does, on white paper in a dark notebook too, and say how far it goes."""
    drawn, title = draw_curve(axis, curve, share, outputs, unit, spread), f"{unit} by {axis.name}"
    reach = (f"{name} from {values.min():.4g} to {values.max():.4g}" for name, values in zip(outputs, curve.value[: len(COLOURS)], strict=False))
    return Picture(title, f"{'Mean' if spread is None else 'Centred'} {title}: {', '.join(reach)}.", drawn, drawn, (WIDTH, HEIGHT))


def _label(axis: NamedAxis, states: np.ndarray, first: np.ndarray, last: np.ndarray) -> list[str]:
    """Write numbers below intervals, and names below other states."""
    low, high, numbers = first.min(), last.max(), np.array([axis.kinds[state] == INTERVAL for state in states])
    found = []
    for at, text in _ticks(float(first[numbers].min()), float(last[numbers].max())) if numbers.any() else ():
        x = float(_scale(np.array(at), low, high, LEFT, RIGHT))
        found.append(_text(x, BOTTOM + 16, text))
        found.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{BOTTOM}" y2="{BOTTOM + 4}" stroke="#888888"/>')
    for state, a, b in zip(states[~numbers], first[~numbers], last[~numbers], strict=True):
        name = str(axis.categories[state] if axis.categories[state] is not None else axis.kinds[state])[:NAME]
        x = float(_scale(np.array((a + b) / 2), low, high, LEFT, RIGHT)) + 4
        turned = f'transform="translate({x:.1f} {BOTTOM + 14}) rotate(-50)" text-anchor="end"'
        found.append(f"<text {turned}>{escape(printable(name))}</text>")
    return found
