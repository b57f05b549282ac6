"""The report's section on changes since another run, from its drift record."""

from collections.abc import Mapping, Sequence
from operator import getitem
from typing import Any

from ..arguments.choices import LOSS
from ..drift.compare.shifts import GROUPS, MEAN_LOSS, MEANS, MISSING, PHI, THRESHOLDS, UNSEEN, VALUE, rank_alarms
from ..drift.compare.worse import say_worse
from ..finished.names import Names
from .figures.figure import Figure, Table, Track, Tracks, directions, draw_bar, say_left_out
from .figures.scale import NAME, WHOLE, make_axis, shorten_name, shorten_names, write_number, write_share, write_two
from .page import Section
from .vocabulary import PERSONS, Vocabulary

Found = Mapping[str, Any]  # the content of drift.json
KINDS = {PHI: "attribution", MISSING: "missing values", UNSEEN: "new categories", VALUE: "values"}  # names for display
OUTPUTS = 3
FEATURES = 12
STEPS = 10
ALARMS = 8
DIFFERENCES = 12
ROUNDED = 1e-6  # of the largest step: smaller rounding is not shown
LINE = 300  # characters of a line,
OUTPUT = 16  # and of an output's name beside a column's
SMALL = 0.01  # of a mean, or its change: smaller effects are not told in numbers
MOSTLY = 0.5  # share of a change that one feature has to make to be named in the headline


def rename_document(found: Found, names: Names) -> Found:
    """Call the features of a drift record by their titles, and say what their values are in."""
    units = [names.unit(shift["feature"]) for shift in found["shifts"]]
    shifts = zip(names.rename(found["shifts"]), units, strict=True)
    return {**found, "shifts": [{**shift, "unit": unit} for shift, unit in shifts]}


def name_reference(found: Found) -> str:
    """Name the run that is compared with."""
    return shorten_name(found["reference"].rstrip("/").rpartition("/")[2], 80)


def _of(found: Found, kind: str, output: str = "") -> list[Found]:
    return [shift for shift in found["shifts"] if shift["kind"] == kind and shift["output"] == output]


def _number(value: float | None) -> float:
    return 0.0 if value is None else float(value)


def _two(words: Vocabulary, before: float | None, now: float | None) -> tuple[str, str]:
    """Write two numbers as a person would, with more digits where they would look equal."""
    written = [words.write(number, digits=3) for number in (before, now)]
    if written[0] != written[1] or before == now:
        return written[0], written[1]
    unit = f" {words.unit}" if words.unit else ""
    first, second = write_two(before, now)
    return f"{first}{unit}", f"{second}{unit}"


def _say_error(words: Vocabulary, split: Found) -> str:
    """Write a change with twice its standard error."""
    return f"{write_number(split['change'], True, 3)} ± {words.write(2 * split['standard_error'], digits=2)}"


def say_change(found: Found, words: Vocabulary) -> str:
    """Summarise the change of the mean in a sentence."""
    first = found["outputs"][0]
    several = f" of output {shorten_name(first['output'])}" if len(found["outputs"]) > 1 else ""
    before, now, reference = first["reference_mean"], first["mean"], name_reference(found)
    if before is None and now is None:
        return f"Compared with {reference}: the mean {words.total}{several} is not known."
    old, new = _two(words, before, now)
    known = f" ({_say_error(words, first)})" if first["standard_error"] is not None else ""
    return f"The mean {words.total}{several} is {new}; in {reference} it was {old}{known}."


def say_mostly(found: Found) -> str:
    """Name the feature that made most of the change, if one did."""
    first = found["outputs"][0]
    moved = sorted(_of(found, PHI, first["output"]), key=lambda shift: -abs(_number(shift["change"])))
    if not moved or first["features"] is None or not _number(moved[0]["change"]) * _number(first["change"]) > 0:
        return ""
    part = _number(moved[0]["change"])
    return shorten_name(moved[0]["feature"], 40) if abs(part) >= MOSTLY * abs(first["change"]) else ""


def write_headline_of_change(found: Found, words: Vocabulary) -> str | None:
    """Write the headline of a report of changes: what the mean did, and by which feature; None where it is not known."""
    first = found["outputs"][0]
    before, now = first["reference_mean"], first["mean"]
    if before is None or now is None:
        return None
    several = f" of output {shorten_name(first['output'])}" if len(found["outputs"]) > 1 else ""
    old, new = _two(words, before, now)
    calm, error = not found["alarms"], _number(first["standard_error"])
    if old == new or abs(now - before) <= 2 * error:
        return (
            f"Little changed: the mean {words.total}{several} stayed at about {new}"
            if calm
            else (f"The mean {words.total}{several} stayed at about {new}, but other things changed")
        )
    mostly = say_mostly(found)
    by = f", mostly by {mostly}" if mostly else ""
    return f"The mean {words.total}{several} {'rose' if now > before else 'fell'} from {old} to {new}{by}{'; no alarm' if calm else ''}"


def _draw_split(found: Found, split: Found, words: Vocabulary) -> Figure | None:
    """Draw the change of the mean as a waterfall, if attributions add up to it."""
    if split["features"] is None or split["reference_mean"] is None or split["mean"] is None:
        return None
    moved = [(shift["feature"], _number(shift["change"])) for shift in _of(found, PHI, split["output"])]
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
    old, new = _two(words, split["reference_mean"], split["mean"])
    largest = f", most by {shorten_names(names)[0]} ({words.write(moved[0][1], True)})" if moved and moved[0][1] else ""
    return Figure(
        f"Why the mean {words.total}{of} changed",
        f"How much each feature contributed to the change from {old} to {new}{largest}. The parts add up to it.",
        Tracks((first, *tracks, last), axis.ticks(), None, words.figure_unit, directions(found["space"])),
        Table(("feature", "change"), (*rows, ("mean now", now))),
    )


def _draw_shares(found: Found, output: str) -> Figure | None:
    shifts = sorted(_of(found, PHI, output), key=lambda shift: -max(_number(shift["share"]), _number(shift["reference_share"])))
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
    heads = ("feature", "share before", "share now", "rank before", "rank now", "importance before", "importance now", "standard error of the change")
    left = say_left_out(len(shown), len(shifts), "features")
    here = name_reference(found)
    most = max(shown, key=lambda shift: abs(_number(shift["share"]) - _number(shift["reference_share"])))
    named = dict(zip(features, shorten_names(features), strict=True))[most["feature"]]
    was, now = write_share(most["reference_share"]), write_share(most["share"])
    moved = "Hardly any share changed. " if was == now else f"Largest change: {named}, from {was} to {now}. "
    return Figure(
        f"How much each feature matters{of}, before and now",
        f"Share of all importance. Bar: now; black line: {here}. {moved}{left}".strip(),
        Tracks(tracks, axis.percent(), axis.at(0), "share of importance, %"),
        Table(heads, rows, left, statistics=True),
    )


def _names(shifts: Sequence[Found], several: bool, most: int = NAME) -> list[str]:
    """Name shifts by column, feature and, if there are several, output."""
    features, outputs = (shorten_names([shift[key] for shift in shifts], size) for key, size in (("feature", most), ("output", OUTPUT)))
    names = []
    for shift, feature, output in zip(shifts, features, outputs, strict=True):
        of = f" of {feature}" if feature else ""
        names.append(f"{KINDS.get(shift['kind'], shift['kind'])}{of}{f', output {output}' if several and output else ''}")
    return names


def _draw_distances(found: Found, words: Vocabulary) -> Figure | None:
    """Draw the columns with the largest distances."""
    known = [shift for shift in found["shifts"] if shift["distance"] is not None and shift["kind"] not in MEANS]
    shown = sorted(known, key=lambda shift: (-shift["drifted"], -shift["distance"]))[:FEATURES]
    if not shown:
        return None
    several, least = len(found["outputs"]) > 1, [found["thresholds"].get(THRESHOLDS.get(shift["kind"], "distance")) for shift in shown]
    axis = make_axis([*(shift["distance"] for shift in shown), *(limit for limit in least if limit is not None)], zero=True)
    tracks = tuple(
        Track(
            name,
            (draw_bar(axis, 0, shift["distance"], "up" if shift["drifted"] else "before"),),
            points=() if limit is None else (axis.at(limit),),
            text=write_share(shift["distance"]),
        )
        for name, shift, limit in zip(_name_columns(shown, several, words), shown, least, strict=True)
    )
    cells = tuple(
        (
            name,
            "yes" if shift["drifted"] else "no",
            write_share(shift["distance"]),
            write_share(limit),
            *write_two(shift["reference_mean"], shift["mean"]),
            write_number(shift["standard_error"]),
            *(write_number(shift[key]) for key in ("corrected", "psi", "psi_expected", "wasserstein")),
        )
        for name, shift, limit in zip(_name_columns(shown, several, words, WHOLE), shown, least, strict=True)
    )
    heads = (
        "column",
        "alarm",
        "difference",
        "alarm from",
        "mean before",
        "mean now",
        "standard error",
        "corrected p",
        "PSI",
        "PSI without drift",
        "Wasserstein",
    )
    left = say_left_out(len(shown), len(known), "columns")
    rows = words.names.rows
    none = f"0% where the {rows} have the same values as in {name_reference(found)}, 100% where they have none in common."
    said = {shift["kind"] in (MISSING, UNSEEN): write_share(limit) for shift, limit in zip(shown, least, strict=True) if limit is not None}
    limits = [said[rare] + " for missing values and new categories" * (rare and len(said) > 1) for rare in sorted(said)]
    beyond = f" Black line: where alarms begin, {', '.join(limits)}." if limits else ""
    beyond += " Alarms come first." if any(shift["drifted"] for shift in shown) else ""
    beyond += " The alarm of the mean has no bar." if any(shift["drifted"] for shift in found["shifts"] if shift["kind"] in MEANS) else ""
    return Figure(
        "How different each column is",
        f"{none}{beyond} {left}".strip(),
        Tracks(tracks, axis.percent(), axis.at(0), f"different {rows}, %, at least", (("up", "alarm"), ("before", "no alarm"))),
        Table(heads, cells, left, statistics=True),
    )


def _name_columns(shifts: Sequence[Found], several: bool, words: Vocabulary, most: int = NAME) -> list[str]:
    plain = ("margin", "prediction")
    names = _names(shifts, several, most)
    return [f"{words.total}{name[len(shift['kind']) :]}" if shift["kind"] in plain else name for name, shift in zip(names, shifts, strict=True)]


def _say_part(shift: Found, words: Vocabulary) -> str:
    """Describe what changed of a column, without its name."""
    rows, unit = words.names.rows, f" {shift['unit']}" if shift.get("unit") else ""
    if shift["kind"] in (MISSING, UNSEEN):
        what = "have none" if shift["kind"] == MISSING else "have a new category"
        return f"{write_share(shift['mean'])} of the {rows} {what} (before: {write_share(shift['reference_mean'])})"
    if shift["kind"] == PHI:
        old, new = _two(words, shift["reference_mean"], shift["mean"])
        return f"its attributions differ by at least {write_share(shift['distance'])} (mean {new}, before {old})"
    if shift["kind"] == VALUE:
        old, new = write_two(shift["reference_mean"], shift["mean"], PERSONS)
        means = f" (mean {new}{unit}, before {old}{unit})" if shift["reference_mean"] is not None else ""
        if shift["distance"] == 1 and shift["standard_error"] == 0 and shift["reference_mean"] is not None:
            return f"all {rows} have {new}, before all had {old}; ignore it where that is so by construction"
        return f"its values differ by at least {write_share(shift['distance'])}{means}"
    if shift["kind"] == GROUPS:
        return f"their shares differ by {write_share(shift['distance'])}"
    return f"differs by at least {write_share(shift['distance'])}"


def _say_total(shifts: Sequence[Found], found: Found, words: Vocabulary) -> str:
    """Describe alarms of the mean and the distribution of predictions."""
    split = next(split for split in found["outputs"] if split["output"] == shifts[0]["output"])
    several = f" of output {shorten_name(split['output'], OUTPUT)}" if len(found["outputs"]) > 1 else ""
    apart = next((shift["distance"] for shift in shifts if shift["kind"] not in MEANS), None)
    old, new = _two(words, split["reference_mean"], split["mean"])
    means = f"mean {new}, before {old}"
    return f"{words.total}{several}: {means if apart is None else f'differs by at least {write_share(apart)} ({means})'}"


def _say_worse(found: Found) -> list[str]:
    """Say what made predictions worse, by the names of the record; nothing where it is not of losses."""
    said = (say_worse(split, found["shifts"], found["alike"]) for split in found["outputs"] if found["space"] == LOSS)
    return [line for line in said if line is not None]


def list_alarms(found: Found, words: Vocabulary) -> list[str]:
    """List alarms: one line for each feature, those that move predictions most first; then the order of features, and groups."""
    several, said = len(found["outputs"]) > 1, found["alarms"]
    drifted = rank_alarms([shift for shift in found["shifts"] if shift["drifted"]], found["shifts"], getitem)
    worse = _say_worse(found)
    together: dict[tuple[str, str], list[Found]] = {}
    for shift in drifted:
        output = shift["output"] if shift["kind"] in (PHI, *MEANS) or not shift["feature"] else ""
        together.setdefault((shift["feature"], output if several or not shift["feature"] else ""), []).append(shift)
    lines = []
    for (feature, output), shifts in together.items():
        if any(shift["kind"] == MEAN_LOSS for shift in shifts):
            lines.append(worse[0] if worse else "the mean loss")
        elif not feature:
            lines.append(_say_total(shifts, found, words))
        else:
            of = f", output {shorten_name(output, OUTPUT)}" if output else ""
            change = next((shift["change"] for shift in _of(found, PHI, found["outputs"][0]["output"]) if shift["feature"] == feature), None)
            effect = "" if several or not change else f" {_say_effect(change, found, words)}"
            lines.append(f"{shorten_name(feature)}{of}: {'; '.join(_say_part(shift, words) for shift in shifts)}.{effect}")
    return [*lines, *said[len(drifted) :]]


def _say_effect(change: float, found: Found, words: Vocabulary) -> str:
    """Say by how much a feature moved the mean."""
    least = SMALL * max(abs(_number(found["outputs"][0][key])) for key in ("change", "mean", "reference_mean"))
    return (
        f"It moved the mean {words.total} by {words.write(change, True)}." if abs(change) >= least else f"The mean {words.total} hardly moved by it."
    )


def _list(lines: Sequence[str], most: int, noun: str) -> tuple[str, ...]:
    more = (f"… and {len(lines) - most:,} more {noun}",) if len(lines) > most else ()
    return (*(shorten_name(line, LINE) for line in lines[:most]), *more)


def say_ignored(found: Found) -> str:
    """Say which columns make no alarm."""
    ignored = found["thresholds"].get("ignore") or ()
    return f"Not judged, since known to change: {', '.join(shorten_names(ignored))}." if ignored else ""


def write_worse(found: Found, words: Vocabulary) -> Section | None:
    """Write what made predictions worse, where losses are compared."""
    if found["space"] != LOSS:
        return None
    figures = (_draw_split(found, split, words) for split in found["outputs"])
    said = (f"Compared with {name_reference(found)}, {line}." for line in _say_worse(found))
    return Section("worse", "What made the predictions worse", tuple(said), figures=tuple(each for each in figures if each is not None))


def _name_rows(line: str, words: Vocabulary) -> str:
    """Call the rows of a difference, such as ``2,000 rows, before 3,000``, what the report calls them."""
    number, _, rest = line.partition(" ")
    named = {f"row{end}": name for end, name in ((",", words.names.row), ("s,", words.names.rows))}
    first, _, more = rest.partition(" ")
    return f"{number} {named[first]}, {more}" if first in named else line


def write_changes(found: Found, words: Vocabulary, more: Sequence[Figure] = ()) -> Section:
    """Write the section of changes; more figures go with the change of the mean."""
    outputs = found["outputs"][:OUTPUTS]
    figures: list[Figure | None] = [_draw_split(found, split, words) for split in outputs if found["space"] != LOSS]
    figures += [*more, *(_draw_shares(found, split["output"]) for split in outputs), _draw_distances(found, words)]
    alarms = list_alarms(found, words)
    differs = [f"{'no alarm: ' if alarms else ''}{_name_rows(line, words)}" for line in found["differs"]]
    items = (*_list(alarms, ALARMS, "things; after/drift.json has all alarms"), *_list(differs, DIFFERENCES, "differences"))
    differ = f"What differs by 10% would look as before only if 10% of the {words.names.rows}, or more, changed."
    text = f"Alarms, those first that moved the mean {words.total} most. {differ}" if alarms else "No threshold of an alarm is crossed."
    title = f"What changed since {name_reference(found)}"
    ignored = say_ignored(found)
    shown = tuple(figure for figure in figures if figure is not None)
    return Section("changes", title, (text, *([ignored] if ignored else ())), items=items, figures=shown, menu="What changed")
