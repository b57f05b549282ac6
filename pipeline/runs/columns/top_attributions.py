"""The largest attributions of a row as a list column, instead of or beside a column for every feature."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leafledger.kernels.slices.buffers import Prepared

from ...arguments.choices import Sign
from ...dataset.columns.partition import Groups
from ...dataset.columns.schema import column_values
from ...errors import UsageError
from ...methods.top_k_lists import choose_largest, gather
from ...models.model import Feature
from ..job.options import Options

TOP = "top"
FEATURE, PHI, VALUE = "feature", "phi", "value"  # fields of an entry


@dataclass(frozen=True, slots=True)
class Top:
    """Number and sign of listed attributions, and whether every feature has a column too."""

    most: int
    sign: Sign
    wide: bool


def read_top(options: Options, attributes: bool) -> Top | None:
    """Read the options of the list of attributions.

    Parameters
    ----------
    attributes : bool
        The method finds attributions of the margin, not ranks or shares of an error.

    Returns
    -------
    Top or None
        None where there is a column for every feature alone.

    Raises
    ------
    UsageError
        What is asked for does not fit together.
    """
    if options.top is None:
        if options.columns not in (None, "wide") or options.sign != "both":
            raise UsageError("columns and sign are of a list of the largest attributions; say how many with top")
        return None
    if options.columns == "wide":
        raise UsageError(f"top is {options.top}, but columns are 'wide' alone; expected 'top' or 'both'")
    if options.global_only:
        raise UsageError(f"top is {options.top}, of rows that are not published with global_only; leave out one or the other")
    if not attributes:
        raise UsageError(f"top is of attributions of the margin, of which method {options.method!r} has none")
    return Top(options.top, options.sign, options.columns != "top")


def column_type(number: pa.DataType) -> pa.DataType:
    """Make the Arrow type of the list column.

    Parameters
    ----------
    number : pa.DataType
        Of attributions.

    Returns
    -------
    pa.DataType
        A list of features, attributions, and values as texts, per row.
    """
    return pa.list_(pa.struct([(FEATURE, pa.string()), (PHI, number), (VALUE, pa.string())]))


def feature_of(player: str, groups: Groups) -> str:
    """Return the feature whose values are a player's.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, if players are its groups.

    Returns
    -------
    str
        "" of a group of several features.
    """
    members = dict(groups).get(player, (player,))
    return members[0] if len(members) == 1 else ""


def take(column: pa.Array, rows: np.ndarray) -> pa.Array:
    """Take some values of a column."""
    return (column.cast(pa.string()) if pa.types.is_string_view(column.type) else column).take(pa.array(rows))


def as_texts(column: pa.Array) -> pa.Array:
    """Format values as text.

    Parameters
    ----------
    column : pa.Array
        n values, possibly dictionary-encoded.

    Returns
    -------
    pa.StringArray
        n texts; null where missing.
    """
    decoded = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    missing = pc.is_null(decoded, nan_is_null=True)
    return pc.if_else(missing, pa.scalar(None, pa.string()), decoded.cast(pa.string()))


def write_values(feature: Feature, column: pa.Array) -> pa.Array:
    """Format a feature's values as text, with missing-value numbers as missing."""
    texts = as_texts(column)
    if feature.missing is None:
        return texts
    return pc.if_else(pa.array(np.isnan(column_values(feature, column))), pa.scalar(None, pa.string()), texts)


def make_column(
    phi: np.ndarray,
    top: Top,
    prepared: Prepared,
    names: Sequence[str],
    features: Mapping[str, Feature],
    values: Mapping[str, pa.Array],
    dtype: np.dtype,
) -> pa.Array:
    """Make the list column of one output.

    Parameters
    ----------
    phi : (rows of phi, n) float64
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
    pa.ListArray
        n lists, the largest by magnitude first, of equal ones the first player; zeros are left out.
    """
    order = np.argsort(prepared.players, kind="stable")
    if (np.diff(order) != 1).any():  # copying is slow for many players
        phi = phi[order]
    signed = phi if top.sign == "both" else np.maximum(phi, 0.0) if top.sign == "raises" else np.minimum(phi, 0.0)
    offset, chosen, found = choose_largest(signed, min(top.most, len(phi)), dtype)
    row, player = np.repeat(np.arange(phi.shape[1]), np.diff(offset)), prepared.players[order][chosen]
    feature = gather(player, row, lambda number, rows: pa.array([names[number]] * rows.size, pa.string()), pa.string())

    def write(number: int, rows: np.ndarray) -> pa.Array:
        name = names[number]
        return write_values(features[name], take(values[name], rows)) if name in values else pa.nulls(rows.size, pa.string())

    texts = gather(player, row, write, pa.string())
    entries = pa.StructArray.from_arrays([feature, pa.array(found), texts], [FEATURE, PHI, VALUE])
    return pa.ListArray.from_arrays(pa.array(offset), entries)
