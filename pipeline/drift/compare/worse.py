"""What made predictions worse from one loss run to another, in a sentence."""

import math
from collections.abc import Iterable

from ...display.text import printable, write_two
from .shifts import PHI, Shift
from .split import Split

BASE = "the mix of labels"  # what the mean of base values changes by, where model and background are the same
BASE_OF_OTHERS = "the base value, of labels, model and background"


def _signed(change: float, error: float = math.nan) -> str:
    return f"{change:+.4g}" + (f" ({error:.2g})" if error > 0 else "")


def say_worse(split: Split, shifts: Iterable[Shift], alike: bool) -> str | None:
    """Say how the mean loss changed, and by what: the feature that moved it most that way, labels, and what is left.

    Parameters
    ----------
    shifts : iterable of Shift
        Of the columns.
    alike : bool
        Both runs have one model and one background, so that base values depend on labels alone.

    Returns
    -------
    str or None
        Escaped; None where one of the means is not known.
    """
    if not math.isfinite(split.change):
        return None
    before, now = write_two(split.reference_mean, split.mean)
    way = 1 if split.change > 0 else -1
    moved = "stayed at {1}" if before == now else "rose from {} to {}" if way > 0 else "fell from {} to {}"
    said = f"the mean loss {moved.format(before, now)}"
    if before == now or split.features is None or split.base is None:
        return said
    mine = [shift for shift in shifts if shift.kind == PHI and shift.output == split.output and way * shift.change > 0]
    first = max(mine, key=lambda shift: abs(shift.change), default=None)
    parts = [] if first is None else [f"{_signed(first.change, first.standard_error)} of it is {printable(first.feature)}"]
    base = f"{_signed(split.base)} is {BASE if alike else BASE_OF_OTHERS}" if split.base else ""
    left = split.features - (0.0 if first is None else first.change)
    rest = f"{_signed(left)} {'all features' if first is None else 'the other features'}" if left else ""
    made = ", ".join(filter(None, (*parts, base, rest)))
    return f"{said}, {_signed(split.change, split.standard_error)}" + (f": {made}" if made else "")
