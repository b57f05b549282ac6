"""Files that somebody changed, and all who read them: each ends with a result, or in one line.

``check_run`` has to refuse a changed run, which is `tests.tampering`. Who lists, opens, compares or reports it verifies less, and counts kept of a
background are read by later runs, before there is anything to check: none may end in a traceback, and no wrong number may come of such counts.
``python -m tests.forged`` tries every change of every field; tests draw some.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds

from leafledger import check_run, drift, explain, list_runs, read_run, report
from leafledger.pipeline.errors import LeafledgerError, UsageError
from leafledger.pipeline.stores.table_arrays import BYTES, INDEX, _begin_digest
from tests.fuzz import mutate
from tests.tampering import EARLIER, KINDS, MANIFEST, PLAN, SEALS, list_changes, make_run

AFTER = "after.json"
JSONS = {  # files of a run, and what whoever changes them makes true again
    MANIFEST: "nothing",
    PLAN: "the plan's digest",
    "rejected.json": "nothing",
    "provenance.json": "nothing",
    AFTER: "nothing",
    "after/drift.json": "what was made of it",
    "summary/importance.json": "its summaries",
}
TABLES = {"after/distributions.parquet": "what was made of it", "summary/inputs.parquet": "its summaries"}


def _list_as_are(run: Path, lists: str, names: tuple[str, ...], below: str = "uri") -> None:
    """Let a list of objects say of them what is true."""
    found = json.loads((run / lists).read_text())
    for entry in (entry for name in names for entry in found[name]):
        data = (run / entry[below]).read_bytes()
        entry |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (run / lists).write_text(json.dumps(found, indent=1))


SEALED: dict[str, Callable[[Path], None]] = {
    **SEALS,
    "what was made of it": lambda run: _list_as_are(run, AFTER, ("objects",)),
    "its summaries": lambda run: _list_as_are(run, MANIFEST, ("summaries",)),
}


def _open(run: Path) -> None:
    found = read_run(run)
    found.provenance()
    found.attributions()
    for name in ("importance", "inputs"):
        if found.manifest.summary(f"{name}.parquet"):
            found.summary(name)
    found.sample(2)
    found.show({"id": "3"} if "id" in found.plan.ids else {found.dataset().schema.names[0]: "1"})


READERS: dict[str, Callable[[Path, Path], Any]] = {  # of a run and of one like it
    "list_runs": lambda run, _: list_runs(run.parent),
    "read_run": lambda run, _: _open(run),
    "check_run": lambda run, _: check_run(run),
    "drift against it": lambda run, other: drift(other, against=run),
    "drift": lambda run, other: drift(run, against=other),
    "report": lambda run, _: report(run),
}
WRITERS = ("drift", "report")  # of the run that they read, which no other reader does


def _answer(call: Callable[[], Any]) -> str | None:
    """What is wrong with how a call ends."""
    try:
        call()
    except LeafledgerError as error:
        return None if len(str(error).splitlines()) == 1 else f"several lines: {error!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def read_changed(run: Path, other: Path, name: str, data: bytes, seal: str) -> Iterator[str]:
    """What is wrong with the answers of all readers to a run of which a file has other bytes; the run is left as it was."""
    with tempfile.TemporaryDirectory() as folder:
        changed, copy = Path(folder) / "changed", Path(folder) / "runs" / "run"
        shutil.copytree(run, changed)
        (changed / name).write_bytes(data)
        SEALED[seal](changed)
        shutil.copytree(changed, copy)
        for reader, read in READERS.items():
            fault = _answer(lambda read=read: read(copy, other))
            if fault is not None:
                yield f"{reader}: {fault}"
            if reader in WRITERS:
                shutil.copytree(changed, copy, dirs_exist_ok=True)  # over what it wrote, which was there before


def _make(folder: Path, kind: str) -> tuple[Path, Path]:
    """A run that was compared, where runs of its method can be, and reported; and the one that it was compared with."""
    run, other = make_run(folder, kind, provenance=True), folder / "other"
    shutil.copytree(run, other)
    with suppress(UsageError):
        drift(run, against=other)
    report(run)
    return run, other


def _draw(found: list[Any], n: int | None, draw: np.random.Generator) -> list[Any]:
    return found if n is None else [found[i] for i in draw.choice(len(found), min(n, len(found)), replace=False)]


def _there(run: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, seal) for name, seal in files.items() if (run / name).exists()]


def try_readers(kind: str, n_changes: int | None, seed: int = 1) -> list[str]:
    """What is wrong with the answers of all readers to all changes of a kind of run, or to some drawn by a seed."""
    faults, draw = [], np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        run, other = _make(Path(folder), kind)
        for name, seal in _there(run, JSONS):
            changes = _draw(list(list_changes(json.loads((run / name).read_text()))), n_changes, draw)
            found = [
                f"{name}: {change.where}: {fault}"
                for change in changes
                for fault in read_changed(run, other, name, json.dumps(change.make(), indent=1, sort_keys=name == PLAN).encode(), seal)
            ]
            print(f"{kind}, {name}: {len(changes)} changes, {len(found)} faults", flush=True)
            faults += found
        for name, seal in _there(run, TABLES):
            sound = (run / name).read_bytes()
            damaged = [mutate(sound, draw) for _ in range(n_changes or 200)]
            found = [f"{name}: damaged: {fault}" for data in damaged for fault in read_changed(run, other, name, data, seal)]
            print(f"{kind}, {name}: {len(damaged)} damages, {len(found)} faults", flush=True)
            faults += found
    return [f"{kind}, {fault}" for fault in faults]


def _seal_counts(folder: Path) -> None:
    """Let the index say of the bytes what is true."""
    index = json.loads((folder / INDEX).read_text())
    content = _begin_digest(index["layout"])
    content.update(np.load(folder / BYTES).data)
    (folder / INDEX).write_text(json.dumps(index | {"sha256": content.hexdigest()}))


def _forge_counts(counts: Path, n: int | None, draw: np.random.Generator) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Changes of the index's fields, and damages of the bytes behind the header; those are sealed that can be."""
    for change in _draw(list(list_changes(json.loads((counts / INDEX).read_text()))), n, draw):
        yield change.where, lambda folder, change=change: (folder / INDEX).write_text(json.dumps(change.make()))
    sound = (counts / BYTES).read_bytes()
    for i in range(n or 1000):
        data = sound[:128] + mutate(sound[128:], draw)[: len(sound) - 128].ljust(len(sound) - 128, b"\0")
        yield f"damage {i}", lambda folder, data=data: (folder / BYTES).write_bytes(data)


def _phi(run: Path) -> Any:
    return ds.dataset(run / "attributions", partitioning=None).to_table()


def try_counts(n_changes: int | None, seed: int = 1) -> list[str]:
    """What is wrong where somebody changed what is kept of a background: a later run is refused, or has the same rows, or check_run refuses it."""
    faults, draw, ends = [], np.random.default_rng(seed), {"refused": 0, "the same": 0, "refused by check_run": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = make_run(folder, "marginal")
        (counts,) = (folder / "_leafledger").iterdir()
        sound, expected = folder / "sound", _phi(run)
        shutil.copytree(counts, sound)

        def run_again() -> None:
            out = folder / "again"
            shutil.rmtree(out, ignore_errors=True)
            try:
                explain(
                    folder / "model.txt", folder / "data", out, scheduler="serial", **KINDS["marginal"] | {"background": str(folder / "data/part=1")}
                )
            except LeafledgerError:
                ends["refused"] += 1
                raise
            if _phi(out).equals(expected):
                ends["the same"] += 1
                return
            try:
                check_run(out, all_rows=True)
            except LeafledgerError:
                ends["refused by check_run"] += 1
                raise
            raise ValueError("other numbers, and check_run says nothing")

        for where, change in _forge_counts(sound, n_changes, draw):
            for sealed in (False, True):
                shutil.rmtree(counts)
                shutil.copytree(sound, counts)
                change(counts)
                if sealed:
                    try:
                        _seal_counts(counts)
                    except (ValueError, KeyError, TypeError, RecursionError):
                        continue
                fault = _answer(run_again)
                faults += [] if fault is None else [f"counts: {where}{', sealed' if sealed else ''}: {fault}"]
    print(f"counts of a background: {', '.join(f'{count} {end}' for end, count in ends.items())}; {len(faults)} faults", flush=True)
    return faults


def main() -> int:
    """Every change of every kind of run, and an exit code of 1 if any reader fails otherwise than in one line."""
    parser = argparse.ArgumentParser(prog="python -m tests.forged", description="Files that somebody changed, and all who read them.")
    parser.add_argument("--changes", type=int, help="of each file, drawn; by default all")
    given = parser.parse_args()
    faults = try_counts(given.changes)
    faults += [fault for kind in (*KINDS, *EARLIER) for fault in try_readers(kind, given.changes)]
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
