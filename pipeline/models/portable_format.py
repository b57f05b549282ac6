"""Leafledger's own model format: a JSON header, then the ensemble's arrays; nothing in it is executed.

A file is MAGIC, the size of the header in bytes (unsigned, 8 bytes), the header (JSON in UTF-8), and the arrays in the order of ARRAYS, row by row.
All numbers are little-endian.
"""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from leafledger.kernels.slices.links import Link, LinkName
from leafledger.kernels.trees.ensemble import TreeEnsemble

from ..display.text import is_whole
from ..errors import InvalidModel, UnsupportedModel
from ..json_records import EMPTY, as_fields, read_record
from .catboost.cityhash import DIGITS, HASH_MASK, UNASKED, HashedCategory, find_booleans
from .model import Feature, Loader, Model, check_ensemble
from .objectives import Margin, Objective

MAGIC = b"LEAFTREES 1\n"
SIZE_BYTES = 8
ARRAYS = {  # dtype and number of dimensions
    "feature": ("<i4", 1),  # of a node: column of the split, -1 at leaves
    "threshold": ("<f8", 1),  # of a node: a value goes left where it is at most this
    "missing_left": ("u1", 1),  # of a node: 1 where a missing value goes left
    "category_set": ("<i4", 1),  # of a node: at a categorical split the set of codes that go left, else -1
    "left": ("<i4", 1),  # of a node: its child, counted over all trees; -1 at leaves
    "right": ("<i4", 1),  # the other child
    "value": ("<f8", 2),  # of a node and output, or of a node alone: what a leaf adds
    "cover": ("<f8", 1),  # of a node: weight of the training rows that came through, the sum of its children's
    "root": ("<i4", 1),  # of a tree: its first node
    "output": ("<i4", 1),  # of a tree: output that it adds to where `value` is of nodes alone, else 0
    "base": ("<f8", 1),  # of an output: margin before any tree
    "n_categories": ("<i4", 1),  # of a feature: known categories, 0 of numbers
    "zero_missing": ("u1", 1),  # of a feature: 1 where values up to 1e-35 count as missing
    "set_start": ("<i8", 1),  # of a set s: it is words set_start[s] to set_start[s + 1] - 1
    "set_words": ("<u4", 1),  # bit c: code c goes left; the bit after the last code stands for all others, those above it are 0
    "iteration": ("<i4", 1),  # of a tree: iteration of boosting from 0 on, never falling; empty where trees are averaged
}


@dataclass(frozen=True, slots=True)
class _Column:
    """A Feature in the header; ``hashed`` if its categories are CatBoost's hashes."""

    name: str
    categorical: bool
    categories: tuple[str | int | float | bool, ...] | None  # by code; null where the column holds codes
    hashed: bool  # categories are CatBoost's hashes
    perhaps_codes: bool  # the file does not say whether training saw values or codes of categories
    underscored: bool  # of LightGBM, else false
    missing: float | None  # a number that stands for a missing value
    named: bool  # false where the name is made up of the position; where no feature has a name, columns go by position
    by_value: bool  # a matrix holds the categories themselves, as in CatBoost and scikit-learn; else their codes
    refuses_missing: bool = field(default=False, metadata={EMPTY: True})  # rows in which it is missing are refused
    partial: bool = field(default=False, metadata={EMPTY: True})  # categories are those alone that splits ask for; training may have seen others


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of a file."""

    origin: str  # where the trees come from, for people
    objective: str  # what they were trained for
    # what margins are: label (a prediction in the label's units), class (a class's score), classes (scores of classes of which a row has one), alone
    # (one of these without the others) or other
    margin: Literal["label", "class", "classes", "alone", "other"]
    link: LinkName | None  # predictions are this link of `scale` times the margin: identity, sigmoid, softmax or exp; null for other predictions
    scale: float
    outputs: tuple[str, ...]  # their names
    single_precision: bool  # values are rounded to single precision before they are compared
    base_is_first: bool  # the base value belongs to the first iteration
    features: tuple[_Column, ...]  # an object for each
    arrays: dict[str, tuple[int, ...]]  # shapes by name
    probability: LinkName | None = field(default=None, metadata={EMPTY: True})  # link of margins to a probability, if predictions are something else
    classes: tuple[str, ...] = field(default=(), metadata={EMPTY: True})  # names of both classes of a single margin
    threshold: float | None = field(default=None, metadata={EMPTY: True})  # probability threshold of the second class, if not one half


def _plain(category: Any) -> Any:
    """Convert a category to a JSON value."""
    return category.code if isinstance(category, HashedCategory) else category.item() if isinstance(category, np.generic) else category


def _column(feature: Feature) -> _Column:
    categories = feature.categories
    return _Column(
        name=feature.name,
        categorical=feature.categorical,
        categories=None if categories is None else tuple(map(_plain, categories)),
        hashed=bool(categories) and isinstance(categories[0], HashedCategory) if categories is not None else False,
        perhaps_codes=feature.perhaps_codes,
        underscored=feature.underscored,
        missing=feature.missing,
        named=feature.named,
        by_value=feature.by_value,
        refuses_missing=feature.refuses_missing,
        partial=feature.partial,
    )


def write_trees(model: Model) -> bytes:
    """Serialise a model's arrays and names.

    Returns
    -------
    bytes
        Of a file of this format.

    Raises
    ------
    UnsupportedModel
        A category is no text, number or boolean, missing values are infinite, or the model looks up target statistics.
    """
    ensemble, link = model.ensemble, model.objective.link
    if ensemble.statistics.column.size:
        raise UnsupportedModel("the model has target statistics (CTR), for which this format has no place: use the file that its library writes")
    arrays = {name: np.ascontiguousarray(getattr(ensemble, name), dtype) for name, (dtype, _) in ARRAYS.items()}
    header = _Header(
        origin=model.library,
        objective=model.objective.name,
        margin=model.objective.margin.value,
        link=None if link is None else link.name,
        scale=1.0 if link is None else link.scale,
        outputs=model.outputs,
        single_precision=ensemble.single_precision,
        base_is_first=ensemble.base_is_first,
        features=tuple(map(_column, model.features)),
        arrays={name: array.shape for name, array in arrays.items()},
        probability=None if model.objective.probability is None else model.objective.probability.name,
        classes=model.objective.classes,
        threshold=model.objective.threshold,
    )
    for column in header.features:
        if column.missing is not None and not math.isfinite(column.missing):
            raise UnsupportedModel(f"feature {column.name!r} has {column.missing} for missing values, expected a finite number, or NaN alone")
        for category in column.categories or ():
            if type(category) not in (str, int, float, bool) or (isinstance(category, float) and not math.isfinite(category)):
                raise UnsupportedModel(f"feature {column.name!r} has category {category!r:.40}, expected texts, finite numbers or booleans")
    text = json.dumps(header, ensure_ascii=False, default=as_fields).encode()
    return b"".join((MAGIC, len(text).to_bytes(SIZE_BYTES, "little"), text, *(array.tobytes() for array in arrays.values())))


def _read_header(data: bytes, where: str) -> tuple[_Header, int]:
    """Return the header, and the offset of the arrays."""
    start = len(MAGIC) + SIZE_BYTES
    size = int.from_bytes(data[len(MAGIC) : start], "little")
    if len(data) < start or size > len(data) - start:
        raise InvalidModel(f"{where}: {len(data)} bytes, expected a header of {size} bytes after the first {start}")
    try:
        return read_record(_Header, data[start : start + size]), start + size
    except ValueError as error:
        raise InvalidModel(f"{where}: its header is not sound: {error}") from None


def _read_arrays(header: _Header, data: bytes, at: int, where: str) -> dict[str, Any]:
    if list(header.arrays) != list(ARRAYS):
        raise InvalidModel(f"{where}: its header lists arrays {', '.join(header.arrays)[:80]!r}, expected {', '.join(ARRAYS)}")
    for name, shape in header.arrays.items():
        if len(shape) != ARRAYS[name][1] or min(shape) < 0:
            raise InvalidModel(f"{where}: array {name!r} has shape {shape}, expected {ARRAYS[name][1]} sizes of at least 0")
    sizes = {name: math.prod(shape) * np.dtype(ARRAYS[name][0]).itemsize for name, shape in header.arrays.items()}
    if at + sum(sizes.values()) != len(data):
        raise InvalidModel(f"{where}: {len(data)} bytes, but its header promises {at + sum(sizes.values())}")
    found = {}
    for name, size in sizes.items():
        found[name] = np.frombuffer(data, ARRAYS[name][0], math.prod(header.arrays[name]), at).reshape(header.arrays[name])
        at += size
    for name in ("missing_left", "zero_missing"):
        if found[name].max(initial=0) > 1:
            raise InvalidModel(f"{where}: array {name!r} has {found[name].max()}, expected 0 or 1")
        found[name] = found[name].astype(bool)
    return found


def _hinted(column: _Column, categories: tuple[Any, ...] | None) -> Feature:
    return Feature(
        name=column.name,
        categorical=column.categorical,
        categories=categories,
        perhaps_codes=column.perhaps_codes,
        underscored=column.underscored,
        missing=column.missing,
        named=column.named,
        by_value=column.by_value,
        refuses_missing=column.refuses_missing,
        booleans=_booleans(categories or ()),
        partial=column.partial,
    )


def _booleans(categories: tuple[Any, ...]) -> tuple[str, ...]:
    """Return how hashed categories spell false and true."""
    hashes = [category.code for category in categories if isinstance(category, HashedCategory)]
    return DIGITS if hashes == [UNASKED.code] else find_booleans(hashes)


def _feature(column: _Column, n_categories: int, where: str) -> Feature:
    """Return a feature with its number of categories checked."""
    where = f"{where}: feature {column.name!r}"
    categories: tuple[Any, ...] | None = column.categories
    if column.categorical != (n_categories > 0):
        raise InvalidModel(f"{where} has {n_categories} categories, expected {'some' if column.categorical else 'none'}")
    if column.by_value and categories is None:
        raise InvalidModel(f"{where} is by value, expected categories that values are looked up in")
    if categories is None:
        return _hinted(column, None)
    if len(categories) != n_categories or len(set(map(repr, categories))) != n_categories:
        raise InvalidModel(f"{where} lists {len(categories)} categories, expected {n_categories} different ones")
    if column.hashed:
        if not all(type(code) is int and 0 <= code <= HASH_MASK for code in categories):
            raise InvalidModel(f"{where} has hashes {repr(categories)[:40]}, expected whole numbers of 32 bits")
        categories = tuple(map(HashedCategory, categories))
    elif any(isinstance(category, float) and not math.isfinite(category) for category in categories):
        raise InvalidModel(f"{where} has a category that is no finite number")
    return _hinted(column, categories)


def read_trees(data: bytes, where: str) -> tuple[TreeEnsemble, tuple[Feature, ...], tuple[str, ...], Objective]:
    """Parse and check a file of this format.

    Parameters
    ----------
    where : str
        Name of the file, for messages.

    Returns
    -------
    ensemble : TreeEnsemble
    features : tuple of Feature
    outputs : tuple of str
    objective : Objective

    Raises
    ------
    InvalidModel
        The bytes are cut off, or do not make an ensemble.
    """
    header, start = _read_header(data, where)
    arrays = _read_arrays(header, data, start, where)
    ensemble = TreeEnsemble(**arrays, single_precision=header.single_precision, base_is_first=header.base_is_first)
    if len(header.features) != ensemble.n_features or len(header.outputs) != ensemble.base.size:
        raise InvalidModel(
            f"{where}: names of {len(header.features)} features and {len(header.outputs)} outputs, "
            f"expected {ensemble.n_features} and {ensemble.base.size}"
        )
    check_ensemble(ensemble, where)
    numeric = (ensemble.feature >= 0) & (ensemble.category_set < 0)
    with np.errstate(over="ignore"):
        near = ensemble.threshold.astype(np.float32)
    wide = np.flatnonzero(numeric & (near != ensemble.threshold) & np.isfinite(near))  # thresholds that separate infinity from all numbers
    if header.single_precision and wide.size:
        raise InvalidModel(f"{where}: node {wide[0]}: threshold {ensemble.threshold[wide[0]]!r} is no number in single precision")
    for column in header.features:
        if column.missing is not None and not math.isfinite(column.missing):
            raise InvalidModel(f"{where}: feature {column.name!r} has missing value {column.missing}, expected a finite number or null")
    features = tuple(_feature(column, n, where) for column, n in zip(header.features, ensemble.n_categories.tolist(), strict=True))
    if not 0 < header.scale < math.inf:
        raise InvalidModel(f"{where}: scale is {header.scale}, expected a number above 0")
    if header.classes and (len(header.outputs) != 1 or len(header.classes) != 2 or not all(map(is_whole, header.classes))):
        raise InvalidModel(
            f"{where}: {len(header.classes)} classes of {len(header.outputs)} outputs, expected two that can be written, of one output"
        )
    if header.threshold is not None and not 0 <= header.threshold <= 1:
        raise InvalidModel(f"{where}: threshold is {header.threshold}, expected a number from 0 to 1")
    link = None if header.link is None else Link(header.link, header.scale)
    probability = None if header.probability is None else Link(header.probability)
    return ensemble, features, header.outputs, Objective(header.objective, Margin(header.margin), link, probability, header.classes, header.threshold)


LOADER = Loader(
    library="neutral",
    recognise=lambda data: data.startswith(MAGIC),
    parse=read_trees,
    owns=lambda model: False,
    serialise=write_trees,
    single_sums=True,
)
