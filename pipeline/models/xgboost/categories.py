"""Category lists in XGBoost's files, which store them since 3.1."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import InvalidModel, UnsupportedModel
from ..formats.ubjson import integer, numbers, shown

UTF8_VERSION = (3, 4)  # older versions cut names of pandas categories by characters instead of bytes
UNSIGNED_BITS = {10: 8, 12: 16, 14: 32, 16: 64}  # types of category lists (CatIndexType), stored as signed integers in UBJSON
FRAME_TYPES = frozenset({"float", "int", "i"})  # column types of data frames, in XGBoost's names; users mostly write q


def check_lost(attributes: Any, kinds: Sequence[str], name: str, where: str) -> None:
    """Refuse a model that lost its category lists: estimators trained on data frames with categories store them.

    The file of a Booster does not distinguish a slice of such a model from one trained on codes.
    """
    if isinstance(attributes, dict) and "scikit_learn" in attributes and not FRAME_TYPES.isdisjoint(kinds):
        raise UnsupportedModel(
            f"{where}: feature {name!r} was a column of categories, whose list is lost, as a slice of a model loses it before XGBoost 3.4, which "
            "EarlyStopping(save_best=True) makes: save the whole model, whose best iteration is known"
        )


def read_list(entry: Any, name: str, version: tuple[int, ...], where: str) -> tuple[Any, ...]:
    """Read a feature's categories from its ``cats`` entry: UTF-8 with Arrow offsets, or numbers of a stated type."""
    where = f"{where}: categories of feature {name!r}"
    if not isinstance(entry, dict):
        raise InvalidModel(f"{where}: are {shown(entry)}, expected an object")
    if "offsets" in entry:
        offsets = numbers(entry, "offsets", int, None, where)
        letters = (numbers(entry, "values", int, None, where) & 0xFF).astype(np.uint8).tobytes()
        if offsets.size and (offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] > len(letters)):
            raise InvalidModel(f"{where}: offsets {offsets[:5].tolist()}... do not divide {len(letters)} bytes")
        if version < UTF8_VERSION and not letters.isascii():
            raise UnsupportedModel(
                f"{where}: are not ASCII, and XGBoost before 3.4 stores such names cut in pieces: train it again with 3.4 or later, or on ASCII names"
            )
        try:
            categories: list[Any] = [letters[a:b].decode() for a, b in pairwise(offsets)]
        except UnicodeDecodeError:
            raise InvalidModel(f"{where}: are not UTF-8") from None
    else:
        kind = integer(entry, "type", 7, 16, where)
        categories = numbers(entry, "values", float if kind in (7, 8) else int, None, where).tolist()
        if kind in UNSIGNED_BITS:
            categories = [value % (1 << UNSIGNED_BITS[kind]) for value in categories]
    if len(set(categories)) != len(categories):
        raise InvalidModel(f"{where}: are not distinct")
    return tuple(categories)
