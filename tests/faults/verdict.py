"""What a run must be after any fault: verified, the bytes of the fault-free run, nothing lost, doubled or done again; and the sum of all verdicts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import check_run, explain
from leafledger.pipeline.errors import ClusterLost, LeafledgerError
from leafledger.pipeline.progress import no_progress
from leafledger.pipeline.runs.records.folder import RunFolder
from leafledger.pipeline.runs.records.part import Part

ID = "flight"


@dataclass
class Tally:
    """What the whole suite did."""

    faults: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    lost: int = 0
    doubled: int = 0
    recomputed: int = 0

    def lines(self) -> list[str]:
        """As a table."""
        said = [f"faults injected                             {self.faults.total():>6}"]
        said += [f"  {name:<41} {number:>6}" for name, number in sorted(self.faults.items())]
        return [
            *said,
            f"runs finished                               {self.finished:>6}",
            f"rows lost                                   {self.lost:>6}",
            f"rows doubled                                {self.doubled:>6}",
            f"parts recomputed that were committed        {self.recomputed:>6}",
        ]


def contents(uri: str) -> dict[str, bytes]:
    """Every object below a URI, by name, but for the records of how runs were made, which no two runs share."""
    filesystem, path = fsspec.core.url_to_fs(uri)
    filesystem.invalidate_cache()
    names = [name for name in filesystem.find(path) if not name.endswith("/provenance.json")] if filesystem.exists(path) else []
    return {name[len(path) + 1 :]: filesystem.cat_file(name) for name in names}


def committed(uri: str) -> dict[str, tuple[str, ...]]:
    """Parts that are there, and what changes when one is written again."""
    filesystem, path = fsspec.core.url_to_fs(f"{uri}/attributions")
    filesystem.invalidate_cache()
    found = filesystem.find(path, detail=True) if filesystem.exists(path) else {}
    return {name: tuple(str(entry.get(key)) for key in ("ETag", "LastModified", "mtime", "ino")) for name, entry in found.items()}


def rows(objects: dict[str, bytes]) -> Counter[int]:
    """Ids of all rows of a run's parts."""
    parts = [pq.read_table(pa.BufferReader(data), columns=[ID]) for name, data in objects.items() if name.startswith("attributions/")]
    return Counter(row for part in parts for row in part[ID].to_pylist())


@dataclass(frozen=True)
class Runner:
    """Explains the example into some place, and judges what came of it."""

    model: str
    data: str
    reference: dict[str, bytes]  # what a fault-free run publishes
    tally: Tally
    where: Mapping[str, Any] = field(default_factory=lambda: {"scheduler": "serial"})  # unless a run says otherwise

    def explain(self, out: str, before: dict[str, tuple[str, ...]] | None = None, **given) -> list[Part]:
        """One run; parts that it made, none of which may have been there ``before``."""
        parts: list[Part] = []
        where = {} if {"scheduler", "threads", "workers"} & given.keys() else self.where
        given = {"ids": [ID], "model": self.model, "data": self.data, **where} | given
        inner = given.pop("progress", no_progress)

        def progress(work):
            on_done = inner(work)

            def done(part):
                parts.append(part)
                on_done(part)

            return done

        explain(given.pop("model"), given.pop("data"), out, progress=progress, **given)
        made = [part for part in parts if isinstance(part, Part) and part.seconds]
        self.tally.recomputed += sum(RunFolder(out).part(part.part).endswith(name.rsplit("/", 1)[-1]) for part in made for name in before or {})
        return made

    def fails(self, out: str, **given) -> LeafledgerError:
        """A run that must end in one line."""
        with pytest.raises(LeafledgerError) as raised:
            self.explain(out, **given)
        message = str(raised.value)
        assert "\n" not in message
        assert "canary" not in message
        assert message.startswith((out, self.model, self.data)) or isinstance(raised.value, ClusterLost)
        return raised.value

    def go_on(self, out: str, **given) -> None:
        """Run again after a fault, and judge."""
        assert "manifest.json" not in contents(out)
        before = committed(out)
        self.explain(out, before, **given)
        self.judge(out, before)

    def judge(self, out: str, before: dict[str, tuple[str, ...]] | None = None) -> None:
        """Refuse any run that is not the fault-free one, byte by byte."""
        found = contents(out)
        expected, got = rows(self.reference), rows(found)
        self.tally.lost += (expected - got).total()
        self.tally.doubled += (got - expected).total()
        now = committed(out)
        self.tally.recomputed += sum(now.get(name) != was for name, was in (before or {}).items())
        self.tally.finished += 1
        check_run(out)
        assert sorted(found) == sorted(self.reference)
        assert [name for name in found if found[name] != self.reference[name]] == []
        assert {name: now.get(name) for name in before or {}} == (before or {})
        assert (self.tally.lost, self.tally.doubled, self.tally.recomputed) == (0, 0, 0)
