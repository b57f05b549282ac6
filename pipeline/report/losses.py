"""The report's section of losses: which features helped, which hurt, and what made predictions worse since another run."""

from collections.abc import Mapping, Sequence
from typing import Any

from .figures.bars import BARS, draw_losses
from .page import Section

TITLE = "What made the predictions worse"
MEANING = (
    "A row’s loss is the mean loss that the background’s predictions have for the row’s own label, and a part for each feature. A part below zero "
    "made the prediction better, one above zero made it worse. Rows without a label have no loss."
)


def write_losses(summaries: Mapping[str, Sequence[Mapping[str, Any]]], changes: Section | None, most: int = BARS) -> Section | None:
    """Write the section of losses, with what made predictions worse since another run; none of other runs, nor of rows without any label."""
    rows = [row for row in summaries.get("loss", ()) if row["mean"] is not None]
    text, figures = ((), ()) if changes is None else (changes.text, changes.figures)
    shares = (draw_losses(rows, most),) if rows else ()
    return Section("worse", TITLE, (*text, MEANING), figures=(*figures, *shares)) if shares or figures else None
