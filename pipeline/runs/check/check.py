"""Verification of finished runs, from footers alone or by reading every byte, in parallel over parts."""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.reductions.merge_tree import FAN_IN
from leafledger.kernels.slices.buffers import Prepared

from ...arguments.readers import shorten
from ...cluster.map_items import map_items
from ...cluster.placement import Placement, Scheduler, make_placement
from ...dataset.files.listing import Rejected
from ...errors import InvalidRun, LeafledgerError, NotRepeatable, UsageError
from ...json_records import as_fields, parse_text, written_fields
from ...methods.output_space import TOTALS
from ...methods.worker_memory import SLICE_BYTES, WORKER_OVERHEAD
from ...progress import Progress, Work, no_progress
from ...stores import storage
from ...stores.failures import published
from ...stores.table_arrays import broadcast_tables, table_bytes
from ...stores.temporary_folder import temporary_folder
from ...stores.uris import normalise
from ..advisories.known import find_advisories
from ..execute.bundles import choose_level
from ..execute.interrupted import is_working
from ..execute.merged_states import MergedStates
from ..publish.kept_run import find_kept
from ..publish.summaries import aggregate
from ..publish.table_objects import write_rows
from ..records.current_run import find_left, not_finished, refuse_others
from ..records.derived import check_after
from ..records.folder import RunFolder, name_file, name_summary
from ..records.input_digests import check_inputs, find_changed, read_inputs
from ..records.manifest import Game, Manifest, make_manifest, read_manifest
from ..records.plan import Plan
from ..records.plan_file import from_json
from ..records.provenance import check_provenance
from ..records.rejected import read_rejected
from .check_parts import CheckTask, GroupResult, ListedPart, PartGroup, PartResult, check_parts, check_size, fetch, right_shapes, warm
from .recompute_rows import RecomputedTables, recompute_tables


@dataclass(frozen=True, slots=True)
class Checks:
    """Results of all parts."""

    found: list[PartResult]  # in the order of parts
    states: MergedStates


@dataclass(frozen=True, slots=True)
class Report:
    """What was verified of a run."""

    manifest: str  # SHA-256 of manifest.json
    parts: int
    n_rows: int
    n_rejected: int  # rejected files and work items in the manifest
    residual: float | None  # largest of any row, as a fraction of the bound; None if the method is not additive
    total: str  # sum of attributions and base value: margin or prediction
    as_stored: bool  # the residual is of the stored, rounded numbers; otherwise of the computed ones, from the parts' footers
    n_again: int  # recomputed rows, 0 if not requested
    n_digested: int  # input files with unchanged SHA-256, 0 if not requested, or without digests in the run
    unverified: tuple[str, ...]  # requested recomputations that were impossible, with reasons
    left: tuple[str, ...]  # what lies in the folder besides, where a replacement was interrupted or is under way
    advisories: tuple[str, ...] = ()  # what is known to be wrong in its version and may concern it, in words
    kept: str | None = None  # what is kept of the run that it replaced, in words
    n_forgotten: int = 0  # rows taken out since, which the summaries were made with

    @property
    def sound(self) -> bool:
        """All that was asked for was verified."""
        return not self.unverified


def _same_rows(local: Path, table: pa.Table, plan: Plan) -> bool:
    """Return whether a JSON file has the text of a table, or its rows where 0.1 wrote them, with other spaces."""
    expected, found = "".join(write_rows(table)), local.read_bytes().decode()
    return found == expected or (plan.format_version == 1 and parse_text(found) == parse_text(expected))


def _check_summaries(run: str, plan: Plan, manifest: Manifest, states: MergedStates, local: Path) -> dict[str, pa.Table]:
    """Recompute the summaries from the parts' states, and compare them with the published ones."""
    with right_shapes(run):
        tables = aggregate(plan, manifest.used, manifest.players, manifest.pairs, states.total())
    expected = [name_summary(manifest.place, f"{name}.{suffix}") for name in tables for suffix in ("parquet", "json")]
    listed = [entry["uri"] for entry in manifest.summaries]
    if listed != expected:
        raise InvalidRun(f"{RunFolder(run).manifest}: lists summaries {shorten(listed)}, expected {shorten(expected)}")
    for entry in manifest.summaries:
        check_size(run, entry)
        uri, (name, _, kind) = fetch(run, entry, local), name_file(entry["uri"]).rpartition(".")
        table = tables[name]
        same = _same_rows(local, table, plan) if kind == "json" else pq.read_table(local).equals(table, check_metadata=True)
        if not same:
            raise InvalidRun(f"{uri}: differs from the summary computed again from the parts")
    return tables


def _check_rejected(run: str, home: str, plan: Plan, rejected: Sequence[Rejected]) -> None:
    """What was rejected is of the plan, and said beside the manifest too."""
    where = RunFolder(run).manifest
    if tuple(rejected) != read_rejected(home):
        raise InvalidRun(f"{RunFolder(home).rejected}: differs from what the manifest says was rejected")
    if tuple(entry for entry in rejected if entry.part is None) != plan.rejected:
        raise InvalidRun(f"{where}: the files that it says cannot be read are not those of the plan")
    for entry in rejected:
        item = None if entry.part is None else plan.items[entry.part]
        if item is not None and all((entry.uri, entry.row_groups, entry.n_rows) != (each.uri, each.row_groups, each.n_rows) for each in item.pieces):
            raise InvalidRun(f"{where}: rejected part {entry.part} has {entry.n_rows} rows of {entry.uri}, the plan {item.n_rows} of {item.uri}")
    twice = [each for each, n in Counter((entry.part, entry.uri) for entry in rejected).items() if n > 1 and each[0] is not None]
    if twice:
        raise InvalidRun(f"{where}: rejects rows of {twice[0][1]} twice in part {twice[0][0]}")


def _check_lists(run: str) -> tuple[Manifest, Plan]:
    """Refuse a manifest that contradicts the plan."""
    manifest = read_manifest(run)
    if manifest is None:
        raise not_finished(run, is_working(run))
    home = manifest.home(run)
    where = RunFolder(home).plan
    with published():
        text = storage.read(where)
    plan, found = from_json(text, where), hashlib.sha256(text).hexdigest()
    if found != manifest.plan:
        raise InvalidRun(f"{where}: SHA-256 is {found[:12]}, the manifest says {shorten(manifest.plan[:12])}")
    refuse_others(run, manifest, plan)
    _check_rejected(run, home, plan, manifest.rejected)
    return manifest, plan


def _written_alike(a: Any, b: Any) -> bool:
    """Return whether values have equal JSON text: true is not 1, and 1 is not 1.0. Large lists are compared entry by entry."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(map(_written_alike, a, b))
    return a is b or json.dumps(a, default=as_fields) == json.dumps(b, default=as_fields)


def _check_manifest(run: str, found: Manifest, expected: Manifest) -> None:
    """Compare every field by its JSON text."""
    for field in written_fields(Manifest):
        value, wanted = getattr(found, field.name), getattr(expected, field.name)
        if not _written_alike(value, wanted):
            raise InvalidRun(f"{RunFolder(run).manifest}: {field.name} is {shorten(value)}, expected {shorten(wanted)}")


def _find_changed(run: str, plan: Plan, manifest: Manifest, deep: bool) -> tuple[int, dict[str, str], str | None]:
    """Digest the inputs again: return the number of unchanged files, and descriptions of changed ones; nothing if the run has no digests."""
    home = manifest.home(run)
    inputs = read_inputs(home)
    if inputs is None:
        return 0, {}, None
    check_inputs(home, inputs, manifest.plan, list(dict.fromkeys(uri for uri, _ in plan.files)))
    files = {file.uri: file for file in (*inputs.data, *inputs.background)} if deep else {}
    changed = find_changed(list(files.values()))
    return len(files) - len(changed), changed, next((changed[file.uri] for file in inputs.background if file.uri in changed), None)


def _prepare(plan: Plan, model: str | None, changed: str | None, n_threads: int, unverified: list[str]) -> RecomputedTables | None:
    try:
        if changed is not None:
            raise NotRepeatable(changed)
        return recompute_tables(plan, model, n_threads)
    except NotRepeatable as error:
        unverified.append(f"no row was explained again, nor what the manifest says of the model: {error}")
        return None


def _say_parts(skipped: Sequence[str], n_parts: int) -> list[str]:
    return [f"rows of {len(skipped)} of {n_parts} parts were not explained again: {skipped[0]}"] if skipped else []


def _list_parts(plan: Plan, manifest: Manifest, changed: Mapping[str, str]) -> Iterator[ListedPart]:
    """List the manifest's parts with what is known of each."""
    left_out, forgotten = defaultdict[int | None, list[Rejected]](list), manifest.list_forgotten()
    for rejected in manifest.rejected:
        left_out[rejected.part].append(rejected)
    for entry in manifest.parts:
        item = plan.items[entry["part"]]
        other = next((changed[piece.uri] for piece in item.pieces if piece.uri in changed), None)
        yield ListedPart(item, entry, tuple(left_out.get(item.part, ())), tuple(forgotten.get(item.part, ())), other)


def _check_parts(
    placement: Placement, asked: CheckTask, plan: Plan, parts: Sequence[ListedPart], prepared: Prepared | None, progress: Progress
) -> Checks:
    """Check all parts at the placement. The results, and the first error by part number, do not depend on it.

    Parts are checked several at a time, as small items are explained. If a part fails, those before it are waited for.
    """
    level = choose_level([each.item for each in parts])
    grouped = ((place, tuple(some)) for place, some in groupby(parts, lambda each: each.item.part // FAN_IN**level))
    left = {place: PartGroup(level, place, some) for place, some in grouped}
    on_done = progress(Work("checking", asked.run, len(parts), sum(each.item.n_rows for each in parts), placement.describe(len(left))))
    work: Callable[[Any, Any], GroupResult] = partial(check_parts, plan=plan, prepared=prepared) if placement.is_here else check_parts
    merged, found, wrong = MergedStates(plan.summaries), dict[int, tuple[PartResult, ...]](), dict[int, LeafledgerError]()
    memory = WORKER_OVERHEAD + 2 * SLICE_BYTES + (0 if prepared is None else table_bytes(prepared))
    for several, made in map_items(placement, work, warm, asked, list(left.values()), memory):
        del left[several.place]
        if made.wrong is None:
            found[several.place] = made.found
            with right_shapes(asked.run):
                merged.add(several.place, made.states, level)
            for each in several.parts:
                on_done(each.item)
        else:
            wrong[several.place] = made.wrong
        if wrong and min(wrong) < min(left, default=math.inf):
            raise wrong[min(wrong)]
    return Checks([one for place in sorted(found) for one in found[place]], merged)


def check_run(
    uri: str | PathLike,
    deep: bool = False,
    model: str | PathLike | None = None,
    all_rows: bool = False,
    *,
    scheduler: Scheduler | None = None,
    threads: int | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    wait: float = 15.0,
    progress: Progress = no_progress,
) -> Report:
    """Verify a finished run: its manifest says what plan, parts and summaries say, every part is there once, with the rows of the plan, and the
    parts' states give the summaries. What was made of the run afterwards is what its own record lists, and how it was made is of this very run.

    That takes the parts' footers, the plan and the summaries, whose digests are compared; ``deep`` reads every byte of the parts too.

    Parameters
    ----------
    uri : str or path
        Of the run's folder.
    deep : bool
        Also compare the parts' digests, add up the attributions of every row where the method is additive, and do the run again: count the
        background if there is one, prepare the tables, and explain the first rows of every part; and digest the inputs again where they were digested
        when the run was made. That takes the run's model, data and version of
        leafledger; what could not be done again is in the report's ``unverified``.
    model : str or path, optional
        The model's file, with ``deep``; by default where it was.
    all_rows : bool
        Explain all rows again, not the first ones alone; ``deep`` goes without saying.
    scheduler, threads, workers, plain_tcp, wait : optional
        As for `explain`. With ``deep``, tables are put beside the run for workers of a cluster, and removed again.
    progress : callable
        As for `explain`.

    Returns
    -------
    Report

    Raises
    ------
    NotFinished
        There is no manifest.
    InvalidRun
        The first thing found wrong, and where, or an object that the manifest lists is missing.
    UsageError
        ``model`` is another model than the run's, or is given where no row is explained again.
    StorageError
        The store does not answer.
    """
    run, deep = normalise(str(uri)), deep or all_rows
    if model is not None and not deep:
        raise UsageError("a model is given, but no row is explained again; ask for a deep check")
    placement = make_placement(scheduler, threads, workers, wait, plain_tcp)
    manifest, plan = _check_lists(run)
    check_after(run, manifest.sha256, bool(manifest.place))
    unverified = list[str]()
    n_digested, changed, background = _find_changed(run, plan, manifest, deep)
    unverified += [f"{len(changed)} of {n_digested + len(changed)} input files: {next(iter(changed.values()))}"] if changed else []
    tables = _prepare(plan, None if model is None else str(model), background, placement.threads, unverified) if deep else None
    game = Game(manifest.library, manifest.base, manifest.bound, manifest.used, manifest.players, manifest.pairs) if tables is None else tables.game
    prepared, alone, parts = None if tables is None else tables.prepared, placement.is_here, list(_list_parts(plan, manifest, changed))
    with nullcontext("") if prepared is None or alone else temporary_folder(run) as place:
        put = broadcast_tables(prepared, place) if place else ""
        asked = CheckTask(run, manifest.home(run), manifest.plan, manifest.base, manifest.bound, deep, all_rows, put)
        checks = _check_parts(placement, asked, plan, parts, prepared, progress)
    with storage.scratch() as folder, published():
        summaries = _check_summaries(run, plan, manifest, checks.states, folder / "object")
    entries = sorted(manifest.parts, key=lambda entry: entry["part"])
    computed = [one.residual for one in checks.found]
    expected = make_manifest(plan, manifest.place, game, entries, computed, manifest.summaries, manifest.rejected, summaries)
    number = max(manifest.format_version, plan.format_version)  # of a run that was put in place anew, without being explained, it is today's
    expected = replace(expected, format_version=number, forgotten=manifest.forgotten)
    _check_manifest(run, manifest, expected)
    check_provenance(manifest.home(run), manifest.sha256)
    stored = [one.stored for one in checks.found if one.stored is not None]
    worst = max(stored, default=None) if stored else expected.residual
    unverified += _say_parts([one.skipped for one in checks.found if one.skipped is not None], len(manifest.parts))
    advised = tuple(map(str, find_advisories(manifest, lambda: plan)))
    counts, n_again = (len(entries), manifest.n_rows, len(manifest.rejected)), sum(one.n_again for one in checks.found)
    kept = find_kept(run, manifest)
    return Report(
        manifest.sha256,
        *counts,
        worst,
        TOTALS[plan.space],
        bool(stored),
        n_again,
        n_digested,
        tuple(unverified),
        find_left(run, manifest),
        advised,
        None if kept is None else str(kept),
        manifest.n_forgotten,
    )
