"""A finished run given again: recognised by its plan, before any table is made."""

from dataclasses import replace

from leafledger.kernels.method.open_parameters import find_open

from ...arguments.choices import AUTO, MODEL
from ...dataset.columns.partition import Groups
from ...dataset.files.listing import Listing
from ...errors import InvalidRun
from ...methods.parameters import find_method
from ...models.model import Model
from ..job.job import Job
from ..records.manifest import read_manifest
from ..records.plan import Plan, is_same
from .existing_run import ExistingRun, Resolution, keep_same, read_existing_run
from .listing import list_for
from .planner import plan_again


def _read_finished(job: Job, model: Model) -> ExistingRun | None:
    """Read the finished run in the output's folder; None where there is none of the same model."""
    try:
        found = None if read_manifest(job.out) is None else read_existing_run(job.out)
    except InvalidRun:  # which is told of, or replaced, once the run is planned
        return None
    return found if found is not None and found.manifest is not None and found.plan.model_digest == model.digest else None


def find_finished(job: Job, model: Model, groups: Groups, found: Listing) -> tuple[Plan, Resolution] | None:
    """Find the finished run of a job; None where something is left to do, or only tables can tell, as of a parameter that is left open."""
    standing = _read_finished(job, model)
    if standing is None or find_open(find_method(job.options.method), dict(job.parameters)):
        return None
    if job.options.device == AUTO:  # the device that explained it will do
        job = replace(job, options=replace(job.options, device=standing.plan.device))
    uri = job.options.background
    plan = plan_again(standing.plan, job, model, groups, found, None if uri in (None, MODEL) else list_for(job, uri, model))
    if not is_same(standing.plan, plan):
        return None
    settled = keep_same(standing, plan, job.options.if_changed)
    return None if settled is None else (standing.plan, settled)
