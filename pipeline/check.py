"""The verifier of finished runs: manifest, parts, row counts, digests, additivity, and the summary computed again from the parts."""

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from kernels.methods import METHODS

from . import storage
from .errors import InvalidRun
from .part import read_part, sha256
from .plan import PLAN, SLICE_BYTES, Plan, from_json
from .publish import MANIFEST, SUMMARY, Manifest, aggregate, read_manifest

# Attributions are stored rounded; a row's sum may be off by half a unit in the last place of each of its terms.
ROUNDING = {"float32": 2.0**-24, "float64": 1e-9}


@dataclass(frozen=True, slots=True)
class Report:
    """What was verified of a run."""

    parts: int
    n_rows: int
    residual: float | None  # largest of any row as stored, as a fraction of the margin bound; None where the method is not additive


def _download(run: str, entry: dict, local: Path) -> str:
    """Fetch what the manifest lists, and refuse other bytes."""
    uri = storage.join(run, entry["uri"])
    storage.download(uri, local)
    found = sha256(local)
    if found != entry["sha256"]:
        raise InvalidRun(f"{uri}: SHA-256 is {found[:12]}, the manifest says {entry['sha256'][:12]}")
    return uri


def _read_sums(parquet: pq.ParquetFile, group: int, columns: list[str], n_columns: int):
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
            allowed = ROUNDING[plan.precision] * (size + stored_size + manifest.bound[k])
            if not (missed <= allowed).all():
                row = int(np.flatnonzero(~(missed <= allowed))[0])
                raise InvalidRun(
                    f"{uri}: row {done + row}: attributions miss margin - base value by {missed[row]:.3g}, expected at most {allowed[row]:.3g}"
                )
            worst = max(worst, float((missed / max(manifest.bound[k], np.finfo(np.float64).tiny)).max(initial=0.0)))
        done += n
    return worst


def _check_part(run: str, plan: Plan, manifest: Manifest, entry: dict, local: Path) -> tuple[dict[str, str], float | None]:
    uri = _download(run, entry, local)
    part = read_part(uri, entry["part"], local, manifest.plan, 0.0)
    if part.n_rows != entry["n_rows"] or part.n_rows != plan.items[entry["part"]].n_rows:
        raise InvalidRun(f"{uri}: has {part.n_rows} rows, the manifest says {entry['n_rows']}, the plan {plan.items[entry['part']].n_rows}")
    if part.residual is None or plan.global_only:
        return part.states, part.residual
    with pq.ParquetFile(local, page_checksum_verification=True) as parquet:
        return part.states, _check_sums(uri, plan, manifest, parquet)


def _check_summaries(run: str, plan: Plan, manifest: Manifest, states: list[dict[str, str]], local: Path) -> None:
    for name, table in aggregate(plan, manifest.players, manifest.pairs, states).items():
        for entry in manifest.summaries:
            if entry["uri"] == f"{SUMMARY}/{name}.parquet":
                _download(run, entry, local)
                if not pq.read_table(local).equals(table, check_metadata=True):
                    raise InvalidRun(f"{storage.join(run, entry['uri'])}: differs from the summary computed again from the parts")
            elif entry["uri"] == f"{SUMMARY}/{name}.json":
                _download(run, entry, local)


def check_run(uri: str) -> Report:
    """Verify a finished run against its manifest: every part's digest, rows, plan and additivity, and that the parts give the summaries.

    Raises
    ------
    InvalidRun
        The first thing found wrong, and where.
    """
    run = storage.absolute(uri)
    manifest = read_manifest(run)
    if manifest is None:
        raise InvalidRun(f"{run}: no {MANIFEST} there: not a finished run")
    where = storage.join(run, PLAN)
    text = storage.read(where)
    plan, found = from_json(text, where), hashlib.sha256(text).hexdigest()
    if found != manifest.plan:
        raise InvalidRun(f"{where}: SHA-256 is {found[:12]}, the manifest says {manifest.plan[:12]}")
    listed = [entry.get("part") for entry in manifest.parts]
    if listed != [item.part for item in plan.items]:
        raise InvalidRun(f"{run}: the manifest's {len(listed)} parts differ from the plan's {len(plan.items)}")
    states, residuals = [], []
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder) / "object"
        for entry in manifest.parts:
            state, residual = _check_part(run, plan, manifest, entry, local)
            states.append(state)
            residuals.append(residual)
        _check_summaries(run, plan, manifest, states, local)
    additive = [residual for residual in residuals if residual is not None]
    return Report(len(listed), plan.n_rows, max(additive, default=0.0) if METHODS[plan.method].additive else None)
