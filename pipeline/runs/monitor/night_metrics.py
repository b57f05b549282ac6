"""Gauges of a night: its mean prediction, its features' shares of importance, and what drifted; written with those of the run, or into their file."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...arguments.endpoints import READ_FROM, can_lie, check_metrics_file
from ...errors import InvalidRun, UsageError
from ...extras import needing
from ...stores import storage
from ...stores.uris import require_local
from ..records.folder import RunFolder
from ..records.manifest import Manifest

LABEL = "run"
READABLE = 0o644  # by node_exporter, which is another user
FEATURES, OUTPUTS = 50, 20  # shares of the largest features of the first outputs, so that a night is at most a thousand series
ALARMS, MEAN, SHARE = "leafledger_drift_alarms", "leafledger_mean_prediction", "leafledger_importance_share"
MEANINGS = {
    ALARMS: "Where a threshold is crossed against the run that this one was compared with",
    MEAN: "Mean over all rows of what attributions add up to, in the units of the space",
    SHARE: "A feature's share of all mean magnitudes of attributions",
}
LABELS = {ALARMS: (), MEAN: ("output", "space"), SHARE: ("output", "feature")}


@dataclass(frozen=True, slots=True)
class Night:
    """What a finished run says of its rows."""

    means: tuple[tuple[tuple[str, str], float], ...] = ()  # by output and space
    shares: tuple[tuple[tuple[str, str], float], ...] = ()  # by output and feature
    alarms: int | None = None  # None where it was not compared

    def list(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """Yield name, values of labels, and value."""
        if self.alarms is not None:
            yield ALARMS, (), float(self.alarms)
        yield from ((MEAN, labels, value) for labels, value in self.means)
        yield from ((SHARE, labels, value) for labels, value in self.shares)


def read_night(run: str, manifest: Manifest, alarms: int | None) -> Night:
    """Read a night's means and shares from its summary.

    Parameters
    ----------
    run : str
        URI of its folder.
    alarms : int or None
        Of its comparison with another run.

    Returns
    -------
    Night
        Without shares where the method has no importances, and without means where attributions do not add up or there are no rows.

    Raises
    ------
    InvalidRun
        The summary is not as it is written.
    """
    entry = manifest.summary("importance.json")
    if entry is None or not manifest.n_rows:
        return Night(alarms=alarms)
    shares, sums = dict[str, list[tuple[str, float]]](), dict[str, float]()
    try:
        for row in json.loads(storage.read(RunFolder(run).listed(entry))):
            output = str(row["output"])
            if row["share"] is not None:
                shares.setdefault(output, []).append((str(row["feature"]), float(row["share"])))
            if row["mean"] is not None:
                sums[output] = sums.get(output, 0.0) + float(row["mean"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidRun(f"{run}: {entry['uri']}: not a summary of importances: {' '.join(str(error).split())}") from error
    base = dict(zip(manifest.outputs, manifest.base, strict=False)) if manifest.residual is not None else {}
    largest = {output: sorted(found, key=lambda each: (-each[1], each[0]))[:FEATURES] for output, found in [*shares.items()][:OUTPUTS]}
    return Night(
        tuple(((output, manifest.space), base[output] + total) for output, total in sums.items() if output in base),
        tuple(((output, feature), share) for output, found in largest.items() for feature, share in found),
        alarms,
    )


def make_families(name: str, night: Night) -> Iterator[Any]:
    """Make the gauges of a night for prometheus_client."""
    from prometheus_client.core import GaugeMetricFamily

    found = [*night.list()]
    for metric, meaning in MEANINGS.items():
        values = [(labels, value) for each, labels, value in found if each == metric]
        if values:
            family = GaugeMetricFamily(metric, meaning, labels=(LABEL, *LABELS[metric]))
            for labels, value in values:
                family.add_metric((name, *labels), value)
            yield family


def find_file(given: str) -> Path:
    """Find a file of metrics, whose folder has to be there."""
    path = require_local("metrics_file", given, READ_FROM)
    if not can_lie(path):
        raise UsageError(f"metrics_file is {given!r:.80}, expected {READ_FROM}")
    return path


def read_families(path: Path) -> list[Any]:
    """Read the metrics of an earlier file; none where there is none, or something else."""
    from prometheus_client.parser import text_string_to_metric_families

    with suppress(OSError, ValueError, LookupError):  # the parser also raises LookupError
        return [*text_string_to_metric_families(path.read_text("utf-8"))]
    return []


def write_metrics(path: Path, collector: Any) -> None:
    """Write a file of metrics, whole or not at all."""
    from prometheus_client import CollectorRegistry, write_to_textfile

    registry = CollectorRegistry()
    registry.register(collector)
    write_to_textfile(os.fspath(path), registry)
    path.chmod(READABLE)


class NightFile:
    """The file of a run's metrics, into which a comparison that is made later writes the night's.

    Parameters
    ----------
    given : str
        A path or URI, NAME.prom, as ``explain`` got it.
    name : str
        The run's, with {date} in it.

    Raises
    ------
    UsageError
        The library is not installed, node_exporter would not read the file, or it is another run's.
    """

    def __init__(self, given: str, name: str):
        check_metrics_file(given)
        with needing("metrics_file", "prometheus_client"):
            import prometheus_client  # noqa: F401 - whether it is there
        self._path, self._name = find_file(given), name
        others = {sample.labels.get(LABEL, "") for family in read_families(self._path) for sample in family.samples} - {name}
        if others:
            raise UsageError(f"{self._path}: has metrics of {min(others)}, expected those of {name}, or a file of its own")

    def write(self, night: Night) -> None:
        """Write the night's gauges, and keep what the file says of the run besides.

        Parameters
        ----------
        night : Night

        Raises
        ------
        UsageError
            The file cannot be written.
        """
        kept = [family for family in read_families(self._path) if family.name not in MEANINGS]
        families = [*kept, *make_families(self._name, night)]
        try:
            write_metrics(self._path, _Given(families))
        except (OSError, ValueError) as error:  # names that are not UTF-8 cannot be encoded
            raise UsageError(f"{self._path}: metrics cannot be written: {say_why(error)}") from error


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """A collector of what it is given."""

    families: list[Any]

    def collect(self) -> list[Any]:
        """Return them."""
        return self.families


def say_why(error: OSError | ValueError) -> str:
    """Say why something cannot be written."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
