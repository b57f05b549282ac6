"""The verifier of finished runs: manifest, parts, row counts and summaries from footers alone, or digests, additivity and values from every byte."""

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.buffers import Prepared
from kernels.method import TOLERANCE
from kernels.methods import METHODS

from ..dataset.listing import WorkItem
from ..dataset.rows import window
from ..errors import InvalidData, InvalidRun, LeafledgerError
from ..models import load_ensemble
from ..stores import storage
from ..stores.places import normalise
from .background import count_again
from .footer import Footer, read_footer
from .item import explain_item
from .plan import PLAN, SLICE_BYTES, Plan, from_json
from .prepare import prepare_model
from .publish import MANIFEST, SUMMARY, Manifest, read_manifest
from .rejected import REJECTED, read_rejected
from .summaries import aggregate

# What is stored is rounded; a row's sum may be off by half a unit in the last place of each of its terms, besides what a kernel may miss.
ROUNDING = {"float32": 2.0**-24, "float64": 2.0**-53}


SAMPLE_ROWS = 64  # of every part, explained again


@dataclass(frozen=True, slots=True)
class Report:
    """What was verified of a run."""

    parts: int
    n_rows: int
    n_rejected: int  # pieces of the data, as the manifest says
    residual: float | None  # largest of any row, as a fraction of the margin bound; None where the method is not additive
    n_again: int  # rows explained again, 0 where not asked for, or where the input or the tables are not those of the run any more


def _stat(run: str, entry: dict) -> str:
    """Refuse an object that the manifest lists where it is missing or has another size."""
    uri = storage.join(run, entry["uri"])
    size = storage.stat(uri).size
    if size != entry["size"]:
        raise InvalidRun(f"{uri}: has {size} bytes, the manifest says {entry['size']}")
    return uri


def _download(run: str, entry: dict, local: Path) -> str:
    """Fetch what the manifest lists, and refuse other bytes."""
    uri = storage.join(run, entry["uri"])
    storage.download(uri, local)
    found = storage.sha256(local)
    if found != entry["sha256"]:
        raise InvalidRun(f"{uri}: SHA-256 is {found[:12]}, the manifest says {entry['sha256'][:12]}")
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


def _check_sums(uri: str, plan: Plan, manifest: Manifest, parquet: pq.ParquetFile) -> float:
    """The largest residual of attributions as stored, or InvalidRun where they do not add up."""
    margins, phi, _ = plan.columns
    n_players, worst, done = len(plan.players), 0.0, 0
    for group in range(parquet.num_row_groups):
        n = parquet.metadata.row_group(group).num_rows
        at_a_time = max(1, SLICE_BYTES // (8 * max(1, n)))
        for k, margin in enumerate(margins):
            total, size = _read_sums(parquet, group, phi[k * n_players : (k + 1) * n_players], at_a_time)
            stored, stored_size = _read_sums(parquet, group, [margin], 1)
            missed = np.abs(total + manifest.base[k] - stored)
            allowed = ROUNDING[plan.precision] * (size + stored_size) + TOLERANCE * manifest.bound[k]
            if not (missed <= allowed).all():
                row = int(np.flatnonzero(~(missed <= allowed))[0])
                raise InvalidRun(
                    f"{uri}: row {done + row}: attributions miss margin - base value by {missed[row]:.3g}, expected at most {allowed[row]:.3g}"
                )
            worst = max(worst, float((missed / max(manifest.bound[k], np.finfo(np.float64).tiny)).max(initial=0.0)))
        done += n
    return worst


def _check_footer(run: str, plan: Plan, manifest: Manifest, entry: dict) -> Footer:
    """The footer of a part, which says what the manifest and the plan say."""
    uri = _stat(run, entry)
    with storage.opened(uri) as file:
        footer = read_footer(uri, entry["part"], file, manifest.plan)
    if footer.n_rows != entry["n_rows"] or footer.n_rows != plan.items[entry["part"]].n_rows:
        raise InvalidRun(f"{uri}: has {footer.n_rows} rows, the manifest says {entry['n_rows']}, the plan {plan.items[entry['part']].n_rows}")
    return footer


def _explain_again(uri: str, plan: Plan, manifest: Manifest, item: WorkItem, prepared: Prepared, local: Path) -> int:
    """Explain the part's first rows once more and compare; the number of rows, 0 where the input is not the run's any more."""
    sample, again = replace(item, n_rows=min(SAMPLE_ROWS, item.n_rows)), local.with_name("again")
    try:
        explain_item(plan, manifest.plan, sample, prepared, again)
    except InvalidData:
        return 0
    with pq.ParquetFile(local) as parquet:
        stored = pa.Table.from_batches(window(parquet.iter_batches(SAMPLE_ROWS), 0, sample.n_rows))
    found = pq.read_table(again)
    if not found.equals(stored):
        name = next(name for name in found.column_names if not found[name].equals(stored[name]))
        raise InvalidRun(f"{uri}: the first {sample.n_rows} rows explained again differ in column {name!r}")
    return sample.n_rows


def _check_bytes(run: str, plan: Plan, manifest: Manifest, entry: dict, prepared: Prepared | None, local: Path) -> tuple[float | None, int]:
    """A part's digest, additivity as stored, and its first rows explained again: the residual, and how many rows these were."""
    uri, item = _download(run, entry, local), plan.items[entry["part"]]
    residual = None
    if METHODS[plan.method].additive and not plan.global_only:
        with pq.ParquetFile(local, page_checksum_verification=True) as parquet:
            residual = _check_sums(uri, plan, manifest, parquet)
    return residual, 0 if prepared is None else _explain_again(uri, plan, manifest, item, prepared, local)


def _prepare_again(plan: Plan) -> Prepared | None:
    """The tables, if model and background are still there; the background is counted again, whatever earlier runs have kept of it."""
    if plan.version != version("leafledger"):
        return None
    try:
        model = load_ensemble(plan.model)
        if model.digest != plan.model_digest:
            return None
        background = None if plan.background is None else count_again(plan, model)
    except LeafledgerError:
        return None
    if plan.background is not None and background is None:
        return None
    return prepare_model(model, METHODS[plan.method], dict(plan.parameters), plan.groups, plan.interactions is not None, background)


def _check_summaries(run: str, plan: Plan, manifest: Manifest, states: list[dict[str, str]], local: Path) -> None:
    for name, table in aggregate(plan, manifest.used, manifest.players, manifest.pairs, states).items():
        for entry in manifest.summaries:
            if entry["uri"] == f"{SUMMARY}/{name}.parquet":
                _download(run, entry, local)
                if not pq.read_table(local).equals(table, check_metadata=True):
                    raise InvalidRun(f"{storage.join(run, entry['uri'])}: differs from the summary computed again from the parts")
            elif entry["uri"] == f"{SUMMARY}/{name}.json":
                _download(run, entry, local)


def _check_lists(run: str) -> tuple[Manifest, Plan]:
    """Manifest and plan, which agree on all that there is."""
    manifest = read_manifest(run)
    if manifest is None:
        raise InvalidRun(f"{run}: no {MANIFEST} there: not a finished run")
    where = storage.join(run, PLAN)
    text = storage.read(where)
    plan, found = from_json(text, where), hashlib.sha256(text).hexdigest()
    if found != manifest.plan:
        raise InvalidRun(f"{where}: SHA-256 is {found[:12]}, the manifest says {manifest.plan[:12]}")
    listed = [entry.get("part") for entry in manifest.parts]
    rejected = [entry.part for entry in manifest.rejected if entry.part is not None]
    if Counter(listed) + Counter(rejected) != Counter(item.part for item in plan.items):
        raise InvalidRun(f"{run}: the manifest's {len(listed)} parts and {len(rejected)} rejected ones differ from the plan's {len(plan.items)}")
    if manifest.rejected != read_rejected(run):
        raise InvalidRun(f"{storage.join(run, REJECTED)}: differs from what the manifest says was rejected")
    if manifest.n_rows + manifest.n_rejected != plan.n_rows:
        raise InvalidRun(f"{run}: the manifest counts {manifest.n_rows} rows and {manifest.n_rejected} rejected ones, the plan {plan.n_rows}")
    return manifest, plan


def check_run(uri: str | PathLike, deep: bool = False) -> Report:
    """Verify a finished run against its manifest: that every part is there once, with the rows of the plan, and that the parts' states give the
    summaries.

    That takes the parts' footers, the plan and the summaries, whose digests are compared; ``deep`` reads every byte of the parts too.

    Parameters
    ----------
    uri : str or path
        Of the run's folder.
    deep : bool
        Also compare the parts' digests, add up the attributions of every row where the method is additive, and explain the first SAMPLE_ROWS rows
        of every part again. They are explained again where parts hold rows, with the same version of leafledger, and as long as the model, the rows
        and the background, which is counted again, are those of the run; the report says how many were.

    Returns
    -------
    Report

    Raises
    ------
    InvalidRun
        The first thing found wrong, and where; or there is no manifest.
    StorageError
        An object that the manifest lists is missing, or the store does not answer.
    """
    run = normalise(str(uri))
    manifest, plan = _check_lists(run)
    prepared = _prepare_again(plan) if deep and not plan.global_only else None
    states, residuals, n_again = [], [], 0
    with storage.scratch() as folder:
        local = folder / "object"
        for entry in manifest.parts:
            footer = _check_footer(run, plan, manifest, entry)
            residual = footer.residual
            if deep:
                residual, n = _check_bytes(run, plan, manifest, entry, prepared, local)
                n_again += n
            states.append(footer.states)
            residuals.append(residual)
        _check_summaries(run, plan, manifest, states, local)
    additive = [residual for residual in residuals if residual is not None]
    worst = max(additive, default=0.0) if METHODS[plan.method].additive else None
    return Report(len(manifest.parts), manifest.n_rows, len(manifest.rejected), worst, n_again)
