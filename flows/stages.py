"""The stages of the flow as Prefect tasks, with retries of transient failures."""

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from prefect import State, Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import TaskRun

from leafledger.pipeline.drift import against as against_
from leafledger.pipeline.errors import ClusterLost, NotAFile, NotThere, StorageError, UnknownStore, UnusablePlace
from leafledger.pipeline.finished.names import NamesFile
from leafledger.pipeline.report.report import WrittenReport, report
from leafledger.pipeline.runs.job.job import Job
from leafledger.pipeline.runs.monitor.attempt import Attempt
from leafledger.pipeline.runs.plan.digest_inputs import digest_run
from leafledger.pipeline.runs.plan.model import load_model
from leafledger.pipeline.runs.plan.planned_run import Run, plan_run
from leafledger.pipeline.runs.publish.kept_run import remove_older
from leafledger.pipeline.runs.publish.replacement import finish_replacement
from leafledger.pipeline.runs.publish.table_commit import commit_table, record_commit
from leafledger.pipeline.runs.records.derived import DriftVerdict
from leafledger.pipeline.runs.records.input_digests import Inputs
from leafledger.pipeline.runs.records.manifest import Manifest
from leafledger.pipeline.runs.stages import (
    BackgroundStatistics,
    Broadcast,
    Explained,
    aggregate_run,
    broadcast_run,
    count_run,
    map_run,
    publish_run,
    update_latest,
)

from . import artifacts

RETRY_SECONDS = [10.0, 60.0, 300.0]  # a store or a cluster that is away is given this long to come back
P = ParamSpec("P")
R = TypeVar("R")


def may_pass(task: Task, task_run: TaskRun, state: State) -> bool:  # noqa: ARG001 - the shape of a retry condition
    """Tell whether trying again can help: the network may come back, but a refusal stays one, and so does a file that is not there."""
    error = state.data
    return isinstance(error, StorageError | ClusterLost) and not isinstance(error, NotAFile | NotThere | UnknownStore | UnusablePlace)


def stage(name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """Make a function a task that keeps its result in memory.

    Every stage may run twice, and a second map does only the parts that are missing; so what may pass is tried again after RETRY_SECONDS.
    """
    return task(
        name=name,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=len(RETRY_SECONDS),
        retry_delay_seconds=RETRY_SECONDS,
        retry_condition_fn=may_pass,
    )


load = stage("load")(load_model)
plan = stage("plan")(plan_run)
broadcast = stage("broadcast")(broadcast_run)
aggregate = stage("aggregate")(aggregate_run)
publish = stage("publish")(publish_run)
move = stage("latest")(update_latest)


@stage("digest")
def digest(run: Run) -> Inputs:
    """After stage 2: digest the inputs."""
    return digest_run(run, artifacts.show_progress)


@stage("thresholds")
def read_asked(job: Job, thresholds: Mapping[str, Any] | str | None) -> dict[str, float]:
    """Before stage 2: read what counts as drift, so that a mistake in it is found before a row is explained."""
    return against_.read_asked(job, thresholds)


@stage("count")
def count(run: Run) -> BackgroundStatistics | None:
    """Stage 3: count the background."""
    return count_run(run, artifacts.show_progress)


@stage("map")
def map_parts(run: Run, tables: Broadcast, attempt: Attempt) -> Explained:
    """Stage 5: explain every work item."""
    return map_run(run, tables, attempt.follow(artifacts.show_progress))


def _tidy(run: Run, manifest: Manifest) -> None:
    """Stage 8: commit the run to the table of all nights where there is one; only then remove what is left of runs whose place it took."""
    commit_table(run.job, run.out, manifest, bool(run.kept))
    finish_replacement(run.out, manifest)
    record_commit(run.job, run.out, manifest)
    remove_older(run.out, manifest)


tidy, commit = stage("tidy")(_tidy), stage("table")(_tidy)  # where there is no table, and where there is one


@stage("drift")
def compare(job: Job, manifest: Manifest, against: str, thresholds: Mapping[str, Any]) -> DriftVerdict | None:
    """Stage 9: say what changed since another run, or what was found of this one before, where there is no other one any more."""
    return against_.find_verdict(job, manifest, against, thresholds, artifacts.show_progress)


@stage("report")
def write_page(job: Job, names: NamesFile | None = None, overview: str | None = None) -> WrittenReport:
    """Stage 10: write a page about the run."""
    options = job.options
    where: dict[str, Any] = {name: getattr(options, name) for name in ("scheduler", "threads", "workers", "plain_tcp", "wait")}
    return report(job.out, names=names, overview=overview, **where, progress=artifacts.show_progress)
