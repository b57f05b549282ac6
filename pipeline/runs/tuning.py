"""Parameters that are left open, as the rate of an ascent: chosen on a few rows, once, before a run is planned or rows in memory are explained.

So the number stands in the plan, and all workers take the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.batch import attribute_batch
from kernels.buffers import Buffers, Prepared, make_buffers
from kernels.method import Method
from kernels.tuning import find_open

from ..dataset.listing import Listing, WorkItem, make_items
from ..dataset.partition import Groups
from ..dataset.rows import located, read_slices
from ..dataset.values import fill_values, read_features
from ..errors import InvalidData, UsageError
from ..models.model import Feature, Model
from .job import Job, find_method
from .options import OWN
from .prepare import prepare_model
from .sizes import ITEM_ROWS


def tune(
    method: Method,
    parameters: Mapping[str, Any],
    prepare: Callable[[Method, Mapping[str, Any]], Prepared],
    read: Callable[[Prepared, int], tuple[Buffers, int]],
) -> dict[str, Any]:
    """Choose what parameters leave open.

    Parameters
    ----------
    method : Method
    parameters : mapping of str to Any
        All of the method's.
    prepare : callable
        ``(method, parameters) -> tables``.
    read : callable
        ``(tables, n_rows) -> (buffers, n)`` with the values of the first n rows, at most so many. Not called where nothing is open.

    Returns
    -------
    dict of str to Any
        With nothing left open.

    Raises
    ------
    UsageError
        None of the candidates will do.
    """
    tuning, tried = method.tuning, find_open(method, parameters)
    if tuning is None or tried is None:
        return dict(parameters)
    prepared = prepare(*tried)
    buffers, n = read(prepared, tuning.n_rows)

    def follow(some: Prepared) -> np.ndarray:
        attribute_batch(tried[0], some, buffers)
        return buffers.path[:, :, :n]

    value = tuning.choose(prepared, follow)
    if value is None:
        raise UsageError(f"{tuning.name} is left open, but by every candidate the objective falls on the first {n} rows; give a number")
    return tuning.fill(parameters, value)


def _read_values(item: WorkItem, features: Sequence[Feature], prepared: Prepared) -> np.ndarray:
    """``(used, n) float64`` of all rows of an item."""
    found = [np.zeros((prepared.bins.column.size, 0))]
    for batch in read_slices(item, [feature.name for feature in features], item.n_rows):
        values = np.zeros((prepared.bins.column.size, batch.num_rows))
        with located(item):
            fill_values(features, prepared.bins, [batch.column(feature.name) for feature in features], values)
        found.append(values)
    return np.concatenate(found, axis=1)


def _first_rows(items: Sequence[WorkItem], features: Sequence[Feature], prepared: Prepared, n_rows: int) -> Iterator[np.ndarray]:
    """Values of the first rows that can be read; items that cannot are rejected later, with their reason."""
    left = n_rows
    for item in items:
        if left:
            try:
                values = _read_values(replace(item, n_rows=min(left, item.n_rows)), features, prepared)
            except InvalidData:
                continue
            left -= values.shape[1]
            yield values


def tune_job(job: Job, model: Model, groups: Groups, found: Listing) -> Job:
    """Choose what a job leaves open, on the first rows of its data.

    Parameters
    ----------
    job : Job
        Without a background, where it leaves anything open.
    model : Model
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    found : Listing
        Of the data.

    Returns
    -------
    Job
        With nothing left open.

    Raises
    ------
    UsageError
        None of the candidates will do, or the parameters do not fit the model.
    UnsupportedModel
        The method has no meaning for this model.
    StorageError
        The store does not answer.
    """

    def prepare(method: Method, parameters: Mapping[str, Any]) -> Prepared:
        return prepare_model(model, method, parameters, groups, own=job.options.combinations == OWN)

    def read(prepared: Prepared, n_rows: int) -> tuple[Buffers, int]:
        features, buffers, n = read_features(model.features, prepared.bins), make_buffers(prepared, n_rows), 0
        for values in _first_rows(make_items(found, ITEM_ROWS), features, prepared, n_rows):
            buffers.values[:, n : n + values.shape[1]] = values
            n += values.shape[1]
        return buffers, n

    return replace(job, parameters=tuple(sorted(tune(find_method(job.options.method), dict(job.parameters), prepare, read).items())))
