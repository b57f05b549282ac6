"""A finished run by its manifest and its plan, which belong together."""

from ..errors import InvalidRun, NotFinished
from ..stores import storage
from ..stores.filesystem import published
from .plan import Plan
from .planned import read_plan
from .publish import MANIFEST, Manifest, read_manifest


def refuse_other_outputs(run: str, manifest: Manifest, plan: Plan) -> None:
    """Refuse a manifest that is not of the plan's outputs.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    manifest : Manifest
    plan : Plan

    Raises
    ------
    InvalidRun
        It has more or fewer base values or bounds.
    """
    if not len(manifest.base) == len(manifest.bound) == len(plan.outputs):
        raise InvalidRun(f"{storage.join(run, MANIFEST)}: has not one base value and one bound for every output")


def read_finished(run: str) -> tuple[Manifest, Plan]:
    """Read what a finished run says of itself.

    Parameters
    ----------
    run : str
        URI of the run's folder.

    Returns
    -------
    manifest : Manifest
    plan : Plan

    Raises
    ------
    NotFinished
        There is no manifest: the run is not finished, or not there.
    InvalidRun
        One of them is damaged, or the plan is missing, or they are of two runs.
    StorageError
        The store does not answer.
    """
    manifest = read_manifest(run)
    if manifest is None:
        raise NotFinished(f"{run}: no {MANIFEST} there: not a finished run")
    with published():
        plan = read_plan(manifest.home(run), manifest.plan)
    refuse_other_outputs(run, manifest, plan)
    return manifest, plan
