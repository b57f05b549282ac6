"""Reasons of every row as columns of a part: selected attributions, certainty of the selection, and texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leafledger.kernels.method.jackknife import standard_errors
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.slices.top_k import find_largest

from ...methods.precision import round_to
from ...methods.top_k_lists import gather
from ...models.model import Feature
from .reasons import FEATURE, VALUE, Band, Reasons, find_codes, has_texts
from .top_attributions import as_texts, take

REASONS, DISTANCE, WITHHELD, ERROR, CLEAR = "reasons", "reasons_distance", "reasons_withheld", "reasons_error", "reasons_clear"
RANK, CODE, TEXT, PHI, SHARE = "rank", "code", "text", "phi", "share"  # fields of a reason, besides FEATURE and VALUE
ERRORS = 2.0  # standard errors that a distance has to exceed
TRUTHS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}
MISSING = "missing"  # text of a missing value


@dataclass(frozen=True, slots=True)
class Chosen:
    """Attributions selected as reasons for n rows, by row of phi."""

    position: np.ndarray  # (n, most) int64, the largest first; the selected ones are first
    n_told: np.ndarray  # (n,) int64
    share: np.ndarray  # (n, most) float64
    distance: np.ndarray  # (n,) float64, between the last selected and the first other; NaN if nothing is selected
    error: np.ndarray  # (n,) float64, its standard error; NaN if nothing is selected
    withheld: np.ndarray  # (n,) bool, a feature that is never named would have been selected


def select_reasons(phi: np.ndarray, without: np.ndarray, named: np.ndarray, reasons: Reasons, dtype: np.dtype) -> Chosen:
    """Select the reasons of every row."""
    n, sign = phi.shape[1], 1.0 if reasons.direction == "raises" else -1.0
    sizes = np.maximum(sign * round_to(phi, dtype), 0.0).astype(np.float64)
    total = sizes.sum(axis=0)
    shares = sizes / np.where(total > 0, total, 1.0)
    enough = (sizes > 0) & (shares >= reasons.least)
    names = np.flatnonzero(named)
    most = min(reasons.most, names.size)
    ordered, rows = names[find_largest(sizes[names], min(most + 1, names.size)).T], np.arange(n)
    n_told = enough[ordered[:, :most].T, rows].sum(axis=0)
    last, first_left = _take_rank(ordered, n_told - 1), _take_rank(ordered, n_told)

    def apart(values: np.ndarray) -> np.ndarray:
        """Return the distance of the last selected to the first other attribution, or to 0 if no other has the sign."""
        behind = np.vstack([values, np.zeros(n)])  # position -1
        left = np.where(sizes_behind[first_left, rows] > 0, behind[first_left, rows], 0.0)
        return np.where(n_told > 0, behind[last, rows] - left, np.nan)

    sizes_behind = np.vstack([sizes, np.zeros(n)])
    everyone = find_largest(sizes, min(reasons.most, len(sizes)))
    return Chosen(
        position=ordered[:, :most],
        n_told=n_told,
        share=shares[ordered[:, :most], rows[:, None]],
        distance=apart(sizes),
        error=standard_errors(np.stack([apart(each) for each in without]), apart(phi)) if len(without) else np.zeros(n),
        withheld=(enough[everyone, rows] & ~named[everyone]).any(axis=0),
    )


def _take_rank(ordered: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return each row's position at a rank, or -1."""
    padded = np.concatenate([ordered, np.full((len(ordered), 1), -1)], axis=1)
    return padded[np.arange(rank.size), np.where(rank < 0, -1, rank)]


def _find_band(bands: Sequence[Band], feature: Feature | None, codes: np.ndarray, kind: pa.DataType) -> np.ndarray:
    """Return the first matching band of each of n values, ``(n,) int64``; every value is in a band, see `read_reasons`."""
    conditions = []
    for band in bands:
        if band.one_of is not None and feature is not None:
            conditions.append(np.isin(codes, _round_to(find_codes(feature, _listed(band.one_of, feature, kind)), kind)))
        elif band.missing:
            conditions.append(np.isnan(codes))
        else:
            conditions.append(np.full(codes.size, True) if band.for_others else _in_band(band, codes, kind))
    return np.argmax(conditions, axis=0)


def _listed(values: tuple[str | float, ...], feature: Feature, kind: pa.DataType) -> pa.Array:
    """Convert a band's list of values to the column's type; hashed booleans are written in their spelling."""
    if feature.hashed and pa.types.is_boolean(kind):
        return pa.array([TRUTHS.get(str(value)) for value in values], pa.bool_())
    return pa.array(values)


def _round_to(values: np.ndarray, kind: pa.DataType) -> np.ndarray:
    """Round numbers to a column's type: 0.1 is another number in float32."""
    narrow = pa.types.is_floating(kind) and kind != pa.float64()
    with np.errstate(over="ignore"):  # overflow to infinity is intended
        return values.astype(kind.to_pandas_dtype()).astype(np.float64) if narrow else values


def _in_band(band: Band, codes: np.ndarray, kind: pa.DataType) -> np.ndarray:
    (low, above), (high, up_to) = band.low, band.high
    least, most = _round_to(np.array([low, high]), kind)
    return (codes > least if above else codes >= least) & (codes <= most if up_to else codes < most)


class _Value:
    """A value in a text: formatted as a number if the text has a format, else as text."""

    def __init__(self, text: str | None, number: float | None) -> None:
        self.text, self.number = text, number

    def __format__(self, form: str) -> str:
        if self.text is None:
            return MISSING
        return format(self.text if self.number is None or not form else self.number, form)


def _fill(text: str, name: str, values: pa.Array, codes: np.ndarray, numbers: bool) -> pa.Array:
    """Fill n values into a text, each distinct value once."""
    if all(field != VALUE for _, field, _, _ in Formatter().parse(text)):
        return pa.array([text.format(**{FEATURE: name})] * len(values), pa.string())
    encoded = values.dictionary_encode()
    distinct = [*encoded.dictionary.to_pylist(), None]
    place = pc.fill_null(encoded.indices, len(distinct) - 1)
    number = np.zeros(len(distinct))
    number[place.to_numpy(zero_copy_only=False)] = codes  # equal texts have equal numbers
    filled = [
        text.format(**{FEATURE: name, VALUE: _Value(value, code if numbers else None)}) for value, code in zip(distinct, number.tolist(), strict=True)
    ]
    return pa.array(filled, pa.string()).take(place)


WORDS = pa.struct([(CODE, pa.string()), (TEXT, pa.string()), (VALUE, pa.string())])


def _write(name: str, bands: Sequence[Band], feature: Feature | None, column: pa.Array | None, n: int) -> pa.StructArray:
    """Return the texts of one feature or group for n rows; ``column`` has its values there."""
    codes, values = np.full(n, np.nan), pa.nulls(n, pa.string())
    if feature is not None and column is not None:
        codes = find_codes(feature, column)
        values = pc.if_else(pa.array(np.isnan(codes)), pa.scalar(None, pa.string()), as_texts(column))
    kind = pa.null() if column is None else column.type
    of_band = _find_band(bands, feature, codes, kind.value_type if pa.types.is_dictionary(kind) else kind)

    def write(band: int, rows: np.ndarray) -> pa.Array:
        words = bands[band]
        mine = values.take(pa.array(rows))
        texts = _fill(words.text, name, mine, codes[rows], feature is not None and not has_texts(feature))
        return pa.StructArray.from_arrays([pa.array([words.code] * rows.size, pa.string()), texts, mine], fields=list(WORDS))

    return gather(of_band, np.arange(n), write, WORDS)


def reason_column_types(number: pa.DataType, errors: bool) -> dict[str, tuple[pa.DataType, bool]]:
    """List the columns of an output's reasons.

    Parameters
    ----------
    number : pa.DataType
        Of attributions.
    errors : bool
        Standard errors are asked for.

    Returns
    -------
    dict of str to (pa.DataType, bool)
        From what a column's name begins with to its type, and whether it can be null.
    """
    fields = [
        (RANK, pa.int32()),
        (CODE, pa.string()),
        (TEXT, pa.string()),
        (FEATURE, pa.string()),
        (PHI, number),
        (SHARE, number),
        (VALUE, pa.string()),
    ]
    found = {REASONS: (pa.list_(pa.struct(fields)), False), DISTANCE: (number, True), WITHHELD: (pa.bool_(), False)}
    return found | ({ERROR: (number, True), CLEAR: (pa.bool_(), True)} if errors else {})


def make_columns(
    phi: np.ndarray,
    without: np.ndarray,
    reasons: Reasons,
    prepared: Prepared,
    names: Sequence[str],
    features: Mapping[str, Feature],
    values: Mapping[str, pa.Array],
    dtype: np.dtype,
) -> list[pa.Array]:
    """Make the columns of one output.

    Parameters
    ----------
    phi : (rows of phi, n) float64
    without : (lots, rows of phi, n) float64
        The same without each lot of the background; of no lots where errors are not asked for.
    prepared : Prepared
        Says whose each row of ``phi`` is.
    names : sequence of str
        Of all players.
    features : mapping of str to Feature
        From players to the features whose values are theirs.
    values : mapping of str to pa.Array
        From players to the n values of these.
    dtype : float32 or float64
        In which attributions are stored.

    Returns
    -------
    list of pa.Array
        As `reason_column_types` lists them.

    Raises
    ------
    UsageError
        A number is beyond what is stored.
    """
    order = np.argsort(prepared.players, kind="stable")
    mine = [names[player] for player in prepared.players[order].tolist()]
    named = np.array([name not in reasons.never for name in mine], bool)
    phi, without = phi[order], without[:, order]
    chosen = select_reasons(phi, without, named, reasons, dtype)
    told = np.arange(chosen.position.shape[1]) < chosen.n_told[:, None]
    thing, (row, rank) = chosen.position[told], np.nonzero(told)

    def write(number: int, rows: np.ndarray) -> pa.Array:
        name = mine[number]
        column = take(values[name], rows) if name in values else None
        return _write(name, reasons.bands_of(name), features.get(name), column, rows.size)

    words = gather(thing, row, write, WORDS)
    entries = {
        RANK: pa.array(rank + 1, pa.int32()),
        CODE: words.field(CODE),
        TEXT: words.field(TEXT),
        FEATURE: pa.array(mine, pa.string()).take(pa.array(thing)),
        PHI: pa.array(round_to(phi[thing, row], dtype)),
        SHARE: pa.array(chosen.share[told].astype(dtype)),
        VALUE: words.field(VALUE),
    }
    offset = np.concatenate(([0], np.cumsum(chosen.n_told))).astype(np.int32)
    nothing = chosen.n_told == 0
    found = [
        pa.ListArray.from_arrays(pa.array(offset), pa.StructArray.from_arrays(list(entries.values()), list(entries))),
        pa.array(chosen.distance.astype(dtype), mask=nothing),
        pa.array(chosen.withheld),
    ]
    if not len(without):
        return found
    clear = chosen.distance > ERRORS * chosen.error
    return [*found, pa.array(chosen.error.astype(dtype), mask=nothing), pa.array(clear, mask=nothing)]
