"""Axes with round ticks, and formatting of numbers and names for a page."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

LARGEST = 1e300  # largest number whose differences stay finite
SMALLEST = 1e-280  # smallest number whose fractions keep digits
NAME = 48  # characters of a name,
WHOLE = 200  # of one in a table,
LONGEST = 1600  # limit for names that are equal up to shorter ones
DIGITS = 4  # of a number,
TWO_DIGITS = 10  # of two numbers that are otherwise equal,
MOST_DIGITS = 17  # enough to distinguish any two
STEPS = (1, 2, 5, 10)  # of round numbers, times a power of ten
ROOM = 44  # characters along an axis on a phone,
NARROW = 24  # and along one beside names and numbers
EDGE = 4  # percent from either end where a tick's number would be cut off,
LONG = 4  # if it has more characters than this


def _exponent(size: float) -> int:
    return math.floor(math.log10(size) + 1e-9)


def write_number(number: float | None, signed: bool = False, digits: int = DIGITS) -> str:
    """Format a number with a few digits, and a minus as wide as a plus.

    Parameters
    ----------
    number : float or None
    signed : bool
        Positive numbers have a plus.

    Returns
    -------
    str
        A dash where there is none.
    """
    if number is None or math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    size = abs(number)
    if 0 < size < 1e-4 or size >= (1e7 if digits <= DIGITS else 1e10):
        text = f"{size:.{max(3, digits - 1)}g}"
    elif size >= 1000:
        text = f"{size:,.{max(0, digits - 1 - _exponent(size))}f}"
    else:
        text = f"{size:.{digits}g}"
    return ("−" if number < 0 else "+" if signed and number > 0 else "") + text


def write_apart(numbers: Sequence[float]) -> list[str]:
    """Format numbers with enough digits to distinguish them."""
    ascending = sorted(set(numbers))
    least = min((upper / 10 - lower / 10 for lower, upper in pairwise(ascending)), default=math.inf)
    texts = list[str]()
    for digits in range(DIGITS, MOST_DIGITS + 2):  # the smallest numbers have one digit fewer
        texts = [write_number(number, digits=digits) for number in numbers]
        said = [float(text.replace(",", "").replace("−", "-")) for text in texts]
        if all(abs(read - number) <= least for read, number in zip(said, numbers, strict=True)):
            break
    return texts


def write_two(first: float | None, second: float | None, least: int = DIGITS) -> tuple[str, str]:
    """Format two numbers to compare, with more digits if they would look equal.

    Parameters
    ----------
    first, second : float or None
    least : int
        Digits, if they differ in these.

    Returns
    -------
    (str, str)
        The same where they differ by less than TWO_DIGITS tell, or not at all.
    """
    written = [(write_number(first, digits=digits), write_number(second, digits=digits)) for digits in range(least, TWO_DIGITS + 1)]
    return next((two for two in written if two[0] != two[1]), written[0])


def write_share(share: float | None) -> str:
    """Format a share in percent.

    Parameters
    ----------
    share : float or None

    Returns
    -------
    str
        A dash where there is none.
    """
    if share is None or not math.isfinite(share):
        return "–"
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.995 <= share < 1:
        return f"{100 * min(share, 0.999):.1f}%"  # 100% is for all rows only
    return f"{100 * share:.{1 if share < 0.1 else 0}f}%".replace("0.0%", "0%")


def shorten_name(name: str, most: int = NAME) -> str:
    """Shorten a name.

    Parameters
    ----------
    most : int
        Characters that are kept.

    Returns
    -------
    str
        With an ellipsis within, for names often differ at their ends.
    """
    if len(name) <= most:
        return name
    return _cut(name, most, most // 3)


def _cut(name: str, most: int, tail: int) -> str:
    return name if len(name) <= most else f"{name[: most - tail - 1]}…{name[len(name) - tail :]}"


def shorten_names(names: Sequence[str], most: int = NAME) -> list[str]:
    """Shorten names so that different ones stay different.

    Parameters
    ----------
    most : int
        Characters that are kept, if these tell names apart.

    Returns
    -------
    list of str
        Of more characters, or whole, where fewer do not.
    """
    different = len(set(names))
    while most < LONGEST:
        for tail in (most // 3, *range(most)):
            short = [_cut(name, most, tail) for name in names]
            if len(set(short)) == different:
                return short
        most *= 2
    return list(names)


def _clip(number: float) -> float:
    return min(max(number, -LARGEST), LARGEST) if abs(number) > SMALLEST else 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A round number on an axis."""

    at: float  # in percent of the axis
    text: str
    side: str  # "start" or "end" if the number would be cut off in the middle, else "middle"


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from a number to a larger one."""

    low: float  # finite
    high: float

    def at(self, number: float) -> float:
        """Return the position of a number, in percent.

        Parameters
        ----------
        number : float
            NaN stands at the lower end.

        Returns
        -------
        float
            In percent, within the axis.
        """
        if math.isnan(number):
            return 0.0
        return round(100 * (min(max(number, self.low), self.high) - self.low) / (self.high - self.low), 2)

    def ticks(self, n: int = 5, room: int = ROOM) -> tuple[Tick, ...]:
        """Choose round numbers.

        Parameters
        ----------
        n : int
            About how many, at most, but where that leaves one alone.
        room : int
            Characters that their texts and the gaps between them may take.

        Returns
        -------
        tuple of Tick
            Within the axis.
        """

        def fits(found: Sequence[Tick]) -> bool:
            return sum(len(tick.text) + 2 for tick in found) <= room

        found = next((each for each in map(self._spread, range(n, 1, -1)) if fits(each)), self._spread(1))
        finer = self._spread(2 * n) if len(found) == 1 else ()  # one number alone gives no scale
        return finer if len(finer) > 1 and fits(finer) else found

    def percent(self) -> tuple[Tick, ...]:
        """Choose round percentages for shares."""
        return Axis(100 * self.low, 100 * self.high).ticks()

    def _spread(self, n: int) -> tuple[Tick, ...]:
        span = self.high - self.low
        power = 10.0 ** math.floor(math.log10(span / n))
        step = next((power * each for each in STEPS if power * each * n >= span), power * 10)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        if last - first > 2 * n:  # the span vanishes beside the numbers' size
            return ()
        digits = max(0, -_exponent(step))
        numbers = [round(i * step, digits) if digits < 12 else i * step for i in range(first, last + 1)]
        return tuple(map(self._tick, numbers, _write_steps(numbers, step, digits)))

    def _tick(self, number: float, size: str) -> Tick:
        at, text = self.at(number), f"{'−' if number < 0 else ''}{size}"
        side = "middle" if len(text) <= LONG else "start" if at < EDGE else "end" if at > 100 - EDGE else "middle"
        return Tick(at, text, side)


def _write_steps(numbers: Sequence[float], step: float, digits: int) -> list[str]:
    """Format multiples of a step with its digits: in full, or in scientific notation if shorter."""
    sizes = [abs(number) for number in numbers]
    full = [f"{size:,.{digits}f}" for size in sizes]
    if digits <= 4 and max(sizes, default=0) < 1e6:
        return full
    short = [f"{size:.{max(0, _exponent(size) - _exponent(step))}e}" if size else "0" for size in sizes]
    return min(full, short, key=lambda texts: sum(map(len, texts)))


def make_axis(numbers: Iterable[float], zero: bool = False) -> Axis:
    """Make an axis that includes all numbers.

    Parameters
    ----------
    numbers : iterable of float
        Those that are not finite count as the largest there are, and those next to nothing as 0; NaN do not count.
    zero : bool
        It holds zero too.

    Returns
    -------
    Axis
        From 0 to 1 where there is nothing to hold.
    """
    found = [_clip(number) for number in numbers if not math.isnan(number)] + ([0.0] if zero else [])
    if not found:
        return Axis(0.0, 1.0)
    low, high = min(found), max(found)
    if high - low > 1e-12 * max(abs(low), abs(high)):
        return Axis(low, high)
    room = abs(low) / 10 if low else 1.0
    return Axis(0.0, 1.0) if zero and not low else Axis(low - room, high + room)
