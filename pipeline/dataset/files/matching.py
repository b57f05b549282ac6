"""Columns of files matched with the features of a model and what else is asked for: once for all files whose columns are alike."""

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
from ...tables.live import Columns, LiveFile
from ..columns import schema
from ..columns.grouping import check_group_columns
from ..columns.names import spell
from .path_texts import check_text, text_type

NUMBER = b"PARQUET:field_id"  # what Arrow calls a column's number in its metadata
SHAPES = 8  # that are kept; neighbours mostly have one, and those of wide files are large


@dataclass(frozen=True, slots=True)
class ExtraColumns:
    """Columns of the data that are asked for besides the features; paths may carry them."""

    ids: tuple[str, ...] = ()  # passed through
    numbers: tuple[str, ...] = ()  # labels, weights, predictions
    by: tuple[str, ...] = ()  # whose values make groups of rows
    values: bool = False  # those of all features are passed through

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.ids, *self.numbers, *self.by)))


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides how the columns of a file match: files that are equal in it match alike."""

    fields: bytes  # names and types in their order, as Arrow writes them
    index: tuple[str, ...]  # columns that pandas wrote for a frame's index
    carried: tuple[str, ...]  # columns that the path carries
    found: pa.Schema = field(compare=False)
    uri: str = field(compare=False)  # of a file that has it, for messages


@dataclass(frozen=True, slots=True)
class Matched:
    """What columns are for a model."""

    names: tuple[str, ...]  # of the features, as the columns are called
    by_position: bool  # see `spell`
    read: frozenset[str]  # columns that may be in files and are read
    in_file: dict[str, pa.DataType]  # of all columns of the files
    by: dict[str, pa.DataType]  # of columns that make groups of rows
    types: dict[str, pa.DataType]  # of columns that have one type in all files


def list_used(model: Model) -> list[Feature]:
    """List the features whose columns are read."""
    return [model.features[column] for column in read_columns(model.ensemble)]


def make_shape(found: pa.Schema, live: LiveFile) -> Shape:
    """Collect what decides how the columns of a file match."""
    fields = found.remove_metadata().serialize().to_pybytes()  # what the footer says besides, as of the number of rows, matters to no column
    return Shape(fields, schema.index_columns(found), tuple(name for name, _ in live.partition), found, live.file.uri)


class Matching:
    """Features of a model and what else is asked for, against the columns of any number of files. Pickle takes it, without what was matched.

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
        # What is refused is looked at again for every file, so that each is refused in its own name.
        self.match, self._check_columns = lru_cache(SHAPES)(self._match), lru_cache(SHAPES)(self._check)

    @classmethod
    def of(cls, model: Model, asked: ExtraColumns) -> "Matching":
        """Match columns against a model's features."""
        return cls(model.features, read_columns(model.ensemble).tolist(), asked, known_hashes(model.ensemble.statistics))

    def __reduce__(self) -> tuple[type["Matching"], tuple[Any, ...]]:
        return Matching, (self._features, self._used, self._asked, self._hashes)

    def _match(self, shape: Shape) -> Matched:
        asked, found = self._asked, shape.found
        names, by_position = spell(self._features, [*found.names, *shape.carried], shape.uri, [*shape.carried, *shape.index], asked.names)
        passed = names if asked.values else ()
        in_file = {column.name: column.type for column in found}
        by = {name: in_file.get(name, pa.string()) for name in asked.by}  # what the path carries are texts
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
        """Refuse a file whose columns, or values that its path carries, do not fit.

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
    """Refuse a file that calls a column otherwise than its table does, or has one that is asked for and that its table does not have."""
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
        if value is not None and not schema.has_several_types(feature):  # no split asks for such a one, see check_categories
            check_text(feature, value, f"{uri} (its path)", hashes.get(place))
