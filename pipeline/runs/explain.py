"""All stages of a run in order, for the command and ``leafledger.explain``."""

import logging
from collections.abc import Callable
from typing import NamedTuple

from ..dataset.columns.notes import note_columns
from ..display.text import printable
from ..models.model import Model
from ..progress import Progress
from .advisories.advisory import Advisory
from .advisories.known import advise
from .job.job import Job
from .monitor.attempt import Attempt
from .monitor.lineage import emit_lineage, plan_of_run
from .monitor.make_provenance import keep_provenance
from .monitor.metrics import Earlier, export_metrics
from .monitor.signals import passing_sigterm_on
from .plan.digest_inputs import digest_run, undigested_warning
from .plan.model import load_model
from .plan.planned_run import Run, plan_run
from .publish.kept_run import remove_older
from .publish.mlflow_link import log_run
from .publish.move_latest import why_latest_stays
from .publish.replacement import finish_replacement
from .publish.table_commit import commit_table, record_commit
from .records.derived import Compared
from .records.input_digests import Inputs
from .records.latest import Latest
from .records.manifest import Manifest
from .stages import aggregate_run, broadcast_run, count_run, map_run, publish_run, update_latest

_LOG = logging.getLogger("leafledger")


class RunResult(NamedTuple):
    """Result of a run."""

    manifest: Manifest
    already_finished: bool  # it was finished before, so that nothing was done
    kept: str  # differences from the requested run, if an existing run was kept
    latest: Latest | None  # the pointer to the latest run, if requested
    model: Model  # its features called as the columns
    unlogged: str | None  # why logging to MLflow failed, if requested
    inputs: Inputs | None = None  # digests of its input files, if any
    advisories: tuple[Advisory, ...] = ()  # of its version that may concern it, if it was finished before
    compared: Compared = Compared()  # what came of comparing it, if requested


def explain_job(
    job: Job,
    progress: Progress,
    warn: Callable[[str], None] = _LOG.warning,
    earlier: Earlier | None = None,
    compare: Callable[[Manifest, Progress], Compared] | None = None,
) -> RunResult:
    """Run all stages in order, reusing the work of earlier attempts; for a finished run only ``latest`` is updated.

    Parameters
    ----------
    warn : callable
        Called, however the run ends, with a line for everything that was not done which takes nothing from the run.
    earlier : Earlier, optional
        Nights of the same command, for the metrics.
    compare : callable, optional
        Compares the published run with another, before ``latest``, which may name that one, moves.
    """
    attempt = Attempt()
    with passing_sigterm_on(), attempt.heard(warn), export_metrics(job, attempt, earlier, compare is not None), emit_lineage(job, attempt):
        with attempt.stage("planning"):
            run = plan_run(job, load_model(job), unfinished=True)
        for said in note_columns(run.model):
            _LOG.info(printable(f"{job.data}: {said}"))
        attempt.plan, attempt.kept, attempt.manifest, inputs = plan_of_run(run), run.kept, run.finished, run.digested
        manifest = attempt.manifest or _work(run, attempt, progress)
        commit_table(job, job.out, manifest, bool(run.kept))
        finish_replacement(job.out, manifest)
        record_commit(job, job.out, manifest)
        remove_older(job.out, manifest)
        compared = Compared() if compare is None else compare(manifest, progress)
        attempt.verdict = compared.verdict
        latest, unlogged = update_latest(run, manifest), log_run(job.options.mlflow_run, job.out, manifest)
        attempt.undone += filter(None, (why_latest_stays(job.options, manifest, latest), unlogged))
        attempt.warned += filter(None, (undigested_warning(run), run.returning))
    advisories = () if run.finished is None else advise(run.out, manifest)
    return RunResult(manifest, run.finished is not None, run.kept, latest, run.model, unlogged, attempt.inputs or inputs, advisories, compared)


def _work(run: Run, attempt: Attempt, progress: Progress) -> Manifest:
    """Run the stages from planning to the manifest, and measure them."""
    if run.undigested:
        with attempt.stage("digesting"):
            attempt.inputs = digest_run(run, progress)
    with attempt.stage("preparing"):
        tables = broadcast_run(run, count_run(run, progress), progress)
    with attempt.stage("explaining"):
        explained = map_run(run, tables, attempt.follow(progress))
    with attempt.stage("merging"):
        summaries = aggregate_run(run, tables, explained)
    with attempt.stage("publishing"):
        attempt.manifest = publish_run(run, tables, explained, summaries)
    keep_provenance(run.job, attempt, explained.parts, attempt.manifest)
    return attempt.manifest
