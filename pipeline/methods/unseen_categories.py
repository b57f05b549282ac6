"""Detection of data with categories unknown to the model, and of outputs that do not match."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.reductions.input_counts import INPUTS
from leafledger.kernels.trees.binning import BinTables

from ..display.waterfall import plain
from ..errors import SchemaMismatch, UsageError
from ..models.catboost.cityhash import HashedCategory
from ..models.model import Feature
from .summary_tables import read_totals

ENOUGH = 100  # values needed to judge a feature's categories
HARDLY_ANY = 0.01  # share of known categories below which data are refused
SOME = 3  # categories named in a message
MISSING = ("NAType", "NaTType")  # what pandas calls its own missing values
Values = Callable[[str], Iterable[Any]]


def no_values(name: str) -> Iterable[Any]:  # noqa: ARG001 - the shape of Values
    """Know no value of any column."""
    return ()


def check_predictions(names: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse prediction columns that do not number one for every output.

    Parameters
    ----------
    names : sequence of str
        Of the columns; none where predictions are not compared.
    outputs : sequence of str
        Of the model.
    """
    if names and len(names) != len(outputs):
        raise UsageError(f"predictions are {', '.join(names)}, expected a column for each of the model's {len(outputs)} outputs")


def _say_values(name: str, features: Sequence[Feature], values: Values) -> str:
    """Say what some categories of the model are, where it tells, and some of those that it does not know."""
    known: tuple[Any, ...] = next((feature.categories or () for feature in features if feature.name == name), ())
    known = () if known and isinstance(known[0], HashedCategory) else known
    told = {*known, *map(str, known)}
    there = (plain(value) for value in values(name) if value is not None and type(value).__name__ not in MISSING)
    unknown = dict.fromkeys(repr(value) for value in there if value == value and value not in told and str(value) not in told)  # NaN is not itself
    more = f" and {len(known) - SOME:,} more" if len(known) > SOME else ""
    expected = ", ".join(map(repr, known[:SOME])) + more if known else "those that it was trained on"
    return f"expected {expected}{', got ' if unknown else ''}{', '.join([*unknown][:SOME])}"


def _refuse(name: str, there: int, unseen: int, told: bool, where: str, features: Sequence[Feature], values: Values) -> None:
    if there >= ENOUGH and there - unseen <= HARDLY_ANY * there * told:
        raise SchemaMismatch(
            f"{where}column {name!r}: {unseen:,} of {there:,} values are no category of the model, {_say_values(name, features, values)}; "
            "allow_unseen takes them as they are"
        )


def refuse_unseen(tables: Mapping[str, pa.Table], allow_unseen: bool, features: Sequence[Feature] = (), values: Values = no_values) -> None:
    """Refuse rows in which the model knows hardly any category of a feature.

    Parameters
    ----------
    tables : mapping of str to pa.Table
        Summaries by name, among them that of the inputs.
    allow_unseen : bool
        Refuse nothing.
    features : sequence of Feature
        Of the model, with its categories, for the message.
    values : callable
        From a feature's name to some of its values in the rows, for the message.
    """
    if allow_unseen:
        return
    unasked = read_totals(tables).get(INPUTS.name, {}).get("unasked", {})
    for row in tables[INPUTS.name].to_pylist():
        there, told = row["rows"] - row["missing"], row["unseen"] is not None
        unseen = row["unseen"] if told else unasked.get(row["feature"], 0)
        _refuse(row["feature"], there, unseen, told, "", features, values)


def count_unseen(bins: BinTables, values: np.ndarray) -> np.ndarray:
    """Count each feature's values, and those of unknown categories.

    Parameters
    ----------
    values : (used, n) float64
        Before they are binned, in the order of ``bins.column``; NaN where missing.

    Returns
    -------
    (read, 2) int64
        Of every feature in ``bins.read`` its values that are not missing, and those of them that are no category of the model.
    """
    n_codes, codes = bins.n_codes[: bins.read.size, None], values[: bins.read.size]
    there = ~np.isnan(codes)
    unseen = there & (n_codes > 0) & ~((codes > -1) & (codes < n_codes))
    return np.stack((there.sum(axis=1), unseen.sum(axis=1)), axis=1)


def refuse_counted(counts: np.ndarray, features: Sequence[Feature], where: str, values: Values = no_values) -> None:
    """Refuse a background with hardly any known category of a feature, since absent features would take values unseen in training.

    Parameters
    ----------
    counts : (read, 2) int64
        Of all rows, see `count_unseen`.
    features : sequence of Feature
        Those that are read.
    where : str
        What its rows are, for the message.
    values : callable
        From a feature's name to some of its values in the rows, for the message.
    """
    for feature, (there, unseen) in zip(features, counts.tolist(), strict=True):
        _refuse(feature.name, there, unseen, feature.tells_seen, f"{where}: ", features, values)
