"""The nightly flow: a run of the pipeline, one Prefect task per stage, with retries, a report, and the pipeline's own words when it fails."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC
from datetime import date as Date
from inspect import getdoc, signature
from typing import Any, ParamSpec, TypeVar
from zoneinfo import ZoneInfo

import pyarrow as pa
from prefect import State, Task, flow, get_client, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import TaskRun
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from prefect.states import Completed, Failed

from pipeline.command.cli import app
from pipeline.dataset.names import say_positions
from pipeline.display import printable
from pipeline.errors import ClusterLost, LeafledgerError, NotThere, StorageError, UnknownStore
from pipeline.models import Model
from pipeline.runs.background import BackgroundStatistics
from pipeline.runs.job import Job, make_job
from pipeline.runs.latest import Latest, why_latest_stays
from pipeline.runs.load import load_model
from pipeline.runs.mlflow_run import log_run
from pipeline.runs.options import Columns, Combinations, MissingLabels, Precision, Sign, Space, pick
from pipeline.runs.publish import Manifest
from pipeline.runs.stages import (
    Broadcast,
    Explained,
    Run,
    aggregate_run,
    broadcast_run,
    count_run,
    map_run,
    plan_run,
    publish_run,
    update_latest,
)

from . import report

RETRY_SECONDS = [10.0, 60.0, 300.0]  # a store or a cluster that is away is given this long to come back
HERE = {  # what is to be said of parameters besides what the command's help says
    "date": " By default the date for which the flow run was scheduled.",
    "parameters": ' Here as an object: {"p": 0.3}.',
    "max_rejected": " Here the state is then called PartlyRejected.",
}
P = ParamSpec("P")
R = TypeVar("R")


def may_pass(task: Task, task_run: TaskRun, state: State) -> bool:  # noqa: ARG001 - the shape of a retry condition
    """Tell whether trying again can help: the network may come back, but a refusal stays one, and so does a file that is not there.

    Parameters
    ----------
    task : Task
        Not looked at, nor is the next one: the shape of a retry condition.
    task_run : TaskRun
    state : State
        Failed; its data is the error.

    Returns
    -------
    bool
    """
    error = state.data
    return isinstance(error, StorageError | ClusterLost) and not isinstance(error, NotThere | UnknownStore)


def stage(name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """Make a function a task that keeps its result in memory.

    Every stage may run twice, and a second map does only the parts that are missing; so what may pass is tried again after RETRY_SECONDS.

    Parameters
    ----------
    name : str
        Of the task.

    Returns
    -------
    callable
        A decorator.
    """
    return task(
        name=name,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=len(RETRY_SECONDS),
        retry_delay_seconds=RETRY_SECONDS,
        retry_condition_fn=may_pass,
    )


@stage("load")
def load(job: Job) -> Model:
    """Stage 1: read the model.

    Parameters
    ----------
    job : Job

    Returns
    -------
    Model
    """
    return load_model(job)


@stage("plan")
def plan(job: Job, model: Model) -> Run:
    """Stage 2: match data and model; refusals happen here.

    Parameters
    ----------
    job : Job
    model : Model

    Returns
    -------
    Run
    """
    return plan_run(job, model)


@stage("count")
def count(run: Run) -> BackgroundStatistics | None:
    """Stage 3: count the background, on Dask.

    Parameters
    ----------
    run : Run

    Returns
    -------
    BackgroundStatistics or None
        None where there are no rows to count.
    """
    return count_run(run, report.show_progress)


@stage("broadcast")
def broadcast(run: Run, counted: BackgroundStatistics | None) -> Broadcast:
    """Stage 4: put the tables where workers read them.

    Parameters
    ----------
    run : Run
    counted : BackgroundStatistics or None
        What stage 3 found.

    Returns
    -------
    Broadcast
    """
    return broadcast_run(run, counted)


@stage("map")
def map_parts(run: Run, tables: Broadcast) -> Explained:
    """Stage 5: explain every work item, on Dask.

    Parameters
    ----------
    run : Run
    tables : Broadcast

    Returns
    -------
    Explained
    """
    return map_run(run, tables, report.show_progress)


@stage("aggregate")
def aggregate(run: Run, tables: Broadcast, explained: Explained) -> dict[str, pa.Table]:
    """Stage 6: merge the parts' states.

    Parameters
    ----------
    run : Run
    tables : Broadcast
    explained : Explained

    Returns
    -------
    dict of str to pa.Table
        Summaries by name.
    """
    return aggregate_run(run, tables, explained)


@stage("publish")
def publish(run: Run, tables: Broadcast, explained: Explained, summaries: dict[str, pa.Table]) -> Manifest:
    """Stage 7: write the summaries, and last the manifest.

    Parameters
    ----------
    run : Run
    tables : Broadcast
    explained : Explained
    summaries : dict of str to pa.Table
        By name.

    Returns
    -------
    Manifest
    """
    return publish_run(run, tables, explained, summaries)


@stage("latest")
def move(run: Run, manifest: Manifest) -> Latest | None:
    """Stage 8: let ``latest`` name the run, unless it names a later one or too few rows are explained.

    Parameters
    ----------
    run : Run
        Finished.
    manifest : Manifest
        Of the run.

    Returns
    -------
    Latest or None
        What ``latest`` names then; None where it was not asked for.
    """
    return update_latest(run, manifest)


def describe_parameters(function: Callable[P, R]) -> Callable[P, R]:
    """Replace the parameters of a docstring by what the command's help says of each, in Google's style, which is what Prefect reads and shows.

    Parameters
    ----------
    function : callable
        Takes what ``leafledger explain`` takes, under the same names.

    Returns
    -------
    callable
        The same function.
    """
    arguments = app["explain"].assemble_argument_collection(parse_docstring=True)
    said = {argument.field_info.names[0]: " ".join((argument.parameter.help or "").split()) for argument in arguments}
    written = "".join(f"    {name}: {said[name]}{HERE.get(name, '')}\n" for name in signature(function).parameters)
    function.__doc__ = re.sub(r"Parameters\n-+\n.*?\n\n", lambda _: f"Args:\n{written}\n", getdoc(function) or "", flags=re.DOTALL)
    return function


def scheduled_date() -> Date:
    """Find the date on which this flow run was due, however late it starts or is tried again.

    It is taken in the time zone of the schedule that started the run. Where that is gone, or somebody started the run by hand, it is that of
    the deployment's schedules if they share one; otherwise UTC, which Prefect too takes for schedules without a time zone.

    Returns
    -------
    date

    Raises
    ------
    RuntimeError
        It is called outside of a flow run.
    """
    context = FlowRunContext.get()
    flow_run = context.flow_run if context else None
    if flow_run is None or flow_run.expected_start_time is None:
        raise RuntimeError("there is no scheduled date outside of a flow run")
    zones: dict[Any, str | None] = {}
    if flow_run.deployment_id is not None:
        with get_client(sync_client=True) as client:
            schedules = client.read_deployment_schedules(flow_run.deployment_id)
        zones = {schedule.id: getattr(schedule.schedule, "timezone", None) for schedule in schedules}
    own = flow_run.created_by.id if flow_run.created_by else None
    candidates = {zones[own]} if own in zones else set(zones.values())
    zone = candidates.pop() if len(candidates) == 1 else None
    return flow_run.expected_start_time.astimezone(ZoneInfo(zone) if zone else UTC).date()


@flow(name="explain", persist_result=False)
@describe_parameters
def explain(
    model: str,
    data: str,
    out: str,
    latest: str | None = None,
    latest_requires: float = 0.0,
    ids: str | Sequence[str] = (),
    precision: Precision = "float32",
    top: int | None = None,
    sign: Sign = "both",
    columns: Columns | None = None,
    reasons: dict[str, Any] | str | None = None,
    values: bool = False,
    global_only: bool = False,
    single_writer: bool = False,
    date: Date | None = None,
    method: str = "shapley",
    parameters: dict[str, Any] | None = None,
    partition: dict[str, list[Any]] | str | None = None,
    interactions: int | str | None = None,
    space: Space = "margin",
    combinations: Combinations = "shared",
    background: str | None = None,
    background_errors: bool = False,
    tables: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    by: str | Sequence[str] = (),
    missing_labels: MissingLabels = "count",
    scheduler: str | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    max_rejected: int | None = None,
    missing: float | None = None,
    allow_unseen: bool = False,
    trees: int | str | tuple[int, int] | None = None,
    outputs: str | Sequence[str] = (),
    output: str | None = None,
    predictions: str | Sequence[str] = (),
    mlflow_run: str | None = None,
) -> State[Manifest]:
    """Explain every row of a Parquet data set and publish attributions and summaries.

    Credentials for object stores are no parameters, since Prefect stores and shows those: they come from the environment of the process.

    Parameters
    ----------
    model, data, out : str
    latest, latest_requires, ids, precision, top, sign, columns, reasons, values, global_only, single_writer, date, method, parameters : optional
    partition, interactions, space, combinations, background, background_errors, tables, label, weight, by, missing_labels : optional
    scheduler, workers, plain_tcp, max_rejected : optional
    missing, allow_unseen : optional
    trees, outputs, output, predictions, mlflow_run : optional
        As ``leafledger explain`` takes them; what its help says of each is written here by `describe_parameters`.

    Returns
    -------
    State
        Its message is what the command line says. A direct call returns its manifest, or raises its LeafledgerError.
    """
    given, log = locals(), get_run_logger()
    try:
        job = make_job(model, data, out, pick(given | {"date": date or scheduled_date()}))
        run = plan(job, load(job))
        if run.model.by_position:
            log.info("features %s", printable(say_positions(run.model)))
        if run.finished is not None:
            _move(log, run, run.finished)
            return _complete(log, f"{job.out}: finished before, nothing to do", run.finished)
        counted = count(run) if run.uncounted else None  # no stage where there is no background, or it was counted before
        prepared = broadcast(run, counted)
        explained = map_parts(run, prepared)
        summaries = aggregate(run, prepared, explained)
        manifest = publish(run, prepared, explained, summaries)
        _move(log, run, manifest)
    except LeafledgerError as error:
        return Failed(message=printable(str(error)), data=error)
    report.show_summaries(job.out, summaries)
    report.show_outputs(job.out, manifest)
    return _complete(log, f"{job.out}: explained", manifest)


def _move(log: Any, run: Run, manifest: Manifest) -> None:
    """Let ``latest`` and MLflow name the run, where it was asked for."""
    named = move(run, manifest) if run.job.options.latest else None
    stays = why_latest_stays(run.job.options, manifest)
    if stays is not None:
        log.warning(printable(stays))
    elif named is not None and named.run != run.job.out:
        log.info(printable(f"{run.job.options.latest}: stays at {named.run}, of {named.date}"))
    unlogged = log_run(run.job.options.mlflow_run, run.job.out, manifest)
    if unlogged is not None:
        log.warning(printable(unlogged))


def _complete(log: Any, what: str, manifest: Manifest) -> State[Manifest]:
    message = f"{printable(what)} ({manifest.n_rows:,} rows in {len(manifest.parts)} parts)"
    log.info("%s, SHA-256 of manifest.json %s", message, manifest.sha256)
    if not manifest.rejected:
        return Completed(message=message, data=manifest)
    for entry in manifest.rejected:
        log.warning("rejected: %s", printable(entry.reason))
    return Completed(name="PartlyRejected", message=f"{message}; {len(manifest.rejected)} pieces of the data rejected", data=manifest)
