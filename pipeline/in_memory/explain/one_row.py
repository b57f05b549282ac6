"""One row of attributions: its way from the base value to what the model says."""

from collections.abc import Hashable
from numbers import Integral, Number
from typing import Any

import numpy as np

from ...display.nearest import did_you_mean
from ...display.waterfall import Step, Waterfall, plain, shorten_steps
from ...errors import UsageError
from ...methods.output_space import TOTALS
from .picked import find_position, predicted_outputs, refuse_ranks

ROUNDED = 1e-6  # relative to the summands, which runs store in single precision


def _find_row(found: Any, row: Any) -> int:
    """Return the position of a row, given by it or by its label, where that is no number."""
    if isinstance(row, Integral) and not isinstance(row, bool) and -len(found) <= int(row) < len(found):
        return int(row)
    if isinstance(row, Hashable) and not isinstance(row, Number):
        same = (label == row for label in found.index)
        places = [place for place, each in enumerate(same) if isinstance(each, bool | np.bool_) and each]  # NA says neither
        if len(places) == 1:
            return places[0]
        if places:
            raise UsageError(f"row is {row!r:.40}, which is the label of {len(places):,} rows, expected one of their positions, such as {places[0]}")
    meant = did_you_mean(row, found.index) if isinstance(row, str) else ""
    raise UsageError(f"row is {row!r:.40}, expected a position of {len(found):,} rows, or a label of one{meant}")


def trace_row(found: Any, row: Any, output: str | int | None, top: int) -> Waterfall:
    """Trace a row of Attributions; without an output, to the predicted class."""
    refuse_ranks(found, "waterfall")
    one = found[_find_row(found, row)]
    predicted = predicted_outputs(one) if output is None else None
    number = find_position(found, output) if predicted is None else int(predicted[0])
    phi, base, total = one.phi[0, number, : len(found.names)], float(one.base.reshape(-1)[number]), float(one.prediction[0, number])
    if not abs(phi.sum() + base - total) <= ROUNDED * (np.abs(phi).sum() + abs(base) + abs(total)):
        raise UsageError(f"a waterfall adds up to {TOTALS[found.space]} - base value, but what method {found.method!r} finds does not")
    players = [
        Step(name, None if held is None else plain(held[0]), float(each))
        for name, held, each in zip(found.names, map(one.values, found.names), phi, strict=True)
    ]
    explained = found.outputs[number] if one.output is None else one.output[0]
    named = f", output {explained}" if len(found.outputs) > 1 or one.output is not None else ""
    return Waterfall(f"row {name_row(one)}{named}", base, shorten_steps(players, top), total, TOTALS[found.space])


def name_row(one: Any) -> str:
    """Name the only row of Attributions by its label."""
    label = one.index[0]
    return ", ".join(str(plain(part)) for part in (label if isinstance(label, tuple) else (label,)))
