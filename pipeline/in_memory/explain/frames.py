"""Attributions and interactions laid out for people: data frames, the largest ones, matrices of pairs, the first rows in a notebook."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...arguments.choices import Sign
from ...display.text import COLUMNS, ROWS, as_html
from ...display.waterfall import plain, silence, write_whole
from ...errors import UsageError
from ...methods.output_space import TOTALS
from .picked import predicted_outputs

LEVELS = ("first", "second", "third")  # names of members, and others by their numbers


def as_frame(values: np.ndarray, index: Any, outputs: Sequence[str], levels: Mapping[str | None, Sequence[str]]) -> Any:
    """Make a data frame of ``values (n, outputs, columns)``, whose columns are called by ``levels``, and of several outputs by these before."""
    import pandas as pd

    names = [list(level) for level in levels.values()]
    if len(outputs) == 1 and len(names) == 1:
        return pd.DataFrame(values[:, 0], index, pd.Index(names[0]))
    called: list[str | None] = list(levels)
    if len(outputs) > 1:
        n = len(names[0])
        called, names = [None, *called], [[output for output in outputs for _ in range(n)], *(level * len(outputs) for level in names)]
    return pd.DataFrame(values.reshape(len(values), len(names[0])), index, pd.MultiIndex.from_arrays(names, names=called))


def name_levels(sets: Sequence[Sequence[str]]) -> dict[str | None, list[str]]:
    """Name the members of pairs or sets, level by level, with "" behind the members of smaller sets."""
    n = max(map(len, sets), default=2)
    return {LEVELS[k] if k < len(LEVELS) else f"{k + 1}th": [members[k] if k < len(members) else "" for members in sets] for k in range(n)}


def list_largest(
    phi: np.ndarray, index: Any, outputs: Sequence[str], names: Sequence[str], given: Sequence[np.ndarray | None], k: int, sign: Sign
) -> Any:
    """List each row's k largest of ``phi (n, outputs, players)``; ``given`` are the players' values in the rows, where they have one."""
    import pandas as pd

    weight = {"both": np.abs, "raises": np.positive, "lowers": np.negative}[sign](np.nan_to_num(phi))
    order = np.argsort(-weight, axis=2, kind="stable")[:, :, :k]
    row, output, rank = np.nonzero(np.take_along_axis(weight, order, 2) > 0)
    player = order[row, output, rank]
    value = np.empty(row.size, object)
    for number, (i, j) in enumerate(zip(row.tolist(), player.tolist(), strict=True)):
        held = given[j]
        value[number] = None if held is None else plain(held[i])
    columns = {"output": np.array(outputs, object)[output], "rank": rank + 1, "feature": np.array(names, object)[player]}
    return pd.DataFrame(columns | {"phi": phi[row, output, player], "value": value}, index[row])


def lay_out_matrix(interactions: np.ndarray, pairs: np.ndarray, phi: np.ndarray, halves: bool) -> np.ndarray:
    """Lay out ``interactions (n, outputs, pairs)`` of ``pairs (pairs, 2)`` as symmetric matrices, ``(n, outputs, players, players)``.

    With ``halves`` each entry is half an interaction, and the diagonal what is left of phi; otherwise entries are whole, and the diagonal is 0.
    """
    n, outputs, n_players = phi.shape
    found, diagonal = np.zeros((n, outputs, n_players, n_players)), np.arange(n_players)
    first, second = pairs.T
    found[:, :, first, second] = found[:, :, second, first] = interactions / 2 if halves else interactions
    if halves:
        found[:, :, diagonal, diagonal] = phi - found.sum(axis=3)
    return found


def as_polars(table: Any) -> Any:
    """Convert a table of Arrow to a data frame of Polars."""
    try:
        import polars
    except ImportError as error:
        raise UsageError("to_polars needs polars: pip install polars") from error
    return polars.from_arrow(table)


def show_rows(found: Any) -> str:
    """Write the first rows of Attributions as HTML: of the predicted class where outputs are classes, each attribution with the value beside it."""
    few, more = found[:ROWS], ("…",) if len(found.players) > COLUMNS else ()
    predicted, several = predicted_outputs(few), len(found.outputs) > 1
    which = np.zeros(len(few), np.int64) if predicted is None else predicted
    names = found.players[:COLUMNS]
    given = [few.values(name) if name in found.names else None for name in names]
    rows = []
    for i, (label, k) in enumerate(zip(few.index.tolist(), which.tolist(), strict=True)):
        total = float(few.prediction[i, k])
        phi = silence(few.phi[i, k, :COLUMNS].tolist(), abs(total) + float(np.abs(few.phi[i, k]).sum()))
        cells = [each if held is None else f"{each:.4g} ({_write_value(held[i])})" for each, held in zip(phi, given, strict=True)]
        rows.append((label, *((found.outputs[k],) if several and predicted is not None else ()), *cells, *more, total))
    head = ("row", *(("output",) if several and predicted is not None else ()), *names, *more, TOTALS[found.space])
    said = ", of the predicted class" if several and predicted is not None else ", first output" if several else ""
    beside = "; values in brackets" if any(held is not None for held in given) else ""
    return as_html(f"{found}{said}{beside}", head, rows)


def _write_value(value: Any) -> str:
    value = plain(value)
    return write_whole(value) if isinstance(value, float) and value == value else "missing" if value is None or value != value else str(value)
