"""Separation of data and model effects: both runs' rows are explained by both models."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...arguments.choices import OWN, SHARED
from ...dataset.files.identity import mark_of
from ...errors import NotRepeatable, UsageError
from ...models import load_ensemble
from ...progress import Progress
from ...runs.explain import explain_job
from ...runs.job.job import make_job
from ...runs.job.options import Options
from ...runs.records.manifest import Manifest
from ...runs.records.plan import Plan
from ...runs.records.plan_file import read_plan
from ...stores import commit, storage
from ..measure.means import find_means
from ..measure.measured_run import Measured

Night = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PlayerParts:
    """Change of a feature's mean attribution due to the data and due to the model, which add up to it."""

    player: str
    data: float
    model: float


@dataclass(frozen=True, slots=True)
class Parts:
    """Change of an output's mean margin due to the data and due to the model: base value and features."""

    output: str
    data: float
    model: float
    base_data: float  # 0: a background belongs to the model
    base_model: float
    players: tuple[PlayerParts, ...]


def refuse_both_ways(measured: Measured) -> None:
    """Refuse runs whose mean margin is not the sum of base value and attributions."""
    plan, expected = measured.plan, "expected attributions that add up to it with one base value for all rows"
    if not plan.additive:
        raise UsageError(f"{measured.uri}: both ways share out the mean margin, to which method {plan.method!r} need not add up; {expected}")
    if plan.base_columns:
        raise UsageError(f"{measured.uri}: both ways share out means that have one base value, of losses every row has its own; {expected}")
    if plan.row_output is not None:
        raise UsageError(f"{measured.uri}: both ways share out the mean margin of one output, every row has its own; {expected}")


def _arguments(plan: Plan) -> dict[str, Any]:
    """Return a run's arguments except data and per-row outputs: they belong to the model."""
    return {
        "method": plan.method,
        "parameters": dict(plan.parameters),
        "partition": {group: list(members) for group, members in plan.groups} or None,
        "space": plan.space,
        "combinations": OWN if plan.combinations else SHARED,
        "background": plan.background,
        "trees": plan.trees,
        "outputs": plan.outputs,
        "output": plan.output,
        "missing": next((feature.missing for feature in plan.features if feature.missing is not None), None),
    }


def _explained_by(measured: Measured) -> tuple[Any, ...]:
    """Return the properties that determine the attributions of any rows."""
    return measured.manifest.model_digest, measured.plan.background_digest, _arguments(measured.plan)


def _name_output(plan: Plan) -> dict[str, Any]:
    """Return the selection and the name of the single explained output; a position may be another output's name."""
    if plan.output is None:
        return {}
    (name,), n = plan.outputs, len(load_ensemble(plan.model).outputs)
    return {"outputs": tuple(name if k == plan.output else f"{name}/{k}" for k in range(n)), "output": name}


def _pieces(plan: Plan, by_marks: bool) -> set[tuple[str, str, int]]:
    pieces = [piece for item in plan.items for piece in item.pieces]
    return {(piece.uri, mark_of(piece.etag) if by_marks else piece.etag, group) for piece in pieces for group in piece.row_groups}


def _explain(model: Measured, data: Measured, folder: str, where: Mapping[str, Any], progress: Progress) -> dict[str, Night]:
    """Explain the other run's rows by one run's model; return means of attributions by output, base values as player ""."""
    plan, out = model.plan, storage.join(folder, hashlib.sha256(f"{model.uri} {data.uri}".encode()).hexdigest()[:16])
    # Unknown categories are not refused: they are part of the model's effect.
    told = _arguments(plan) | _name_output(plan) | {"allow_unseen": True}
    options = Options(global_only=True, **where, **told)
    job = make_job(plan.model, data.plan.data, out, options)
    beside = (*data.plan.ids, *(column.name for column in data.plan.by), *data.plan.predictions)
    job = replace(job, options=replace(job.options, ids=beside))  # columns besides the features, if matched by position; rows are not written
    manifest = explain_job(job, progress).manifest
    if manifest.model_digest != plan.model_digest:
        raise NotRepeatable(f"{plan.model}: SHA-256 is {manifest.model_digest[:12]}, the model of {model.uri} had {plan.model_digest[:12]}")
    made = read_plan(manifest.home(out), manifest.plan)
    if made.background_digest != plan.background_digest:
        raise NotRepeatable(f"{plan.background}: has other files than {model.uri} took for its background, or they have changed since")
    by_marks = data.plan.format_version == 1
    if manifest.n_rows != data.manifest.n_rows or _pieces(made, by_marks) != _pieces(data.plan, by_marks):
        raise NotRepeatable(f"{data.plan.data}: has other rows than {data.uri} explained, or they have changed since")
    return _take(Measured(out, manifest, made, (), ()), manifest)


def _take(measured: Measured, manifest: Manifest) -> dict[str, Night]:
    found = dict[str, Night]()
    for k, output in enumerate(measured.plan.written_outputs):
        found[output] = {"": manifest.base[k], **{player: means.mean for player, means in find_means(measured, output).items()}}
    return found


def split_two_ways(output: str, old_old: Night, old_new: Night, new_old: Night, new_new: Night) -> Parts:
    """Split changes of means into data and model effects, averaged over both orders."""
    players = list(dict.fromkeys((*new_new, *old_old)))
    parts = []
    for player in players:
        a, b, c, d = (night.get(player, 0.0) for night in (old_old, old_new, new_old, new_new))
        parts.append(PlayerParts(player, ((b - a) + (d - c)) / 2, ((c - a) + (d - b)) / 2))
    base = next(part for part in parts if not part.player)
    data, model = (math.fsum(getattr(part, what) for part in parts) for what in ("data", "model"))
    return Parts(output, data, model, base.data, base.model, tuple(part for part in parts if part.player))


def explain_both_ways(current: Measured, reference: Measured, where: Mapping[str, Any], progress: Progress) -> tuple[Parts, ...]:
    """Explain both runs by both models, in a temporary place beside the run.

    Parameters
    ----------
    current, reference : Measured
        Runs that were made alike, see `refuse_unlike`, of attributions that add up, see `refuse_both_ways`.

    Returns
    -------
    tuple of Parts
        Of every output. Of one model alone, told the same of both nights, the data did everything, and nothing is explained.

    Raises
    ------
    NotRepeatable
        A model, its background or the rows are not those of the runs any more.
    """
    own = [_take(each, each.manifest) for each in (reference, current)]
    if _explained_by(current) == _explained_by(reference):
        crossed = own[::-1]
    else:
        folder = storage.beside(
            current.uri, f"_drift-{hashlib.sha256(json.dumps([current.uri, reference.manifest.sha256]).encode()).hexdigest()[:16]}"
        )
        try:
            crossed = [_explain(*nights, folder, where, progress) for nights in ((reference, current), (current, reference))]
        finally:
            commit.remove(folder)
    outputs = current.plan.written_outputs
    return tuple(split_two_ways(output, own[0][output], crossed[0][output], crossed[1][output], own[1][output]) for output in outputs)
