"""The verifier of finished runs: manifest, parts, row counts and summaries from footers alone, or digests, additivity and values from every byte."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kernels.links import IDENTITY, find_reach
from kernels.method import TOLERANCE

from ..dataset.listing import Rejected
from ..display import count
from ..errors import InvalidRun, NotFinished, NotRepeatable, UsageError
from ..stores import storage
from ..stores.filesystem import published
from ..stores.places import normalise
from .after import check_after
from .again import Tables, explain_again, prepare_again
from .arguments import shorten
from .digests import check_inputs, find_changed, read_inputs
from .finished import refuse_other_outputs
from .footer import Footer, read_footer
from .merged import MergedStates
from .part import part_uri, reject
from .plan import PLAN, Plan, recipe
from .planned import from_json
from .provenance import check_provenance
from .publish import MANIFEST, SUMMARY, Game, Manifest, PartEntry, SummaryEntry, make_manifest, read_manifest, write_rows
from .rejected import REJECTED, find_given_up, read_rejected
from .replacement import find_place
from .sizes import SLICE_BYTES
from .space import TOTALS
from .summaries import aggregate

# What is stored is rounded; a row's sum may be off by half a unit in the last place of each of its terms, besides what a kernel may miss.
ROUNDING = {"float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True, slots=True)
class Report:
    """What was verified of a run."""

    manifest: str  # SHA-256 of manifest.json
    parts: int
    n_rows: int
    n_rejected: int  # pieces of the data, as the manifest says
    residual: float | None  # largest of any row, as a fraction of the bound; None where the method is not additive
    total: str  # what attributions and base value add up to: margin, or prediction
    as_stored: bool  # the residual is that of the numbers in the parts, which are rounded; otherwise of those computed, as the parts' footers say
    n_again: int  # rows explained again, 0 where not asked for
    n_digested: int  # files of the inputs that have the SHA-256 that they had, 0 where not asked for, or not digested when the run was made
    unverified: tuple[str, ...]  # what could not be done again though it was asked for, and why

    @property
    def sound(self) -> bool:
        """All that was asked for was verified."""
        return not self.unverified


def _stat(run: str, entry: PartEntry | SummaryEntry) -> str:
    """Refuse an object that the manifest lists where it is missing or has another size."""
    uri = storage.join(run, entry["uri"])
    size = storage.stat(uri).size
    if size != entry["size"]:
        raise InvalidRun(f"{uri}: has {size} bytes, the manifest says {entry['size']}")
    return uri


def _download(run: str, entry: PartEntry | SummaryEntry, local: Path) -> str:
    """Fetch what the manifest lists, and refuse other bytes."""
    uri = storage.join(run, entry["uri"])
    storage.download(uri, local)
    found = storage.sha256(local)
    if found != entry["sha256"]:
        raise InvalidRun(f"{uri}: SHA-256 is {found[:12]}, the manifest says {shorten(entry['sha256'][:12])}")
    return uri


def _read_sums(parquet: pq.ParquetFile, group: int, columns: list[str], n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Sum and sum of magnitudes of columns over a row group, ``(n,) float64`` each; ``n_columns`` are read at a time."""
    n = parquet.metadata.row_group(group).num_rows
    total, size = np.zeros(n), np.zeros(n)
    for start in range(0, len(columns), n_columns):
        for column in parquet.read_row_group(group, columns[start : start + n_columns]).columns:
            values = column.to_numpy().astype(np.float64)
            total += values
            size += np.abs(values)
    return total, size


def _read_outputs(uri: str, plan: Plan, parquet: pq.ParquetFile, group: int, n: int) -> np.ndarray:
    """Which of the model's outputs a row group's margins are of, ``(margins, n) int``."""
    if not plan.chosen:
        return np.repeat(np.arange(len(plan.outputs))[:, None], n, axis=1)
    named = parquet.read_row_group(group, list(plan.chosen)).column(0).combine_chunks()
    found = pc.index_in(named, pa.array(plan.outputs))
    if found.null_count:
        raise InvalidRun(f"{uri}: has an output that the plan does not have, expected {', '.join(plan.outputs)}")
    return found.to_numpy()[None]


def _check_sums(uri: str, plan: Plan, manifest: Manifest, parquet: pq.ParquetFile) -> float:
    """The largest residual of attributions as stored, or InvalidRun where they do not add up."""
    margins, phi, _ = plan.columns
    n_players, worst, done = len(plan.players), 0.0, 0
    for group in range(parquet.num_row_groups):
        n = parquet.metadata.row_group(group).num_rows
        at_a_time = max(1, SLICE_BYTES // (8 * max(1, n)))
        outputs = _read_outputs(uri, plan, parquet, group, n)
        for k, margin in enumerate(margins):
            total, size = _read_sums(parquet, group, phi[k * n_players : (k + 1) * n_players], at_a_time)
            stored, stored_size = _read_sums(parquet, group, [margin], 1)
            base, bound = (np.array(numbers)[outputs[k]] for numbers in (manifest.base, manifest.bound))
            missed, reach = np.abs(total + base - stored), find_reach(plan.link or IDENTITY, base, bound, stored)
            allowed = ROUNDING[plan.precision] * (size + stored_size) + TOLERANCE * reach
            if not (missed <= allowed).all():
                row = int(np.flatnonzero(~(missed <= allowed))[0])
                raise InvalidRun(
                    f"{uri}: row {done + row}: attributions miss {TOTALS[plan.space]} - base value by {missed[row]:.3g}, "
                    f"expected at most {allowed[row]:.3g}"
                )
            worst = max(worst, float((missed / np.maximum(reach, np.finfo(np.float64).tiny)).max(initial=0.0)))
        done += n
    return worst


def _check_footer(run: str, plan: Plan, made_by: str, manifest: Manifest, entry: PartEntry) -> Footer:
    """The footer of a part, which says what the manifest and the plan say."""
    uri, item = _stat(run, entry), plan.items[entry["part"]]
    with storage.opened(uri) as file:
        footer = read_footer(uri, file, made_by, item)
    left_out = [each for each in manifest.rejected if each.part == item.part] if item.joined else []
    if list(reject(item, footer.rejected)) != left_out:
        raise InvalidRun(f"{uri}: leaves out {count(len(footer.rejected), 'file')}, otherwise than the manifest says")
    n_rows = item.n_rows - sum(each.n_rows or 0 for each in left_out)
    if not footer.n_rows == entry["n_rows"] == n_rows:
        raise InvalidRun(f"{uri}: has {footer.n_rows} rows, the manifest says {entry['n_rows']}, the plan {n_rows}")
    if footer.space != plan.space or json.dumps(footer.base) != json.dumps(dict(zip(plan.outputs, manifest.base, strict=True))):
        raise InvalidRun(f"{uri}: its base values are {shorten(footer.base)} in space {footer.space!r}, the manifest's {shorten(manifest.base)}")
    adds_up = plan.additive
    if (footer.residual is not None) != adds_up:
        raise InvalidRun(f"{uri}: its residual is {footer.residual}, of method {plan.method!r}")
    if footer.states.keys() != {summary.name for summary in plan.summaries}:
        raise InvalidRun(f"{uri}: has states of {shorten(sorted(footer.states))}, expected {', '.join(summary.name for summary in plan.summaries)}")
    return footer


def _check_bytes(run: str, plan: Plan, manifest: Manifest, entry: PartEntry, local: Path) -> float | None:
    """A part's digest, and its residual as stored; None where it has no rows, not all attributions of a row, or they need not add up."""
    uri = _download(run, entry, local)
    if not plan.additive or plan.global_only or not plan.wide:
        return None
    with pq.ParquetFile(local, page_checksum_verification=True) as parquet:
        return _check_sums(uri, plan, manifest, parquet)


@contextmanager
def _of_right_shapes(run: str) -> Iterator[None]:
    """Refuse states with arrays of other shapes than they should have."""
    try:
        yield
    except (ValueError, IndexError, TypeError, OverflowError, UsageError) as error:
        raise InvalidRun(f"{run}: the states of the parts do not make summaries: {' '.join(str(error).split())}") from error


def _check_summaries(run: str, plan: Plan, manifest: Manifest, states: MergedStates, local: Path) -> dict[str, pa.Table]:
    """Summaries computed again from the parts, which are those that were published."""
    with _of_right_shapes(run):
        tables = aggregate(plan, manifest.used, manifest.players, manifest.pairs, states.total())
    above = f"{manifest.place}/{SUMMARY}" if manifest.place else SUMMARY
    expected = [f"{above}/{name}.{suffix}" for name in tables for suffix in ("parquet", "json")]
    listed = [entry["uri"] for entry in manifest.summaries]
    if listed != expected:
        raise InvalidRun(f"{storage.join(run, MANIFEST)}: lists summaries {shorten(listed)}, expected {shorten(expected)}")
    for entry in manifest.summaries:
        _stat(run, entry)
        uri, table = _download(run, entry, local), tables[Path(entry["uri"]).stem]
        same = local.read_text() == "".join(write_rows(table)) if uri.endswith(".json") else pq.read_table(local).equals(table, check_metadata=True)
        if not same:
            raise InvalidRun(f"{uri}: differs from the summary computed again from the parts")
    return tables


def _check_rejected(run: str, home: str, plan: Plan, rejected: Sequence[Rejected]) -> None:
    """What was rejected is of the plan, and said beside the manifest too."""
    where = storage.join(run, MANIFEST)
    if tuple(rejected) != read_rejected(home):
        raise InvalidRun(f"{storage.join(home, REJECTED)}: differs from what the manifest says was rejected")
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
    """Manifest and plan, which agree on all that there is."""
    manifest = read_manifest(run)
    if manifest is None:
        raise NotFinished(f"{run}: no {MANIFEST} there: not a finished run")
    home = manifest.home(run)
    where = storage.join(home, PLAN)
    with published():
        text = storage.read(where)
    plan, found = from_json(text, where), hashlib.sha256(text).hexdigest()
    if found != manifest.plan:
        raise InvalidRun(f"{where}: SHA-256 is {found[:12]}, the manifest says {shorten(manifest.plan[:12])}")
    if manifest.place not in ("", find_place(plan)):
        raise InvalidRun(f"{storage.join(run, MANIFEST)}: place is {shorten(manifest.place)}, expected {find_place(plan)}, or none")
    listed = [entry["part"] for entry in manifest.parts]
    rejected = find_given_up(plan.items, manifest.rejected)
    if Counter(listed) + Counter(rejected) != Counter(item.part for item in plan.items):
        raise InvalidRun(f"{run}: the manifest's {len(listed)} parts and {len(rejected)} rejected ones differ from the plan's {len(plan.items)}")
    _check_rejected(run, home, plan, manifest.rejected)
    if manifest.n_rows + manifest.n_rejected != plan.n_rows:
        raise InvalidRun(f"{run}: the manifest counts {manifest.n_rows} rows and {manifest.n_rejected} rejected ones, the plan {plan.n_rows}")
    for entry in manifest.parts:
        expected = part_uri(home, entry["part"])
        if storage.join(run, entry["uri"]) != expected:
            raise InvalidRun(f"{storage.join(run, MANIFEST)}: part {entry['part']} is at {shorten(entry['uri'])}, expected {expected}")
    refuse_other_outputs(run, manifest, plan)
    n_players = len(plan.players)
    strange = [column for column in manifest.used if not 0 <= column < len(plan.features)]
    if strange:
        raise InvalidRun(f"{storage.join(run, MANIFEST)}: has feature {shorten(strange[0])}, the plan has {len(plan.features)}")
    strange = [player for player in (*manifest.players, *sum(manifest.pairs, ())) if not 0 <= player < n_players]
    if strange:
        raise InvalidRun(f"{storage.join(run, MANIFEST)}: has player {shorten(strange[0])}, the plan has {n_players}")
    return manifest, plan


def _check_manifest(run: str, found: Manifest, expected: Manifest) -> None:
    """Every field, as it is written: true is not 1, and 1 is not 1.0."""
    fields, wanted = asdict(found), asdict(expected)
    for name, value in fields.items():
        if json.dumps(value) != json.dumps(wanted[name]):
            raise InvalidRun(f"{storage.join(run, MANIFEST)}: {name} is {shorten(value)}, expected {shorten(wanted[name])}")


def _find_changed(run: str, plan: Plan, manifest: Manifest, deep: bool) -> tuple[int, dict[str, str], str | None]:
    """How many input files are what they were, what is wrong with the others, and with the background; nothing where they were never digested."""
    home = manifest.home(run)
    inputs = read_inputs(home)
    if inputs is None:
        return 0, {}, None
    check_inputs(home, inputs, manifest.plan, list(dict.fromkeys(uri for uri, _ in plan.files)))
    files = {file.uri: file for file in (*inputs.data, *inputs.background)} if deep else {}
    changed = find_changed(list(files.values()))
    return len(files) - len(changed), changed, next((changed[file.uri] for file in inputs.background if file.uri in changed), None)


def _prepare(plan: Plan, model: str | None, changed: str | None, unverified: list[str]) -> Tables | None:
    try:
        if changed is not None:
            raise NotRepeatable(changed)
        return prepare_again(plan, model)
    except NotRepeatable as error:
        unverified.append(f"no row was explained again, nor what the manifest says of the model: {error}")
        return None


def _say_parts(skipped: Sequence[str], n_parts: int) -> list[str]:
    return [f"rows of {len(skipped)} of {n_parts} parts were not explained again: {skipped[0]}"] if skipped else []


def check_run(uri: str | PathLike, deep: bool = False, model: str | PathLike | None = None, all_rows: bool = False) -> Report:
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
    manifest, plan = _check_lists(run)
    check_after(run, manifest.sha256, bool(manifest.place))
    unverified, skipped, n_again = list[str](), list[str](), 0
    n_digested, changed, background = _find_changed(run, plan, manifest, deep)
    unverified += [f"{len(changed)} of {n_digested + len(changed)} input files: {next(iter(changed.values()))}"] if changed else []
    tables = _prepare(plan, None if model is None else str(model), background, unverified) if deep else None
    game = Game(manifest.library, manifest.base, manifest.bound, manifest.used, manifest.players, manifest.pairs) if tables is None else tables.game
    made_by = recipe(plan)
    states, computed, stored = MergedStates(plan.summaries), list[float | None](), list[float]()
    with storage.scratch() as folder, published():
        local = folder / "object"
        for entry in manifest.parts:
            footer = _check_footer(run, plan, made_by, manifest, entry)
            with _of_right_shapes(run):
                states.add(entry["part"], footer.states)
            computed.append(footer.residual)
            if not deep:
                continue
            residual = _check_bytes(run, plan, manifest, entry, local)
            stored += [] if residual is None else [residual]
            if tables is not None:
                item = plan.items[entry["part"]]
                other = next((changed[piece.uri] for piece in item.pieces if piece.uri in changed), None)
                if other is not None:
                    skipped.append(other)
                    continue
                try:
                    n_again += explain_again(storage.join(run, entry["uri"]), plan, made_by, item, tables, local, all_rows, footer.rejected)
                except NotRepeatable as error:
                    skipped.append(str(error))
        summaries = _check_summaries(run, plan, manifest, states, local)
    parts = sorted(manifest.parts, key=lambda entry: entry["part"])
    expected = make_manifest(plan, manifest.place, game, parts, computed, manifest.summaries, manifest.rejected, summaries)
    _check_manifest(run, manifest, expected)
    check_provenance(manifest.home(run), manifest.sha256)
    worst = max(stored, default=None) if stored else expected.residual
    unverified += _say_parts(skipped, len(manifest.parts))
    counts = len(parts), manifest.n_rows, len(manifest.rejected)
    return Report(manifest.sha256, *counts, worst, TOTALS[plan.space], bool(stored), n_again, n_digested, tuple(unverified))
