"""The nightly flow: a Prefect task per stage, with retries, a report, and one-line errors."""

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, timedelta
from datetime import date as Date
from inspect import getdoc, signature
from typing import Any, Literal, ParamSpec, TypeVar
from zoneinfo import ZoneInfo

from prefect import State, flow, get_client, runtime
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from prefect.states import Completed, Failed

from leafledger.pipeline.arguments.choices import Columns, Combinations, Device, IfChanged, MissingLabels, Precision, Sign, Space
from leafledger.pipeline.arguments.readers import DAYS_AGO
from leafledger.pipeline.command.cli import app
from leafledger.pipeline.dataset.columns.notes import note_columns
from leafledger.pipeline.display.text import count as counted
from leafledger.pipeline.display.text import printable
from leafledger.pipeline.drift.against import find_against, refuse_alone
from leafledger.pipeline.errors import LeafledgerError, NotFinished, UnlikeRuns
from leafledger.pipeline.runs.advisories.known import advise
from leafledger.pipeline.runs.job.job import Job, make_job
from leafledger.pipeline.runs.job.options import pick
from leafledger.pipeline.runs.monitor.attempt import Attempt
from leafledger.pipeline.runs.monitor.lineage import emit_lineage, plan_of_run
from leafledger.pipeline.runs.monitor.make_provenance import keep_provenance
from leafledger.pipeline.runs.monitor.metrics import export_metrics
from leafledger.pipeline.runs.monitor.signals import passing_sigterm_on
from leafledger.pipeline.runs.plan.digest_inputs import undigested_warning
from leafledger.pipeline.runs.plan.planned_run import Run
from leafledger.pipeline.runs.publish.mlflow_link import log_run
from leafledger.pipeline.runs.publish.move_latest import why_latest_stays
from leafledger.pipeline.runs.publish.replacement import finish_replacement
from leafledger.pipeline.runs.records.derived import DriftVerdict
from leafledger.pipeline.runs.records.manifest import Manifest
from leafledger.pipeline.runs.records.provenance import FlowRun

from . import artifacts
from .logs import log_refusals_as_lines
from .stages import (
    aggregate,
    broadcast,
    commit,
    compare,
    count,
    digest,
    load,
    map_parts,
    move,
    plan,
    publish,
    read_asked,
    tidy,
    write_page,
)

# Wait before a state that an automation reports on. Prefect delays an event that overtakes the one before it by 15 minutes, and drops one that SQLite
# does not take within a quarter of a second.
HEARD_SECONDS = 1.0

HERE = {  # additions to the command's help of parameters
    "date": " Here today is the date for which the flow run was scheduled, in the schedule's time zone, however late it starts or is tried again, and"
    " yesterday the day before; by default it is today.",
    "parameters": ' Here as an object: {"p": 0.3}.',
    "latest_requires": " Here the state is then called PartlyDone.",
    "max_rejected": " Here the state is then called PartlyRejected.",
    "against": " {date} is filled in. Here the states are called Drifted and PartlyDone.",
}
OWN = {  # parameters of the flow only
    "report": "Write a page about the run, report/index.html, see leafledger report.",
    "names": "TOML or JSON file, or an object, of readable names of features, their units and descriptions, for the page.",
    "overview": "Page that lists this run and others: the page links to it.",
}
PARTLY_REJECTED, DRIFTED, PARTLY_DONE = "PartlyRejected", "Drifted", "PartlyDone"  # states that count as completed
P = ParamSpec("P")
R = TypeVar("R")


def describe_parameters(function: Callable[P, R]) -> Callable[P, R]:
    """Replace a docstring's parameters by the command's help texts, in Google's style, which Prefect reads and shows.

    Parameters
    ----------
    function : callable
        Takes what ``leafledger explain`` takes, and some of ``leafledger drift``, under the same names; and what is in OWN.

    Returns
    -------
    callable
        The same function.
    """
    arguments = [argument for name in ("drift", "explain") for argument in app[name].assemble_argument_collection(parse_docstring=True)]
    said = {argument.field_info.names[0]: " ".join((argument.parameter.help or "").split()) for argument in arguments} | OWN
    written = "".join(f"    {name}: {said[name]}{HERE.get(name, '')}\n" for name in signature(function).parameters)
    function.__doc__ = re.sub(r"Parameters\n-+\n.*?\n\n", lambda _: f"Args:\n{written}\n", getdoc(function) or "", flags=re.DOTALL)
    return function


def scheduled_date() -> Date:
    """Return the date on which this flow run was due, however late it starts or is retried.

    The time zone is that of the schedule that started the run. If it is gone, or the run was started by hand, it is that of the deployment's
    schedules if they share one; otherwise UTC, Prefect's default.

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


def find_date(given: Date | str | None) -> Date | str:
    """Find the date of a flow run.

    Parameters
    ----------
    given : date, str or None
        The parameter ``date``: for None and "today" it is the date on which the run was due, for "yesterday" the day before.

    Returns
    -------
    date or str
        As it was given, where it is another one.
    """
    if given is None or given in DAYS_AGO:
        return scheduled_date() - timedelta(days=DAYS_AGO[str(given or "today")])
    return given


def name_of_night() -> str:
    """Name a flow run by its date.

    Returns
    -------
    str
        YYYY-MM-DD, see `find_date`.
    """
    return str(find_date(runtime.flow_run.parameters.get("date")))


@flow(name="explain", flow_run_name=name_of_night, persist_result=False)
@describe_parameters
def explain(
    model: str,
    data: str,
    out: str,
    latest: str | None = None,
    latest_requires: float = 0.0,
    table: str | None = None,
    ids: str | Sequence[str] = (),
    precision: Precision = "float32",
    top: int | None = None,
    sign: Sign = "both",
    columns: Columns | None = None,
    reasons: dict[str, Any] | str | None = None,
    values: bool = False,
    global_only: bool = False,
    single_writer: bool = False,
    if_changed: IfChanged = "refuse",
    keep_replaced: bool = False,
    digest_inputs: bool = False,
    item_rows: int | str | None = None,
    date: Date | Literal["today", "yesterday"] | None = None,
    method: str = "shapley",
    parameters: dict[str, Any] | None = None,
    partition: dict[str, list[Any]] | str | None = None,
    interactions: int | str | None = None,
    order: int | None = None,
    index: str | None = None,
    space: Space = "margin",
    combinations: Combinations = "shared",
    background: str | None = None,
    background_errors: bool = False,
    tables: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    by: str | Sequence[str] = (),
    missing_labels: MissingLabels = "count",
    device: Device = "cpu",
    scheduler: str | None = None,
    threads: int | None = None,
    workers: int | None = None,
    wait: float = 15.0,
    plain_tcp: bool = False,
    max_rejected: int | None = None,
    missing: float | None = None,
    allow_unseen: bool = False,
    trees: int | str | tuple[int, int] | None = None,
    outputs: str | Sequence[str] = (),
    output: str | None = None,
    predictions: str | Sequence[str] = (),
    mlflow_run: str | None = None,
    metrics_address: str | int | None = None,
    metrics_file: str | None = None,
    lineage: str | None = None,
    against: str | None = None,
    thresholds: dict[str, Any] | str | None = None,
    report: bool = False,
    names: dict[str, Any] | str | None = None,
    overview: str | None = None,
) -> State[Manifest]:
    """Explain every row of a Parquet data set and publish attributions and summaries; then say what changed, and write a page, where asked.

    Credentials for object stores are no parameters, since Prefect stores and shows those: they come from the environment of the process.

    Parameters
    ----------
    model, data, out : str
    latest, latest_requires, table, ids, precision, top, sign, columns, reasons, values : optional
    global_only, single_writer, if_changed, keep_replaced, digest_inputs, item_rows : optional
    date, method, parameters, partition, interactions, order, index, space, combinations, background, background_errors, tables : optional
    label, weight, by, missing_labels : optional
    device, scheduler, threads, workers, wait, plain_tcp, max_rejected : optional
    missing, allow_unseen : optional
    trees, outputs, output, predictions, mlflow_run, metrics_address, metrics_file, lineage : optional
        As ``leafledger explain`` takes them; what its help says of each is written here by `describe_parameters`.
    against, thresholds : optional
        As ``leafledger drift`` takes them.
    report : bool
        Write a page about the run.
    names, overview : optional
        As ``leafledger report`` takes them.

    Returns
    -------
    State
        Its message is what the command line says. A direct call returns its manifest, or raises its LeafledgerError.
    """
    given, log = locals(), get_run_logger()
    short: list[str] = []  # requested steps that failed, with reasons
    log_refusals_as_lines()
    try:
        job = make_job(model, data, out, pick(given | {"date": find_date(date)}))
        attempt = Attempt(FlowRun(runtime.flow_run.name, str(runtime.flow_run.id), runtime.deployment.name))
        with passing_sigterm_on(), attempt.heard(log.warning), export_metrics(job, attempt), emit_lineage(job, attempt):
            with attempt.stage("planning"):
                asked = _ask(job, against, thresholds)
                run = plan(job, load(job))
            for line in note_columns(run.model):
                log.info("%s", printable(line))
            attempt.plan, attempt.kept, attempt.manifest = plan_of_run(run), run.kept, run.finished
            what = "explained" if run.finished is None else f"kept, differs in {run.kept}" if run.kept else "finished before, nothing to do"
            for advisory in () if run.finished is None else advise(run.out, run.finished):
                log.warning("%s: %s", printable(run.out), printable(str(advisory)))
            manifest = attempt.manifest or _work(log, run, attempt)
            if job.options.table is not None:
                commit(run, manifest)
            elif manifest.place:
                tidy(run, manifest)
            else:  # no stage of its own: there is next to never anything to remove
                finish_replacement(run.out, manifest)
            attempt.verdict = None if asked is None else _compare(log, job, manifest, *asked, short)
            if report:
                artifacts.show_page(write_page(job, names, overview))
            attempt.undone += _move(log, run, manifest)
            attempt.warned += filter(None, (undigested_warning(run), run.returning))
    except LeafledgerError as error:
        time.sleep(HEARD_SECONDS)
        return Failed(message=printable(str(error)), data=error)
    return _complete(log, f"{job.out}: {what}", manifest, attempt.verdict, [*short, *attempt.undone])


def _work(log: Any, run: Run, attempt: Attempt) -> Manifest:
    """From the plan to the manifest, and how that went."""
    if run.undigested:
        with attempt.stage("digesting"):
            log.info("SHA-256 of inputs.json %s", digest(run).sha256)
    with attempt.stage("preparing"):
        counted = count(run) if run.uncounted else None  # no stage without a background, or with cached counts
        prepared = broadcast(run, counted)
    with attempt.stage("explaining"):
        explained = map_parts(run, prepared, attempt)
    with attempt.stage("merging"):
        summaries = aggregate(run, prepared, explained)
    with attempt.stage("publishing"):
        attempt.manifest = publish(run, prepared, explained, summaries)
    manifest = attempt.manifest
    keep_provenance(run.job, attempt, explained.parts, manifest)
    artifacts.show_summaries(run.out, summaries)
    artifacts.show_outputs(run.out, manifest)
    return manifest


def _ask(job: Job, against: str | None, thresholds: dict[str, Any] | str | None) -> tuple[str, dict[str, float]] | None:
    """Read the reference and the thresholds of the comparison; errors end the night before it begins."""
    if against is None:
        refuse_alone(thresholds)
        return None
    return find_against(against, job), {} if thresholds is None else read_asked(job, thresholds)


def _compare(log: Any, job: Job, manifest: Manifest, against: str, thresholds: dict[str, float], short: list[str]) -> DriftVerdict | None:
    """Compare with the reference; errors cost a line and not the night, since the run is published."""
    try:
        changes = compare(job, manifest, against, thresholds)
    except (UnlikeRuns, NotFinished) as error:
        short.append(f"not compared: {error}")
        return None
    if changes is None:
        log.info("%s: names no earlier run, nothing is compared", printable(against))
        return None
    for said in changes.differs:
        log.info("differs: %s", said)
    for said in changes.alarms:
        log.warning("drift: %s", said)
    artifacts.show_changes(changes)
    return changes


def _move(log: Any, run: Run, manifest: Manifest) -> list[str]:
    """Update ``latest`` and MLflow as requested; record failures."""
    named = move(run, manifest) if run.job.options.latest else None
    stays = why_latest_stays(run.job.options, manifest, named)
    if stays is None and named is not None and named.run != run.out:
        log.info(printable(f"{run.job.options.latest}: stays at {named.run}, of {named.date}"))
    return [*filter(None, (stays, log_run(run.job.options.mlflow_run, run.out, manifest)))]


def _complete(log: Any, what: str, manifest: Manifest, changes: DriftVerdict | None, short: Sequence[str]) -> State[Manifest]:
    message, name = f"{printable(what)} ({manifest.counted})", None
    log.info("%s, SHA-256 of manifest.json %s", message, manifest.sha256)
    undone = [*map(printable, short)]
    for said in undone:
        log.warning(said)
    for entry in manifest.rejected:
        log.warning("rejected: %s", printable(entry.reason))
    if undone:
        message, name = f"{message}; {_first(undone)}", PARTLY_DONE
    if changes is not None and changes.alarms:
        differs = f"; differs: {_first(changes.differs)}" if changes.differs else ""
        message = f"{message}; {counted(len(changes.alarms), 'alarm')} against {printable(changes.reference)}: {_first(changes.alarms)}{differs}"
        name = DRIFTED
    if manifest.rejected:
        reasons = [printable(entry.reason) for entry in manifest.rejected]
        message, name = f"{message}; {counted(len(reasons), 'piece')} of the data rejected: {_first(reasons)}", PARTLY_REJECTED
    if name is not None:
        time.sleep(HEARD_SECONDS)
    return Completed(name=name, message=message, data=manifest)


def _first(said: Sequence[str]) -> str:
    """Return the first line, for a one-line notification; the log has the others."""
    return said[0] + (f" and {len(said) - 1} more" if len(said) > 1 else "")
