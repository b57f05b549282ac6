"""Encoding of categories as codes of the model's list, by value or CatBoost hash, and of missing-value numbers."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...models.catboost.cityhash import DIGITS, HashedCategory, hash_texts
from ...models.model import Feature, Model

LARGEST_EXACT = 1 << 53  # from here on float64 skips integers
SHOWN = 10  # names listed in a message
MOST_DIGITS = 38  # digits of decimals that hold every integer
NO_INTEGER = Decimal(10 ** (MOST_DIGITS - 1))  # a decimal beyond all integer columns
UNTOLD = "booleans, of which the model does not tell whether it has them as 0 and 1 or as False and True: give texts"


def is_text(found: pa.DataType) -> bool:
    """Return whether a column holds texts."""
    return pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)


def _as_text(values: pa.Array) -> pa.Array:
    if pa.types.is_boolean(values.type):  # as Python and pandas write booleans
        return pc.if_else(values, "True", "False")
    return values.cast(pa.string())


def _exact_category(category: float, of_integers: bool) -> Any:
    """Return a category in the values' type, or one that no value equals."""
    whole = category == category // 1
    if of_integers:
        return Decimal(int(category)) if whole else NO_INTEGER
    return float(category) + 0.0 if float(category) == category else math.nan  # -0.0 becomes 0.0, here and in the values


def _is_beyond(decimals: pa.Array) -> pa.Array:
    return pc.or_(pc.greater(decimals, LARGEST_EXACT), pc.less(decimals, -LARGEST_EXACT))  # Arrow has no absolute values of narrow decimals


def _numeric_positions(values: pa.Array, categories: tuple) -> pa.Array:
    """Return positions of numbers that equal a category exactly, also beyond float64's precision."""
    if is_text(values.type):  # from a path
        values = values.cast(pa.int64() if all(isinstance(category, int) for category in categories) else pa.float64())
    if pa.types.is_decimal(values.type) and pc.any(_is_beyond(values)).as_py():
        raise ValueError(f"decimals beyond {LARGEST_EXACT} cannot be told apart, expected integers")
    integers = pa.types.is_integer(values.type)
    kind = pa.decimal128(MOST_DIGITS) if integers else pa.float64()
    numbers = values.cast(kind) if integers else pc.add(values.cast(kind), 0.0)
    return pc.index_in(numbers, value_set=pa.array([_exact_category(category, integers) for category in categories], kind))


def encode(values: pa.Array, categories: tuple, booleans: tuple[str, ...] = ()) -> np.ndarray:
    """Find the code of every value."""
    if isinstance(categories[0], HashedCategory):
        return encode_hashes(hash_values(values, booleans), categories)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    of_texts = isinstance(categories[0], str)
    found = pc.index_in(_as_text(values), value_set=pa.array(categories)) if of_texts else _numeric_positions(values, categories)
    codes = pc.fill_null(found, len(categories)).to_numpy(zero_copy_only=False)
    return np.where(values.is_null().to_numpy(zero_copy_only=False), np.nan, codes)


def hash_values(values: pa.Array, booleans: tuple[str, ...] = DIGITS) -> np.ndarray:
    """Hash categories as CatBoost does, by text (integers in decimals), each distinct value once."""
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    distinct = values.dictionary
    if pa.types.is_boolean(distinct.type):
        if not booleans:
            raise ValueError(UNTOLD)
        distinct = pc.if_else(distinct, booleans[1], booleans[0])
    distinct.validate(full=True)  # refuses invalid UTF-8, since texts are not decoded elsewhere
    hashes = np.append(hash_texts(distinct.cast(pa.string())).astype(np.float64), np.nan)
    hashes[:-1][distinct.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return hashes[pc.fill_null(values.indices.cast(pa.int64()), len(distinct)).to_numpy(zero_copy_only=False)]


def encode_hashes(hashes: np.ndarray, categories: tuple[HashedCategory, ...]) -> np.ndarray:
    """Find the code of every hash."""
    known = np.array([category.code for category in categories], np.float64)
    order = np.argsort(known)
    place = np.searchsorted(known[order], hashes).clip(max=known.size - 1)
    codes = np.where(known[order][place] == hashes, order[place], known.size).astype(np.float64)
    return np.where(np.isnan(hashes), np.nan, codes)


def check_codes(codes: np.ndarray) -> None:
    """Refuse codes that XGBoost treats as no category and LightGBM truncates."""
    between = codes[(codes > -1.0) & (codes < 0.0)]
    if between.size:
        raise ValueError(f"code {between[0]} of a category, expected a whole number")


def say_codes(model: Model) -> str:
    """List columns with codes of categories that the model does not store.

    Returns
    -------
    str
        Empty where there are none.
    """
    names = [feature.name for feature in model.features if feature.categorical and feature.categories is None and feature.perhaps_codes]
    if not names:
        return ""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"codes of categories, not values, since the model has no list of them: {', '.join(names[:SHOWN])}{more}"


def mark_missing(feature: Feature, values: np.ndarray, single_precision: bool) -> np.ndarray:
    """Replace the missing-value number by NaN."""
    if feature.missing is None:
        return values
    single = single_precision or feature.rounds_missing
    compared, missing = (values.astype(np.float32), np.float32(feature.missing)) if single else (values, feature.missing)
    return np.where(compared == missing, np.nan, values)
