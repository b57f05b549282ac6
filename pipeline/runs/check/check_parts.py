"""Verification of a group of parts: the Dask task of `check_run`."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leafledger.kernels.method.method import TOLERANCE
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.slices.links import find_reach

from ...arguments.readers import shorten
from ...dataset.files.listing import Rejected, WorkItem
from ...display.text import count
from ...errors import InvalidRun, LeafledgerError, NotRepeatable, UsageError
from ...methods.output_space import TOTALS, find_scale
from ...methods.warmup import call_kernels
from ...methods.worker_memory import SLICE_BYTES
from ...stores import storage
from ...stores.failures import published
from ...stores.table_arrays import open_tables
from ..execute.merged_states import MergedStates
from ..formats.numbers import LAST_UNNUMBERED
from ..records.folder import RunFolder
from ..records.footer import Footer, read_footer
from ..records.manifest import PartEntry, SummaryEntry
from ..records.part import reject
from ..records.plan import Plan, recipe
from ..records.plan_file import read_plan, read_recipe
from .recompute_rows import recompute_part

# Stored values are rounded: a row's sum may be off by half a unit in the last place of each term, plus the kernel's tolerance.
ROUNDING = {"float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True, slots=True)
class CheckTask:
    """Data that every worker needs to check parts of a run."""

    run: str  # URI of the run's folder
    home: str  # folder of its plan
    plan: str  # SHA-256 of the plan, hexadecimal
    base: tuple[float, ...]  # as in the manifest
    bound: tuple[float, ...]
    deep: bool
    all_rows: bool
    tables: str  # URI of the method's tables; empty if they are in memory, or no row is recomputed


@dataclass(frozen=True, slots=True)
class ListedPart:
    """A part as listed in the manifest."""

    item: WorkItem
    entry: PartEntry
    left_out: tuple[Rejected, ...]  # its rejected files
    forgotten: tuple[int, ...]  # where rows stood that were taken out of it
    changed: str | None  # why its rows cannot be recomputed: a changed input file


@dataclass(frozen=True, slots=True)
class PartGroup:
    """Consecutive parts of FAN_IN^level positions."""

    level: int
    place: int  # position within the level
    parts: tuple[ListedPart, ...]

    def __str__(self) -> str:
        return self.parts[0].entry["uri"]


@dataclass(frozen=True, slots=True)
class PartResult:
    """Result of a valid part."""

    residual: float | None  # as computed, from the footer
    stored: float | None  # of the stored numbers; None if not checked, or not additive
    n_again: int  # number of recomputed rows
    skipped: str | None  # why none was recomputed, if requested


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Results of several parts, up to the first invalid one."""

    found: tuple[PartResult, ...]
    states: Mapping[str, str] | None  # states of all parts, merged and packed
    wrong: LeafledgerError | None


@contextmanager
def right_shapes(run: str) -> Iterator[None]:
    """Refuse states whose arrays have wrong shapes."""
    try:
        yield
    except (ValueError, IndexError, TypeError, OverflowError, UsageError) as error:
        raise InvalidRun(f"{run}: the states of the parts do not make summaries: {' '.join(str(error).split())}") from error


def check_size(run: str, entry: PartEntry | SummaryEntry) -> str:
    """Refuse an object that the manifest lists where it is missing or has another size."""
    uri = RunFolder(run).listed(entry)
    size = storage.stat(uri).size
    if size != entry["size"]:
        raise InvalidRun(f"{uri}: has {size} bytes, the manifest says {entry['size']}")
    return uri


def fetch(run: str, entry: PartEntry | SummaryEntry, local: Path) -> str:
    """Fetch what the manifest lists, and refuse other bytes."""
    uri = RunFolder(run).listed(entry)
    storage.download(uri, local)
    found = storage.sha256(local)
    if found != entry["sha256"]:
        raise InvalidRun(f"{uri}: SHA-256 is {found[:12]}, the manifest says {shorten(entry['sha256'][:12])}")
    return uri


def _read_sums(parquet: pq.ParquetFile, group: int, columns: list[str], n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sums and sums of magnitudes of columns over a row group, ``(n,) float64`` each, reading ``n_columns`` at a time."""
    n = parquet.metadata.row_group(group).num_rows
    total, size = np.zeros(n), np.zeros(n)
    for start in range(0, len(columns), n_columns):
        for column in parquet.read_row_group(group, columns[start : start + n_columns]).columns:
            values = column.to_numpy().astype(np.float64)
            total += values
            size += np.abs(values)
    return total, size


def _are_null(parquet: pq.ParquetFile, group: int, columns: list[str], n_columns: int) -> np.ndarray:
    """Return which rows of a row group have no number in any of the columns, ``(n,) bool``: those without a label."""
    found = np.ones(parquet.metadata.row_group(group).num_rows, bool)
    for start in range(0, len(columns), n_columns):
        for column in parquet.read_row_group(group, columns[start : start + n_columns]).columns:
            found &= column.is_null().to_numpy()
    return found


def _read_outputs(uri: str, plan: Plan, parquet: pq.ParquetFile, group: int, n: int) -> np.ndarray:
    """Return the model output of each margin in a row group, ``(margins, n) int``."""
    if not plan.chosen:
        return np.repeat(np.arange(len(plan.outputs))[:, None], n, axis=1)
    named = parquet.read_row_group(group, list(plan.chosen)).column(0).combine_chunks()
    found = pc.index_in(named, pa.array(plan.outputs))
    if found.null_count:
        raise InvalidRun(f"{uri}: has an output that the plan does not have, expected {', '.join(plan.outputs)}")
    return found.to_numpy()[None]


def _check_sums(uri: str, plan: Plan, asked: CheckTask, parquet: pq.ParquetFile) -> float:
    """Return the largest residual of the stored attributions; refuse rows that are not additive."""
    margins, phi, _ = plan.columns
    n_players, worst, done = len(plan.players), 0.0, 0
    for group in range(parquet.num_row_groups):
        n = parquet.metadata.row_group(group).num_rows
        at_a_time = max(1, SLICE_BYTES // (8 * max(1, n)))
        outputs = _read_outputs(uri, plan, parquet, group, n)
        for k, margin in enumerate(margins):
            total, size = _read_sums(parquet, group, phi[k * n_players : (k + 1) * n_players], at_a_time)
            stored, stored_size = _read_sums(parquet, group, [margin], 1)
            base, bound = (np.array(numbers or np.zeros(len(plan.outputs)))[outputs[k]] for numbers in (asked.base, asked.bound))
            if plan.base_columns:  # of every row its own, and its own scale
                base, _ = _read_sums(parquet, group, plan.base_columns, 1)
                unlabelled = _are_null(parquet, group, [*phi, margin, *plan.base_columns], at_a_time)
                total, size, stored, base = (np.where(unlabelled, 0.0, values) for values in (total, size, stored, base))
                stored_size, base_size = np.abs(stored), np.abs(base)
                reach = size + stored_size + base_size
            else:
                reach, base_size = find_reach(find_scale(plan.link, plan.quantity), base, bound, stored), np.zeros(n)
            missed, allowed = np.abs(total + base - stored), ROUNDING[plan.precision] * (size + stored_size + base_size) + TOLERANCE * reach
            if not (missed <= allowed).all():
                row = int(np.flatnonzero(~(missed <= allowed))[0])
                raise InvalidRun(
                    f"{uri}: row {done + row}: attributions miss {TOTALS[plan.space]} - base value by {missed[row]:.3g}, "
                    f"expected at most {allowed[row]:.3g}"
                )
            worst = max(worst, float((missed / np.maximum(reach, np.finfo(np.float64).tiny)).max(initial=0.0)))
        done += n
    return worst


def _check_footer(plan: Plan, made_by: str, asked: CheckTask, each: ListedPart) -> Footer:
    """Read a part's footer, and compare it with manifest and plan."""
    uri, item, entry = check_size(asked.run, each.entry), each.item, each.entry
    with storage.opened(uri) as file:
        footer = read_footer(uri, file, made_by, item)
    if reject(item, footer.rejected) != each.left_out:
        raise InvalidRun(f"{uri}: leaves out {count(len(footer.rejected), 'file')}, otherwise than the manifest says")
    n_rows, gone = item.n_rows - sum(entry.n_rows or 0 for entry in each.left_out), len(each.forgotten)
    if not footer.n_rows == entry["n_rows"] + gone == n_rows:
        raise InvalidRun(f"{uri}: has {footer.n_rows} rows, the manifest says {entry['n_rows'] + gone}, the plan {n_rows}")
    stored = 0 if plan.global_only else entry["n_rows"]
    if footer.stored != stored:
        raise InvalidRun(f"{uri}: holds {footer.stored} rows, expected {stored or 'none, as of a run of summaries alone'}")
    if footer.format_version != max(plan.format_version, LAST_UNNUMBERED):
        raise InvalidRun(f"{uri}: its footer is of format {footer.format_version}, the plan of format {plan.format_version}")
    told = footer.base is not None or plan.format_version > 1
    base = dict(zip(plan.outputs, asked.base, strict=not plan.base_columns))
    if footer.space != plan.space or (told and json.dumps(footer.base) != json.dumps(base)):
        raise InvalidRun(f"{uri}: its base values are {shorten(footer.base)} in space {footer.space!r}, the manifest's {shorten(asked.base)}")
    if (footer.residual is not None) != plan.additive or not (footer.residual or 0.0) >= 0.0:  # also refuses NaN
        raise InvalidRun(f"{uri}: its residual is {footer.residual}, of method {plan.method!r}")
    if footer.states.keys() != {summary.name for summary in plan.summaries}:
        raise InvalidRun(f"{uri}: has states of {shorten(sorted(footer.states))}, expected {', '.join(summary.name for summary in plan.summaries)}")
    return footer


def _check_bytes(plan: Plan, asked: CheckTask, entry: PartEntry, local: Path) -> float | None:
    """Verify a part's digest, and return the stored residual; None if additivity cannot be checked."""
    uri = fetch(asked.run, entry, local)
    if not plan.additive or plan.global_only or not plan.wide:
        return None
    with pq.ParquetFile(local, page_checksum_verification=True) as parquet:
        return _check_sums(uri, plan, asked, parquet)


def _check_part(plan: Plan, made_by: str, asked: CheckTask, each: ListedPart, prepared: Prepared | None, local: Path) -> tuple[Footer, PartResult]:
    """Verify a part, and return its footer and result."""
    footer = _check_footer(plan, made_by, asked, each)
    if not asked.deep:
        return footer, PartResult(footer.residual, None, 0, None)
    stored = _check_bytes(plan, asked, each.entry, local)
    if prepared is None or each.changed is not None:
        return footer, PartResult(footer.residual, stored, 0, each.changed)
    try:
        uri = RunFolder(asked.run).listed(each.entry)
        n_again = recompute_part(uri, plan, made_by, each.item, prepared, local, asked.all_rows, footer.rejected, each.forgotten)
    except NotRepeatable as error:
        return footer, PartResult(footer.residual, stored, 0, str(error))
    return footer, PartResult(footer.residual, stored, n_again, None)


def check_parts(asked: CheckTask, several: PartGroup, plan: Plan | None = None, prepared: Prepared | None = None) -> GroupResult:
    """Verify parts in turn, and merge their states."""
    found = list[PartResult]()
    try:
        plan, made_by = (plan, recipe(plan)) if plan is not None else (read_plan(asked.home, asked.plan), read_recipe(asked.home, asked.plan))
        prepared, merged = open_tables(asked.tables) if asked.tables else prepared, MergedStates(plan.summaries)
        with storage.scratch() as folder, published():
            for each in several.parts:
                footer, one = _check_part(plan, made_by, asked, each, prepared, folder / "object")
                with right_shapes(asked.run):
                    merged.add(each.item.part, footer.states)
                found.append(one)
        with right_shapes(asked.run):
            states = footer.states if len(several.parts) == 1 else merged.pack()
    except LeafledgerError as error:
        return GroupResult(tuple(found), None, error)
    return GroupResult(tuple(found), states, None)


def warm(asked: CheckTask) -> None:
    """Compile or load every kernel that verification of parts calls."""
    if asked.tables:
        plan = read_plan(asked.home, asked.plan)
        call_kernels(METHODS[plan.method], open_tables(asked.tables))
