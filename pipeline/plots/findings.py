"""What a figure shows, in a sentence: for those who do not see it."""

from collections.abc import Sequence

import numpy as np

from ..display.text import count
from ..report.figures.scale import shorten_name, write_number, write_share

FIRST = 3  # features that are named
CLEAR = 0.3  # rank correlation from which on high values go one way
NAME = 60  # characters


def _name(name: str) -> str:
    return shorten_name(name, NAME)


def _list(said: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))


def say_sizes(names: Sequence[str], sizes: Sequence[float], shares: Sequence[float], total: str) -> str:
    """Say which features move predictions most."""
    if not names or not sizes[0] > 0:
        return f"No feature moves the {total}."
    rest = [f"{_name(name)} ({write_number(size, digits=3)})" for name, size in zip(names[1:FIRST], sizes[1:FIRST], strict=True) if size > 0]
    after = f"; then {_list(rest)}" if rest else ""
    return f"{_name(names[0])} moves the {total} most, by {write_number(sizes[0], digits=3)} on average, {write_share(shares[0])} of all{after}."


def say_places(names: Sequence[str], means: Sequence[float]) -> str:
    """Say which features come first in rankings."""
    said = [f"{_name(name)} ({write_number(mean, digits=3)})" for name, mean in zip(names[:FIRST], means[:FIRST], strict=True)]
    return f"First in the rows' rankings, by mean place, {'come' if len(said) > 1 else 'comes'} {_list(said)}."


def say_curves(insertion: Sequence[float], deletion: Sequence[float], total: str) -> str:
    """Say how far both curves of rankings get."""
    up, down = int(np.argmax(insertion)), int(np.argmin(deletion))
    high, low, ends = write_number(insertion[up]), write_number(deletion[down]), write_number(insertion[0])
    return (
        f"The mean {total} goes from {ends} up to {high} with {count(up, 'feature')} from the top of the ranking, "
        f"and down to {low} with {count(down, 'feature')} from its bottom."
    )


def say_parts(names: Sequence[str], means: Sequence[float]) -> str:
    """Say which features made a loss smaller, and which larger."""
    pairs = sorted(zip(means, names, strict=True))
    helped = [f"{_name(name)} ({write_number(mean, True, 3)})" for mean, name in pairs[:FIRST] if mean < 0]
    hurt = [f"{_name(name)} ({write_number(mean, True, 3)})" for mean, name in pairs[::-1][:FIRST] if mean > 0]
    said = (f"{_list(helped)} made the mean loss smaller most" if helped else "", f"{_list(hurt)} made it larger" if hurt else "")
    return "; ".join(filter(None, said)) + "."


def say_shares(names: Sequence[str], shares: Sequence[float]) -> str:
    """Say which features R^2 comes from."""
    said = [f"{_name(name)} ({write_number(share, digits=3)})" for name, share in zip(names[:FIRST], shares[:FIRST], strict=True)]
    return f"Of R² most comes from {_list(said)}."


def say_directions(names: Sequence[str], correlations: Sequence[float], total: str) -> str:
    """Say which way the first features go."""
    said = []
    for name, found in zip(names[:FIRST], correlations[:FIRST], strict=False):
        way = "have no order" if np.isnan(found) else "go both ways" if abs(found) < CLEAR else "raise it" if found > 0 else "lower it"
        said.append(f"high values of {_name(name)} {way}" if abs(found) >= CLEAR else f"values of {_name(name)} {way}")
    return f"What moves the {total} most: {', '.join(said)}." if said else f"No feature moves the {total}."


def say_dependence(name: str, values: np.ndarray | None, phi: np.ndarray) -> str:
    """Say where a feature's attributions are high and low."""
    known = ~np.isnan(phi)
    if values is None or not known.any():
        return f"Attributions of {_name(name)}."
    values, phi = values[known], phi[known]
    if values.dtype.kind != "f":
        texts = np.array(["missing" if value is None else str(value) for value in values])
        means = {str(text): float(phi[texts == text].mean()) for text in np.unique(texts)}
        low, high = min(means, key=lambda text: means[text]), max(means, key=lambda text: means[text])
        most, least = (f"{_name(text)}, {write_number(means[text], True, 3)}" for text in (high, low))
        return f"{_name(name)} adds most on average as {most}, and least as {least}."
    there = ~np.isnan(values)
    said = []
    if there.any():
        low, high = np.quantile(values[there], (0.1, 0.9))
        ends = [float(phi[some].mean()) for some in (values <= low, values >= high)]
        first, last = (write_number(each, True, 3) for each in ends)
        said.append(f"{_name(name)} adds {first} on average up to {write_number(float(low))}, and {last} from {write_number(float(high))} on")
    if not there.all():
        said.append(f"where it is missing {write_number(float(phi[~there].mean()), True, 3)}")
    return "; ".join(said) + "."


def say_way(title: str, base: float, total: float, total_name: str, steps: Sequence[tuple[str, float]]) -> str:
    """Say how a row gets to its prediction."""
    ways = [f"{_name(label)} {'raises' if phi > 0 else 'lowers'} it by {write_number(abs(phi), digits=3)}" for label, phi in steps[:FIRST] if phi]
    why = _list(ways) if ways else "nothing moves it"
    return f"The {total_name} of {_name(title)} is {write_number(total)}, the base value {write_number(base)}: {why}."


def say_ends(names: Sequence[str], lowest: np.ndarray, highest: np.ndarray, total: str) -> str:
    """Say what the lowest and the highest predictions come from, by mean attributions of their tenths."""
    said = []
    for side, means in (("lowest", lowest), ("highest", highest)):
        found = np.nan_to_num(means)
        j = int(np.abs(found).argmax())
        said.append(f"{_name(names[j])} moves the {side} tenth by {total} most, by {write_number(float(found[j]), True, 3)} on average")
    return f"{'; '.join(said)}."


def say_together(members: Sequence[Sequence[str]], sizes: Sequence[float]) -> str:
    """Say what acts together most."""
    pairs = [
        f"{_list([_name(name) for name in each])} ({write_number(size, digits=3)})" for each, size in zip(members[:FIRST], sizes[:FIRST], strict=True)
    ]
    return f"{pairs[0]} act together most" + (f"; then {_list(pairs[1:])}." if pairs[1:] else ".")
