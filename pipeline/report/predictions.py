"""The report's histogram of predictions, beside that of the run that is compared with."""

from typing import Any

from leafledger.kernels.methods import METHODS

from ..drift.measure.distribution import Distribution
from ..drift.measure.measured_run import Measured, measure_run
from ..errors import InvalidRun, NotFinished, StorageError
from .changes import Found, name_reference
from .figures.figure import Figure
from .figures.histogram import draw_histogram, say_middle
from .grids import bin_totals
from .vocabulary import Vocabulary


def _measure_reference(found: Found, where: dict[str, Any]) -> Measured | None:
    """Measure the run that is compared with, if it is still there."""
    try:
        before = measure_run(found["reference"], **where)
    except (InvalidRun, NotFinished, StorageError):
        return None
    return before if before.manifest.sha256 == found["reference_manifest"] else None


def draw_predictions(measured: Measured, found: Found | None, words: Vocabulary, where: dict[str, Any]) -> Figure | None:
    """Draw the distribution of the first output's predictions, margins or losses; None where no row has one."""
    output = measured.plan.written_outputs[0]
    now = measured.total(output)
    if not METHODS[measured.plan.method].attributes or not isinstance(now, Distribution) or not now.n:
        return None
    reference = None if found is None else _measure_reference(found, where)
    before = None if reference is None or output not in reference.plan.written_outputs else reference.total(output)
    edges, share, earlier = bin_totals(now, before)
    rows, name = words.names.rows, "" if found is None else name_reference(found)
    said = f"Share of the {rows} by their {words.total}: {_say(now, words)}"
    if before is not None and earlier is not None:
        said += f"; in {name} {_say(before, words)}. Filled: now; line: {name}"
    unit = words.unit or ("" if words.total == words.figure_unit else words.figure_unit)
    return draw_histogram(edges, share, earlier, (words.total, rows, unit, name), f"{said}.")


def _say(found: Distribution, words: Vocabulary) -> str:
    return say_middle(found.quantile(0.25), found.quantile(0.75), words.unit)
