"""Drift of a run against a reference: measured distributions compared, alarms, and the drift record."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..arguments.choices import LOSS, Space
from ..arguments.readers import read_flag, read_names, read_place
from ..cluster.placement import Scheduler, make_placement
from ..display.nearest import did_you_mean
from ..display.text import as_html, count, printable, write_two
from ..errors import InvalidRun, UsageError
from ..progress import Progress, no_progress
from ..runs.formats.numbers import FORMAT, NUMBER
from ..runs.records.derived import FOLDER, write_derived
from ..runs.records.latest import read_latest
from ..stores.uris import normalise
from .compare.alarm_thresholds import Given, Thresholds, read_thresholds
from .compare.compared import compare_columns
from .compare.differences import list_advised, list_differences, refuse_unlike
from .compare.groups import SOME, TESTED, GroupDrift, compare_groups, list_states, mix_groups, refuse_other_types
from .compare.mix import Mix
from .compare.shifts import MEAN_LOSS, MEANS, VALUE, Shift, judge, rank_alarms, set_parts, shift_groups
from .compare.split import Split
from .compare.two_models import Parts, explain_both_ways, refuse_both_ways
from .compare.worse import say_worse
from .measure.measured_groups import MeasuredGroups, count_rows, measure_groups, refuse_ungrouped
from .measure.measured_run import Measured, measure_run

TABLE, DOCUMENT = f"{FOLDER}/drift.parquet", f"{FOLDER}/drift.json"
KINDS: dict[Any, pa.DataType] = {float: pa.float64(), int: pa.int64(), str: pa.string(), bool: pa.bool_(), int | None: pa.int64()}
SCHEMA = pa.schema([pa.field(field.name, KINDS[field.type]) for field in fields(Shift)])


def _plain(found: Any) -> Any:
    """Convert NaN and infinities to null for JSON."""
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
        Units of attributions: margin, probability, response or loss.
    thresholds : Thresholds
    differs : tuple of str
        What differs besides the rows, in words.
    outputs : tuple of Split
        Of every output, what the change of the mean margin is made of, and the order of the features.
    parts : tuple of Parts
        Of every output, what the data did and what the model did, where it was asked for.
    shifts : tuple of Shift
        Of every column, of all rows.
    by : tuple of str
        Columns that make groups of rows, where they were asked for.
    groups : tuple of GroupDrift
        The same of every group, in the order of their values.
    mix : tuple of Mix
        Of every output, what of the change of the mean margin comes of how many rows each group has.
    alike : bool
        Both runs have one model and one background, so that base values differ by labels alone.
    total : str
        What margins are called: predictions, where they are.
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
    by: tuple[str, ...] = ()
    groups: tuple[GroupDrift, ...] = ()
    mix: tuple[Mix, ...] = ()
    alike: bool = True
    total: str = "margin"

    def __repr__(self) -> str:
        groups = f" and {count(len(self.groups), 'group')}" if self.by else ""
        return f"Drift({count(len(self.alarms), 'alarm')} in {count(len(self.shifts), 'column')}{groups}, against {self.reference})"

    def _repr_html_(self) -> str:
        """The first columns that drifted."""
        found = ((each.kind, each.output, each.feature, each.change, each.distance) for each in self.shifts if each.drifted)
        return as_html(repr(self), ("kind", "output", "feature", "change", "distance"), found)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Where a threshold is crossed, in words."""
        none = [f"no rows, before {self.reference_n_rows:,}"] if not self.n_rows and self.reference_n_rows else []
        said = [*none, *_say_alarms(self, self)]
        tested = (each for each in self.groups if each.state == TESTED)
        of_groups = ((each, _say_alarms(self, each)) for each in tested)
        return (*said, *(f"{printable(each.group)}: {line}" for each, lines in of_groups for line in lines))

    @property
    def worse(self) -> tuple[str, ...]:
        """What made the predictions worse, or better, in a sentence; of losses only."""
        return _say_worse(self, self) if self.space == LOSS else ()

    @property
    def crossed(self) -> bool:
        """Some threshold is crossed."""
        return bool(self.alarms)

    @property
    def table(self) -> pa.Table:
        """A row for every column of the runs, of all rows and then of every group that was tested."""
        every = (*self.shifts, *(shift for each in self.groups for shift in each.shifts))
        return pa.Table.from_pylist([_plain(asdict(shift)) for shift in every], SCHEMA)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as one object.

        Returns
        -------
        dict
            Of texts, numbers, None in the place of what is not known, lists and dicts.
        """
        found = _plain(asdict(self))
        return {**found, "alarms": list(self.alarms), "worse": list(self.worse)}

    @property
    def text(self) -> str:
        """Text of drift.json, with strict JSON in it."""
        return json.dumps({NUMBER: FORMAT, **self.to_dict()}, indent=1, allow_nan=False)


def _say_worse(drift: Drift, of: Drift | GroupDrift) -> tuple[str, ...]:
    outputs, shifts = (_plain([asdict(each) for each in some]) for some in (of.outputs, of.shifts))
    found = (say_worse(split, shifts, drift.alike) for split in outputs)
    return tuple(line for line in found if line is not None)


def _say_alarms(drift: Drift, of: Drift | GroupDrift) -> list[str]:
    """List the alarms of all rows, or of a group."""
    several, least, orders = len(of.outputs) > 1, drift.thresholds.ndcg, list[str]()
    for split in of.outputs:
        if split.ndcg < least:
            name = f" of output {printable(split.output)}" if several else ""
            orders.append(f"order of the features by importance{name}: nDCG {split.ndcg:.3f}, below {least:g}")
    drifted = rank_alarms([shift for shift in of.shifts if shift.drifted], of.shifts)
    worse = iter(_say_worse(drift, of))
    return [next(worse) if shift.kind == MEAN_LOSS else _say_shift(shift, several, drift.total) for shift in drifted] + orders


def _name(shift: Shift, several: bool, total: str) -> str:
    words = {"phi": "attribution", "margin": total, "mean margin": f"mean {total}", "missing": "missing values", "unseen": "new categories"}
    kind, of = words.get(shift.kind, shift.kind), printable(shift.feature)
    return (f"{kind} of {of}" if of else kind) + (f", output {printable(shift.output)}" if several and shift.output else "")


def _list_unsure(splits: tuple[Split, ...], shifts: list[Shift], groups: tuple[GroupDrift, ...], total: str) -> tuple[str, ...]:
    """Report in one line the columns whose distances are only lower bounds."""
    of_groups = ((f" of {printable(each.group)}", shift) for each in groups for shift in each.shifts)
    of = [f"{_name(shift, len(splits) > 1, total)}{where}" for where, shift in (*(("", shift) for shift in shifts), *of_groups) if shift.unsure]
    more = f"; and {len(of) - SOME:,} more" if len(of) > SOME else ""
    lie = "more than half of the values of each night lie in one cell of those that are counted, and how they moved within it is not known"
    return (f"{lie}: {'; '.join(of[:SOME])}{more}",) if of else ()


def _say_shift(shift: Shift, several: bool, total: str) -> str:
    name = _name(shift, several, total)
    if math.isnan(shift.reference_mean):
        return f"{name}: differs by {shift.distance:.1%}"
    if shift.kind in ("missing", "unseen"):
        return f"{name}: {shift.mean:.2%} of the rows, before {shift.reference_mean:.2%}"
    now, before = write_two(shift.mean, shift.reference_mean)
    if shift.kind in MEANS:
        return f"{name}: {now}, before {before}; {shift.distance:.2g} standard deviations apart"
    if shift.kind == VALUE and shift.distance == 1 and shift.standard_error == 0:
        return f"{name}: all rows have {now}, before all had {before}; expected? --ignore {printable(shift.feature)}"
    return f"{name}: differs by {shift.distance:.1%}; mean {now}, before {before}"


def _refuse_unknown(thresholds: Thresholds, current: Measured) -> None:
    """Refuse names to ignore that are no feature's."""
    known = [*dict.fromkeys((*current.plan.players, *(feature.name for feature in current.plan.features)))]
    for name in thresholds.ignore:
        if name not in known:
            raise UsageError(f"ignore has {name!r:.80}, expected features or groups of {current.uri}{did_you_mean(name, known)}")


def find_reference(run: str, against: str) -> tuple[str, str | None]:
    """Find the run to compare with.

    Parameters
    ----------
    run : str
        URI of the other one's folder.
    against : str
        The run's folder, or the JSON object that names the latest run.

    Returns
    -------
    uri : str
        Of the folder.
    manifest : str or None
        SHA-256 of its manifest, where the object names it.

    Raises
    ------
    UsageError
        The object is not there, or it is the very run.
    """
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


def _are_alike(current: Measured, reference: Measured) -> bool:
    mine, other = ((each.manifest.model_digest, each.plan.trees, each.plan.background_digest) for each in (current, reference))
    return mine == other


def compare_runs(
    current: Measured,
    reference: Measured,
    thresholds: Thresholds,
    parts: tuple[Parts, ...] = (),
    groups: tuple[MeasuredGroups, MeasuredGroups] | None = None,
) -> Drift:
    """Compare two measured runs."""
    refuse_unlike(current, reference)
    _refuse_unknown(thresholds, current)
    splits, shifts = compare_columns(current, reference)
    of_players = {(part.output, each.player): (each.data, each.model) for part in parts for each in part.players}
    every, found = set_parts([*shifts], of_players), tuple[GroupDrift, ...]()
    if groups is not None:
        refuse_other_types(current, reference, groups)
        found = compare_groups(groups)
        every.append(shift_groups(", ".join(column.name for column in groups[0].by), *(count_rows(each.groups) for each in reversed(groups))))
    judged = iter(judge([*every, *(shift for each in found for shift in each.shifts)], thresholds))
    every = [*islice(judged, len(every))]
    return Drift(
        run=current.uri,
        manifest=current.manifest.sha256,
        n_rows=current.manifest.n_rows,
        reference=reference.uri,
        reference_manifest=reference.manifest.sha256,
        reference_n_rows=reference.manifest.n_rows,
        space=current.plan.space,
        thresholds=thresholds,
        differs=(
            *(() if groups is None else list_states(groups[0].by, found)),
            *list_differences(current, reference),
            *list_advised(current, reference, any(part.model for part in parts)),
            *_list_unsure(splits, every, found, current.plan.total),
        ),
        outputs=splits,
        parts=parts,
        shifts=tuple(every),
        by=() if groups is None else tuple(column.name for column in groups[0].by),
        groups=tuple(replace(each, shifts=tuple(islice(judged, len(each.shifts)))) for each in found),
        mix=() if groups is None else mix_groups(groups, current.plan.written_outputs),
        alike=_are_alike(current, reference),
        total=current.plan.total,
    )


def write_drift(drift: Drift) -> None:
    """Write the drift record below the run, and list it in ``after.json``."""
    sink = pa.BufferOutputStream()
    pq.write_table(drift.table, sink, compression="zstd", write_page_checksum=True)
    write_derived(drift.run, drift.manifest, {TABLE: sink.getvalue().to_pybytes(), DOCUMENT: drift.text.encode()})


def drift(
    run: str | PathLike,
    *,
    against: str | PathLike,
    thresholds: Given | None = None,
    by: str | Iterable[str] = (),
    both_ways: bool = False,
    ignore: str | Iterable[str] = (),
    scheduler: Scheduler | None = None,
    threads: int | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    wait: float = 15.0,
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
        What counts as drift, some of ``false_discovery_rate``, ``distance``, ``share``, ``psi``, ``loss``, ``mean``, ``ndcg`` and ``ignore``, or a
        TOML or JSON file of them.
    by : str or sequence of str
        Columns that both runs wrote, as ids or as values of features: every group of rows with the same values in them is compared as well, and the
        change of the mean margin is split into what comes of the mix of groups and what happened within them.
    both_ways : bool
        Where the models differ, explain both nights by both of them: each feature's change is split into what the data did and what the model did.
        For attributions that add up to margins, of outputs that all rows have.
    ignore : str or sequence of str
        Features or groups that are known to change, as the month: neither their values nor their attributions make an alarm.
    scheduler : str, Client or cluster, optional
        Address of a Dask scheduler, or a ``distributed.Client`` or a cluster of Dask, whose scheduler and TLS settings are used, or "serial" for one
        thread; by default this process does all.
    threads : int, optional
        Threads of this process, by default one per core that it may use.
    workers : int, optional
        Processes of a local Dask cluster, in the place of threads. Each imports the calling script, so call under ``if __name__ == "__main__"``.
    plain_tcp : bool
        Reach a scheduler on another host without TLS, where the network is your own.
    wait : float
        Seconds that a scheduler may take to answer, and as many again until it has a worker.
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
    (reference, manifest), asked = find_reference(place, read_place("against", against)), read_thresholds(thresholds)
    both_ways, columns, known = read_flag("both_ways", both_ways), read_names("by", by), read_names("ignore", ignore, "a feature or several")
    asked = replace(asked, ignore=tuple(dict.fromkeys((*asked.ignore, *known))))
    where: dict[str, Any] = {"scheduler": scheduler, "threads": threads, "workers": workers, "plain_tcp": plain_tcp, "wait": wait}
    nights = [measure_run(each, **where, progress=progress) for each in (reference, place)]
    if manifest not in (None, nights[0].manifest.sha256):
        raise InvalidRun(f"{reference}: its manifest has SHA-256 {nights[0].manifest.sha256[:12]}, {against} names {printable(str(manifest)[:12])}")
    refuse_unlike(nights[1], nights[0])
    if both_ways:
        refuse_both_ways(nights[1])
    groups = None
    if columns:
        for each in nights:
            refuse_ungrouped(each, columns)
        placement = make_placement(**where)
        old, new = (measure_groups(placement, each, columns, progress) for each in nights)
        groups = new, old
    found = compare_runs(nights[1], nights[0], asked, explain_both_ways(nights[1], nights[0], where, progress) if both_ways else (), groups)
    write_drift(found)
    return found
