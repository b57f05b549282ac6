"""State of an attempt at a run: start, time of each stage, counts and warnings."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from ...dataset.files.listing import Rejected
from ...display.text import printable
from ...progress import Progress, Work
from ...stores.traffic import Moved, add, take_moved
from ..records.derived import DriftVerdict
from ..records.input_digests import Inputs
from ..records.manifest import Manifest
from ..records.part import Part
from ..records.plan import Plan
from ..records.provenance import FlowRun

Stage = Literal["planning", "digesting", "preparing", "explaining", "merging", "publishing"]


class Attempt:
    """State of an attempt at a run.

    Parameters
    ----------
    flow : FlowRun, optional
        That makes it.

    Attributes
    ----------
    flow : FlowRun or None
    started : datetime
        In UTC.
    seconds : dict of str to float
        Wall time of each finished stage, including failed tries and waits between them.
    rows, rejected_rows, rejected, made, found : int
        Rows explained; rows and work items rejected; parts made and found: by the latest try, if Prefect retries.
    residual : float or None
        The largest so far, likewise.
    moved : Moved
        Traffic of this process and of workers, as reported.
    manifest : Manifest or None
        Of the finished run.
    plan : Plan or None
        Of the planned run.
    kept : str
        Differences from the requested run, if an existing run was kept.
    inputs : Inputs or None
        Digests of the inputs, if requested.
    warned : list of str
        Failed extras, without effect on the run.
    undone : list of str
        Steps after the run that failed, such as updates of ``latest`` or MLflow, with reasons.
    verdict : DriftVerdict or None
        What came of comparing the run with another one, if it was.
    """

    def __init__(self, flow: FlowRun | None = None):
        self.flow = flow
        self.started = datetime.now(UTC)
        self.seconds: dict[Stage, float] = {}
        self._forget()
        self.moved = Moved()
        self.manifest: Manifest | None = None
        self.plan: Plan | None = None
        self.kept = ""
        self.inputs: Inputs | None = None
        self.warned: list[str] = []
        self.undone: list[str] = []
        self.verdict: DriftVerdict | None = None
        take_moved()  # discards counts from before

    @property
    def finished_it(self) -> bool:
        """Whether this attempt finished the run, not an earlier one."""
        return self.manifest is not None and "publishing" in self.seconds

    def take_moved(self) -> None:
        """Add this process's traffic."""
        self.moved = add(self.moved, take_moved())

    def _forget(self) -> None:
        """Reset the counts: a retry finds what the last try made."""
        self.rows = self.rejected_rows = self.rejected = self.made = self.found = 0
        self.residual: float | None = None

    def follow(self, progress: Progress) -> Progress:
        """Count progress in addition to showing it.

        Parameters
        ----------
        progress : callable
            That shows it.

        Returns
        -------
        callable
            For the stage that explains rows.
        """

        def begin(work: Work) -> Callable[[Any], None]:
            self._forget()
            on_done = progress(work)

            def done(piece: Part | Rejected) -> None:
                self._count(piece)
                on_done(piece)

            return done

        return begin

    def _count(self, piece: Part | Rejected) -> None:
        if isinstance(piece, Rejected):
            self.rejected += 1
            self.rejected_rows += piece.n_rows or 0
            return
        self.rows += piece.n_rows
        self.made += piece.seconds > 0
        self.found += piece.seconds == 0
        self.moved = add(self.moved, piece.moved)
        if piece.residual is not None:
            self.residual = max(piece.residual, self.residual or 0.0)

    @contextmanager
    def heard(self, warn: Callable[[str], None]) -> Iterator[None]:
        """Emit warnings at the end, also after a failure.

        Parameters
        ----------
        warn : callable
            Called with each line of ``warned``, whose control characters are escaped.
        """
        try:
            yield
        finally:
            for said in self.warned:
                warn(printable(said))

    @contextmanager
    def stage(self, name: Stage) -> Iterator[None]:
        """Measure a stage, or a part of one; parts add up."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
