"""One row of attributions: its way from the base value to what the model says."""

from numbers import Integral
from typing import Any

import numpy as np

from ...display.waterfall import Step, Waterfall, plain, shorten_steps
from ...errors import UsageError
from ...methods.output_space import TOTALS
from .picked import find_position, predicted_outputs, refuse_ranks

ROUNDED = 1e-6  # relative to the summands, which runs store in single precision


def trace_row(found: Any, row: int, output: str | int | None, top: int) -> Waterfall:
    """Trace a row of Attributions; without an output, to the predicted class."""
    refuse_ranks(found, "waterfall")
    if not isinstance(row, Integral) or isinstance(row, bool) or not -len(found) <= row < len(found):
        raise UsageError(f"row is {row!r:.40}, expected a position of {len(found):,} rows")
    one = found[row]
    predicted = predicted_outputs(one) if output is None else None
    number = find_position(found, output) if predicted is None else int(predicted[0])
    phi, base, total = one.phi[0, number, : len(found.names)], float(one.base.reshape(-1)[number]), float(one.prediction[0, number])
    if not abs(phi.sum() + base - total) <= ROUNDED * (np.abs(phi).sum() + abs(base) + abs(total)):
        raise UsageError(f"a waterfall adds up to {TOTALS[found.space]} - base value, but what method {found.method!r} finds does not")
    players = [
        Step(name, None if held is None else plain(held[0]), float(each))
        for name, held, each in zip(found.names, map(one.values, found.names), phi, strict=True)
    ]
    named = f", output {found.outputs[number]}" if len(found.outputs) > 1 else ""
    return Waterfall(f"row {name_row(one)}{named}", base, shorten_steps(players, top), total, TOTALS[found.space])


def name_row(one: Any) -> str:
    """Name the only row of Attributions by its label."""
    label = one.index[0]
    return ", ".join(str(plain(part)) for part in (label if isinstance(label, tuple) else (label,)))
