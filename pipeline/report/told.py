"""The report's section on reasons: how often each is given, withheld, or unclear."""

from ..finished.finished_run import FinishedRun
from .counts.told import Told
from .figures.figure import Table, say_left_out
from .figures.scale import WHOLE, shorten_names, write_share
from .page import Section
from .vocabulary import Vocabulary

MOST = 20  # reasons listed


def write_told(run: FinishedRun, told: Told, words: Vocabulary) -> Section | None:
    """Write the section of reasons; None of a run without them."""
    reasons = run.plan.reasons
    if reasons is None or not told.rows:
        return None
    rows = words.names.rows
    text = [
        (
            f"What {reasons.direction} the {words.total} most, in words: at most {reasons.most} reasons for each of {words.names.count(told.rows)}."
            f" {_say(told.without, told.rows)} have none."
        )
    ]
    if reasons.never:
        text.append(
            f"For {_say(told.withheld, told.rows)} of the {rows}, something that is never named ({', '.join(map(words.names.title, reasons.never))})"
            " would have been among the reasons and was left out."
        )
    if run.plan.background_errors:
        text.append(f"For {_say(told.unclear, told.rows)} of the {rows}, another sample of the background might have chosen other reasons.")
    listed = sorted(told.any, key=lambda each: (-told.first.get(each, 0), -told.any[each], each))
    names = shorten_names([words.names.title(feature) for _, feature in listed[:MOST]], WHOLE)
    cells = tuple(
        (
            code or name,
            name,
            *(f"{counts.get((code, feature), 0):,}" for counts in (told.first, told.any)),
            *(write_share(counts.get((code, feature), 0) / told.rows) for counts in (told.first, told.any)),
        )
        for (code, feature), name in zip(listed, names, strict=False)
    )
    heads = ("reason", "feature", "first reason of", "a reason of", "share, first", "share, at all")
    tables = (("How often each is given", Table(heads, cells, say_left_out(len(cells), len(listed), "reasons"))),) if cells else ()
    return Section("reasons", "Reasons given", tuple(text), tables=tables)


def _say(n: int, of: int) -> str:
    return f"{n:,} ({write_share(n / of)})"
