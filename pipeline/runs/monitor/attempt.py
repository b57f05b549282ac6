"""One attempt at a run, watched while it is made: when it began and how long each of its stages took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from ...dataset.files.listing import Rejected
from ...display.text import printable
from ...progress import Progress, Work
from ...stores.traffic import Moved, add, take_moved
from ..records.input_digests import Inputs
from ..records.manifest import Manifest
from ..records.part import Part
from ..records.plan import Plan
from ..records.provenance import FlowRun

Stage = Literal["planning", "digesting", "preparing", "explaining", "merging", "publishing"]


class Attempt:
    """What is known of an attempt at a run from its beginning on.

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
        How long each stage took that is over, by the wall clock of this process; tries that failed and the waits between them count.
    rows, rejected_rows, rejected, made, found : int
        Rows explained so far; rows and work items rejected; parts made, and found: by the latest try, where Prefect tries again.
    residual : float or None
        The largest so far, likewise.
    moved : Moved
        By this process and by workers, as far as they have told.
    manifest : Manifest or None
        Of the run, once it is finished.
    plan : Plan or None
        Of the run, once it is planned.
    kept : str
        In what that differs from what was asked for, where a finished run is kept all the same.
    inputs : Inputs or None
        What was read byte by byte, where it was.
    warned : list of str
        What was not done, which takes nothing from the run.
    undone : list of str
        What was to follow and was not done, and why: readers of ``latest``, or of MLflow, were not told of the run.
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
        take_moved()  # by whoever was here before

    @property
    def finished_it(self) -> bool:
        """Whether the run was finished by this attempt, not by one before."""
        return self.manifest is not None and "publishing" in self.seconds

    def take_moved(self) -> None:
        """Add what this process moved."""
        self.moved = add(self.moved, take_moved())

    def _forget(self) -> None:
        """Count nothing yet: what one try made, the next one finds."""
        self.rows = self.rejected_rows = self.rejected = self.made = self.found = 0
        self.residual: float | None = None

    def follow(self, progress: Progress) -> Progress:
        """Count what is done, besides showing it.

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
        """Say what was not done when all is over, well or not.

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
        """Measure a stage, or a part of one: parts add up."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
