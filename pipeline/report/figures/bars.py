"""Bar figures of summaries: importances, shares of R², mean ranks, and missing or unseen values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from leafledger.kernels.arrays.ordering import SCORE, SIZE

from ...arguments.choices import LOSS
from ...dataset.columns.grouping import write_values
from .figure import Figure, Table, Track, Tracks, directions, draw_bar, draw_whisker, say_first, say_left_out, say_moved
from .scale import NAME, WHOLE, make_axis, shorten_names, write_number, write_share

BARS = 20
UNTOLD = "A dash: the model’s file does not tell which categories training saw."
MEANING = {
    SIZE: "the shorter the bar, the more it matters",
    SCORE: "what raises the model’s output most comes first, what lowers it most comes last, and in between what does neither",
}  # of a ranking
Row = Mapping[str, Any]  # of a summary


def _by_rank(rows: Sequence[Row]) -> list[Row]:
    """Return ranked rows in order; scores have no rank."""
    return sorted((row for row in rows if row["rank"]), key=lambda row: row["rank"])


def _names(rows: Sequence[Row], most: int = NAME) -> list[str]:
    return shorten_names([row["feature"] for row in rows], most)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def error_of_size(row: Row, n_rows: int) -> float:
    """Return the standard error of a mean magnitude, by the mean square std² + mean²."""
    size, mean, std = (_number(row[name]) for name in ("mean_abs", "mean", "std"))
    if n_rows < 2:
        return math.nan
    return math.sqrt(max(0.0, std * std + mean * mean - size * size) / (n_rows - 1))


def draw_importance(rows: Sequence[Row], n_rows: int, unit: str, background: Mapping[str, float], most: int = BARS) -> Figure:
    """Draw the importances of features.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of importances, of one output.
    unit : str
        Of attributions.
    background : mapping of str to float
        Standard errors of mean magnitudes that come of the background as a sample, by feature; empty where the run has none.
    most : int
        Features that are drawn.

    Returns
    -------
    Figure
        Bars with whiskers of two standard errors.
    """
    ranked = _by_rank(rows)
    shown, errors = ranked[:most], [error_of_size(row, n_rows) for row in ranked[:most]]
    errors = [math.hypot(error, background.get(row["feature"], 0.0)) for row, error in zip(shown, errors, strict=True)]
    sizes = [_number(row["mean_abs"]) for row in shown]
    axis = make_axis([size + 2 * (error if error > 0 else 0) for size, error in zip(sizes, errors, strict=True)], zero=True)
    tracks = tuple(
        Track(
            name,
            (draw_bar(axis, 0, size, "plain"),),
            draw_whisker(axis, size, 2 * error),
            text=write_number(size, digits=3),
        )
        for name, size, error in zip(_names(shown), sizes, errors, strict=True)
    )
    others = ranked[most:]
    numbers = tuple(
        (
            name,
            write_number(size),
            write_number(error),
            write_share(row["share"]),
            *(write_number(_number(row[key]), signed=True) for key in ("mean", "min", "max")),
        )
        for name, row, size, error in zip(_names(shown, WHOLE), shown, sizes, errors, strict=True)
    )
    if others:
        share = write_share(math.fsum(_number(row["share"]) for row in others))
        numbers += ((f"{len(others):,} others together", "–", "–", share, "–", "–", "–"),)
    whole = ", with the background as a sample too" if background else ""
    left = say_left_out(len(shown), len(ranked), "features")
    first = say_first([(name, write_share(row["share"])) for name, row in zip(_names(shown), shown, strict=True)], "of all importance")
    return Figure(
        f"How much each feature moves {say_moved(unit)}",
        f"Importance: by how much a feature moves {say_moved(unit)} on average, up or down.{first} Thin line: 95% interval{whole}. {left}".strip(),
        Tracks(tracks, axis.ticks(), axis.at(0), f"importance, {unit}"),
        Table(("feature", "importance", "standard error", "share", "mean attribution", "lowest", "highest"), numbers, left, statistics=True),
    )


def draw_shares(rows: Sequence[Row], most: int = BARS) -> Figure:
    """Draw shares of R².

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of shares.
    most : int
        Features that are drawn.
    """
    ranked = _by_rank(rows)
    shown = ranked[:most]
    pairs = [(_number(row["r2"]), _number(row["standard_error"])) for row in shown]
    axis = make_axis([value + way * (2 * error if error > 0 else 0) for value, error in pairs for way in (-1, 1)], zero=True)
    tracks = tuple(
        Track(
            name,
            (draw_bar(axis, 0, value, "plain" if value >= 0 else "down"),),
            draw_whisker(axis, value, 2 * error),
            text=write_number(value, digits=3),
        )
        for name, (value, error) in zip(_names(shown), pairs, strict=True)
    )
    return Figure(
        "What each feature adds to R²",
        "Shares of R² on these rows. Thin line: 95% interval. " + say_left_out(len(shown), len(ranked), "features"),
        Tracks(tracks, axis.ticks(), axis.at(0), "share of R²"),
        Table(
            ("feature", "share of R²", "standard error"),
            tuple((name, write_number(value), write_number(error)) for name, (value, error) in zip(_names(shown, WHOLE), pairs, strict=True)),
            say_left_out(len(shown), len(ranked), "features"),
        ),
    )


def draw_losses(rows: Sequence[Row], most: int = BARS) -> Figure:
    """Draw the parts of the mean loss, from what made it larger to what made it smaller.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of losses.
    most : int
        Features that are drawn.
    """
    ranked = sorted((row for row in rows if row["mean"]), key=lambda row: row["rank"])
    shown = sorted(ranked[:most], key=lambda row: -row["mean"])
    pairs = [(_number(row["mean"]), _number(row["standard_error"])) for row in shown]
    axis = make_axis([value + way * (2 * error if error > 0 else 0) for value, error in pairs for way in (-1, 1)], zero=True)
    tracks = tuple(
        Track(
            name,
            (draw_bar(axis, 0, value, "up" if value > 0 else "down"),),
            draw_whisker(axis, value, 2 * error),
            text=write_number(value, True, 3),
        )
        for name, (value, error) in zip(_names(shown), pairs, strict=True)
    )
    left = say_left_out(len(shown), len(ranked), "features")
    cells = ((name, write_number(value, True), write_number(error)) for name, (value, error) in zip(_names(shown, WHOLE), pairs, strict=True))
    return Figure(
        "Which features helped, and which hurt",
        f"Mean part of the loss. Thin line: 95% interval. {left}".strip(),
        Tracks(tracks, axis.ticks(), axis.at(0), "mean part of the loss", directions(LOSS)),
        Table(("feature", "mean part", "standard error"), tuple(cells), left),
    )


def draw_ranks(rows: Sequence[Row], order: str, most: int = BARS) -> Figure:
    """Draw mean ranks, the best with the shortest bar.

    Parameters
    ----------
    rows : sequence of mapping
        Of a summary of ranks, of one output; scores of the ranking have rank 0.
    order : str
        SCORE or SIZE, what features are ranked by.
    most : int
        Features that are drawn.
    """
    ranked = _by_rank(rows)
    shown = ranked[:most]
    pairs = [(_number(row["mean"]), _number(row["std"])) for row in shown]
    axis = make_axis([mean + (std if std > 0 else 0) for mean, std in pairs], zero=True)
    tracks = tuple(
        Track(
            name,
            (draw_bar(axis, 0, mean, "plain"),),
            draw_whisker(axis, mean, std),
            text=write_number(mean, digits=3),
        )
        for name, (mean, std) in zip(_names(shown), pairs, strict=True)
    )
    listed = shown + [row for row in rows if not row["rank"]]
    numbers = tuple(
        (name, *(write_number(_number(row[key])) for key in ("mean", "std", "min", "max")))
        for name, row in zip(_names(listed, WHOLE), listed, strict=True)
    )
    return Figure(
        "Which features come first",
        f"Mean place of a feature in the rows' own rankings, 1 for the first: {MEANING[order]}. Thin line: one standard deviation over rows. "
        + say_left_out(len(shown), len(ranked), "features"),
        Tracks(tracks, axis.ticks(), axis.at(0), "mean rank"),
        Table(("feature or score", "mean", "deviation", "lowest", "highest"), numbers, say_left_out(len(shown), len(ranked), "features")),
    )


def draw_groups(rows: Sequence[Row], by: Sequence[str], most: int = BARS) -> Figure:
    """Draw R² of groups of rows.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of shares by groups: a row for every group and feature.
    by : sequence of str
        Columns whose values make groups.
    most : int
        Groups that are drawn.
    """
    groups = {tuple(row[name] for name in by): row for row in sorted(rows, key=lambda row: -row["n"])}
    shown = [(", ".join(write_values(key)), row) for key, row in list(groups.items())[:most]]
    names, pairs = [name for name, _ in shown], [(_number(row["total_r2"]), _number(row["total_standard_error"])) for _, row in shown]
    axis = make_axis([value + way * (2 * error if error > 0 else 0) for value, error in pairs for way in (-1, 1)], zero=True)
    tracks = tuple(
        Track(
            name,
            (draw_bar(axis, 0, value, "plain" if value >= 0 else "down"),),
            draw_whisker(axis, value, 2 * error),
            text=write_number(value, digits=3),
        )
        for name, (value, error) in zip(shorten_names(names), pairs, strict=True)
    )
    return Figure(
        f"How well the model does by {' and '.join(by)}",
        "R² of groups of rows. Thin line: 95% interval. Rows count that have a label, and no weight of 0. "
        + say_left_out(len(shown), len(groups), "groups"),
        Tracks(tracks, axis.ticks(), axis.at(0), "R²"),
        Table(
            (" and ".join(by), "R²", "standard error", "rows that count"),
            tuple(
                (name, write_number(value), write_number(error), f"{row['n']:,}")
                for name, (_, row), (value, error) in zip(shorten_names(names, WHOLE), shown, pairs, strict=True)
            ),
            say_left_out(len(shown), len(groups), "groups"),
        ),
    )


def _lacks(row: Row) -> int:
    """Return the number of missing and known unseen values."""
    return row["missing"] + (row["unseen"] or 0)


def draw_inputs(rows: Sequence[Row], most: int = BARS, called: str = "rows") -> Figure | None:
    """Draw the features with missing or unseen values.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of inputs.
    most : int
        Features that are drawn.
    called : str
        What the rows of the data are called.

    Returns
    -------
    Figure or None
        None where no value is missing or unseen.
    """

    lacking = sorted((row for row in rows if _lacks(row)), key=lambda row: -_lacks(row))
    shown = lacking[:most]
    if not shown:
        return None
    axis = make_axis([_lacks(row) / row["rows"] for row in shown], zero=True)
    tracks = []
    for name, row in zip(_names(shown), shown, strict=True):
        missing, every = row["missing"] / row["rows"], _lacks(row) / row["rows"]
        marks = (draw_bar(axis, 0, missing, "before"), draw_bar(axis, missing, every, "up"))
        tracks.append(Track(name, tuple(mark for mark in marks if mark.width), text=write_share(every)))
    return Figure(
        "Where values are missing or new",
        f"Share of {called} without a value, or with a category that the model never saw. " + say_left_out(len(shown), len(lacking), "such features"),
        Tracks(tuple(tracks), axis.percent(), axis.at(0), f"share of {called}, %", (("before", "missing"), ("up", "new category"))),
        tabulate_inputs(rows, most),
    )


def tabulate_inputs(rows: Sequence[Row], most: int = BARS) -> Table:
    """Tabulate missing and unseen values of features.

    Parameters
    ----------
    rows : sequence of mapping
        Of the summary of inputs.
    most : int
        Features that are listed, those with the most missing or unseen values first.
    """
    listed = sorted(rows, key=lambda row: -_lacks(row))[:most]
    kinds = ("missing", "unseen", "below", "above")
    cells = tuple(
        (name, *("–" if row[kind] is None else f"{row[kind]:,}" for kind in kinds)) for name, row in zip(_names(listed, WHOLE), listed, strict=True)
    )
    heads, untold = (
        ("feature", "missing", "new categories", "below the model's smallest threshold", "above its largest"),
        any(row["unseen"] is None for row in listed),
    )
    notes = say_left_out(len(listed), len(rows), "features"), UNTOLD * untold
    return Table(heads, cells, " ".join(filter(None, notes)))
