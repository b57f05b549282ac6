"""Columns of the data against the features of the model, by name; and how a column's values become the numbers that ranks are made of."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidColumn, SchemaMismatch
from ..models.cityhash import HashedCategory
from ..models.model import Feature

MARGIN, INTERACTIONS = "margin", "interactions"


def _value_type(found: pa.DataType) -> pa.DataType:
    return found.value_type if pa.types.is_dictionary(found) else found


def _is_number(found: pa.DataType) -> bool:
    return pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_boolean(found) or pa.types.is_decimal(found)


def _is_text(found: pa.DataType) -> bool:
    return pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)


def check_column(feature: Feature, found: pa.DataType, where: str) -> None:
    """Refuse a column whose type cannot hold the feature's values."""
    value_type = _value_type(found)
    if pa.types.is_null(value_type):
        return
    if feature.categories:
        wants_text = isinstance(feature.categories[0], str | HashedCategory)
        # An integer written as text is the same category: CatBoost stores integer categories so.
        written = _is_text(value_type) or pa.types.is_integer(value_type) or pa.types.is_boolean(value_type)
        if written if wants_text else _is_number(value_type):
            return
        wanted = "categories that are " + ("strings" if wants_text else "numbers")
    elif _is_number(value_type) and not (feature.categorical and pa.types.is_dictionary(found)):
        return
    else:
        wanted = "category codes, since it stores no category list" if feature.categorical else "numbers"
    raise SchemaMismatch(f"{where}: column {feature.name!r} is {found}, the model was trained on {wanted}")


def check_columns(features: Sequence[Feature], ids: Sequence[str], schema: pa.Schema, partitions: Iterable[str], where: str) -> None:
    """Refuse data in which a feature or id column is missing, stands twice, or has a type that does not fit; other columns are passed over."""
    names = Counter(schema.names)
    present = set(names) | set(partitions)
    wanted = [feature.name for feature in features]
    missing = [name for name in (*wanted, *ids) if name not in present]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise SchemaMismatch(
            f"{where}: column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing[:5]))}{more} missing, got {_some(schema.names)}"
        )
    doubled = [name for name in (*wanted, *ids) if names[name] > 1]
    if doubled:
        raise SchemaMismatch(f"{where}: column {doubled[0]!r} stands {names[doubled[0]]} times, expected once")
    for feature in features:
        if names[feature.name]:
            check_column(feature, schema.field(feature.name).type, where)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") if names else "no columns"


def _as_text(values: pa.Array) -> pa.Array:
    if pa.types.is_boolean(values.type):  # as Python and pandas write them
        return pc.if_else(values, "True", "False")
    return values.cast(pa.string())


def _hashed_positions(values: pa.Array, categories: tuple) -> pa.Array:
    """Position of every value in a list of hashes, null where it is not there; every distinct value is hashed once."""
    encoded = values.dictionary_encode()
    position = {category: i for i, category in enumerate(categories)}
    found = pa.array([position.get(HashedCategory.of(value.as_py())) for value in encoded.dictionary], pa.int32())
    return found.take(encoded.indices)


def _positions(values: pa.Array, categories: tuple) -> pa.Array:
    """Position of every value in the list, null where it is not there."""
    if isinstance(categories[0], HashedCategory):
        return _hashed_positions(values, categories)
    if isinstance(categories[0], str):
        return pc.index_in(_as_text(values), value_set=pa.array(categories))
    return pc.index_in(values.cast(pa.float64(), safe=False), value_set=pa.array(categories).cast(pa.float64(), safe=False))


def _codes(values: pa.Array, categories: tuple) -> np.ndarray:
    """Codes ``(n,) float64``: the position in the list, its length where the value is not in it, NaN where missing."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    found = pc.fill_null(_positions(values, categories), len(categories)).to_numpy(zero_copy_only=False)
    return np.where(values.is_null().to_numpy(zero_copy_only=False), np.nan, found)


def column_values(feature: Feature, column: pa.Array) -> np.ndarray:
    """A column as ``(n,) float64``: numbers as they are, categories as codes, NaN where missing. The type was checked before.

    Raises
    ------
    InvalidColumn
        values are not what the type says, such as text that is no UTF-8
    """
    try:
        return _column_values(feature, column)
    except (pa.ArrowException, ValueError) as error:
        raise InvalidColumn(f"column {feature.name!r}: {' '.join(str(error).split())}") from error


def _column_values(feature: Feature, column: pa.Array) -> np.ndarray:
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_dictionary(column.type):
        if not len(column.dictionary):
            return np.full(len(column), np.nan)
        table = np.append(_column_values(feature, column.dictionary), np.nan)
        indices = pc.fill_null(column.indices.cast(pa.int64()), len(column.dictionary))
        return table[indices.to_numpy(zero_copy_only=False)]
    if feature.categories:
        return _codes(column, feature.categories)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def check_labels(numbers: Sequence[str], by: Sequence[str], types: Mapping[str, pa.DataType], where: str) -> None:
    """Refuse columns of labels and weights that hold no numbers, and columns of groups that hold no texts, integers or dates."""
    for name in numbers:
        found = types[name]
        if not (_is_number(found) or pa.types.is_null(found)):
            raise SchemaMismatch(f"{where}: column {name!r} is {found}, expected numbers")
    for name in by:
        found = _value_type(types[name])
        grouped = (_is_text(found), pa.types.is_integer(found), pa.types.is_boolean(found), pa.types.is_date(found), pa.types.is_null(found))
        if not any(grouped):
            raise SchemaMismatch(f"{where}: column {name!r} is {found}, expected texts, integers or dates to group rows by")


def output_columns(
    players: Sequence[str], outputs: Sequence[str], ids: Sequence[str], interactions: bool, phi_name: str, n_scores: int = 0
) -> tuple[list[str], list[str], list[str]]:
    """Names of the columns of margins, attributions and interactions, outputs outermost; refuse names that collide. The last of the players may be
    scores, whose columns have their own names."""
    stems = [f"_{output}" for output in outputs] if len(outputs) > 1 else [""]
    margins = [MARGIN + stem for stem in stems]
    named, scores = players[: len(players) - n_scores], players[len(players) - n_scores :]
    phi = [name for stem in stems for name in (*(f"{phi_name}{stem}_{player}" for player in named), *(score + stem for score in scores))]
    pairs = [INTERACTIONS + stem for stem in stems] if interactions else []
    twice = [name for name, count in Counter((*ids, *margins, *phi, *pairs)).items() if count > 1]
    if twice:
        raise SchemaMismatch(f"output column {twice[0]!r} would stand twice; rename the id column or the feature it comes from")
    return margins, phi, pairs
