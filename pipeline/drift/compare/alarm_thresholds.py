"""Thresholds of drift: significance and effect size."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

from ...arguments.readers import read_float, read_names, shorten
from ...display.nearest import did_you_mean
from ...errors import UsageError
from ...runs.columns.reasons_file import load_settings

Given = Mapping[str, Any] | str | PathLike
RATE = "false_discovery_rate"
UNBOUNDED = ("psi", "loss", "mean")
IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A column has drifted if its corrected test is significant and its distance is large enough."""

    false_discovery_rate: float = 0.01  # largest share of false alarms among all alarms on average, and of runs with alarms if nothing drifts
    distance: float = 0.05  # Kolmogorov–Smirnov, or total variation: at least this share of rows has another value, said as `differs by 5.3%`
    share: float = 0.01  # change of the share of missing or unseen rows
    psi: float | None = None  # if given: a column also drifts if its PSI exceeds the expected value by this
    loss: float = 0.1  # rise of the mean loss, as a share of what it was
    # Where normal predictions all move by 0.125 standard deviations, 5% are elsewhere, so that this alarm and that of the distance tell of the same
    # changes; beyond 0.2, a mean of the demo that doubled made none.
    mean: float = 0.1  # change of the mean margin or prediction, in standard deviations of what the rows had before
    ndcg: float = 0.9  # the order of features drifts below this NDCG (as in Amazon SageMaker Clarify)
    ignore: tuple[str, ...] = ()  # features that are known to change, and make no alarm


def read_thresholds(given: Given | None) -> Thresholds:
    """Read thresholds.

    Parameters
    ----------
    given : mapping, str, path or None
        Some of the fields of Thresholds by name, or a TOML or JSON file of them. None for all as they are by default.

    Raises
    ------
    UsageError
        A name is unknown, or a value is no number from 0 to 1; ``psi``, ``loss`` and ``mean`` may be larger, and ``ignore`` has names.
    """
    if given is None:
        return Thresholds()
    if not isinstance(given, Mapping | str | PathLike):
        raise UsageError(f"thresholds are {shorten(given)}, expected a path or URI of a TOML or JSON file, or such an object")
    found, _, where = load_settings(given, "thresholds")
    known = [field.name for field in fields(Thresholds)]
    if not isinstance(found, Mapping):
        raise UsageError(f"{where}: is {shorten(found)}, expected a table of {', '.join(known)}")
    for name in found:
        if name not in known:
            raise UsageError(f"{where}: has {name!r:.80}, expected {', '.join(known)}{did_you_mean(name, known)}")
    most = dict.fromkeys(UNBOUNDED, float("inf"))
    expected = dict.fromkeys(UNBOUNDED, "a number of at least 0")
    return Thresholds(
        **{
            name: read_float(f"{where}: {name}", value, expected.get(name, "a number from 0 to 1"), 0.0, most.get(name, 1.0))
            for name, value in found.items()
            if name != IGNORE
        },
        ignore=read_names(f"{where}: {IGNORE}", found.get(IGNORE, ()), "features"),
    )
