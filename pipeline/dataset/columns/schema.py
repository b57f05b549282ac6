"""Validation of data columns against the model's features, and names of output columns."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...display.nearest import did_you_mean
from ...display.text import list_some
from ...errors import InvalidColumn, SchemaMismatch
from ...models.catboost.cityhash import HashedCategory
from ...models.model import Feature
from .categories import check_codes, encode, is_text, mark_missing

INTERACTIONS, ERROR, VALUE, BASE = "interactions", "error", "value", "base"
AS_CATEGORIES = "give it in memory as the column of categories that it was in training, or train again on categories that are texts"


def _value_type(found: pa.DataType) -> pa.DataType:
    return found.value_type if pa.types.is_dictionary(found) else found


def _is_number(found: pa.DataType) -> bool:
    return pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_boolean(found) or pa.types.is_decimal(found)


def has_several_types(feature: Feature) -> bool:
    """Return whether categories have several types, such as texts and numbers, which no Arrow column can hold."""
    return len({float if type(category) is int else type(category) for category in feature.categories or ()}) > 1


def check_categories(features: Iterable[Feature], where: str) -> None:
    """Refuse features whose values no column can hold.

    Parameters
    ----------
    features : iterable of Feature
        Those that splits ask for.
    where : str
        What the columns are of, for the message.
    """
    for feature in features:
        if has_several_types(feature):
            raise SchemaMismatch(f"{where}: feature {feature.name!r} has categories of several types, which only a pandas column of categories holds")


def _is_half(number: float) -> bool:
    with np.errstate(over="ignore"):
        return float(np.float16(number)) == number


def check_column(feature: Feature, found: pa.DataType, where: str) -> None:
    """Refuse a column whose type cannot hold the feature's values.

    Parameters
    ----------
    found : pa.DataType
        Of the column. Dictionaries are categories, taken by the type of their values; columns of nulls always fit.
    where : str
        What the column is of, for the message.
    """
    value_type = _value_type(found)
    if pa.types.is_float16(value_type) and feature.missing is not None and not _is_half(feature.missing):
        raise SchemaMismatch(f"{where}: column {feature.name!r} is {found}, which rounds {feature.missing}, the number for missing values")
    if pa.types.is_null(value_type):
        return
    if feature.categories:
        hashed = isinstance(feature.categories[0], HashedCategory)
        wants_text = hashed or isinstance(feature.categories[0], str)
        # An integer as text is the same category, since CatBoost stores integer categories as text. It stores booleans as "True", but as "1" in JSON
        # saved with a pool.
        is_boolean = pa.types.is_boolean(value_type)
        booleans = is_boolean and bool(feature.booleans if hashed else {"True", "False"} & {*feature.categories})
        written = is_text(value_type) or pa.types.is_integer(value_type) or booleans
        fits = written if wants_text else _is_number(value_type)
        if fits and (not feature.perhaps_codes or pa.types.is_dictionary(found) or is_text(found)):
            return
        untold = " and does not tell how it wrote booleans: give them as texts" * (hashed and is_boolean)
        named = "categories that are " + ("strings" if wants_text else "numbers") + untold
        wanted = f"{say_trained(feature)}: {AS_CATEGORIES}" if fits else named
    elif _is_number(value_type) and not (pa.types.is_dictionary(found) and (feature.categorical or feature.perhaps_codes)):
        return
    else:
        wanted = say_trained(feature) + ": give it as numbers" * feature.perhaps_codes
    raise SchemaMismatch(f"{where}: column {feature.name!r} is {found}, the model was trained on {wanted}")


def say_trained(feature: Feature) -> str:
    """Describe the values of a feature in training."""
    if feature.categories:
        return "categories or on their codes, and cannot tell which"
    if feature.categorical:
        return "category codes, since it stores no category list"
    return "numbers" + " or on a category column's codes, and cannot tell which" * feature.perhaps_codes


def check_columns(features: Sequence[Feature], ids: Sequence[str], schema: pa.Schema, partitions: Iterable[str], where: str) -> None:
    """Refuse data whose columns do not fit; other columns are ignored.

    Parameters
    ----------
    features : sequence of Feature
        Each needs a column of its name.
    ids : sequence of str
        Names of further columns that must be there, of any type.
    schema : pa.Schema
        Of the data.
    partitions : iterable of str
        Names of columns that the path carries; their types are not looked at.
    where : str
        What the data are, for the message.
    """
    names = Counter(schema.names)
    present = set(names) | set(partitions)
    wanted = [feature.name for feature in features]
    missing = [name for name in (*wanted, *ids) if name not in present]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        lacks = f"column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing[:5]))}{more} missing"
        others = present.difference(wanted, ids) if missing[0] in wanted else present  # an id may be a feature's column
        meant = did_you_mean(missing[0], others)
        raise SchemaMismatch(f"{where}: {lacks}, got {list_some(schema.names) or 'no columns'}{meant}")
    doubled = [name for name in (*wanted, *ids) if names[name] > 1]
    if doubled:
        raise SchemaMismatch(f"{where}: column {doubled[0]!r} stands {names[doubled[0]]} times, expected once")
    for feature in features:
        if names[feature.name]:
            check_column(feature, schema.field(feature.name).type, where)


def index_columns(schema: pa.Schema) -> tuple[str, ...]:
    """Find the columns of a data frame's index that pandas wrote, which are not data."""
    try:
        found = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    except (ValueError, RecursionError):  # pandas metadata may come from anybody
        return ()
    listed = found.get("index_columns") if isinstance(found, dict) else None
    return tuple(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else ()


def column_values(feature: Feature, column: pa.Array, single_precision: bool = False) -> np.ndarray:
    """Convert a column, of a type checked by `check_column`, to numbers.

    Parameters
    ----------
    column : pa.Array
        n values, possibly dictionary-encoded; texts where a path carries them.
    single_precision : bool
        Round integers as float32 does, as a library that compares float32 does; from 2^53 on they would else be rounded twice.

    Returns
    -------
    (n,) float64
        Numbers in their own units; categories as codes, with the number of categories for one that the model does not know; NaN where missing.

    Raises
    ------
    InvalidColumn
        Values are not what the type says, such as text that is no UTF-8.
    """
    try:
        return _column_values(feature, column, single_precision)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InvalidColumn(f"column {feature.name!r}: {' '.join(str(error).split())}") from error


def _column_values(feature: Feature, column: pa.Array, single_precision: bool = False) -> np.ndarray:
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_dictionary(column.type):
        if not len(column.dictionary):
            return np.full(len(column), np.nan)
        table = np.append(_column_values(feature, column.dictionary, single_precision), np.nan)
        indices = pc.fill_null(column.indices.cast(pa.int64()), len(column.dictionary))
        return table[indices.to_numpy(zero_copy_only=False)]
    if feature.categories:
        return encode(column, feature.categories, feature.booleans)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # Arrow's own cast of decimals to double does not round to nearest
    if single_precision and pa.types.is_integer(column.type):
        column = column.cast(pa.float32(), safe=False)
    if not (pa.types.is_float64(column.type) or pa.types.is_float32(column.type)):
        column = column.cast(pa.float64(), safe=False)
    values = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    values = mark_missing(feature, values, single_precision or pa.types.is_float32(column.type))
    if feature.categorical:
        check_codes(values)
    return values


def check_numbers(numbers: Sequence[str], types: Mapping[str, pa.DataType], where: str) -> None:
    """Refuse columns of labels, weights and predictions with unsuitable types.

    Parameters
    ----------
    numbers : sequence of str
        Columns that have to hold numbers, or nulls alone.
    types : mapping of str to pa.DataType
        Of all columns of the data, also those that the path carries.
    where : str
        URI of the file, for the message.
    """
    for name in numbers:
        found = types[name]
        if not (_is_number(found) or pa.types.is_null(found)):
            raise SchemaMismatch(f"{where}: column {name!r} is {found}, expected numbers")


def _untaken(names: list[str], taken: Iterable[str]) -> list[str]:
    """Make names distinct from those taken."""
    twice = sorted({*names} & {*taken})
    if twice:
        raise SchemaMismatch(f"output column {twice[0]!r} would stand twice; rename the id column or the feature it comes from")
    return names


def player_columns(name: str, players: Sequence[str], outputs: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Name additional columns by output and player, such as standard errors.

    Parameters
    ----------
    name : str
        What they begin with.
    outputs : sequence of str
        Their names are left out where there is only one.
    taken : sequence of str
        Names that other columns have.

    Returns
    -------
    list of str
        One per output and player.

    Raises
    ------
    SchemaMismatch
        Two columns would have the same name.
    """
    return _untaken(output_columns(players, outputs, (), False, ("", name))[1], taken)


def name_columns(name: str, outputs: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Name columns, one for every output.

    Parameters
    ----------
    name : str
        What they begin with.
    outputs : sequence of str
        Their names are left out where there is only one.
    taken : sequence of str
        Names that other columns have.

    Raises
    ------
    SchemaMismatch
        A name is taken.
    """
    return _untaken([f"{name}_{output}" for output in outputs] if len(outputs) > 1 else [name], taken)


def output_columns(
    players: Sequence[str], outputs: Sequence[str], ids: Sequence[str], interactions: bool, names: tuple[str, str], n_scores: int = 0
) -> tuple[list[str], list[str], list[str]]:
    """Name the columns of totals, attributions and interactions, by output.

    Parameters
    ----------
    players : sequence of str
        Features or groups, and last of all the scores of the method.
    outputs : sequence of str
        Their names are left out where there is only one.
    ids : sequence of str
        Names that are taken already.
    interactions : bool
        Whether there are interactions.
    names : (str, str)
        What columns of margins, and of attributions, begin with.
    n_scores : int
        How many of the players are scores. Their columns have their own names.

    Returns
    -------
    margins, phi, interactions : lists of str
        One name per output; one per output and player; one per output, or none.

    Raises
    ------
    SchemaMismatch
        Two columns would have the same name.
    """
    stems = [f"_{output}" for output in outputs] if len(outputs) > 1 else [""]
    margins = [names[0] + stem for stem in stems]
    named, scores = players[: len(players) - n_scores], players[len(players) - n_scores :]
    phi = [name for stem in stems for name in (*(f"{names[1]}{stem}_{player}" for player in named), *(score + stem for score in scores))]
    pairs = [INTERACTIONS + stem for stem in stems] if interactions else []
    twice = [name for name, count in Counter((*ids, *margins, *phi, *pairs)).items() if count > 1]
    if twice:
        raise SchemaMismatch(f"output column {twice[0]!r} would stand twice; rename the id column or the feature it comes from")
    return margins, phi, pairs
