"""Existing runs in an output folder: whether a planned run continues, replaces or keeps them."""

import hashlib
import json
from dataclasses import dataclass

from ...arguments.choices import IfChanged
from ...arguments.readers import shorten
from ...errors import InvalidRun, UsageError
from ...stores import storage
from ...stores.uris import resolve
from ..records import derived
from ..records.folder import KEPT, PARTS, PLACES, REPLACEMENTS, SUMMARY, RunFolder, find_place
from ..records.manifest import Manifest, read_manifest
from ..records.plan import Plan, differences, is_same
from ..records.plan_file import from_json, other_run

OWNED = (PARTS, SUMMARY, PLACES, REPLACEMENTS, KEPT, derived.FOLDER)  # folders in a run's that are of it alone


@dataclass(frozen=True, slots=True)
class ExistingRun:
    """The run in a folder, finished or not."""

    run: str  # URI of the folder
    plan: Plan
    manifest: Manifest | None  # None if unfinished

    def find_parts(self) -> dict[int, str]:
        """Find its parts by their numbers: those of its manifest, or where an unfinished run makes them."""
        folder = RunFolder(self.run)
        if self.manifest is None:
            return {item.part: folder.part(item.part) for item in self.plan.items}
        return {entry["part"]: folder.listed(entry) for entry in self.manifest.parts}


@dataclass(frozen=True, slots=True)
class Replaced:
    """The run to be replaced."""

    standing: ExistingRun | None  # None if another version wrote it, of which nothing is read
    manifest: str | None  # SHA-256 of its manifest, hexadecimal; None if unfinished
    differs: str  # differences in words; empty if the same run is made anew, see `keep_same`


@dataclass(frozen=True, slots=True)
class Resolution:
    """Place of a planned run, and what exists there."""

    place: str  # below the run's folder; empty for the folder itself
    finished: Manifest | None  # manifest of the finished run; nothing to do
    replaced: Replaced | None  # the run to be replaced
    kept: str  # differences of a kept finished run from the planned one


def refuse_within(out: str) -> None:
    """Refuse an output in a folder of another run's own: readers of that run would find the rows of both, and who removes it removes both."""
    above, _, name = resolve(out).rpartition("/")
    while above.strip("/") and not above.endswith(":/"):
        folder = RunFolder(above)
        if name in OWNED and (storage.exists(folder.manifest) or storage.exists(folder.plan)):
            raise UsageError(f"{out}: lies in {name}/ of the run in {above}, which is that run's own; choose another output")
        above, _, name = above.rpartition("/")


def read_existing_run(run: str) -> ExistingRun | None:
    """Read which run a folder holds.

    Returns
    -------
    ExistingRun or None
        None where there is none.
    """
    manifest = read_manifest(run)
    home = run if manifest is None else manifest.home(run)
    where = RunFolder(home).plan
    held = storage.read_if_exists(where)
    if held is not None:
        return ExistingRun(run, from_json(held, where), manifest)
    if manifest is not None:
        raise InvalidRun(f"{where}: is missing, though the run is finished; choose another output or remove it")
    return None


def _read_other(run: str, version: str) -> Replaced | None:
    """What is known of a run that another version wrote; None where this version did, or nobody knows which."""
    manifest = storage.read_if_exists(RunFolder(run).manifest)
    try:
        written = json.loads(storage.read(RunFolder(run).plan) if manifest is None else manifest)
    except (ValueError, RecursionError):
        return None
    found = written.get("version") if isinstance(written, dict) else None
    if not isinstance(found, str) or found == version:
        return None
    return Replaced(None, None if manifest is None else hashlib.sha256(manifest).hexdigest(), f"version (was {shorten(found)}, is {version!r})")


def keep_same(standing: ExistingRun, plan: Plan, if_changed: IfChanged) -> Resolution | None:
    """Keep a run of the same plan; None where it is another one, or is to be replaced.

    It is to be replaced by another version, where the cause of its rejections, such as too little memory, may be gone, or where its parts lie where
    an earlier version put them, and readers of the folder do not find them.
    """
    if not is_same(standing.plan, plan):
        return None
    if standing.manifest is None:
        return Resolution("", None, None, "") if standing.plan.version == plan.version else None
    again = standing.manifest.place.startswith(f"{REPLACEMENTS}/") or any(each.part is not None for each in standing.manifest.rejected)
    if if_changed == "replace" and (again or standing.plan.version != plan.version):
        return None
    return Resolution(standing.manifest.place, standing.manifest, None, "")


def resolve_existing_run(run: str, plan: Plan, if_changed: IfChanged) -> Resolution:
    """Decide where a run is made: in its folder, or beside an existing run that it replaces."""
    try:
        standing = read_existing_run(run)
    except InvalidRun:
        replaced = _read_other(run, plan.version)
        if replaced is None:
            raise
        if if_changed != "replace":
            raise other_run(run, replaced.differs) from None
        return Resolution(find_place(plan, replaced.manifest), None, replaced, "")
    if standing is None:
        return Resolution("", None, None, "")
    same = keep_same(standing, plan, if_changed)
    if same is not None:
        return same
    differs = differences(standing.plan, plan)
    if if_changed == "replace":
        replaced = Replaced(standing, None if standing.manifest is None else standing.manifest.sha256, differs)
        return Resolution(find_place(plan, replaced.manifest), None, replaced, "")
    if if_changed == "keep" and standing.manifest is not None:
        return Resolution(standing.manifest.place, standing.manifest, None, differs)
    raise other_run(run, differs)
