"""The manifest of a run: its record, reader and writer, and the proof that it finished."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.set_indices import Sets
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.slices.links import Link

from ...arguments.choices import Device, Precision, Space
from ...dataset.files.listing import Rejected
from ...display.text import as_html, count
from ...json_records import EMPTY, UNWRITTEN, as_text, as_tuples, digest_text, parse_text
from ...methods.output_space import find_base
from ...methods.summary_tables import read_totals
from ...stores import storage
from ...stores.failures import published
from ..formats.earlier import take_manifest
from ..formats.numbers import FORMAT
from .folder import RunFolder, name_file
from .json_file import JsonFile, refuse_rewritten
from .plan import Plan, digest


class SummaryEntry(TypedDict):
    """An object of a summary, as the manifest lists it."""

    uri: str  # below the run
    size: int
    sha256: str


class PartEntry(TypedDict):
    """A part, as the manifest lists it."""

    part: int
    uri: str  # below the run
    n_rows: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Rows that were taken out of a part of the finished run, as those of a person; nothing of what was in them is kept."""

    day: str  # when, YYYY-MM-DD in UTC
    part: int
    rows: tuple[int, ...]  # where they stood in the part as it was made, from 0; none where a dictionary alone kept what no row has


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was published, proved: readers trust this alone."""

    format_version: int = field(default=FORMAT, kw_only=True)  # number of the format of this and the run's other records
    digest: str = field(default="", kw_only=True, metadata={UNWRITTEN: True})  # SHA-256 of a text of an earlier format; empty for one of today's
    version: str  # of Leafledger
    place: str  # below the run, where its plan and all but its parts lie; empty but for a run that replaced another
    plan: str  # SHA-256 of plan.json
    model: str  # URI of its file; of a model in MLflow with its version
    model_digest: str  # SHA-256 of the model's file
    library: str  # that the model is of
    method: str
    parameters: dict[str, Any]  # of the method
    background: str | None  # its URI; "model" for leaf weights, null for the path-dependent game
    reasons: str | None  # SHA-256 of the file of reasons
    precision: Precision  # float32 or float64
    device: Device  # that computed the attributions, "cpu" or "cuda"
    outputs: tuple[str, ...]  # their names
    space: Space  # units of attributions and base values: margin, probability, response or loss
    base: tuple[float, ...]  # of every output, with every feature absent; none of a loss, of which every row has its own
    bound: tuple[float, ...]  # of every output: no margin can lie further from its base value
    used: tuple[int, ...]  # features that some split asks for, by position
    players: tuple[int, ...]  # features or groups that some split asks for, by position; phi of the others is 0
    pairs: tuple[tuple[int, ...], ...]  # of these that interact, or sets of them, where interactions were asked for
    n_rows: int  # explained, and there
    n_files: int  # of the data that have rows and a footer that can be read
    residual: float | None  # largest distance of a row's attributions from what they add up to, as a fraction of the bound; null where they need not
    parts: tuple[PartEntry, ...]  # part, uri below the run, n_rows, size and sha256 of each
    summaries: tuple[SummaryEntry, ...]  # uri below the run, size and sha256 of each
    rejected: tuple[Rejected, ...]  # rows that could not be explained, and why, as in rejected.json
    totals: dict[str, dict[str, Any]]  # what summaries say once of all rows, by their names
    missing: float | None = field(default=None, metadata={EMPTY: True})  # number that stands for missing values besides null and NaN, if any
    forgotten: tuple[Forgotten, ...] = field(default=(), metadata={EMPTY: True})  # rows taken out since; totals and summaries were made with them
    sets: Sets | None = field(default=None, metadata={EMPTY: True})  # of sets of features: their largest size, and the index
    quantity: Quantity | None = field(default=None, metadata={EMPTY: True})  # what was explained background row by background row, with --space

    def __repr__(self) -> str:
        counts = count(self.n_rows, "row"), count(len(self.parts), "part"), count(len(self.outputs), "output")
        rejected = f", {len(self.rejected)} rejected" if self.rejected else ""
        return f"Manifest({', '.join(counts)}, method {self.method}{rejected})"

    def _repr_html_(self) -> str:
        """The first parts."""
        return as_html(str(self), ("part", "rows", "bytes"), ((each["uri"], each["n_rows"], each["size"]) for each in self.parts))

    @property
    def counted(self) -> str:
        """Its rows and parts, as ``1,234 rows in 1 part``."""
        return f"{count(self.n_rows, 'row')} in {count(len(self.parts), 'part')}"

    @property
    def n_rejected(self) -> int:
        """Rows known to be rejected; those of files whose footers cannot be read are not."""
        return sum(entry.n_rows or 0 for entry in self.rejected)

    @property
    def n_forgotten(self) -> int:
        """Rows that were explained and taken out since."""
        return sum(len(entry.rows) for entry in self.forgotten)

    @property
    def n_explained(self) -> int:
        """Rows that summaries were made of: those that are there, and those that were taken out."""
        return self.n_rows + self.n_forgotten

    @property
    def share(self) -> float:
        """Share of the data's rows that were explained, 0 where there are none; a file whose footer cannot be read counts as an average file."""
        unknown, n = sum(entry.n_rows is None for entry in self.rejected), self.n_explained
        return n * self.n_files / ((n + self.n_rejected) * (self.n_files + unknown)) if n else 0.0

    def list_forgotten(self) -> dict[int, list[int]]:
        """List where rows stood that were taken out, in order, by the numbers of their parts."""
        found = dict[int, list[int]]()
        for entry in self.forgotten:
            found.setdefault(entry.part, []).extend(entry.rows)
        return {part: sorted(rows) for part, rows in found.items()}

    def find_planned(self, part: int, row: int) -> int:
        """Find where a row stood in its part as it was made.

        Parameters
        ----------
        part : int
        row : int
            Its number in the part as it is.

        Returns
        -------
        int
        """
        for gone in self.list_forgotten().get(part, ()):
            row += gone <= row
        return row

    def home(self, run: str) -> str:
        """Find where the run's plan lies.

        Parameters
        ----------
        run : str
            URI of the run's folder.

        Returns
        -------
        str
            That URI, or one below it, see `replacement`.
        """
        return RunFolder(run).at(self.place).uri

    def summary(self, file: str) -> SummaryEntry | None:
        """Find a file of a summary.

        Parameters
        ----------
        file : str
            As "importance.parquet".

        Returns
        -------
        SummaryEntry or None
            None where the run has no such summary.
        """
        return next((entry for entry in self.summaries if name_file(entry["uri"]) == file), None)

    @property
    def text(self) -> str:
        """Text of manifest.json."""
        return as_text(self)

    @property
    def sha256(self) -> str:
        """Of manifest.json, hexadecimal: who keeps it can tell later that nothing of the run was changed."""
        return self.digest or digest_text(self)


def _check_sense(manifest: Manifest, data: bytes) -> None:
    """Nothing that it lists is outside of the run, and it is written as it is here."""
    for entry in (*manifest.parts, *manifest.summaries):
        storage.check_below(entry["uri"])
    if manifest.place:
        storage.check_below(manifest.place)
    refuse_rewritten(manifest, data)


def _complete(manifest: Manifest, data: bytes) -> Manifest:
    """Keep the digest of a text that is not written again as it was."""
    return manifest if manifest.format_version == FORMAT else replace(manifest, digest=hashlib.sha256(data).hexdigest())


def _read_beside(run: str, entry: Any) -> Any:
    """Parse the plan of a manifest that lacks what the plan says too."""
    with published():
        return parse_text(storage.read(RunFolder(run).at(str(entry.get("place", ""))).plan))


def parse_manifest(run: str, data: bytes) -> Manifest:
    """Make the manifest of its bytes; a plan beside it says what a manifest of an earlier format does not."""

    def take(entry: Any, number: int) -> Any:
        return take_manifest(entry, number, lambda: _read_beside(run, entry))

    return JsonFile(Manifest, "not a manifest", "", _check_sense, take, _complete).parse(data, RunFolder(run).manifest)


def read_manifest(run: str | PathLike) -> Manifest | None:
    """Read the manifest of a finished run.

    Parameters
    ----------
    run : str or path
        Of the run's folder, a path or a URI.

    Returns
    -------
    Manifest or None
        None where there is none: the run is not finished, or not there.

    Raises
    ------
    InvalidRun
        What is there is no manifest, or it names an object outside of the run.
    StorageError
        The store does not answer.
    """
    data = storage.read_if_exists(RunFolder(str(run)).manifest)
    return None if data is None else parse_manifest(str(run), data)


@dataclass(frozen=True, slots=True)
class Game:
    """What a manifest says of the model and the game, beyond the plan."""

    library: str
    base: tuple[float, ...]
    bound: tuple[float, ...]
    used: tuple[int, ...]
    players: tuple[int, ...]
    pairs: tuple[tuple[int, ...], ...]


def describe_game(library: str, prepared: Prepared, link: Link | None) -> Game:
    """Take from a method's tables what the manifest says of them.

    Parameters
    ----------
    library : str
        Of the model.
    link : Link or None
        That attributions are carried through; None for margins.
    """
    sets, base = [[player for player in members if player >= 0] for members in prepared.pairs.players.tolist()], find_base(link, prepared)
    arrays = (base[~np.isnan(base)], prepared.bound, prepared.bins.read, prepared.players)
    return Game(library, *map(as_tuples, (*(array.tolist() for array in arrays), sets)))


def make_manifest(
    plan: Plan,
    place: str,
    game: Game,
    parts: Sequence[PartEntry],
    residuals: Iterable[float | None],
    written: Sequence[SummaryEntry],
    rejected: Sequence[Rejected],
    summaries: Mapping[str, pa.Table],
) -> Manifest:
    """Say what was published.

    Parameters
    ----------
    place : str
        Where the run lies below its folder.
    parts : sequence of PartEntry
        In the order of the plan.
    residuals : iterable of float or None
        Of the parts.
    written : sequence of SummaryEntry
        Objects of the summaries.
    summaries : mapping of str to pa.Table
        By name.
    """
    additive = [residual for residual in residuals if residual is not None]
    return Manifest(
        format_version=plan.format_version,
        version=plan.version,
        place=place,
        plan=digest(plan),
        model=plan.model,
        model_digest=plan.model_digest,
        library=game.library,
        method=plan.method,
        parameters=dict(plan.parameters),
        background=plan.background,
        reasons=None if plan.reasons is None else plan.reasons.digest,
        precision=plan.precision,
        device=plan.device,
        outputs=plan.outputs,
        space=plan.space,
        quantity=plan.quantity,
        base=game.base,
        bound=game.bound,
        used=game.used,
        players=game.players,
        pairs=game.pairs,
        n_rows=sum(part["n_rows"] for part in parts),
        n_files=len(plan.files),
        residual=max(additive, default=0.0) if plan.additive else None,
        parts=tuple(parts),
        summaries=tuple(written),
        rejected=tuple(rejected),
        totals=read_totals(summaries),
        sets=plan.sets,
        missing=min((feature.missing for feature in plan.features if feature.missing is not None), default=None),
    )
