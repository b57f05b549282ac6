"""Finished runs of which somebody changed the manifest, the plan or a part's footer, field by field: ``check_run`` refuses each in one line.

``python -m tests.tampering`` tries every change of every field; tests draw some.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger import check_run, explain
from leafledger.pipeline.errors import LeafledgerError
from tests.earlier.moving import RUNS, read_json, seal_run, write_json

MANIFEST, PLAN, PART = "manifest.json", "plan.json", "attributions/part-00000.parquet"
NUMBERS = (0, 1, -1, 2, 10**30, 0.5, 1e308, float("nan"), float("inf"))
TEXTS = ("", "x", "1", "../x", "[/]\n\x1b[31m", "\ud800")
VALUES = (None, True, *NUMBERS, *TEXTS, [], [0], {}, {"x": 1})
N_ROWS = 60
REASONS = {
    "direction": "raises",
    "never": ["b"],
    "default": {"text": "{feature} is {value}"},
    "reason": [{"feature": "a", "code": "A", "text": "large", "above": 0}],
}
KINDS = {  # what runs are asked for: together they have every field of a manifest and a plan
    "interactions": {"interactions": 2, "partition": {"both": ["a", "b"]}, "ids": ["id"], "by": ["k"]},
    "shares": {"method": "r2", "label": "y", "weight": "w", "by": ["k"]},
    "marginal": {"background": "data/part=1", "method": "beta", "parameters": {"alpha": 2.0}},
    "told": {"space": "probability", "top": 2, "columns": "both", "values": True, "ids": ["id"], "reasons": REASONS},
}
EARLIER = ("0.1.0/pairs", "0.1.0/shares", "0.1.0/marginal", "0.1.0/ranks", "0.2.0/shares", "0.2.0/told")  # kept runs of other versions
# What of a plan nothing else tells, where whoever changes it writes manifest and parts anew too: the name of the data, and of their pieces what
# the model does not read. The name of the data stands in no part, which names its files. What margins are is for sentences alone.
INFORMATIVE = ("data", "items", "predicts")


@dataclass(frozen=True, slots=True)
class Change:
    """A JSON text that somebody changed in one place."""

    where: str  # the place and the new value, for messages
    field: str  # the first name of the place
    make: Callable[[], Any]  # all of the JSON, which is made when it is asked for: of thousands of changes a few are drawn


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every value of a JSON, the innermost too."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*place, key)
        yield from _places(value[key], (*place, key))


def _changed(value: Any, place: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Callable[[], Any]:
    def make() -> Any:
        copy = json.loads(json.dumps(value))
        inner = copy
        for key in place[:-1]:
            inner = inner[key]
        change(inner, place[-1])
        return copy

    return make


def _put(value: Any) -> Callable[[Any, Any], None]:
    return lambda inner, key: inner.__setitem__(key, value)


def list_changes(value: Any) -> Iterator[Change]:
    """Every value replaced by others of all types, wrapped, deleted and doubled; and a field more."""
    for place in _places(value):
        held = value
        for key in place:
            held = held[key]
        name = "".join(f"[{key!r}]" for key in place)
        others = [*VALUES, [held], {"x": held}]
        if type(held) in (int, float):
            others += [held + 1, held + 0.5, *([-held] if held else [])]  # -0.0 is the same number
        elif isinstance(held, str):
            others += [held + "x", held[::-1]]
        elif isinstance(held, list):
            others += [[*held, *held[-1:]], held[::-1], held[:-1]]
        written = json.dumps(held)
        for other in others:
            if (said := json.dumps(other)) != written:
                yield Change(f"{name} = {said[:60]}", str(place[0]), _changed(value, place, _put(other)))
        yield Change(f"del {name}", str(place[0]), _changed(value, place, lambda inner, key: inner.__delitem__(key)))
    if isinstance(value, dict):
        yield Change("one more", "", lambda: {**value, "more": 1})


def make_run(folder: Path, kind: str, provenance: bool = False) -> Path:
    """A small run that has what its kind asks for, and a file that cannot be read; or a copy of one that an earlier version made."""
    if kind in EARLIER:
        run = Path(shutil.copytree(RUNS / kind, folder / "run"))
        if not provenance:
            (run / "provenance.json").unlink(missing_ok=True)
        return run
    draw = np.random.default_rng(1)
    rows = pd.DataFrame({name: draw.normal(size=2 * N_ROWS).round(2) for name in "abc"}).round({"c": 0})
    rows = rows.assign(k=draw.choice(["x", "y"], 2 * N_ROWS), w=draw.random(2 * N_ROWS), id=np.arange(2 * N_ROWS))
    rows = rows.assign(y=rows.a + rows.b * rows.c + 3 * rows.c * (rows.k == "x"))  # every two of the players interact
    inputs = rows[["a", "b", "c", "k"]].assign(k=rows["k"].astype("category"))
    given = {"verbosity": -1, "num_threads": 1, "num_leaves": 8, "min_data_in_leaf": 2, "min_data_per_group": 2, "learning_rate": 0.5, "seed": 1}
    given["objective"] = "binary" if "space" in KINDS[kind] else "regression"
    lightgbm.train(given, lightgbm.Dataset(inputs, rows["y"] > 0 if "space" in KINDS[kind] else rows["y"]), 3).save_model(folder / "model.txt")
    for i in range(2):
        path = folder / "data" / f"part={i}" / "rows.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pandas(rows[i::2], preserve_index=False), path)
    (folder / "data" / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    arguments = {**KINDS[kind]}
    if "background" in arguments:
        arguments["background"] = str(folder / arguments["background"])
    explain(folder / "model.txt", folder / "data", folder / "run", scheduler="serial", **arguments)
    if not provenance:
        (folder / "run" / "provenance.json").unlink()  # whoever seals manifests anew changes the digest in it, too
    return folder / "run"


_read, _write = read_json, write_json


def _seal_plan(run: Path) -> None:
    _write(run / MANIFEST, _read(run / MANIFEST) | {"plan": hashlib.sha256((run / PLAN).read_bytes()).hexdigest()})


SEALS: dict[str, Callable[[Path], None]] = {  # what whoever changes a run makes true again
    "nothing": lambda _: None,
    "the plan's digest": _seal_plan,
    "all digests": lambda run: seal_run(run, plan=True),
    "digests of parts": lambda run: seal_run(run, plan=False),
}
TRIED = ((MANIFEST, "nothing"), (PLAN, "nothing"), (PLAN, "the plan's digest"), (PLAN, "all digests"), (PART, "digests of parts"))


def _copy_changed(source: str, target: str) -> None:
    """Copy a file where its copy was written to since, which keeps its time."""
    if not (there := Path(target)).exists() or there.stat().st_mtime_ns != Path(source).stat().st_mtime_ns:
        shutil.copy2(source, target)


def try_change(run: Path, name: str, change: Change, seal: str, deep: bool) -> str | None:
    """What is wrong with the answer to a change, None where nothing is; the run is left as it was, the changed one stays beside it."""
    copy = Path(shutil.copytree(run, run.with_name("changed"), copy_function=_copy_changed, dirs_exist_ok=True))  # the one before had the same files
    _write(copy / name, change.make())
    SEALS[seal](copy)
    try:
        report = check_run(copy, deep, all_rows=seal == "all digests")  # of sums over rows a few rows tell nothing
    except LeafledgerError as error:
        return f"{change.where}: several lines: {error}" if len(str(error).splitlines()) != 1 or not str(error).isprintable() else None
    except Exception as error:
        return f"{change.where}: {type(error).__name__}: {error}"
    unreached = [f"= {json.dumps(1e308)}", *(f"['most'] = {most}" for most in (5, 10**30))]  # of any value, or by all players
    beyond = change.field == "reasons" and change.where.endswith((*unreached,))
    same = beyond or change.where == "['output'] = 0"  # of a model with one output this is the only one, asked for or not
    informative = seal in ("all digests", "digests of parts") and (change.field in INFORMATIVE or same)
    named = seal == "the plan's digest" and change.field == "data"
    return f"{change.where}: sound" if report.sound and not (informative or named) else None


def try_changes(kind: str, n_changes: int | None, seed: int = 1) -> list[str]:
    """What is wrong of all changes of manifest and plan, or of some drawn by a seed."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), kind)
        for name, seal in TRIED:
            changes = list(list_changes(_read(run / name)))
            n_drawn = len(changes) if n_changes is None else min(n_changes, len(changes))
            drawn = np.random.default_rng(seed).choice(len(changes), n_drawn, replace=False)
            found = [try_change(run, name, changes[i], seal, deep=seal != "the plan's digest") for i in drawn]
            faults += [f"{kind}, {name}, {seal} made true: {fault}" for fault in found if fault is not None]
            print(f"{kind}, {name}, {seal} made true: {len(found)} changes, {sum(fault is not None for fault in found)} faults", flush=True)
    return faults


def main() -> int:
    """Every change of every kind of run, and an exit code of 1 if any was accepted or not refused in one line."""
    parser = argparse.ArgumentParser(prog="python -m tests.tampering", description="Manifests and plans that somebody changed.")
    parser.add_argument("--changes", type=int, help="of each file, drawn; by default all")
    given = parser.parse_args()
    faults = [fault for kind in (*KINDS, *EARLIER) for fault in try_changes(kind, given.changes)]
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
