"""Prometheus metrics of a run, served on a port while it runs, and written to a file afterwards.

A run is a batch job: its port is gone when it ends. So lasting metrics, such as the time of the last success, are in a file for node_exporter's
textfile collector. All are gauges, since a counter that restarts with every run adds up to nothing.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from ...arguments.endpoints import read_address
from ...errors import LeafledgerError, UsageError
from ...extras import needing
from ..job.job import Job
from ..records.provenance import read_provenance
from .attempt import Attempt
from .night_metrics import ALARMS, LABEL, Night, find_file, make_families, read_families, read_night, say_why, write_metrics

LAST_SUCCESS = "leafledger_run_last_success_timestamp_seconds"


def _read_gauge(path: Path | None, run: str, name: str) -> float | None:
    """Read a number of this run from an earlier file."""
    for family in () if path is None else read_families(path):
        for sample in family.samples:
            if sample.name == name and sample.labels.get(LABEL) == run:
                return sample.value
    return None


def _find_success(job: Job, attempt: Attempt, before: float | None) -> float | None:
    """Return the time of the last success of a run of this name.

    A night that was finished before counts from its publication, so that old nights do not look current. It does count, since steps after publication
    may have failed then. A night whose readers were not notified is no success.
    """
    if attempt.undone:
        return before
    manifest = attempt.manifest
    if manifest is None or attempt.finished_it:
        return time.time()
    with suppress(LeafledgerError, ValueError, OverflowError):  # an unreadable file must not fail the run
        made = read_provenance(manifest.home(job.out), manifest.sha256)
        if made is not None:
            return max(datetime.fromisoformat(made.finished).timestamp(), before or 0.0)
    return before


class Earlier:
    """Totals of earlier nights of the same command, which share one metrics file.

    Attributes
    ----------
    rejected_rows, rejected_parts, retries : int
        Of all nights, except those finished before, which were counted when made.
    residual : float or None
        The largest.
    alarms : int or None
        Of all nights that were compared; None where none was.
    failed : bool
        Whether any night is unfinished.
    """

    def __init__(self) -> None:
        self.rejected_rows = self.rejected_parts = self.retries = 0
        self.residual: float | None = None
        self.alarms: int | None = None
        self.failed = False


class RunMetrics:
    """Collector of prometheus_client: gauges of one attempt at a run.

    Parameters
    ----------
    job : Job
        Its name is the label of all: the same for every date.
    attempt : Attempt
    last_success : float or None
        When a run of this name last went well, seconds since 1970.
    earlier : Earlier, optional
        Nights of the same command.
    compared : float, optional
        Alarms of the last comparison, which an earlier attempt made: they stand until another one is made.

    Attributes
    ----------
    failed : bool
        Whether the attempt ended with an error.
    night : Night
        What the finished run says of its rows.
    """

    def __init__(self, job: Job, attempt: Attempt, last_success: float | None, earlier: Earlier | None = None, compared: float | None = None):
        self.job, self.attempt, self.last_success, self.earlier = job, attempt, last_success, earlier or Earlier()
        self._compared = None if compared is None else int(compared)
        self.failed, self.night = False, Night()

    @property
    def _rejected(self) -> tuple[int, int]:
        """Rejected rows, and rejected files and work items."""
        attempt, manifest = self.attempt, self.attempt.manifest
        return (attempt.rejected_rows, attempt.rejected) if manifest is None else (manifest.n_rejected, len(manifest.rejected))

    @property
    def _residual(self) -> float | None:
        return self.attempt.residual if self.attempt.manifest is None else self.attempt.manifest.residual

    @property
    def _alarms(self) -> int | None:
        """Alarms of this night and of earlier ones of the same command."""
        verdict, before = self.attempt.verdict, self.earlier.alarms
        return before if verdict is None else len(verdict.alarms) + (before or 0)

    def read_night(self) -> None:
        """Read what the finished run says of its rows, to be collected with the rest; what cannot be read is said in the attempt's ``warned``."""
        alarms = self._compared if self._alarms is None else self._alarms
        self.night = Night(alarms=alarms)
        if self.attempt.manifest is not None:
            try:
                self.night = read_night(self.job.out, self.attempt.manifest, alarms)
            except LeafledgerError as error:  # a summary that was changed must not fail the run
                self.attempt.warned.append(f"metrics of the night cannot be read: {error}")

    def count(self) -> None:
        """Add this attempt, which has ended, to the totals of earlier ones."""
        earlier = self.earlier
        earlier.failed |= self.failed
        earlier.retries += self.attempt.moved.retried
        earlier.alarms = self._alarms
        if self.attempt.manifest is None or self.attempt.finished_it:
            rows, parts = self._rejected
            earlier.rejected_rows += rows
            earlier.rejected_parts += parts
            earlier.residual = _larger(earlier.residual, self._residual)

    def _list(self) -> Iterator[tuple[str, str, dict[tuple[str, ...], float], tuple[str, ...]]]:
        """Yield name, meaning, values by labels, and names of labels."""
        attempt, manifest, earlier = self.attempt, self.attempt.manifest, self.earlier
        rows, (rejected_rows, rejected) = attempt.rows if manifest is None else manifest.n_rows, self._rejected
        finished = manifest is not None and not self.failed and not earlier.failed
        single = {
            "start_timestamp_seconds": ("When the attempt began", attempt.started.timestamp()),
            "last_success_timestamp_seconds": ("When a run was last finished", self.last_success),
            "finished": ("1 where this run is finished, 0 where it works or failed", float(finished)),
            "rows": ("Rows explained", rows),
            "rejected_rows": ("Rows known to be rejected", rejected_rows + earlier.rejected_rows),
            "rejected_parts": ("Files and work items rejected", rejected + earlier.rejected_parts),
            "residual_ratio": ("Largest residual of any row, as a fraction of the margin's bound", _larger(self._residual, earlier.residual)),
            "read_bytes": ("Bytes read of files and objects, by client and workers", attempt.moved.read),
            "written_bytes": ("Bytes of files and objects published", attempt.moved.written),
            "retries": ("Operations and work items tried again", attempt.moved.retried + earlier.retries),
        }
        for name, (meaning, value) in single.items():
            if value is not None:
                yield name, meaning, {(): float(value)}, ()
        yield "parts", "Parts of the run", {("made",): attempt.made, ("found",): attempt.found}, ("how",)
        yield "stage_seconds", "Time that a stage took", {(stage,): seconds for stage, seconds in attempt.seconds.items()}, ("stage",)

    def collect(self) -> Iterator[Any]:
        """Return the current gauges."""
        from prometheus_client.core import GaugeMetricFamily

        for name, meaning, values, labels in self._list():
            family = GaugeMetricFamily(f"leafledger_run_{name}", meaning, labels=(LABEL, *labels))
            for labelled, value in values.items():
                family.add_metric((self.job.name, *labelled), value)
            yield family
        yield from make_families(self.job.name, self.night)


def _larger(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)


@contextmanager
def export_metrics(job: Job, attempt: Attempt, earlier: Earlier | None = None, compares: bool = False) -> Iterator[None]:
    """Serve an attempt's metrics while it runs, and write them at the end, also after a failure; do nothing if not requested.

    Parameters
    ----------
    attempt : Attempt
        What cannot be written is said in its ``warned``.
    earlier : Earlier, optional
        Nights of the same command, among which this one is counted when it is over.
    compares : bool
        The run is to be compared with another one: where an earlier attempt has done so, its alarms stay in the file.

    Raises
    ------
    UsageError
        The library is not installed, the port is taken, or the file's folder is not there.
    """
    address, file = job.options.metrics_address, job.options.metrics_file
    if address is None and file is None:
        yield
        return
    with needing("metrics_file" if address is None else "metrics_address", "prometheus_client"):
        from prometheus_client import CollectorRegistry, start_http_server

    path = None if file is None else find_file(file)
    last_success, compared = _read_gauge(path, job.name, LAST_SUCCESS), _read_gauge(path, job.name, ALARMS) if compares else None
    metrics, registry = RunMetrics(job, attempt, last_success, earlier, compared), CollectorRegistry()
    registry.register(metrics)
    server, thread = None, None
    if address is not None:
        host, port = read_address(address)
        try:
            server, thread = start_http_server(port, host, registry)
        except (OSError, UnicodeError) as error:  # invalid names cannot be encoded
            raise UsageError(f"metrics_address is {address!r:.80}, which cannot be listened on: {say_why(error)}") from error
    try:
        yield
        metrics.last_success = _find_success(job, attempt, last_success)
    except BaseException:
        metrics.failed = True
        raise
    finally:
        attempt.take_moved()
        if server is not None and thread is not None:
            server.shutdown()
            server.server_close()
            thread.join()
        if path is not None:
            metrics.read_night()
            attempt.take_moved()
            try:
                write_metrics(path, metrics)
            except (OSError, ValueError) as error:  # names that are not UTF-8 cannot be encoded
                attempt.warned.append(f"{path}: metrics cannot be written: {say_why(error)}")
        metrics.count()
