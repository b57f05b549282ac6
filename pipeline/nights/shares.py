"""Importances over the nights: each feature's share, run by run, of those runs that can be put side by side."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..errors import InvalidRun
from ..runs.publish import read_manifest
from ..stores import storage
from ..stores.filesystem import published
from .listed import READERS, ListedRun

NAME = "importance"
TOP = 20  # features of an output
OUTPUTS = 10


@dataclass(frozen=True, slots=True)
class Line:
    """A feature's share of an output's importance, from run to run."""

    feature: str
    shares: tuple[float | None, ...]  # of the runs, in their order; None where a run has no such feature

    @property
    def known(self) -> tuple[float, ...]:
        """Of the runs that have the feature."""
        return tuple(share for share in self.shares if share is not None)

    @property
    def mean(self) -> float:
        """Over these runs."""
        return sum(self.known) / len(self.known)


@dataclass(frozen=True, slots=True)
class OutputLines:
    """The largest features of an output."""

    output: str
    lines: tuple[Line, ...]  # by their mean, the largest first
    n_features: int


@dataclass(frozen=True, slots=True)
class Importances:
    """What can be shown side by side."""

    runs: tuple[ListedRun, ...]
    outputs: tuple[OutputLines, ...]
    n_outputs: int
    left_out: int  # finished runs of another method, or without importances


def _read_shares(run: ListedRun) -> dict[tuple[str, str], float] | None:
    """Shares by output and feature; None where the run has none."""
    manifest = read_manifest(run.run)
    entry = None if manifest is None else manifest.summary(f"{NAME}.json")
    if entry is None:
        return None
    where = storage.join(run.run, entry["uri"])
    try:
        with published():
            rows = json.loads(storage.read(where))
        return {(str(row["output"]), str(row["feature"])): float(row["share"]) for row in rows if row["share"] is not None}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidRun(f"{where}: not a summary of importances: {' '.join(str(error).split())}") from error


def read_importances(runs: Sequence[ListedRun]) -> Importances:
    """Read the importances of finished runs, of the method of the last of them.

    Parameters
    ----------
    runs : sequence of ListedRun
        By date.

    Returns
    -------
    Importances

    Raises
    ------
    InvalidRun
        A summary is damaged.
    StorageError
        The store does not answer.
    """
    finished = [run for run in runs if run.state == "finished"]
    by_method: dict[str | None, list[tuple[ListedRun, dict[tuple[str, str], float]]]] = {}
    kept: list[tuple[ListedRun, dict[tuple[str, str], float]]] = []
    with ThreadPoolExecutor(READERS) as readers:
        for run, shares in zip(finished, readers.map(_read_shares, finished), strict=True):
            if shares is not None:
                kept = by_method.setdefault(run.method, [])
                kept.append((run, shares))
    names = dict.fromkeys(name for _, shares in reversed(kept) for name in shares)
    outputs = list(dict.fromkeys(output for output, _ in names))
    found = []
    for output in outputs[:OUTPUTS]:
        lines = [Line(name[1], tuple(shares.get(name) for _, shares in kept)) for name in names if name[0] == output]
        largest = sorted(lines, key=lambda line: (-line.mean, line.feature))
        found.append(OutputLines(output, tuple(largest[:TOP]), len(lines)))
    return Importances(tuple(run for run, _ in kept), tuple(found), len(outputs), len(finished) - len(kept))
