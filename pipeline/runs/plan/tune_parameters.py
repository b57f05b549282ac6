"""Tuning of a job's open parameters, such as an ascent's rate, on the first rows of its data.

Tuned values are part of the plan, so that all workers use the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leafledger.kernels.method.method import Method
from leafledger.kernels.slices.buffers import Buffers, Prepared, make_buffers

from ...arguments.choices import OWN
from ...dataset.columns.partition import Groups
from ...dataset.columns.values import fill_values, read_features
from ...dataset.files.listing import Listing, WorkItem, make_items
from ...dataset.files.rows import located, read_slices
from ...errors import InvalidData
from ...methods.open_parameters import tune
from ...methods.parameters import find_method
from ...methods.tables import prepare_model
from ...methods.worker_memory import ITEM_ROWS
from ...models.model import Feature, Model
from ..job.job import Job


def _read_values(item: WorkItem, features: Sequence[Feature], prepared: Prepared) -> np.ndarray:
    """Read the values of all rows of an item, ``(used, n) float64``."""
    found = [np.zeros((prepared.bins.column.size, 0))]
    for batch in read_slices(item, [feature.name for feature in features], item.n_rows):
        values = np.zeros((prepared.bins.column.size, batch.num_rows))
        with located(item):
            fill_values(features, prepared.bins, [batch.column(feature.name) for feature in features], values)
        found.append(values)
    return np.concatenate(found, axis=1)


def _first_rows(items: Sequence[WorkItem], features: Sequence[Feature], prepared: Prepared, n_rows: int) -> Iterator[np.ndarray]:
    """Read the first readable rows; unreadable items are rejected later, with their reason."""
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
    """Tune the open parameters of a job on the first rows of its data."""

    def prepare(method: Method, parameters: Mapping[str, Any]) -> Prepared:
        return prepare_model(model, method, parameters, groups, own=job.options.combinations == OWN)

    def read(prepared: Prepared, n_rows: int) -> tuple[Buffers, int]:
        features, buffers, n = read_features(model.features, prepared.bins), make_buffers(prepared, n_rows), 0
        for values in _first_rows(make_items(found, ITEM_ROWS), features, prepared, n_rows):
            buffers.values[:, n : n + values.shape[1]] = values
            n += values.shape[1]
        return buffers, n

    return replace(job, parameters=tuple(sorted(tune(find_method(job.options.method), dict(job.parameters), prepare, read).items())))
