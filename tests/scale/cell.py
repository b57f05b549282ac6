"""One measurement: so many parts at so many workers, by the code of a run."""

import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

import numpy as np

from leafledger.kernels.reductions.reduction import MOMENTS, Moments, merge_all
from leafledger.kernels.reductions.summary import IMPORTANCE
from leafledger.pipeline.cluster import start_client as cluster
from leafledger.pipeline.dataset.files.listing import Rejected
from leafledger.pipeline.methods.reduction_states import unpack_state
from leafledger.pipeline.runs.execute import dask as dask_
from leafledger.pipeline.runs.execute.bundles import Task, choose_level, make_bundles
from leafledger.pipeline.runs.execute.merged_states import MergedStates
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.records.part import Part
from tests.scale.simulated import find_peak, simulate
from tests.scale.work import SUMMARIES, Work, make_items, read_ledger, stay_cold, wait_bundle, write_work

DIGEST = "5" * 64  # of the recipe
QUIET_SECONDS = 10  # that a cluster without work is watched
WAIT = 60.0


@dataclass(frozen=True, slots=True)
class Cell:
    """What is tried."""

    workers: int
    parts: int
    work: Work


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen. Seconds are of the wall where they are not of a CPU; shares are of one core."""

    cell: Cell
    state_bytes: int  # of a part, packed
    quiet: float  # share of the scheduler, with workers and without work
    connect: float  # seconds until the client has looked at all workers, and scheduler and workers have imported what tasks call
    connect_scheduler_cpu: float
    connect_client_cpu: float
    first: float  # seconds from there to the first part
    seconds: float  # seconds from there to the last part
    busy: float  # share of the workers' time, from the first item's beginning to the last one's end, that was work
    late_median: float  # seconds from the end of an item to its part at the client
    late_most: float
    scheduler_cpu: float  # from the first task's sending to the last part
    client_cpu: float
    farm_cpu: float
    merge_cpu: float  # of that, for merging states
    scheduler_peak: int  # bytes
    client_before: int
    client_peak: int
    twice: int  # items that were done more than once
    missing: int  # items without a part at the client
    same: bool  # the merged state has the bits of one process that goes through all items
    complaints: dict[str, list[str]]  # of scheduler and workers: warnings and errors


def write_bits(state: Moments) -> bytes:
    """What a state is told from another by."""
    return b"".join(array.tobytes() for array in state)


def merge_serially(n: int, work: Work) -> bytes:
    """The same of items that never left this process."""
    states = (unpack_state(MOMENTS, work.state(part)) for part in range(n))
    return write_bits(merge_all(MOMENTS, states, 1, work.features))


def measure(cell: Cell, folder: Path) -> Measured:
    """Start a cluster, let a client do the cell's parts on it, and look at what they cost."""
    tables, items = write_work(folder, cell.work), make_items(cell.parts)
    with simulate(cell.workers, folder) as simulated, mock.patch.object(dask_, "do_bundle", wait_bundle):
        watched = (simulated.scheduler, simulated.farm)
        quiet = simulated.scheduler.cpu()
        time.sleep(QUIET_SECONDS)
        quiet = (simulated.scheduler.cpu() - quiet) / QUIET_SECONDS
        before, cpu, started, used = find_peak(os.getpid()), simulated.scheduler.cpu(), time.perf_counter(), time.process_time()
        job = make_job("model.json", "data", str(folder), Options(scheduler=simulated.address, wait=WAIT))
        done: list[tuple[float, Part | Rejected]] = []
        with cluster.warm_client(job.placement, len(items), 0, stay_cold, tables) as client:  # as execute does
            connect, connect_client_cpu = time.perf_counter() - started, time.process_time() - used
            connect_scheduler_cpu = simulated.scheduler.cpu() - cpu
            cpus, started, used = [each.cpu() for each in watched], time.perf_counter(), time.process_time()
            first = merge_cpu = 0.0
            merged = MergedStates(SUMMARIES)
            for made in dask_.run_dask(client, Task(job.out, DIGEST, tables), make_bundles(items, {}, choose_level(items)), 0):  # as map_run does
                first = first or time.perf_counter() - started
                done += [(time.time(), piece) for piece in made.pieces]
                merge_cpu -= time.process_time()
                merged.add(made.place, made.states, made.level)
                merge_cpu += time.process_time()
            seconds, client_cpu = time.perf_counter() - started, time.process_time() - used
            scheduler_cpu, farm_cpu = (each.cpu() - cpu for each, cpu in zip(watched, cpus, strict=True))
        total = merged.total()[IMPORTANCE.name]
        parts = [part for _, part in done if isinstance(part, Part)]
        peak = find_peak(os.getpid())
        complaints = {"scheduler": simulated.scheduler.complaints(), "workers": simulated.farm.complaints()}
        scheduler_peak = simulated.scheduler.peak()
    ledger = read_ledger(folder)
    ends = dict(zip(ledger[:, 0].astype(int), ledger[:, 2], strict=True))
    late = np.array([came - ends[part.part] for came, part in done if part.part in ends])
    span = ledger[:, 2].max() - ledger[:, 1].min()
    return Measured(
        cell=cell,
        state_bytes=len(cell.work.state(0)),
        quiet=quiet,
        connect=connect,
        connect_scheduler_cpu=connect_scheduler_cpu,
        connect_client_cpu=connect_client_cpu,
        first=first,
        seconds=seconds,
        busy=float((ledger[:, 2] - ledger[:, 1]).sum() / span / cell.workers),
        late_median=float(np.median(late)),
        late_most=float(late.max()),
        scheduler_cpu=scheduler_cpu,
        client_cpu=client_cpu,
        farm_cpu=farm_cpu,
        merge_cpu=merge_cpu,
        scheduler_peak=scheduler_peak,
        client_before=before,
        client_peak=peak,
        twice=len(ledger) - len(ends),
        missing=len({item.part for item in items} - {part.part for part in parts}),
        same=total is not None and write_bits(total) == merge_serially(cell.parts, cell.work),
        complaints=complaints,
    )


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as made:
        found = measure(Cell(asked["workers"], asked["parts"], Work(**asked["work"])), Path(made))
    print(json.dumps(asdict(found)))
