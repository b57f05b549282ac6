"""The report's section on changes since another run, from its drift record."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..arguments.choices import LOSS
from ..display.text import count
from ..drift.compare.shifts import MEAN_LOSS
from ..methods.output_space import TOTALS
from .figures.figure import Figure, Table, Track, Tracks, draw_bar, say_left_out
from .figures.scale import NAME, WHOLE, make_axis, shorten_name, shorten_names, write_number, write_share, write_two
from .page import Section

Found = Mapping[str, Any]  # the content of drift.json
KINDS = {"phi": "attribution", "missing": "missing values", "unseen": "unseen values"}  # names for display
OUTPUTS = 3
FEATURES = 12
STEPS = 10
ALARMS = 5
DIFFERENCES = 12
ROUNDED = 1e-6  # of the largest step: smaller rounding is not shown
LINE = 300  # characters of a line,
OUTPUT = 16  # and of an output's name beside a column's


def _last(uri: str) -> str:
    return shorten_name(uri.rstrip("/").rpartition("/")[2], 80)


def _of(found: Found, kind: str, output: str = "") -> list[Found]:
    return [shift for shift in found["shifts"] if shift["kind"] == kind and shift["output"] == output]


def _number(value: float | None) -> float:
    return 0.0 if value is None else float(value)


def say_change(found: Found) -> str:
    """Summarise the changes in a sentence or two."""
    first, n = found["outputs"][0], len(found["alarms"])
    several = f" of output {shorten_name(first['output'])}" if len(found["outputs"]) > 1 else ""
    total = TOTALS[found["space"]]
    moved = "the mean {} is {}, it was {}".format(f"{total}{several}", *write_two(first["mean"], first["reference_mean"]))
    moved = moved if first["mean"] is not None or first["reference_mean"] is not None else f"what the mean {total} is, is not known"
    known = first["standard_error"] is not None
    error = f" (change {write_number(first['change'], True)}, standard error {write_number(first['standard_error'])})" if known else ""
    said = f"{count(n, 'alarm')}: see what changed." if n else "No threshold is crossed."
    return f"Compared with {_last(found['reference'])} ({count(found['reference_n_rows'], 'row')}), {moved}{error}. {said}"


def _draw_split(found: Found, split: Found, unit: str) -> Figure | None:
    """Draw the change of the mean margin as a waterfall, if attributions add up to it."""
    if split["features"] is None or split["reference_mean"] is None or split["mean"] is None:
        return None
    moved = [(shift["feature"], _number(shift["change"])) for shift in _of(found, "phi", split["output"])]
    moved.sort(key=lambda pair: -abs(pair[1]))
    names, rest = [name for name, _ in moved[:STEPS]], moved[STEPS:]
    steps = moved[:STEPS] + ([(f"{len(rest):,} others", sum(change for _, change in rest))] if rest else [])
    least = ROUNDED * max((abs(change) for _, change in steps), default=0.0)
    also = [(name, _number(split[key])) for name, key in (("base value", "base"), ("rounding", "rounding"))]
    steps += [(name, change) for name, change in also if abs(change) > least]
    said = [name for name, _ in steps[len(names) :]]
    at, ends = split["reference_mean"], []
    for _, change in steps:
        ends.append((at, at + change))
        at += change
    axis = make_axis([each for pair in ends for each in pair] + [split["reference_mean"], split["mean"]])
    tracks = [
        Track(label, (draw_bar(axis, start, end, "up" if end >= start else "down"),), text=write_number(change, True, 3))
        for label, (_, change), (start, end) in zip(shorten_names(names) + said, steps, ends, strict=True)
    ]
    before, now = write_two(split["reference_mean"], split["mean"])
    first = Track("mean before", (), points=(axis.at(split["reference_mean"]),), text=before)
    last = Track("mean now", (), points=(axis.at(split["mean"]),), text=now)
    changes = [(name, write_number(change, True)) for name, (_, change) in zip(shorten_names(names, WHOLE) + said, steps, strict=True)]
    rows = [("mean before", before), *changes]
    of = f" of output {shorten_name(split['output'])}" if len(found["outputs"]) > 1 else ""
    return Figure(
        f"Why the mean {unit}{of} changed",
        "Changes of the features’ mean attributions, the largest first, which add up to the change of the mean.",
        Tracks((first, *tracks, last), axis.ticks(), None, unit),
        Table(("feature", "change"), (*rows, ("mean now", now))),
    )


def _draw_shares(found: Found, output: str) -> Figure | None:
    shifts = sorted(_of(found, "phi", output), key=lambda shift: -max(_number(shift["share"]), _number(shift["reference_share"])))
    shown = shifts[:FEATURES]
    if not shown:
        return None
    features = [shift["feature"] for shift in shown]
    axis = make_axis([_number(shift[name]) for shift in shown for name in ("share", "reference_share")], zero=True)
    tracks = tuple(
        Track(
            name,
            (draw_bar(axis, 0, _number(shift["share"]), "plain"),),
            points=(axis.at(_number(shift["reference_share"])),),
            text=write_share(shift["share"]),
        )
        for name, shift in zip(shorten_names(features), shown, strict=True)
    )
    rows = tuple(
        (
            name,
            *(write_share(shift[key]) for key in ("reference_share", "share")),
            *(f"{shift[key]}" if shift[key] is not None else "–" for key in ("reference_rank", "rank")),
            *(write_number(shift[key]) for key in ("reference_mean_abs", "mean_abs", "standard_error_abs")),
        )
        for name, shift in zip(shorten_names(features, WHOLE), shown, strict=True)
    )
    of = f" of output {shorten_name(output)}" if len(found["outputs"]) > 1 else ""
    heads = ("feature", "share before", "share now", "rank before", "rank now", "mean size before", "mean size now", "standard error of the change")
    left = say_left_out(len(shown), len(shifts), "features")
    return Figure(
        f"How much each feature matters{of}, before and now",
        f"Bars are shares of all attribution now, upright lines what they were. {left}".strip(),
        Tracks(tracks, axis.percent(), axis.at(0), "share of attribution, %"),
        Table(heads, rows, left),
    )


def _names(shifts: Sequence[Found], several: bool, most: int = NAME) -> list[str]:
    """Name shifts by column, feature and, if there are several, output."""
    features, outputs = (shorten_names([shift[key] for shift in shifts], size) for key, size in (("feature", most), ("output", OUTPUT)))
    names = []
    for shift, feature, output in zip(shifts, features, outputs, strict=True):
        of = f" of {feature}" if feature else ""
        names.append(f"{KINDS.get(shift['kind'], shift['kind'])}{of}{f', output {output}' if several and output else ''}")
    return names


def _draw_distances(found: Found) -> Figure | None:
    """Draw the columns with the largest distances."""
    known = [shift for shift in found["shifts"] if shift["distance"] is not None and shift["kind"] != MEAN_LOSS]
    shown = sorted(known, key=lambda shift: (-shift["drifted"], -shift["distance"]))[:FEATURES]
    if not shown:
        return None
    several = len(found["outputs"]) > 1
    axis = make_axis([shift["distance"] for shift in shown], zero=True)
    tracks = tuple(
        Track(
            name,
            (draw_bar(axis, 0, shift["distance"], "up" if shift["drifted"] else "before"),),
            text=write_share(shift["distance"]),
        )
        for name, shift in zip(_names(shown, several), shown, strict=True)
    )
    rows = tuple(
        (
            name,
            "yes" if shift["drifted"] else "no",
            write_share(shift["distance"]),
            *(write_number(shift[key]) for key in ("corrected", "psi", "psi_expected", "wasserstein")),
            *write_two(shift["reference_mean"], shift["mean"]),
            write_number(shift["standard_error"]),
        )
        for name, shift in zip(_names(shown, several, WHOLE), shown, strict=True)
    )
    heads = (
        "column",
        "drifted",
        "rows that moved",
        "corrected p",
        "PSI",
        "PSI without drift",
        "Wasserstein",
        "mean before",
        "mean now",
        "standard error",
    )
    left = say_left_out(len(shown), len(known), "columns")
    return Figure(
        "Which columns moved",
        "Share of the rows that have other values than before, at least (Kolmogorov–Smirnov, or total variation of categories); "
        "what counts as drift comes first, and is orange. " + left,
        Tracks(tracks, axis.percent(), axis.at(0), "share of rows, %"),
        Table(heads, rows, left),
    )


def _say_alarm(name: str, shift: Found) -> str:
    """Describe an alarm; distances are the share of rows that have to move."""
    if shift["kind"] in ("missing", "unseen"):
        return f"{name}: {write_share(shift['mean'])} of the rows, were {write_share(shift['reference_mean'])}"
    moved = "all rows" if shift["distance"] == 1 else f"at least {write_share(shift['distance'])} of the rows"
    now, before = write_two(shift["mean"], shift["reference_mean"])
    means = f"; mean {now}, was {before}" if shift["reference_mean"] is not None else ""
    psi = "" if shift["psi"] is None else f" (PSI {write_number(shift['psi'], digits=3)}, by chance {write_number(shift['psi_expected'], digits=2)})"
    return f"{name}: {moved} have another one{means}{psi}"


def _list_alarms(found: Found) -> list[str]:
    """List alarms: order of features first, then columns of all rows, then groups."""
    several, said = len(found["outputs"]) > 1, found["alarms"]
    moved = [shift for shift in found["shifts"] if shift["drifted"]]
    orders = sum(_number(split["ndcg"]) < found["thresholds"]["ndcg"] for split in found["outputs"] if split["ndcg"] is not None)
    worse = [*found.get("worse", ())]
    drifted = [worse[0] if shift["kind"] == MEAN_LOSS else _say_alarm(name, shift) for name, shift in zip(_names(moved, several), moved, strict=True)]
    return [f"Alarm: {line}" for line in (*said[:orders], *drifted, *said[orders + len(drifted) :])]


def _list(lines: Sequence[str], most: int, noun: str) -> tuple[str, ...]:
    more = (f"… and {len(lines) - most:,} more {noun}",) if len(lines) > most else ()
    return (*(shorten_name(line, LINE) for line in lines[:most]), *more)


def write_worse(found: Found) -> Section | None:
    """Write what made predictions worse, where losses are compared."""
    if found["space"] != LOSS:
        return None
    figures = (_draw_split(found, split, LOSS) for split in found["outputs"])
    said = (f"Compared with {_last(found['reference'])}, {line}." for line in found.get("worse", ()))
    return Section("worse", "What made the predictions worse", tuple(said), figures=tuple(each for each in figures if each is not None))


def write_changes(found: Found) -> Section:
    """Write the section of changes."""
    unit = found["space"]
    outputs = found["outputs"][:OUTPUTS]
    figures: list[Figure | None] = [_draw_split(found, split, unit) for split in outputs if unit != LOSS]
    figures += [_draw_shares(found, split["output"]) for split in outputs]
    figures.append(_draw_distances(found))
    alarms = _list_alarms(found)
    items = (*_list(found["differs"], DIFFERENCES, "differences"), *_list(alarms, ALARMS, "alarms; after/drift.json has all"))
    return Section("changes", "What changed", items=items, figures=tuple(figure for figure in figures if figure is not None))
