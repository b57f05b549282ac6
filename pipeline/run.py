"""A run, stage by stage: load, plan, broadcast, map, aggregate, publish. Each stage is one function; ``explain`` calls them in turn."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date as Date
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from kernels.batch import Prepared

from . import storage
from .config import Job, find_method, make_job
from .errors import RunConflict, UsageError
from .execute import execute
from .models import Model, load_ensemble
from .part import PLAN, Part
from .plan import Memory, Plan, differences, digest, from_json, make_plan, survey, to_json
from .players import Partition, prepare_model, read_groups
from .publish import Manifest, aggregate, publish, read_manifest
from .tables import broadcast


@dataclass(frozen=True, slots=True)
class Run:
    """A planned run; nothing is written yet. ``finished`` is the manifest of an earlier run of the same plan."""

    job: Job
    library: str
    plan: Plan
    memory: Memory
    prepared: Prepared
    finished: Manifest | None


Watch = Callable[[Run], Callable[[Part], None]]


def load_model(job: Job) -> Model:
    """Stage 1: read the model file once, validated and digested."""
    return load_ensemble(job.model)


def plan_run(job: Job, model: Model) -> Run:
    """Stage 2: list the input, match it against the model, prepare the tables, project memory. Refusals happen here; writes nothing."""
    groups = read_groups(job.partition, model.features)
    found = survey(job, model)
    prepared = prepare_model(model, find_method(job.method), dict(job.parameters), groups, job.interactions is not None)
    plan, memory = make_plan(job, model, groups, found, prepared)
    if job.scheduler is None and memory.total > job.worker_memory:
        raise UsageError(
            f"a worker needs {memory.total >> 20} MiB (tables {memory.tables >> 20}, slice {memory.slice >> 20}, largest row group "
            f"{memory.row_group >> 20}, footer {memory.footer >> 20}), it has {job.worker_memory >> 20}; use fewer workers"
        )
    where = storage.join(job.out, PLAN)
    held = storage.read_if_exists(where)
    if held is not None:
        _refuse_other(job.out, from_json(held, where), plan)
    return Run(job, model.library, plan, memory, prepared, read_manifest(job.out))


def _refuse_other(out: str, held: Plan, plan: Plan) -> None:
    if held != plan:
        raise RunConflict(f"{out}: holds another run, different in {differences(held, plan)}; choose another output or remove it")


def broadcast_run(run: Run) -> str:
    """Stage 3: commit the plan, and put the tables where workers can read them; returns the tables' URI."""
    uri = storage.join(run.job.out, PLAN)
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder) / PLAN
        local.write_text(to_json(run.plan))
        if not storage.create(uri, local):
            _refuse_other(run.job.out, from_json(storage.read(uri), uri), run.plan)
    return broadcast(run.prepared, run.job.out)


def map_run(run: Run, tables: str, watch: Callable[[Part], None] = lambda part: None) -> list[Part]:
    """Stage 4: explain every work item; ``watch`` is called with each part as it is done."""
    parts = []
    for part in execute(run.job, digest(run.plan), tables, run.plan.items, run.memory.total):
        watch(part)
        parts.append(part)
    return parts


def aggregate_run(run: Run, parts: list[Part]) -> dict[str, pa.Table]:
    """Stage 5: merge the parts' states into summaries."""
    states = [part.states for part in sorted(parts, key=lambda part: part.part)]
    return aggregate(run.plan, run.prepared.players.tolist(), run.prepared.pairs.players.tolist(), states)


def publish_run(run: Run, parts: list[Part], summaries: dict[str, pa.Table]) -> Manifest:
    """Stage 6: verify, write the summaries, then the manifest."""
    return publish(run.job.out, run.plan, run.library, run.prepared, parts, summaries)


def explain_job(job: Job, watch: Watch) -> tuple[Manifest, bool]:
    """All stages; the manifest, and whether the run was finished before so that there was nothing to do."""
    run = plan_run(job, load_model(job))
    if run.finished is not None:
        return run.finished, True
    done = watch(run)
    tables = broadcast_run(run)
    parts = map_run(run, tables, done)
    return publish_run(run, parts, aggregate_run(run, parts)), False


def explain(
    model: str | PathLike,
    data: str | PathLike,
    out: str | PathLike,
    *,
    method: str = "shapley",
    parameters: Mapping[str, Any] | None = None,
    partition: Partition | None = None,
    interactions: int | str | None = None,
    ids: Iterable[str] = (),
    precision: str = "float32",
    scheduler: str | None = None,
    workers: int | None = None,
    date: Date | str | None = None,
    watch: Watch = lambda run: lambda part: None,
) -> Manifest:
    """Explain every row of a Parquet data set and publish attributions and summaries.

    Parameters
    ----------
    model, data, out : URIs or paths of the model file, the data (a Parquet file, folder, glob or Hive-partitioned data set) and the run's
        folder; ``{date}`` in them is filled in
    method, parameters : see ``METHODS``
    partition : groups of features, group -> features, or the path or URI of such an object in JSON; a feature that it does not name is a group of
        its own. Values are the groups', with method "owen" the features' within their groups
    interactions : also those of every two players: "all" of a row that are not zero, or so many of the largest
    ids : columns of the data passed through to the attributions
    precision : "float32" or "float64", of the attributions as stored; they are computed in float64
    scheduler : address of a Dask scheduler, "serial" for this process alone, or None for a local cluster
    workers : processes of the local cluster, by default one per core; each imports the calling script, so call under
        ``if __name__ == "__main__"``
    watch : called with the planned run; what it returns is called with every part as it is done

    Returns
    -------
    Manifest
        of the finished run; an unfinished run of the same plan is completed, a finished one is left as it is

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    job = make_job(
        str(model),
        str(data),
        str(out),
        method=method,
        parameters=parameters,
        partition=partition,
        interactions=interactions,
        ids=ids,
        precision=precision,
        scheduler=scheduler,
        workers=workers,
        date=date,
    )
    return explain_job(job, watch)[0]
