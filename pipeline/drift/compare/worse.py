"""What made predictions worse from one loss run to another, in a sentence."""

from collections.abc import Iterable, Mapping
from typing import Any

from ...display.text import printable, write_two
from .shifts import PHI

LABELS = "by labels {} to predict"  # what the mean of base values changes by, where model and background are the same
BASE_OF_OTHERS = "by the base value, of labels, model and background"


def _signed(change: float, error: float | None = None, named: str = "") -> str:
    return f"{change:+.4g}" + (f" ({named}{error:.2g})" if error and error > 0 else "")


def say_worse(split: Mapping[str, Any], shifts: Iterable[Mapping[str, Any]], alike: bool) -> str | None:
    """Say how the mean loss changed, and by what: the feature that moved it most that way, labels, and the other features, the largest first.

    Parameters
    ----------
    split : mapping of str to Any
        A ``Split`` as drift.json has it: None in the place of NaN.
    shifts : iterable of mapping of str to Any
        Those of the columns, as drift.json has them; their features may be called by other names.
    alike : bool
        Both runs have one model and one background, so that base values depend on labels alone.

    Returns
    -------
    str or None
        Escaped; None where one of the means is not known.
    """
    change, base, features = split["change"], split["base"], split["features"]
    if change is None:
        return None
    before, now = write_two(split["reference_mean"], split["mean"])
    way = 1 if change > 0 else -1
    moved = "stayed at {1}" if before == now else "rose from {} to {}" if way > 0 else "fell from {} to {}"
    said = f"the mean loss {moved.format(before, now)}"
    if before == now or features is None or base is None:
        return said
    mine = [shift for shift in shifts if shift["kind"] == PHI and shift["output"] == split["output"] and way * (shift["change"] or 0.0) > 0]
    first = max(mine, key=lambda shift: abs(shift["change"]), default=None)
    parts = [(base, f"{_signed(base)} {LABELS.format('harder' if base > 0 else 'easier') if alike else BASE_OF_OTHERS}")]
    if first is not None:
        parts.append((first["change"], f"{_signed(first['change'], first['standard_error'])} by {printable(first['feature'])}"))
    left = features - (0.0 if first is None else first["change"])
    parts.append((left, f"{_signed(left)} by {'all features' if first is None else 'the other features'}"))
    made = ", ".join(part for size, part in sorted(parts, key=lambda each: -abs(each[0])) if size)
    return f"{said}, {_signed(change, split['standard_error'], 'standard error ')}" + (f": {made}" if made else "")
