"""Changes in words: numbers that are written as they are, or not at all."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from string import Formatter
from typing import Any

from ..arguments.readers import shorten
from ..errors import UsageError

FEATURE, CHANGE, VALUE = "feature", "change", "value"  # placeholders in a text
TEXT = "would cross the threshold if {feature} were {change}"
LONGEST = 1000  # characters of a formatted value
MANY = 9  # digits of a number, as of the next float behind a threshold, that nobody would say
SLACK = 0.01  # share of a change by which it may be told as larger than it is
SAMPLES = (0.0, 1.0, 2.5, -1234.0)  # numbers to test a text with


def plain(value: Any) -> str:
    """Write a value in full, a whole number without a point."""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def write_exactly(value: Any, form: str) -> str:
    """Write a value in a form, unless that says another number: then in full."""
    if isinstance(value, str | bool) or not form:
        return plain(value)
    written = format(float(value), form)
    digits = written.replace(",", "").replace("_", "").strip()
    try:
        read = float(digits.removesuffix("%")) / (100 if digits.endswith("%") else 1)
    except ValueError:
        return plain(value)
    return written if read == float(value) else plain(value)


def round_within(value: Any, room: float, towards: float) -> Any:
    """Round a number of many digits to the fewest with which it goes no further than ``room`` in a direction, and not at all in the other."""
    if not isinstance(value, float) or len(Decimal(repr(value)).as_tuple().digits) <= MANY or not math.isfinite(room):
        return value
    exact, side = Decimal(value), ROUND_CEILING if towards > value else ROUND_FLOOR
    tried = (float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - k), side)) for k in range(len(Decimal(repr(value)).as_tuple().digits)))
    return next((each for each in tried if abs(each - value) <= room), value)


class _Written:
    """A value or a phrase in a text: its numbers in the text's form."""

    def __init__(self, before: str, *values: Any) -> None:
        self.before, self.values = before, values

    def __format__(self, form: str) -> str:
        return self.before.format(*(write_exactly(value, form) for value in self.values))


def _phrase(now: Any, value: Any, until: Any) -> _Written:
    """Say to what: a category, or numbers from the nearest one on."""
    if isinstance(value, str | bool) or now is None or (isinstance(now, str) and until is None):
        return _Written("{}", value)
    if until is None:
        return _Written("at least {}" if value > now else "at most {}", value)
    return _Written("{}", value) if until == value else _Written("from {} to {}", *sorted((value, until)))


def write_change(text: str, feature: str, now: Any, value: Any, until: Any) -> str:
    """Write a change in words.

    Parameters
    ----------
    text : str
        With "{feature}", "{change}" and "{value}" in it.
    now : Any
        The row's number; None of categories.
    value, until : Any
        What it changes to, and the furthest number up to which the change crosses; None where all beyond do. Of a number with many digits, as the
        next one behind a threshold, one with few is told that crosses too.
    """
    if isinstance(value, float) and now is not None and not isinstance(now, str):
        room, beyond = SLACK * abs(value - now), math.copysign(math.inf, value - now) if until is None else until
        if until is not None:
            room = min(room, SLACK * abs(until - value))
            until = round_within(until, room, value)
        value = round_within(value, room, beyond)
    return text.format(**{FEATURE: feature, CHANGE: _phrase(now, value, until), VALUE: _Written("{}", value)})


def check_text(text: Any, where: str, samples: Sequence[Any] = SAMPLES) -> str:
    """Refuse a text that cannot be filled in with each of some sample values."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{where}: text is {shorten(text)}, expected words")
    try:
        for _, name, form, conversion in Formatter().parse(text):
            nested = conversion is not None or "{" in (form or "") or (bool(form) and name == FEATURE)
            if name is not None and (nested or name not in (FEATURE, CHANGE, VALUE)):
                raise ValueError(f"expected {{{FEATURE}}}, {{{CHANGE}}} or {{{VALUE}}} in braces, got {{{name}}}")
            if max((len(format(each, form or "")) for each in samples if name not in (None, FEATURE)), default=0) > LONGEST:
                raise ValueError(f"more than {LONGEST} characters for a value")
        for each in samples:
            write_change(text, "", math.inf, each, None)
    except (ValueError, KeyError, IndexError) as error:
        raise UsageError(f"{where}: text {shorten(text)} cannot be filled in: {' '.join(str(error).split())}") from error
    return text
