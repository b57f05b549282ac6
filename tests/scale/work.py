"""What a simulated worker does with an item: it waits as long as the part would take, and answers with a state of the size that parts have."""

import json
import os
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from leafledger.kernels.reductions.reduction import MOMENTS
from leafledger.kernels.reductions.summary import IMPORTANCE
from leafledger.pipeline.cluster.worker_identity import this_worker
from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.methods.reduction_states import pack_state
from leafledger.pipeline.runs.execute import bundles
from leafledger.pipeline.runs.records.part import Part
from leafledger.pipeline.stores.traffic import Moved

SUMMARIES = (IMPORTANCE,)
FILE = "work.json"
LEDGER = "ledger"  # of a process: a line for every time that an item was done in it
ROWS = 32  # of a part, as far as its state goes


@dataclass(frozen=True, slots=True)
class Work:
    """What every item takes."""

    seconds: float  # on average
    spread: float  # of it: items take between 1 - spread and 1 + spread times as long
    features: int  # that a state is of

    def take(self, part: int) -> float:
        """Seconds of an item, always the same for the same one."""
        return self.seconds * (1 + self.spread * float(np.random.default_rng(part).uniform(-1, 1)))

    def state(self, part: int) -> str:
        """The packed state of attributions that are drawn from the number of the part: adding them up in another order gives other bits."""
        phi = np.random.default_rng([part, 1]).normal(size=(1, self.features, ROWS))
        return pack_state(MOMENTS.update(MOMENTS.init(1, self.features), phi, ROWS))


def write_work(folder: Path, work: Work) -> str:
    """Put it where workers read it, as tables are put; where that is."""
    (folder / FILE).write_text(json.dumps(asdict(work)))
    return str(folder / FILE)


@lru_cache(maxsize=2)
def _read_work(uri: str) -> Work:
    return Work(**json.loads(Path(uri).read_text()))


@lru_cache(maxsize=2)
def _open_ledger(run: str) -> int:
    return os.open(f"{run}/{LEDGER}-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def wait_item(run: str, recipe: str, tables: str, item: WorkItem, *left_out: object) -> tuple[Part]:
    """Stand in for ``make_part_or_reject``: write down that the item was done, and from when to when."""
    work, started = _read_work(tables), time.time()
    state = work.state(item.part)
    time.sleep(max(0.0, work.take(item.part) - (time.time() - started)))
    os.write(_open_ledger(run), f"{item.part} {started:.6f} {time.time():.6f}\n".encode())
    seconds = time.time() - started
    states = {IMPORTANCE.name: state}
    return (Part(item.part, item.n_rows, 1 << 20, "0" * 64, 0.0, seconds, states, this_worker(), Moved()),)


def wait_bundle(task: bundles.Task, bundle: bundles.Bundle) -> bundles.BundleResult:
    """Do a bundle as a run does, but for its parts; in a process that does nothing else."""
    bundles.make_part_or_reject, bundles.open_recipe = wait_item, lambda *_: SimpleNamespace(summaries=SUMMARIES)
    return bundles.do_bundle(task, bundle)


def stay_cold(tables: str) -> None:
    """Stand in for ``warm``: what it is called with exists, and nothing is compiled."""
    _read_work(tables)


def read_ledger(run: Path) -> np.ndarray:
    """All lines of all processes: (done, 3) float64, the number of a part, and when it was begun and done."""
    lines = [line.split() for path in sorted(run.glob(f"{LEDGER}-*")) for line in path.read_text().splitlines()]
    return np.array(lines, float).reshape(-1, 3)


def make_items(n: int) -> list[WorkItem]:
    """Items as long as those of a data set in a bucket."""
    uri = "s3://a-company-models/features/customers/date=2026-11-23/region={}/part-{:05d}.parquet"
    return [WorkItem(k, uri.format(k % 50, k), f'"{k:032x}"', (0, 1, 2), 0, 100_000, 0, (("region", str(k % 50)),)) for k in range(n)]
