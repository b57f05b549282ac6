"""Exchange of a finished run for the same run without some rows, in its folder and its table, by the steps of a replacement.

1. Parts that hold such rows are written anew into the run's place below its folder, which no reader meets; documents and summaries are copied there.
2. The new parts get their names beside the old ones, and the manifest is exchanged in one conditional write: it counts the rows that are gone.
3. The table gets the new parts in the place of the old ones, in one commit.
4. The old parts go, and with them all that was made of the run before, such as its report.

Ended at any moment, the same again goes on from there: the names follow from where the rows stood, and what is done is found done.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..display.nearest import did_you_mean
from ..errors import InvalidRun, UsageError
from ..runs.execute.drop_rows import drop_rows
from ..runs.formats.numbers import FORMAT
from ..runs.lookup.row_lookup import NoSuchRow, find_rows
from ..runs.publish.same_run import copy_documents, copy_object, list_summaries, seat
from ..runs.publish.table_commit import find_table
from ..runs.records.current_run import read_finished
from ..runs.records.folder import RunFolder, find_place_without, may_stay, name_part
from ..runs.records.manifest import Forgotten, Manifest, PartEntry
from ..runs.records.plan import Plan
from ..runs.records.provenance import read_provenance
from ..stores import commit, storage
from .search import READERS, Sought, is_in_dictionaries


@dataclass(frozen=True, slots=True)
class Leaving:
    """Rows that are to leave a run, by the numbers of their parts: where they stand in these, from 0."""

    run: str
    manifest: Manifest
    rows: Mapping[int, tuple[int, ...]]  # none of a part whose dictionary alone has the value
    written: frozenset[str] = frozenset()  # the value as the parts have it

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(map(len, self.rows.values()))


def _refuse_named(run: str, plan: Plan, sought: Sought) -> None:
    """Refuse a run that names the value otherwise than in rows, and would go on naming it."""
    again = "make the run again without these rows, with --if-changed replace"
    if any(column.name == sought.column for column in plan.by):
        raise UsageError(f"{run}: its summaries have groups by {sought.column!r}, of which one may be this; {again}")
    for item in plan.items:
        if any((sought.column, written) in item.partition for written in sought.texts):
            raise UsageError(f"{run}: the path of {item.uri} names it, and so does the plan; {again}")


def find_leaving(run: str, sought: Sought) -> Leaving:
    """Find the rows of a finished run that have the value; a UsageError where it has no such id column, or names the value otherwise than in rows."""
    manifest, plan = read_finished(run)
    places = [] if plan.global_only else [(entry["part"], RunFolder(run).listed(entry)) for entry in manifest.parts]
    with ThreadPoolExecutor(READERS) as readers:
        texts = readers.map(lambda place: sought.written_in(place[1]), places if sought.column in plan.ids else ())
        written = frozenset(text for text in texts if text is not None)
    sought = replace(sought, written=written)
    _refuse_named(run, plan, sought)
    if not places:
        return Leaving(run, manifest, {})
    if sought.column not in plan.ids:
        hint = did_you_mean(sought.column, plan.ids)
        raise UsageError(f"{run}: has no id column {sought.column!r:.80}, its id columns are {', '.join(plan.ids) or 'none'}{hint}")
    parts, rows = [(entry["part"], entry["uri"]) for entry in manifest.parts], dict[int, list[int]]()
    with suppress(NoSuchRow):
        for place in find_rows(run, parts, plan.ids, {sought.column: sought.value}, columns=[sought.column]).places:
            rows.setdefault(place.part, []).append(place.row)
    others = [(part, uri) for part, uri in places if part not in rows]
    with ThreadPoolExecutor(READERS) as readers:
        kept = readers.map(lambda each: is_in_dictionaries(each[1], sought), others)
        rows |= {part: [] for (part, _), held in zip(others, kept, strict=True) if held}
    return Leaving(run, manifest, {part: tuple(rows[part]) for part in sorted(rows)}, written)


def check_table(run: str) -> None:
    """Refuse a run whose table would not let go of its parts, before anything is changed."""
    place = find_table(run)
    if place is not None:
        place.check_exchange(run)


def _write(local: Path, target: str, folder: Path) -> None:
    """Write an object, or find what an earlier attempt wrote; bytes that another version of Arrow wrote make room for these."""
    if commit.create(target, local):
        return
    held = folder / "held.parquet"
    storage.download(target, held)
    if storage.sha256(held) != storage.sha256(local):
        commit.remove(target)
        commit.create(target, local)


def _write_parts(leaving: Leaving, place: str) -> list[PartEntry]:
    """Write parts anew that lose rows; others stay where they are, or are copied where an earlier version put them elsewhere."""
    old, home, entries = RunFolder(leaving.run), RunFolder(leaving.run).at(place), list[PartEntry]()
    for entry in leaving.manifest.parts:
        part, uri = entry["part"], old.listed(entry)
        if part not in leaving.rows:
            stays = may_stay(entry["uri"], part)
            if not stays:
                copy_object(uri, home.part(part))
            entries.append(entry if stays else {**entry, "uri": name_part(place, part)})
            continue
        with storage.scratch() as folder:
            storage.download(uri, folder / "part.parquet")
            if storage.sha256(folder / "part.parquet") != entry["sha256"]:
                raise InvalidRun(f"{uri}: is not what the manifest lists; check the run")
            local = drop_rows(folder / "part.parquet", leaving.rows[part], folder / "without.parquet")
            _write(local, home.part(part), folder)
            n_rows, size, digest = entry["n_rows"] - len(leaving.rows[part]), local.stat().st_size, storage.sha256(local)
        entries.append(PartEntry(part=part, uri=name_part(place, part), n_rows=n_rows, size=size, sha256=digest))
    return entries


def exchange(leaving: Leaving, day: str) -> Manifest:
    """Let a run be without some of its rows, all but its table and what is left of before, see `settle`; return its manifest, which names the day."""
    run, manifest = leaving.run, leaving.manifest
    planned = {part: tuple(sorted(manifest.find_planned(part, row) for row in rows)) for part, rows in leaving.rows.items()}
    place = find_place_without(manifest.sha256, planned)
    parts, old = _write_parts(leaving, place), RunFolder(manifest.home(run))
    copy_documents(manifest, old.named, RunFolder(run).at(place))
    gone = tuple(Forgotten(day, part, rows) for part, rows in sorted(planned.items()))
    made = replace(
        manifest,
        format_version=FORMAT,
        digest="",
        place=place,
        parts=tuple(parts),
        summaries=list_summaries(manifest, place),
        n_rows=manifest.n_rows - leaving.n_rows,
        forgotten=(*manifest.forgotten, *gone),
    )
    seat(run, made, manifest.sha256, read_provenance(old.uri, manifest.sha256))
    return made
