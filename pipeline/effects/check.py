"""Verification of published effects: every object as the record lists it, and all of it once more from the model and the background."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ..arguments.readers import read_flag, shorten
from ..cluster.placement import Scheduler, make_placement
from ..errors import InvalidRun, LeafledgerError, NotFinished, NotRepeatable, UsageError
from ..progress import no_progress
from ..stores import storage
from ..stores.failures import published
from ..stores.temporary_folder import temporary_folder
from ..stores.uris import normalise
from .effects import effects
from .publish import RECORD, read_record


@dataclass(frozen=True, slots=True)
class EffectsReport:
    """What was verified of published effects.

    Attributes
    ----------
    n_rows : int
        Of the background.
    objects : tuple of str
        Tables and pictures whose bytes are those that the record lists.
    again : bool
        All was computed again, and is the same.
    unverified : tuple of str
        Why it could not be computed again, where that was asked for.
    """

    n_rows: int
    objects: tuple[str, ...]
    again: bool
    unverified: tuple[str, ...]


def hold_effects(uri: str) -> bool:
    """Return whether a folder holds published effects."""
    return storage.exists(storage.join(uri, RECORD))


def _check_objects(uri: str, objects: Mapping[str, Any]) -> None:
    """Compare size and digest of every object."""
    with storage.scratch() as folder:
        for name, entry in objects.items():
            place, local = storage.join(uri, name), folder / "object"
            with published():
                storage.download(place, local)
            found = {"size": local.stat().st_size, "sha256": storage.sha256(local)}
            for what, is_there in found.items():
                said = entry.get(what) if isinstance(entry, Mapping) else None
                if is_there != said:
                    raise InvalidRun(f"{place}: {what} is {shorten(is_there)}, {RECORD} says {shorten(said)}")


def _ask_again(record: Mapping[str, Any], model: str | None, where: Mapping[str, Any]) -> Callable:
    """Make the call that the record is of."""
    asked = {name: record[name] for name in ("features", "pairs", "intervals", "quantiles", "space", "output", "missing")}
    asked["outputs"], asked["partition"] = tuple(record["output_names"]), dict(record["partition"]) or None
    asked["trees"] = None if record["trees"] is None else tuple(record["trees"])
    source = record["model"] if model is None else model
    return lambda out, **more: effects(source, record["background"], out, **asked, **where, **more, allow_unseen=True)


def _compute_again(uri: str, record: Mapping[str, Any], model: str | None, where: Mapping[str, Any], out: str, progress: Callable) -> None:
    """Compute effects again, and compare every table."""
    if record.get("leafledger") != version("leafledger"):
        raise NotRepeatable(f"the effects are of leafledger {shorten(record.get('leafledger'))}, this is {version('leafledger')}")
    call = _ask_again(record, model, where)
    try:
        planned = call(out, dry_run=True).planned
    except LeafledgerError as error:
        raise NotRepeatable(str(error)) from error
    for name, found in (("model", planned.model_digest), ("background", planned.background_digest)):
        if found != record[f"{name}_digest"]:
            raise NotRepeatable(f"{record[name] if name != 'model' or model is None else model}: the {name} is another one by now")
    call(out, progress=progress)
    again = read_record(out)
    if again is None or set(again["objects"]) != set(record["objects"]) or again["notes"] != record["notes"]:
        raise InvalidRun(f"{uri}: lists other objects or notes than the same effects computed again")
    for name, entry in record["objects"].items():
        if again["objects"][name] != entry and not _same_table(storage.join(uri, name), storage.join(out, name)):
            raise InvalidRun(f"{storage.join(uri, name)}: differs from what was computed again")


def _same_table(stored: str, made: str) -> bool:
    """Return whether two objects are the same table, whatever wrote them; no pictures are."""
    if not stored.endswith(".parquet"):
        return False
    with storage.scratch() as folder:
        found = []
        for name, uri in (("stored", stored), ("made", made)):
            storage.download(uri, Path(folder) / name)
            found.append(pq.read_table(Path(folder) / name))
    return found[0].equals(found[1])


def check_effects(
    uri: str | PathLike,
    deep: bool = False,
    model: str | PathLike | None = None,
    *,
    scheduler: Scheduler | None = None,
    threads: int | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    wait: float = 15.0,
    progress: Callable = no_progress,
) -> EffectsReport:
    """Verify published effects: every table and picture has the size and the SHA-256 that ``effects.json`` lists.

    Parameters
    ----------
    uri : str or path
        Of the folder that `effects` wrote.
    deep : bool
        Also compute all again, from the model and the background, and compare: it takes as long as it took then.
    model : str or path, optional
        The model's file, with ``deep``; by default where it was.
    scheduler, threads, workers, plain_tcp, wait, progress : optional
        As for `effects`. For a cluster what is computed again is put beside the folder, and removed.

    Returns
    -------
    EffectsReport

    Raises
    ------
    NotFinished
        There is no ``effects.json``.
    InvalidRun
        The first thing found wrong, and where.
    UsageError
        A model is given where nothing is computed again.
    """
    place = normalise(str(uri))
    if model is not None and not read_flag("deep", deep):
        raise UsageError("a model is given, but nothing is computed again; ask for a deep check")
    record = read_record(place)
    if record is None:
        raise NotFinished(f"{place}: holds no finished effects, expected a folder that leafledger effects wrote")
    _check_objects(place, record["objects"])
    unverified = []
    if deep:
        where: dict[str, Any] = {"scheduler": scheduler, "threads": threads, "workers": workers, "plain_tcp": plain_tcp, "wait": wait}
        alone = make_placement(**where).is_here
        try:
            with storage.scratch() as local, nullcontext(str(local)) if alone else temporary_folder(place) as folder:
                _compute_again(place, record, None if model is None else str(model), where, storage.join(folder, "again"), progress)
        except (NotRepeatable, KeyError, TypeError, ValueError) as error:
            said = str(error) if isinstance(error, NotRepeatable) else f"{RECORD} does not say what was asked for"
            unverified.append(f"nothing was computed again: {said}")
    return EffectsReport(int(record["n_rows"]), tuple(record["objects"]), deep and not unverified, tuple(unverified))
