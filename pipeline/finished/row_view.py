"""Rows of a finished run as a person reads them: what the model says, what brought it there, and all else that the run has of them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..display.text import count, printable
from ..display.waterfall import Step, draw_steps, shorten_steps, write_whole
from ..runs.lookup.row_lookup import Place

REASONS = "reasons"  # a list of what to tell whom a row is about, where a run has it
STEPS = 10  # features that are shown
OUTPUTS = 10  # whose margins are shown in a line
ROUNDED = 2.0**-24  # of a number, by which single precision, in which runs store most, may miss it


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """What a run has of a row for one output.

    Attributes
    ----------
    output : str
    base : float
        In the units of the space.
    total : float
        Margin or prediction.
    steps : tuple of Step
        Of the features or groups, the largest first; ranks from the first on; NaN where a label is missing.
    errors : dict of str to float
        Standard errors of the attributions, where the run has them.
    scores : dict of str to float
        What a ranking method measures besides.
    n_others : int
        Features or groups of which nothing was kept.
    interactions : tuple of (str, str, float), or None
        The largest first; None where they were not asked for.
    reasons : tuple of dict, or None
        As the run has them, by their ranks.
    """

    output: str
    base: float
    total: float
    steps: tuple[Step, ...]
    errors: Mapping[str, float]
    scores: Mapping[str, float]
    n_others: int
    interactions: tuple[tuple[str, str, float], ...] | None
    reasons: tuple[Mapping[str, Any], ...] | None


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of a run.

    Attributes
    ----------
    place : Place
        In the run.
    file : str
        Of the data,
    file_row : int
        and the row there, from 0.
    ids : dict of str to Any
        Its id columns.
    values : dict of str to Any
        Of the features, where the run has them.
    outputs : tuple of ShownOutput
        That of the largest margin or prediction first.
    """

    place: Place
    file: str
    file_row: int
    ids: Mapping[str, Any]
    values: Mapping[str, Any]
    outputs: tuple[ShownOutput, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows of a run; prints as text, and in a notebook as tables.

    Attributes
    ----------
    run : str
        URI of the run's folder.
    manifest : str
        SHA-256 of its manifest.
    method : str
    column : str
        What attributions are called: "phi", "loss" or "rank".
    ranks : bool
        They are places in a ranking.
    total : str
        What the model says: "margin" or "prediction".
    additive : bool
        Attributions add up to it.
    n_found : int
        Rows that were found; more than ``rows`` where there was a limit.
    rows : tuple of ShownRow
    """

    run: str
    manifest: str
    method: str
    column: str
    ranks: bool
    total: str
    additive: bool
    n_found: int
    rows: tuple[ShownRow, ...]

    def text(self, top: int = STEPS) -> str:
        """Write the rows for a terminal.

        Parameters
        ----------
        top : int
            How many features of a row are shown; where they add up, the others are added up.

        Returns
        -------
        str
            Lines, in which names and values do nothing but stand there.
        """
        return "\n\n".join("\n".join(_write_row(self, row, top)) for row in self.rows) + _say_more(self)

    def to_dict(self) -> dict[str, Any]:
        """Turn it into what JSON can hold, without loss: numbers as they are stored, null where there is none.

        Returns
        -------
        dict of str to Any
        """
        own = {"run": self.run, "manifest": self.manifest, "method": self.method, "n_found": self.n_found}
        return own | {"rows": [_row_dict(self, row) for row in self.rows]}

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """The same as tables."""
        from .row_html import write_rows

        return write_rows(self)


def row_title(row: ShownRow) -> str:
    """Name a row by its ids, or where it is.

    Parameters
    ----------
    row : ShownRow

    Returns
    -------
    str
    """
    return "row " + (", ".join(f"{name} = {value}" for name, value in row.ids.items()) or f"{row.place.row} of part {row.place.part}")


def shown_steps(shown: Shown, found: ShownOutput, top: int) -> tuple[Step, ...]:
    """Choose the steps to show.

    Parameters
    ----------
    shown : Shown
    found : ShownOutput
    top : int
        How many, but for the last, which stands for all others where they add up.

    Returns
    -------
    tuple of Step
    """
    if not shown.additive:
        return found.steps[:top]
    rest = found.total - found.base - math.fsum(step.phi for step in found.steps)
    size = math.fsum((abs(found.total), abs(found.base), *(abs(step.phi) for step in found.steps)))
    rest = rest if abs(rest) > ROUNDED * size else 0.0  # all others may be 0, and then rounding alone is left
    unkept = (Step(f"{count(found.n_others, 'other')}, not kept", None, rest),) if found.n_others else ()
    return (*shorten_steps(found.steps, top), *unkept)


def other_totals(shown: Shown, row: ShownRow) -> str:
    """Say what the model says for each output, where there are several.

    Parameters
    ----------
    shown : Shown
    row : ShownRow

    Returns
    -------
    str
        Empty where there is one.
    """
    if len(row.outputs) == 1:
        return ""
    more = f", and {len(row.outputs) - OUTPUTS} more" if len(row.outputs) > OUTPUTS else ""
    return f"{shown.total}s, the largest first: {', '.join(f'{each.output} {write_whole(each.total)}' for each in row.outputs[:OUTPUTS])}{more}"


def left_out(shown: Shown, found: ShownOutput, top: int) -> str:
    """Say what is not shown of an output where it is not added up.

    Parameters
    ----------
    shown : Shown
    found : ShownOutput
    top : int
        Of `shown_steps`.

    Returns
    -------
    str
        Empty where all is shown.
    """
    if shown.additive:
        return ""
    n_more = max(0, len(found.steps) - top)
    said = (f"{n_more} more", n_more), (f"{count(found.n_others, 'other')}, not kept", found.n_others)
    return "; ".join(text for text, n in said if n)


def _say_more(shown: Shown) -> str:
    if shown.n_found == 1:
        return ""
    some = "" if len(shown.rows) == shown.n_found else f", of which {len(shown.rows):,} are shown"
    return f"\n\n{count(shown.n_found, 'row')} found{some}"


def _write_ranks(title: str, found: ShownOutput, top: int) -> str:
    return "\n".join((printable(title), *(f"{step.phi:>4.0f}  {step.label}" for step in found.steps[:top])))


def write_reason(reason: Mapping[str, Any]) -> str:
    """Write a reason as a line.

    Parameters
    ----------
    reason : mapping of str to Any
        Any of rank, code, text, feature, phi, share and value.

    Returns
    -------
    str
    """
    value, share = reason.get("value"), reason.get("share")
    feature = f"{reason.get('feature')}" + ("" if value is None else f" = {value}")
    phi = "" if reason.get("phi") is None else f", {reason['phi']:+.5g}"
    said = " ".join(str(reason[name]) for name in ("code", "text") if reason.get(name) is not None)
    return f"{reason.get('rank', ''):>4}  {said} ({feature}{phi}{'' if share is None else f', {share:.0%}'})"


def _write_row(shown: Shown, row: ShownRow, top: int) -> Iterator[str]:
    found, several = row.outputs[0], len(row.outputs) > 1
    title = row_title(row) + (f", output {found.output}" if several or found.output else "")
    if shown.ranks:
        yield _write_ranks(title, found, top)
        yield f"{shown.total} {write_whole(found.total)}"
    else:
        yield draw_steps(title, found.base if shown.additive else None, shown_steps(shown, found, top), found.total, shown.total)
    lines = [other_totals(shown, row), left_out(shown, found, top), *(f"{name} {write_whole(value)}" for name, value in found.scores.items())]
    if found.interactions is not None:
        lines += ["interactions" if found.interactions else "no interactions"]
        lines += [f"{value:>+11.5g}  {first} and {second}" for first, second, value in found.interactions[:top]]
    if found.reasons is not None:
        lines += ["reasons" if found.reasons else "no reasons", *map(write_reason, found.reasons)]
    yield from (printable(line) for line in lines if line)


def _plain(value: Any) -> Any:
    """As JSON has it: numbers and texts stay what they are, anything else is its text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else str(value)


def _output_dict(shown: Shown, found: ShownOutput) -> dict[str, Any]:
    made: dict[str, Any] = {"output": found.output, "base": _plain(found.base), shown.total: _plain(found.total)}
    made["attributions"] = [
        {"feature": step.player, shown.column: _plain(step.phi)}
        | ({} if step.value is None else {"value": _plain(step.value)})
        | ({"error": _plain(found.errors[step.player])} if step.player in found.errors else {})
        for step in found.steps
    ]
    made |= {name: _plain(value) for name, value in found.scores.items()}
    if found.n_others:
        made["not_kept"] = found.n_others
    if found.interactions is not None:
        made["interactions"] = [{"first": first, "second": second, "value": _plain(value)} for first, second, value in found.interactions]
    return made | ({} if found.reasons is None else {REASONS: [_plain(reason) for reason in found.reasons]})


def _row_dict(shown: Shown, row: ShownRow) -> dict[str, Any]:
    where = {"part": row.place.part, "row": row.place.row, "file": row.file, "file_row": row.file_row}
    values = {"values": _plain(row.values)} if row.values else {}
    return where | {"ids": _plain(row.ids)} | values | {"outputs": [_output_dict(shown, found) for found in row.outputs]}
