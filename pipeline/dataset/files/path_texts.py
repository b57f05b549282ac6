"""Column values from file paths (Hive partitioning): validation and types."""

import numpy as np
import pyarrow as pa

from ...errors import InvalidColumn, SchemaMismatch
from ...models.catboost.cityhash import HashedCategory
from ...models.model import Feature
from ..columns.schema import AS_CATEGORIES, column_values, say_trained


def _is_category(feature: Feature, text: str, hashes: np.ndarray | None) -> bool:
    """Return whether the model knows a category, by its list or by hash; without a list, any text is accepted."""
    (code,) = column_values(feature, pa.array([text]))
    if not feature.categories or code < len(feature.categories):
        return True
    return hashes is not None and HashedCategory.of(text).code in hashes


def check_text(feature: Feature, text: str, where: str, hashes: np.ndarray | None = None) -> None:
    """Refuse a path value that is invalid for the feature."""
    if feature.perhaps_codes:
        codes = "give them in the files, as numbers" if feature.categorical else "give it in the files"
        advice = AS_CATEGORIES if feature.categories else codes
        raise SchemaMismatch(f"{where}: column {feature.name!r} is {text!r}, the model was trained on {say_trained(feature)}: {advice}")
    try:
        known = _is_category(feature, text, hashes)
        shorter = text if known or not text.isdecimal() else str(int(text))
        meant = shorter != text and _is_category(feature, shorter, hashes)
    except InvalidColumn:
        raise SchemaMismatch(f"{where}: column {feature.name!r} is {text!r}, the model was trained on numbers") from None
    if meant:
        raise SchemaMismatch(f"{where}: column {feature.name!r} is {text!r}, the model has category {shorter!r}; name the folder so")
    if shorter != text and feature.hashed and hashes is None:
        raise SchemaMismatch(
            f"{where}: column {feature.name!r} is {text!r}, and the model does not tell whether it has that or {shorter!r}; name the folder "
            f"{shorter!r} if that is meant, or else put the column into the files"
        )


def text_type(text: str | None) -> pa.DataType:
    """Return the type of a numeric column whose value is in the path."""
    if text is None:
        return pa.null()
    try:
        return pa.array([text]).cast(pa.float64()).type
    except pa.ArrowException:
        return pa.string()
