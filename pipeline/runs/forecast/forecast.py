"""Forecast of a run's time, memory and traffic, extrapolated from a trial on a few rows."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from leafledger.kernels.trees.binning import padded

from ...cluster.resource_usage import ResourceUsage, find_peak, measure_usage
from ..execute.bundles import choose_level, make_bundles
from ..plan.background import MarginalPlan
from ..plan.planned_run import Run
from .trial_run import Trial, Tried, try_run


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of an item: a constant, and a cost per row."""

    item: float  # independent of its rows
    row: float

    def of(self, n_rows: int) -> float:
        """Return the cost of an item with that many rows."""
        return self.item + self.row * n_rows


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of a run on a machine with a number of concurrent workers; seconds of wall time, except ``cpu``."""

    planning: ResourceUsage
    preparing: ResourceUsage  # counting the background, and making and broadcasting tables
    start: ResourceUsage  # starting workers, and loading kernels
    reading: Cost
    kernel: Cost
    writing: Cost  # including the object
    client: float  # seconds of an item outside the workers
    cpu: Cost  # CPU seconds of all three, by the rows that the kernel processes
    read: Cost  # bytes
    part: Cost  # bytes of an object
    finishing: ResourceUsage  # merging and publishing
    n_objects: int  # number of objects except parts
    n_bytes: float  # bytes of these
    entry_bytes: float  # bytes of a part's entry in the manifest
    peak: int  # bytes of a worker

    def of(self, n_rows: int) -> float:
        """Return the seconds that a worker needs for an item of that many rows."""
        return self.reading.of(n_rows) + self.kernel.of(padded(n_rows)) + self.writing.of(n_rows)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast of a run."""

    seconds: float  # from planning to the manifest
    cpu_seconds: float  # of this machine's CPUs, or of a scheduler's workers and this process
    workers: int  # number of concurrent threads of this process, or workers
    memory: int  # peak memory of all processes, in bytes
    read_bytes: int  # of the data and the background
    written_bytes: int  # size of the finished run
    objects: int  # number of its objects
    stages: dict[str, float]  # seconds of each stage, which add up
    row: dict[str, float]  # worker seconds of a row, by kind of work
    tried_rows: int  # rows of the trial,
    tried_seconds: float  # and its seconds


def fit(n_rows: Sequence[int], values: Sequence[float]) -> Cost:
    """Fit a nonnegative cost per item and per row."""
    weighed = [(1 / n, n, value) for n, value in zip(n_rows, values, strict=True) if n]
    if not weighed:
        return Cost(0.0, 0.0)
    weights, rows = sum(w for w, _, _ in weighed), sum(w * n for w, n, _ in weighed)
    total, mean = sum(w * value for w, _, value in weighed), rows / weights
    spread = sum(w * (n - mean) ** 2 for w, n, _ in weighed)
    slope = sum(w * (n - mean) * value for w, n, value in weighed) / spread if spread else 0.0
    if spread and slope <= 0:
        return Cost(total / weights, 0.0)
    item = total / weights - slope * mean
    if not spread or item < 0:
        return Cost(0.0, sum(w * n * value for w, n, value in weighed) / sum(w * n * n for w, n, _ in weighed))
    return Cost(item, slope)


def last_end(seconds: Iterable[float], n_workers: int) -> float:
    """Return the end of the last task if each goes to the first free worker.

    Parameters
    ----------
    seconds : iterable of float
        Of tasks, in the order in which they are given away.

    Returns
    -------
    float
        Seconds.
    """
    free = [0.0] * n_workers
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def work_seconds(costs: Costs, tasks: Sequence[Sequence[int]], n_workers: int, apart: bool) -> float:
    """Return the time of all items."""
    client = costs.client * sum(map(len, tasks))
    end = last_end((sum(map(costs.of, items)) for items in tasks), n_workers)
    return max(end, client) if apart else end + client


def _find_costs(run: Run, trial: Trial, planning: ResourceUsage, n_workers: int, apart: bool) -> Costs:
    rows, whole = [tried.n_rows for tried in trial.parts], [n for n, _ in trial.reading]
    worked = [padded(n) for n in rows]

    def fitted(value: Callable[[Tried], float], n_rows: Sequence[int] = rows) -> Cost:
        return fit(n_rows, [value(tried) for tried in trial.parts])

    reading, reading_cpu, read = (fit(whole, [taken[k] for _, taken in trial.reading]) for k in range(3))
    cpu = fitted(lambda tried: tried.spent.cpu, worked)
    costs = Costs(
        planning=planning,
        preparing=_prepare(run, trial, n_workers),
        start=trial.loading,
        reading=reading,
        kernel=fitted(lambda tried: tried.spent.kernel, worked),
        writing=fitted(lambda tried: tried.spent.writing + tried.spent.publishing),
        client=trial.client,
        cpu=Cost(cpu.item + reading_cpu.item, cpu.row + reading_cpu.row),
        read=read,
        part=fitted(lambda tried: tried.size),
        finishing=ResourceUsage(trial.merging.seconds + trial.publishing.seconds, trial.merging.cpu + trial.publishing.cpu),
        n_objects=trial.n_objects,
        n_bytes=trial.n_bytes,
        entry_bytes=trial.entry_bytes,
        peak=max((tried.spent.peak for tried in trial.parts), default=0),
    )
    explained = work_seconds(costs, [[n] for n in trial.rows], n_workers, apart)
    begun = max(0.0, trial.explaining.seconds - explained), max(0.0, trial.explaining.cpu - sum(costs.cpu.of(padded(n)) for n in trial.rows))
    return replace(costs, start=ResourceUsage(trial.loading.seconds + begun[0], trial.loading.cpu + begun[1]))


def _prepare(run: Run, trial: Trial, n_workers: int) -> ResourceUsage:
    """Extrapolate the time of counting the background, and add the tables."""
    game, made, counted = run.game, trial.preparing, trial.counting
    if not isinstance(game, MarginalPlan) or not trial.counted_rows:
        return made
    times = sum(item.n_rows for item in game.items) / trial.counted_rows
    seconds = times * counted.seconds / min(n_workers, len(game.items))
    return ResourceUsage(seconds + made.seconds, times * counted.cpu + made.cpu, round(times * counted.read) + made.read)


def put_together(costs: Costs, tasks: Sequence[Sequence[int]], n_workers: int, apart: bool) -> tuple[dict[str, float], float]:
    """Compute the time of every stage of a run."""
    stages = {
        "planning": costs.planning.seconds,
        "preparing": costs.preparing.seconds,
        "starting": costs.start.seconds,
        "explaining": work_seconds(costs, tasks, n_workers, apart),
        "publishing": costs.finishing.seconds,
    }
    fixed = sum(taken.cpu for taken in (costs.planning, costs.preparing, costs.start, costs.finishing))
    return stages, fixed + sum(costs.cpu.of(padded(n)) for items in tasks for n in items)


def _count_workers(run: Run, n_tasks: int) -> int:
    """Return the number of concurrent threads or workers."""
    placement = run.job.placement
    there = placement.threads if placement.is_here else placement.asked_workers or 1
    if placement.scheduler is not None and not placement.on_this_machine:
        from ...cluster import requirements as workers
        from ...cluster import start_client as cluster
        from ...cluster import waiting as patience

        with cluster.remote_client(placement.scheduler, workers.need(run.memory.total), placement.wait, placement.security) as client:
            there = sum(worker["nthreads"] for worker in patience.find_workers(client).values())
    return max(1, min(there, n_tasks))


def _hold(run: Run, trial: Trial, costs: Costs, n_workers: int, apart: bool) -> int:
    """Return the memory of all processes: measured for a worker, plus that of larger batches."""
    held, most = max(trial.rows, default=0), min(run.plan.slice_rows, max((item.n_rows for item in run.plan.items), default=0))
    more = round(run.memory.slice * max(0.0, 1 - padded(held) / max(1, padded(most))))
    return n_workers * (costs.peak + more) + find_peak() if apart else max(costs.peak, find_peak()) + n_workers * more


def forecast_run(run: Run, planning: ResourceUsage) -> Forecast:
    """Run a few rows of a planned run and extrapolate; nothing of the trial is kept.

    Parameters
    ----------
    run : Run
        That is not finished.
    planning : ResourceUsage
        What it took to load the model and plan the run.

    Raises
    ------
    InvalidData
        None of the rows that were tried can be read.
    ClusterLost
        No scheduler answers, or it has no workers.
    """
    items, apart, found = run.plan.items, not run.job.placement.is_here, list[ResourceUsage]()
    bundles = make_bundles(items, {}, choose_level(items) if apart else 0)
    tasks = [[item.n_rows for item in bundle.items] for bundle in bundles]
    n_workers = _count_workers(run, len(tasks))
    with measure_usage(found):
        trial = try_run(run, n_workers)
    costs = _find_costs(run, trial, planning, n_workers, apart)
    stages, cpu = put_together(costs, tasks, n_workers, apart)
    parts = sum(costs.part.of(item.n_rows) for item in items)
    return Forecast(
        seconds=sum(stages.values()),
        cpu_seconds=cpu,
        workers=n_workers,
        memory=_hold(run, trial, costs, n_workers, apart),
        read_bytes=planning.read + costs.preparing.read + round(sum(costs.read.of(item.n_rows) for item in items)),
        written_bytes=round(costs.n_bytes + costs.entry_bytes * len(items) + parts),
        objects=costs.n_objects + len(items),
        stages=stages,
        row={"reading": costs.reading.row, "kernel": costs.kernel.row, "writing": costs.writing.row},
        tried_rows=trial.n_rows,
        tried_seconds=found[0].seconds,
    )
