"""Importance shares of features over a series of comparable runs."""

import hashlib
import json
import math
import posixpath
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..arguments.choices import MARGIN
from ..errors import InvalidRun
from ..runs.records.folder import RunFolder
from ..runs.records.manifest import Manifest, read_manifest
from ..stores import storage
from ..stores.failures import published
from .listed_runs import DAY, READERS, ListedRun

NAME = "importance"
TOP = 20  # features of an output
OUTPUTS = 10
BACKGROUNDS = {None: "without a background", "model": "against the model's own leaf weights"}


@dataclass(frozen=True, slots=True)
class Line:
    """A feature's share of an output's importance over runs."""

    feature: str
    shares: tuple[float | None, ...]  # by run; None if the run lacks the feature, or has no rows

    @property
    def known(self) -> tuple[float, ...]:
        """Shares of runs with the feature."""
        return tuple(share for share in self.shares if share is not None)

    @property
    def mean(self) -> float:
        """Mean over these runs."""
        return sum(self.known) / len(self.known)


@dataclass(frozen=True, slots=True)
class OutputLines:
    """The largest features of an output."""

    output: str
    lines: tuple[Line, ...]  # by descending mean
    n_features: int
    means: tuple[float | None, ...] = ()  # mean prediction, margin or loss by run; None if attributions do not add up to it


@dataclass(frozen=True, slots=True)
class Kind:
    """Properties that comparable runs share; models may be retrained between them."""

    job: str  # the run's name, with {date} for its day; without a date, its folder
    method: str
    parameters: str  # JSON
    space: str
    quantity: str  # carried to background row by background row; empty otherwise
    background: str  # in words
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        method = self.method if self.parameters == "{}" else f"{self.method} {self.parameters}"
        space = "" if self.space == MARGIN else f", space {self.space}"
        return f"{f'of {self.job}, ' if self.job else ''}method {method}{space}{', row by row' if self.quantity else ''}, {self.background}"


@dataclass(frozen=True, slots=True)
class Importances:
    """Importances of comparable runs."""

    runs: tuple[ListedRun, ...]
    outputs: tuple[OutputLines, ...]
    n_outputs: int
    left_out: int  # finished runs of another kind, or without importances
    kind: Kind | None = None  # of the runs
    damaged: tuple[tuple[str, str], ...] = ()  # URIs of finished runs with damaged importances, with reasons


@dataclass(frozen=True, slots=True)
class Shares:
    """What a run's summary of importances says."""

    of: dict[tuple[str, str], float]  # shares by output and feature
    means: dict[str, float]  # mean predictions by output


def _find_kind(run: ListedRun, manifest: Manifest) -> Kind:
    return Kind(
        job=posixpath.dirname(run.name) if run.date is None else DAY.sub("{date}", run.name),
        method=manifest.method,
        parameters=json.dumps(manifest.parameters, sort_keys=True),
        space=manifest.space,
        quantity="" if manifest.quantity is None else manifest.quantity.name,
        background=BACKGROUNDS.get(manifest.background, "against a background"),
        outputs=manifest.outputs,
    )


def _find_means(manifest: Manifest, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Add up base values and mean attributions, where rows have one base value and attributions add up."""
    if manifest.residual is None or len(manifest.base) != len(manifest.outputs):
        return {}
    sums = dict(zip(manifest.outputs, manifest.base, strict=True))
    named = {str(row["output"]) for row in rows} & sums.keys()
    return {name: math.fsum((sums[name], *(float(row["mean"]) for row in rows if str(row["output"]) == name))) for name in named}


def _read_shares(run: ListedRun) -> tuple[Kind, Shares] | InvalidRun | None:
    """Read the shares of a run, None if it has none."""
    try:
        manifest = read_manifest(run.run)
        entry = None if manifest is None else manifest.summary(f"{NAME}.json")
        if manifest is None or entry is None:
            return None
        with published():
            data = storage.read(RunFolder(run.run).listed(entry))
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise InvalidRun(f"{entry['uri']}: is not the one that the manifest lists")
        rows = json.loads(data)
        known = [row for row in rows if row["share"] is not None and manifest.n_rows]  # all 0 in a run without rows
        of = {(str(row["output"]), str(row["feature"])): float(row["share"]) for row in known}
        shares = Shares(of, _find_means(manifest, known))
    except InvalidRun as error:
        return error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return InvalidRun(f"{NAME}.json: not a summary of importances: {' '.join(str(error).split())}")
    return _find_kind(run, manifest), shares


def read_importances(runs: Sequence[ListedRun]) -> Importances:
    """Read the importances of finished runs of the same kind as the last."""
    finished = [run for run in runs if run.state == "finished"]
    by_kind: dict[Kind, list[tuple[ListedRun, Shares]]] = {}
    last: Kind | None = None
    damaged = list[tuple[str, str]]()
    with ThreadPoolExecutor(READERS) as readers:
        for run, read in zip(finished, readers.map(_read_shares, finished), strict=True):
            if isinstance(read, InvalidRun):
                damaged.append((run.run, str(read)))
            elif read is not None:
                last, shares = read
                by_kind.setdefault(last, []).append((run, shares))
    kept = [] if last is None else by_kind[last]
    names = dict.fromkeys(name for _, shares in reversed(kept) for name in shares.of)
    outputs = list(dict.fromkeys(output for output, _ in names))
    found = []
    for output in outputs[:OUTPUTS]:
        lines = [Line(name[1], tuple(shares.of.get(name) for _, shares in kept)) for name in names if name[0] == output]
        largest = sorted(lines, key=lambda line: (-line.mean, line.feature))
        means = tuple(shares.means.get(output) for _, shares in kept)
        found.append(OutputLines(output, tuple(largest[:TOP]), len(lines), means))
    left_out = len(finished) - len(kept) - len(damaged)
    return Importances(tuple(run for run, _ in kept), tuple(found), len(outputs), left_out, last, tuple(damaged))
