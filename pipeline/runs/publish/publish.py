"""Publication of a run: verified parts, summaries, and last the manifest, which alone marks success."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from leafledger.kernels.slices.buffers import Prepared

from ...dataset.files.listing import Rejected
from ...errors import InvalidRun
from ...json_records import iterate_text
from ...stores import commit, storage
from ..records.folder import RunFolder, name_part, name_summary
from ..records.json_file import create_same
from ..records.manifest import Manifest, PartEntry, SummaryEntry, describe_game, make_manifest
from ..records.part import Part, check_there
from ..records.plan import Plan
from .table_objects import create_rows, create_table


def _publish_summaries(run: str, place: str, summaries: dict[str, pa.Table], folder: Path) -> list[SummaryEntry]:
    written: list[SummaryEntry] = []
    for name, table in summaries.items():
        for suffix, create in (("parquet", create_table), ("json", create_rows)):
            uri, local = name_summary(place, f"{name}.{suffix}"), folder / f"summary.{suffix}"
            where = storage.join(run, uri)
            if not create(where, table, local):
                raise InvalidRun(f"{where}: exists already and differs from what this run computed; remove it, and run the same again")
            written.append({"uri": uri, "size": local.stat().st_size, "sha256": storage.sha256(local)})
    return written


def _check_counts(run: str, plan: Plan, parts: Sequence[Part], rejected: Sequence[Rejected]) -> None:
    """Refuse unless every row of the plan is in a part or rejected, once."""
    counted = Counter[int]()
    for part in parts:
        counted[part.part] += part.n_rows
    for entry in rejected:
        if entry.part is not None:
            counted[entry.part] += entry.n_rows or 0
    n_done = len(parts) + len(counted.keys() - {part.part for part in parts})
    if n_done > len(plan.items):
        raise InvalidRun(f"{run}: got {n_done} parts, the plan has {len(plan.items)}")
    for item in plan.items:
        if counted.get(item.part) != item.n_rows:
            raise InvalidRun(f"{run}: part {item.part} has {counted.get(item.part, 'no')} rows, the plan says {item.n_rows}")


def publish(
    run: str,
    place: str,
    plan: Plan,
    library: str,
    prepared: Prepared,
    parts: Sequence[Part],
    rejected: Sequence[Rejected],
    summaries: dict[str, pa.Table],
) -> Manifest:
    """Verify parts against the plan, write the summaries, remove the broadcast tables, then write the manifest.

    Parameters
    ----------
    place : str
        Where the run is made below it; empty for the folder itself. Elsewhere the manifest is left to `take_place`.
    library : str
        Of the model.
    prepared : Prepared
        The method's tables, for what the manifest says of base values, bounds, players and pairs.
    parts : sequence of Part
        In any order.
    rejected : sequence of Rejected
        What cannot be read of work items, and files whose footers cannot be read. Every row of the plan is either in a part or rejected.
    summaries : dict of str to pa.Table
        By name.
    """
    _check_counts(run, plan, parts, rejected)
    home = RunFolder(run).at(place)
    with storage.scratch() as folder:
        manifest = make_manifest(
            plan,
            place,
            describe_game(library, prepared, plan.link),
            [
                PartEntry(part=part.part, uri=part.stays or name_part(place, part.part), n_rows=part.n_rows, size=part.size, sha256=part.sha256)
                for part in sorted(parts, key=lambda part: part.part)
            ],
            [part.residual for part in parts],
            _publish_summaries(run, place, summaries, folder),
            rejected,
            summaries,
        )
        commit.abort_uploads(home.parts)  # all of which are there
        commit.remove(home.tables)  # before the manifest, after which nothing is left to do, or to fail
        if not storage.exists(home.plan):
            raise InvalidRun(f"{home.plan}: was removed while the run was made; run the same again")
        if not place:
            check_there(run, manifest.parts)
            where = RunFolder(run).manifest
            if create_same(where, iterate_text(manifest)) is not None:
                raise InvalidRun(f"{where}: exists already and differs from what this run computed")
    return manifest
