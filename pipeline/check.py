"""The verifier of finished runs: manifest, parts, row counts, digests, additivity, and the summary computed again from the parts."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from kernels.methods import METHODS

from . import schema, storage
from .errors import InvalidRun
from .part import PLAN, read_part, sha256
from .plan import Plan, digest, from_json
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


def _check_part(run: str, plan: Plan, manifest: Manifest, entry: dict, local: Path) -> tuple[dict[str, str], float | None]:
    uri = _download(run, entry, local)
    part = read_part(uri, entry["part"], local, manifest.plan, 0.0)
    if part.n_rows != entry["n_rows"] or part.n_rows != plan.items[entry["part"]].n_rows:
        raise InvalidRun(f"{uri}: has {part.n_rows} rows, the manifest says {entry['n_rows']}, the plan {plan.items[entry['part']].n_rows}")
    if part.residual is None:
        return part.states, None
    margins, phi = schema.output_columns(plan.features, plan.outputs, plan.ids)
    worst, n_features, done = 0.0, len(plan.features), 0
    with pq.ParquetFile(local, page_checksum_verification=True) as parquet:
        for batch in parquet.iter_batches(plan.slice_rows):
            for k, margin in enumerate(margins):
                names = phi[k * n_features : (k + 1) * n_features]
                values = np.array([batch.column(name).to_numpy() for name in names], np.float64).reshape(n_features, batch.num_rows)
                stored = batch.column(margin).to_numpy().astype(np.float64)
                missed = np.abs(values.sum(axis=0) + manifest.base[k] - stored)
                allowed = ROUNDING[plan.precision] * (np.abs(values).sum(axis=0) + np.abs(stored) + manifest.bound[k])
                if not (missed <= allowed).all():
                    row = int(np.flatnonzero(~(missed <= allowed))[0])
                    raise InvalidRun(
                        f"{uri}: row {done + row}: attributions miss margin - base value by {missed[row]:.3g}, expected at most {allowed[row]:.3g}"
                    )
                worst = max(worst, float((missed / max(manifest.bound[k], np.finfo(np.float64).tiny)).max(initial=0.0)))
            done += batch.num_rows
    return part.states, worst


def _check_summaries(run: str, plan: Plan, manifest: Manifest, states: list[dict[str, str]], local: Path) -> None:
    for name, table in aggregate(plan, manifest.used, states).items():
        for entry in manifest.summaries:
            if entry["uri"] == f"{SUMMARY}/{name}.parquet":
                _download(run, entry, local)
                if not pq.read_table(local).equals(table):
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
    plan = from_json(storage.read(storage.join(run, PLAN)), storage.join(run, PLAN))
    if digest(plan) != manifest.plan:
        raise InvalidRun(f"{storage.join(run, PLAN)}: SHA-256 is {digest(plan)[:12]}, the manifest says {manifest.plan[:12]}")
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
