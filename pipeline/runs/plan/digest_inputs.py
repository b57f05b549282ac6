"""The stage that digests every byte of a run's inputs."""

from collections import Counter
from itertools import chain

from ...dataset.files.listing import WorkItem
from ...progress import Progress, Work, no_progress
from ..records.input_digests import Inputs, digest_files, refuse_changed, write_inputs
from ..records.plan import digest
from ..records.plan_file import commit_plan
from .background import MarginalPlan
from .planned_run import Run


def digest_run(run: Run, progress: Progress = no_progress) -> Inputs:
    """Digest every byte of the inputs after planning if the run has to, and commit the plan and the digests.

    Returns
    -------
    Inputs
        Those of an earlier attempt, where there was one.

    Raises
    ------
    InvalidData
        A file has changed since the run was planned.
    RunConflict
        A file has other bytes than it had for an earlier attempt, or the output's folder holds another run by now.
    """
    plan, out, game = run.plan, run.job.out, run.game
    rows = Counter[str]()
    for piece in chain.from_iterable(item.pieces for item in plan.items):
        rows[piece.uri] += piece.n_rows
    data = plan.files
    listing = game.listing if isinstance(game, MarginalPlan) else None
    background = [] if listing is None else [(file.uri, file.etag) for file, _, _ in listing.files]
    n_rows = [rows[uri] for uri, _ in data] + ([] if listing is None else [sum(groups) for _, _, groups in listing.files])
    files = [*data, *background]
    on_done = progress(Work("digesting inputs", out, len(files), sum(n_rows)))
    found = digest_files(files, lambda k: on_done(WorkItem(k, *files[k], (), 0, n_rows[k], 0, ())))
    inputs = Inputs(digest(plan), found[: len(data)], found[len(data) :])
    if run.digested is not None:
        refuse_changed(run.digested, inputs)
    commit_plan(out, plan)
    write_inputs(out, inputs)
    return inputs


def undigested_warning(run: Run) -> str | None:
    """Warn that a run was finished before without the requested digests.

    Returns
    -------
    str or None
        None where there are digests, or will be, or they are not asked for.
    """
    if run.finished is None or run.digested is not None or not run.job.options.digest_inputs:
        return None
    return f"{run.out}: was finished before, without digests of its inputs"
