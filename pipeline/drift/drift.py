"""What changed from one night to the next: two finished runs measured, their columns compared, and the change of the mean margin shared out."""

import json
import math
from dataclasses import asdict, dataclass, fields
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.distances import measure_ndcg

from ..display import as_html, count, printable
from ..errors import InvalidRun, UsageError
from ..runs.after import FOLDER, write_made
from ..runs.arguments import read_flag, read_place
from ..runs.latest import read_latest
from ..runs.options import Space
from ..runs.progress import Progress, no_progress
from ..runs.space import TOTALS
from ..stores.places import normalise
from .differences import list_differences, refuse_unlike
from .means import find_means
from .measured import Measured, measure_run
from .shifts import Shift, judge, set_parts, shift_phi, shift_total, shift_values
from .split import Split, split_change, take_night
from .thresholds import Given, Thresholds, read_thresholds
from .two_models import Parts, Where, explain_both_ways

TABLE, DOCUMENT = f"{FOLDER}/drift.parquet", f"{FOLDER}/drift.json"
KINDS: dict[Any, pa.DataType] = {float: pa.float64(), int: pa.int64(), str: pa.string(), bool: pa.bool_(), int | None: pa.int64()}
SCHEMA = pa.schema([pa.field(field.name, KINDS[field.type]) for field in fields(Shift)])


def _plain(found: Any) -> Any:
    """NaN and infinities as null, which JSON has."""
    if isinstance(found, dict):
        return {name: _plain(each) for name, each in found.items()}
    if isinstance(found, list | tuple):
        return [_plain(each) for each in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found


@dataclass(frozen=True, slots=True, repr=False)
class Drift:
    """What changed from a reference run to the run.

    Attributes
    ----------
    run, reference : str
        Folders of the runs.
    manifest, reference_manifest : str
        SHA-256 of their manifests.
    n_rows, reference_n_rows : int
        Rows explained.
    space : str
        Units of attributions.
    thresholds : Thresholds
    differs : tuple of str
        What differs besides the rows, in words.
    outputs : tuple of Split
        Of every output, what the change of the mean margin is made of, and the order of the features.
    parts : tuple of Parts
        Of every output, what the data did and what the model did, where it was asked for.
    shifts : tuple of Shift
        Of every column.
    """

    run: str
    manifest: str
    n_rows: int
    reference: str
    reference_manifest: str
    reference_n_rows: int
    space: Space
    thresholds: Thresholds
    differs: tuple[str, ...]
    outputs: tuple[Split, ...]
    parts: tuple[Parts, ...]
    shifts: tuple[Shift, ...]

    def __repr__(self) -> str:
        return f"Drift({count(len(self.alarms), 'alarm')} in {count(len(self.shifts), 'column')}, against {self.reference})"

    def _repr_html_(self) -> str:
        """The first columns that drifted."""
        found = ((each.kind, each.output, each.feature, each.change, each.distance) for each in self.shifts if each.drifted)
        return as_html(repr(self), ("kind", "output", "feature", "change", "distance"), found)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Where a threshold is crossed, in words."""
        several = len(self.outputs) > 1
        said = []
        for split in self.outputs:
            if split.ndcg < self.thresholds.ndcg:
                of = f" of output {printable(split.output)}" if several else ""
                said.append(f"order of the features{of}: nDCG {split.ndcg:.3f}, below {self.thresholds.ndcg:g}")
        return (*said, *(_say_shift(shift, several) for shift in self.shifts if shift.drifted))

    @property
    def crossed(self) -> bool:
        """Some threshold is crossed."""
        return bool(self.alarms)

    @property
    def table(self) -> pa.Table:
        """A row for every column of the runs."""
        return pa.Table.from_pylist([_plain(asdict(shift)) for shift in self.shifts], SCHEMA)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as one object.

        Returns
        -------
        dict
            Of texts, numbers, None in the place of what is not known, lists and dicts.
        """
        found = _plain(asdict(self))
        return {**found, "alarms": list(self.alarms)}

    @property
    def text(self) -> str:
        """Text of drift.json, with strict JSON in it."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)


def _say_shift(shift: Shift, several: bool) -> str:
    of = printable(shift.feature)
    name = f"{shift.kind} of {of}" if of else shift.kind
    name += f", output {printable(shift.output)}" if several and shift.output else ""
    psi = "" if math.isnan(shift.psi) else f", PSI {shift.psi:.3g} (without drift {shift.psi_expected:.2g})"
    if math.isnan(shift.reference_mean):
        return f"{name}: {shift.distance:.1%} of the rows are elsewhere{psi}"
    if shift.kind in ("missing", "unseen"):
        return f"{name}: {shift.mean:.2%} of the rows, were {shift.reference_mean:.2%}"
    return f"{name}: mean {shift.mean:.4g}, was {shift.reference_mean:.4g}; {shift.distance:.1%} of the rows are elsewhere{psi}"


def _find_reference(run: str, against: str) -> tuple[str, str | None]:
    """The folder of the reference, and the SHA-256 of its manifest where an object names it that says which run is the latest."""
    place = normalise(against)
    found, manifest = place, None
    if place.endswith(".json"):
        latest = read_latest(place)
        if latest is None:
            raise UsageError(f"{place}: not there; expected a finished run, or an object that names the latest one")
        found, manifest = normalise(latest.run), latest.manifest
    if found == run:
        raise UsageError(f"{against}: is the very run; expected another one, such as that of the night before")
    return found, manifest


def compare_runs(current: Measured, reference: Measured, thresholds: Thresholds, parts: tuple[Parts, ...] = ()) -> Drift:
    """Compare two runs that were measured.

    Parameters
    ----------
    current, reference : Measured
    thresholds : Thresholds
    parts : tuple of Parts
        What the data did and what the model did, see `explain_both_ways`.

    Returns
    -------
    Drift

    Raises
    ------
    UsageError
        They are runs of different things.
    InvalidRun
        The means of one do not add up, or a summary is damaged.
    """
    refuse_unlike(current, reference)
    plan, kind, shifts, splits = current.plan, TOTALS[current.plan.space], list[Shift](), list[Split]()
    for output in plan.written_outputs:
        nights = take_night(reference, find_means(reference, output), output), take_night(current, find_means(current, output), output)
        mine = shift_phi(output, current, reference, nights)
        sizes = (np.nan_to_num(np.array([getattr(shift, name) for shift in mine], np.float64)) for name in ("reference_mean_abs", "mean_abs"))
        splits.append(split_change(output, *nights, plan.additive, measure_ndcg(*sizes)))
        shifts += [shift_total(kind, output, current, reference, nights), *mine]
    of_players = {(part.output, each.player): (each.data, each.model) for part in parts for each in part.players}
    shifts = set_parts([*shifts, *shift_values(current, reference)], of_players)
    return Drift(
        run=current.uri,
        manifest=current.manifest.sha256,
        n_rows=current.manifest.n_rows,
        reference=reference.uri,
        reference_manifest=reference.manifest.sha256,
        reference_n_rows=reference.manifest.n_rows,
        space=plan.space,
        thresholds=thresholds,
        differs=list_differences(current, reference),
        outputs=tuple(splits),
        parts=parts,
        shifts=tuple(judge(shifts, thresholds)),
    )


def write_drift(drift: Drift) -> None:
    """Write what changed below the run, and list it in ``after.json``.

    Parameters
    ----------
    drift : Drift

    Raises
    ------
    StorageError
        The store refuses or does not answer.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(drift.table, sink, compression="zstd", write_page_checksum=True)
    write_made(drift.run, drift.manifest, {TABLE: sink.getvalue().to_pybytes(), DOCUMENT: drift.text.encode()})


def drift(
    run: str | PathLike,
    *,
    against: str | PathLike,
    thresholds: Given | None = None,
    both_ways: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    progress: Progress = no_progress,
) -> Drift:
    """Say what changed from one finished run to another: attributions, margins, values of features, and why the mean margin is another one.

    Both runs are measured, unless they were before, and what was found is written below the run: ``after/drift.parquet`` and ``after/drift.json``.

    Parameters
    ----------
    run : str or path
        Folder of a finished run.
    against : str or path
        Folder of the run that it is compared with, or the JSON object that names the latest run, see `explain`. Both have the same method,
        parameters, space and outputs.
    thresholds : mapping, str or path, optional
        What counts as drift, some of ``false_discovery_rate``, ``distance``, ``share``, ``psi`` and ``ndcg``, or a TOML or JSON file of them.
    both_ways : bool
        Where the models differ, explain both nights by both of them: each feature's change is split into what the data did and what the model did.
    scheduler : str, optional
        Address of a Dask scheduler, or "serial" for this process alone; by default a local cluster, where runs are large.
    workers : int, optional
        Processes of the local cluster, by default one per core. Each imports the calling script, so call under ``if __name__ == "__main__"``.
    plain_tcp : bool
        Reach a scheduler on another host without TLS, where the network is your own.
    progress : callable
        As for `explain`.

    Returns
    -------
    Drift

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. UsageError where a run is not finished, or the two cannot be compared; NotRepeatable where
        ``both_ways`` finds other models or rows than those of the runs; InvalidRun where a part is damaged.
    """
    place = normalise(read_place("run", run))
    (reference, manifest), asked = _find_reference(place, read_place("against", against)), read_thresholds(thresholds)
    both_ways = read_flag("both_ways", both_ways)
    where = Where(scheduler, workers, plain_tcp, progress)
    nights = [measure_run(each, scheduler=scheduler, workers=workers, plain_tcp=plain_tcp, progress=progress) for each in (reference, place)]
    if manifest not in (None, nights[0].manifest.sha256):
        raise InvalidRun(f"{reference}: its manifest has SHA-256 {nights[0].manifest.sha256[:12]}, {against} names {printable(str(manifest)[:12])}")
    refuse_unlike(nights[1], nights[0])
    found = compare_runs(nights[1], nights[0], asked, explain_both_ways(nights[1], nights[0], where) if both_ways else ())
    write_drift(found)
    return found
