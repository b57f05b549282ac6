"""Matching of file columns with the model's features, once for all files with the same schema."""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.trees.binning import read_columns

from ...errors import SchemaMismatch
from ...models.catboost.ctr_categories import known_hashes
from ...models.model import Feature, Model
from ...tables.live_files import Columns, LiveFile
from ..columns import schema
from ..columns.grouping import check_group_columns
from ..columns.names import spell
from .path_texts import check_text, text_type

NUMBER = b"PARQUET:field_id"  # Arrow's metadata key of a column's field id
SHAPES = 8  # cached matches; neighbouring files mostly share one, and wide ones are large


@dataclass(frozen=True, slots=True)
class ExtraColumns:
    """Columns besides the features, in files or paths."""

    ids: tuple[str, ...] = ()  # passed-through columns
    numbers: tuple[str, ...] = ()  # labels, weights, predictions
    by: tuple[str, ...] = ()  # grouping columns
    values: bool = False  # pass through the values of all features

    @property
    def names(self) -> tuple[str, ...]:
        """All names, each once."""
        return tuple(dict.fromkeys((*self.ids, *self.numbers, *self.by)))


@dataclass(frozen=True, slots=True)
class Shape:
    """Properties that determine a file's match."""

    fields: bytes  # names and types in order, serialised by Arrow
    index: tuple[str, ...]  # index columns written by pandas
    carried: tuple[str, ...]  # columns from the path
    found: pa.Schema = field(compare=False)
    uri: str = field(compare=False)  # a file with this shape, for messages


@dataclass(frozen=True, slots=True)
class Matched:
    """Columns as matched with a model."""

    names: tuple[str, ...]  # column names of the features
    by_position: bool  # see `spell`
    read: frozenset[str]  # columns to read from files
    in_file: dict[str, pa.DataType]  # of all columns in the files
    by: dict[str, pa.DataType]  # of grouping columns
    types: dict[str, pa.DataType]  # of columns with one type in all files


def list_used(model: Model) -> list[Feature]:
    """List the features whose columns are read."""
    return [model.features[column] for column in read_columns(model.ensemble)]


def make_shape(found: pa.Schema, live: LiveFile) -> Shape:
    """Collect the properties that determine a file's match."""
    fields = found.remove_metadata().serialize().to_pybytes()  # metadata of the schema does not matter
    return Shape(fields, schema.index_columns(found), tuple(name for name, _ in live.partition), found, live.file.uri)


class Matching:
    """Matches a model's features with the columns of any number of files. Pickled without its cache.

    Parameters
    ----------
    features : tuple of Feature
    used : sequence of int
        Places of the features that are read.
    asked : ExtraColumns
    hashes : mapping of int to (n,) uint32
        From places of features to what `known_hashes` tells of them.
    """

    def __init__(self, features: tuple[Feature, ...], used: Sequence[int], asked: ExtraColumns, hashes: Mapping[int, np.ndarray]):
        self._features, self._used, self._asked, self._hashes = features, used, asked, hashes
        # Refusals are not cached, so that each file is named.
        self.match, self._check_columns = lru_cache(SHAPES)(self._match), lru_cache(SHAPES)(self._check)

    @classmethod
    def of(cls, model: Model, asked: ExtraColumns) -> "Matching":
        """Make the matching for a model."""
        return cls(model.features, read_columns(model.ensemble).tolist(), asked, known_hashes(model.ensemble.statistics))

    def __reduce__(self) -> tuple[type["Matching"], tuple[Any, ...]]:
        return Matching, (self._features, self._used, self._asked, self._hashes)

    def _match(self, shape: Shape) -> Matched:
        asked, found = self._asked, shape.found
        names, by_position = spell(self._features, [*found.names, *shape.carried], shape.uri, [*shape.carried, *shape.index], asked.names)
        passed = names if asked.values else ()
        in_file = {column.name: column.type for column in found}
        by = {name: in_file.get(name, pa.string()) for name in asked.by}  # values from paths are texts
        return Matched(
            names=names,
            by_position=by_position,
            read=frozenset((*(names[column] for column in self._used), *asked.names, *passed)),
            in_file=in_file,
            by=by,
            types={name: in_file[name] for name in (*asked.ids, *passed) if name in in_file} | by,
        )

    def _check(self, shape: Shape) -> None:
        schema.check_columns(self._called(self.match(shape)), self._asked.names, shape.found, shape.carried, shape.uri)

    def _called(self, matched: Matched) -> list[Feature]:
        return [replace(feature, name=name) for feature, name in zip(self._features, matched.names, strict=True)]

    def check(self, shape: Shape, live: LiveFile) -> None:
        """Refuse a file whose columns or path values do not fit.

        Parameters
        ----------
        shape : Shape
            Of the file.
        """
        matched, uri = self.match(shape), live.file.uri
        if live.columns is not None:
            _check_table(shape.found, live.columns, (*matched.names, *self._asked.names), uri)
        self._check_columns(shape)
        carried = tuple((name, value) for name, value in live.partition if name not in matched.in_file)
        _check_carried(self._called(matched) if carried else (), self._hashes, dict(carried), uri)
        texts = {name: text_type(value) for name, value in carried if name in self._asked.numbers}
        schema.check_numbers(self._asked.numbers, ChainMap(matched.in_file, texts), uri)
        check_group_columns(matched.by, matched.by, uri)


def _check_table(found: pa.Schema, columns: Columns, asked: Iterable[str], uri: str) -> None:
    """Refuse a file that renames columns of its table, or has columns that the table lacks."""
    for column in found:
        number = (column.metadata or {}).get(NUMBER)
        other = columns.find_other(column.name, None if number is None else int(number))
        if other is not None:
            raise SchemaMismatch(f"{uri}: column {column.name!r} {other}; explain a copy of the table's rows")
    there = {*found.names}
    dropped = next((name for name in asked if name in there and name not in columns.now), None)
    if dropped is not None:
        raise SchemaMismatch(f"{uri}: column {dropped!r} is in the file, but none of the table's: dropped, or never in it")


def _check_carried(features: Iterable[Feature], hashes: Mapping[int, np.ndarray], carried: Mapping[str, str | None], uri: str) -> None:
    for place, feature in enumerate(features):
        value = carried.get(feature.name)
        if value is not None and not schema.has_several_types(feature):  # such features are in no split, see check_categories
            check_text(feature, value, f"{uri} (its path)", hashes.get(place))
