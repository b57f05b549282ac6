"""Means of attributions, from measured columns or from a run's summaries."""

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from ...errors import InvalidRun
from ...runs.records.manifest import Manifest
from ...runs.records.small_table import read_small_table
from ...stores import storage
from .distribution import Distribution
from .measured_run import Measured

IMPORTANCE, INPUTS = "importance", "inputs"


@dataclass(frozen=True, slots=True)
class Means:
    """Means of a column with standard errors; unknown ones are NaN."""

    rows: int
    mean: float
    error: float
    mean_abs: float
    error_abs: float


def nothing(rows: int) -> Means:
    """Return the means of a feature that a model lacks: 0 on every row."""
    return Means(rows, 0.0, 0.0, 0.0, 0.0)


def means_of(found: Distribution) -> Means:
    """Return the means of a distribution."""
    return Means(found.n, found.mean, found.standard_error, found.mean_abs, found.standard_error_abs)


@lru_cache(maxsize=8)
def _read(run: str, uri: str, sha256: str) -> pa.Table:
    where = storage.join(run, uri)
    data = storage.read(where)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InvalidRun(f"{where}: its SHA-256 is not what the manifest says")
    return read_small_table(pa.BufferReader(data), where)


def read_summary(run: str, manifest: Manifest, name: str) -> list[dict] | None:
    """Read a summary of a run.

    Returns
    -------
    list of dict or None
        Its rows; None where the run has no such summary.
    """
    entry = manifest.summary(f"{name}.parquet")
    return None if entry is None else _read(run, entry["uri"], entry["sha256"]).to_pylist()


def _from_row(row: dict, n: int) -> Means:
    if not n:  # summaries of no rows have zeros
        return Means(0, math.nan, math.nan, math.nan, math.nan)
    variance, square = row["std"] ** 2, row["std"] ** 2 + row["mean"] ** 2 - row["mean_abs"] ** 2
    errors = (math.sqrt(max(each, 0.0) / (n - 1)) if n > 1 else math.nan for each in (variance, square))
    mean_error, abs_error = errors
    return Means(n, row["mean"], mean_error, row["mean_abs"], abs_error)


def find_means(measured: Measured, output: str) -> dict[str, Means]:
    """Return the means of the attributions to one output.

    Parameters
    ----------
    output : str
        One of the plan's ``written_outputs``.

    Returns
    -------
    dict of str to Means
        By player, in the plan's order; of no rows NaN.
    """
    found = {player: measured.phi(output, player) for player in measured.plan.players}
    if all(each is not None for each in found.values()):
        return {player: means_of(each) for player, each in found.items() if each is not None}
    rows = read_summary(measured.uri, measured.manifest, IMPORTANCE) or []
    return {row["feature"]: _from_row(row, measured.manifest.n_explained) for row in rows if row["output"] == output}
