"""Where something is done with a finished run: here, on a local cluster, or on a scheduler's workers."""

from ...cluster.placement import check_scheduler
from ...cluster.resources import share_out
from .job import Job
from .options import Options


def make_run_job(run: str, scheduler: str | None, workers: int | None, plain_tcp: bool, wait: float = 15.0) -> Job:
    """Say where something is done with a finished run.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    scheduler, workers, plain_tcp, wait : optional
        As for `explain`.

    Returns
    -------
    Job
        Of no model and no data.

    Raises
    ------
    UsageError
        One of them cannot be used.
    """
    options = Options(scheduler=scheduler, workers=workers, plain_tcp=plain_tcp, wait=wait)
    check_scheduler(options.scheduler, options.plain_tcp, options.workers)
    return Job("", "", run, options, (), "", None, None, *share_out(options.workers))
