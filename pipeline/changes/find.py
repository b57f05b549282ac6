"""Tables of a model's nearest changes, and the changes of a batch of rows."""

from collections.abc import Sequence

import numpy as np

from leafledger.kernels.changes.nearest import ChangeTables, Found, find_nearest, prepare_changes
from leafledger.kernels.changes.supported import Supported
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.trees.forest import make_forest

from ..display.text import list_some
from ..errors import UsageError
from ..models.model import Feature, Model
from .asked import Change, Changes
from .threshold import find_sides


def find_used(changes: Sequence[Change], features: Sequence[Feature], read: np.ndarray) -> list[int]:
    """Find which of the features that may be changed some split asks for: the others change nothing.

    Parameters
    ----------
    features : sequence of Feature
        All of the model, by position.
    read : (read,) int32
        Positions of those that are read.

    Returns
    -------
    list of int
        Positions among the changes.
    """
    there = {features[column].name for column in read.tolist()}
    return [position for position, change in enumerate(changes) if change.feature in there]


def make_tables(model: Model, changes: Changes) -> ChangeTables:
    """Make the tables of the features of `find_used`.

    Raises
    ------
    UsageError
        The model has several outputs, or all of its predictions are on one side; or see `find_sides`.
    UnsupportedModel
        See `find_sides`.
    """
    if len(model.outputs) > 1:
        raise UsageError(f"a threshold is of one output, but the model has {list_some(model.outputs)}; expected one of them as output")
    bins, forest = make_forest(model.ensemble)
    at, below = find_sides(model, forest, changes.threshold, changes.space)
    places = {model.features[column].name: j for j, column in enumerate(bins.read.tolist())}
    used = [places[changes.features[k].feature] for k in find_used(changes.features, model.features, bins.read)]
    return frozen(prepare_changes(forest, bins, np.array(used, np.int64), at, below))


def find_changes(binned: np.ndarray, values: np.ndarray, margin: np.ndarray, tables: ChangeTables, supported: Supported) -> Found:
    """Find the nearest changes of a batch.

    Parameters
    ----------
    binned : (used, at least n) unsigned integers
    values : (used, at least n) float64
        As binning left them.
    margin : (n,) float64

    Returns
    -------
    Found
        ``(features, n)`` each.
    """
    found = Found(*np.full((3, tables.feature.size, margin.size), np.nan))
    if tables.feature.size:
        find_nearest(binned, values, np.ascontiguousarray(margin), tables, frozen(supported), found)
    return found
