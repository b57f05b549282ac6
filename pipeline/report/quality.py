"""The report's section on data quality: missing values and new categories, and by how much they move predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leafledger.kernels.methods import METHODS

from ..arguments.choices import LOSS
from ..drift.compare.shifts import MISSING, PHI
from ..finished.finished_run import FinishedRun
from .counts.counts import MISSING as MISSING_BIN
from .counts.counts import CountedColumn, Counts
from .figures.bars import draw_inputs, tabulate_inputs
from .figures.scale import shorten_name, write_share
from .figures.spread import find_spread
from .page import Section
from .vocabulary import Vocabulary

FEW = 30  # rows without a value below which their mean attribution is not told
SHARE = 0.02  # of the importance of all features: smaller effects are not told
MOST = 4
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MissingEffect:
    """What the rows without a value of a feature do to predictions."""

    feature: str
    share: float  # of all rows
    phi: float  # their mean attribution
    other: float  # mean attribution of the rows that have a value


def find_missing_effects(names: Sequence[str], asked: Sequence[CountedColumn], counts: Sequence[Counts]) -> list[MissingEffect]:
    """Measure the attributions of rows without a value, the largest effect on the mean first."""
    found = []
    for name, column, each in zip(names, asked, counts, strict=True):
        if column.values is None:
            continue
        missing, there = find_spread(column, each, slice(MISSING_BIN, MISSING_BIN + 1)), find_spread(column, each, slice(MISSING_BIN + 1, None))
        if missing.n >= FEW and there.n:
            found.append(MissingEffect(name, missing.n / (missing.n + there.n), missing.mean, there.mean))
    return sorted(found, key=lambda each: -abs(each.share * (each.phi - each.other)))


def _find_shift(found: Mapping[str, Any] | None, kind: str, feature: str) -> Mapping[str, Any]:
    shifts = () if found is None else found["shifts"]
    return next((shift for shift in shifts if shift["kind"] == kind and shift["feature"] == feature), {})


def _say_rest(effect: MissingEffect, phi: Mapping[str, Any], before: float, more: float, reference: str, words: Vocabulary) -> str:
    """Say what a feature did to the mean beside its missing values, if that is not small."""
    change = phi.get("change")
    if change is None or abs(change - more) < SHARE * abs(change):
        return ""
    rest, name = words.write(change - more, True), shorten_name(effect.feature)
    if before:
        return f" What else {name} changed of the mean: about {rest}."
    means = f"by {words.write(effect.other, True)} on average, in {reference} by {words.write(phi['reference_mean'], True)}"
    return f" For the {words.names.rows} that have one, {name} moves the {words.total} {means}: about {rest} more."


def say_missing(effect: MissingEffect, found: Mapping[str, Any] | None, reference: str, words: Vocabulary) -> str:
    """Say what missing values do to predictions, and how much of a change since another run comes of them."""
    rows, before = words.names.rows, _find_shift(found, MISSING, effect.feature).get("reference_mean")
    was = "" if before is None else f", in {reference} {write_share(before) if before else 'none'}"
    apart = effect.phi - effect.other
    said = f"{write_share(effect.share)} of the {rows} have no {shorten_name(effect.feature)}{was}."
    said += f" That moves their {words.total} by {words.write(effect.phi, True)} on average"
    more = (effect.share - (before or 0.0)) * apart
    if before is not None and found is not None and len(found["outputs"]) == 1 and found["outputs"][0]["mean"] is not None:
        change = found["outputs"][0]["change"]
        if change and SHARE <= more / change <= 1.05:
            rest = _say_rest(effect, _find_shift(found, PHI, effect.feature), before, more, reference, words)
            return f"{said}: about {words.write(more, True)} of the {words.write(change, True)} that the mean changed by.{rest}"
    others = f"while {shorten_name(effect.feature)} moves that of the other {rows} by {words.write(effect.other, True)}"
    return f"{said}, {others}: about {words.write(effect.share * apart, True)} on the mean {words.total}."


def list_missing(
    effects: Sequence[MissingEffect], total: float, found: Mapping[str, Any] | None, reference: str, words: Vocabulary
) -> tuple[str, ...]:
    """List what missing values do to predictions, where that is not small beside the importance of all features."""
    large = [each for each in effects if abs(each.share * (each.phi - each.other)) >= SHARE * total]
    return tuple(say_missing(each, found, reference, words) for each in large[:MOST])


def write_quality(run: FinishedRun, rows: Sequence[Row] | None, effects: Sequence[str], most: int, words: Vocabulary) -> Section | None:
    """Write the section on the values that came in."""
    if not rows:
        return None
    figure = draw_inputs(rows, most, words.names.rows)
    told = () if not METHODS[run.plan.method].attributes or run.plan.space == LOSS else tuple(effects)
    if figure is not None:
        return Section("inputs", "Data quality", items=told, figures=(figure,))
    unseen = "none is a category that it does not know" + ", of those features whose categories it tells" * any(row["unseen"] is None for row in rows)
    text = f"No value of a feature that the model uses is missing, and {unseen}."
    return Section("inputs", "Data quality", (text,), tables=(("Values that the model uses", tabulate_inputs(rows, most)),))
