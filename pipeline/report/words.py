"""Texts of a report: headline, soundness, key facts and provenance."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from leafledger.kernels.arrays.ordering import SCORE
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.links import IDENTITY

from ..arguments.choices import LOSS, MARGIN
from ..cluster.worker_identity import Machine
from ..display.text import count, list_some
from ..finished.finished_run import FinishedRun
from ..methods.output_space import TOTALS, say_carried
from ..models.row_output import PREDICTED
from ..runs.records.plan import Plan
from ..runs.records.provenance import Provenance
from .figures.scale import shorten_name, shorten_names, write_number, write_share, write_two
from .page import Verdict
from .vocabulary import Vocabulary

OUTPUTS = 8  # outputs whose base values are listed
GROUPS = 12
NEXT = 20  # features whose names must stay distinct from the headline's
MARGINS = " The margin is what the model’s trees add up to; where the model has a link function, that makes a prediction of it."
Row = Mapping[str, Any]


def last_name(uri: str | None) -> str:
    """Return the last part of a URI."""
    return (uri or "").rstrip("/").rpartition("/")[2]


def _say_r2(first: str, share: float | None) -> str:
    if share is None or math.isnan(share):
        return "R² is not defined on these rows"
    return f"{first} adds the most to R²" if share > 0 else "No feature adds to R²"


def write_headline(run: FinishedRun, summaries: Mapping[str, Sequence[Row]], words: Vocabulary) -> str:
    """Write the headline: what matters most."""
    total, output = words.total, run.plan.written_outputs[0]
    if not run.manifest.n_rows:
        return f"No {words.names.rows} were explained"
    for name in ("r2", "areas", "gaps", "importance"):
        ranked = sorted((row for row in summaries.get(name, ()) if row["rank"] and row.get("output", output) == output), key=lambda row: row["rank"])
        if not ranked:
            continue
        first, feature = ranked[0], shorten_names([row["feature"] for row in ranked[:NEXT]], 40)[0]
        if name == "r2":
            return _say_r2(feature, first["r2"])
        if not run.manifest.used or (name == "importance" and not first["share"]):
            return f"No feature moves the {total}"
        if name != "importance":
            ranks = METHODS[run.plan.method].phi.ranks
            return f"{feature} ranks first on average" + f", from what raises the {total} to what lowers it" * (ranks == SCORE)
        several = f" of output {shorten_name(output, 30)}" if len(run.plan.written_outputs) > 1 else ""
        return f"{feature[:1].upper()}{feature[1:]} accounts for {write_share(first['share'])} of all that moves the {total}{several}"
    return f"{words.names.count(run.manifest.n_rows)} explained"


def _say_way(plan: Plan) -> str:
    """Say how attributions are carried."""
    if plan.quantity is None:
        return "" if plan.link in (None, IDENTITY) else " along the line from the mean margin"
    return " background row by background row"


def write_lede(run: FinishedRun, words: Vocabulary) -> tuple[str, ...]:
    """Describe what was explained."""
    plan = run.plan
    method = METHODS[plan.method]
    against = "" if plan.background is None else f", against the background {shorten_name(last_name(plan.background))}"
    space = (
        ""
        if plan.space == MARGIN
        else f" They are carried into units of the {plan.space}{_say_way(plan)}, where they add up to {TOTALS[plan.space]} minus base value."
    )
    given = dict(plan.parameters)
    sequences = [given[parameter.name] for parameter in method.parameters if parameter.of_groups]
    order = "".join(f" Their sequence is {list_some(shorten_names(each))}." for each in sequences)
    rows, model = words.names.count(run.manifest.n_rows), shorten_name(last_name(plan.model))
    said = f"{rows} of {shorten_name(last_name(plan.data))}, explained by the model {model}: {method.meaning}{against}."
    if plan.additive and plan.space != LOSS and not order:
        kind = method.meaning.partition(";")[0]
        one = f"its {words.total} by the model {model}"
        parts = f"a base value and one attribution for each feature, which add up to it ({kind}{against})"
        said = f"{rows} of {shorten_name(last_name(plan.data))}. For each, {one} is split into {parts}."
    return (f"{said}{order}{space}{_say_output(plan, words)}{MARGINS if plan.space == MARGIN and words.total == MARGIN else ''}",)


def _say_output(plan: Plan, words: Vocabulary) -> str:
    """Describe the explained output, if the model has others."""
    row, rows = words.names.row, f"{words.names.rows[:1].upper()}{words.names.rows[1:]}"
    if plan.row_output is None:
        return "" if plan.output is None else f" {rows} are explained for output {shorten_name(plan.outputs[0])} alone."
    of = (
        "the output that is predicted for it"
        if plan.row_output.which == PREDICTED
        else "an output that is not the one predicted for it, drawn by chance"
    )
    return f" Each {row} is explained for {of}{', with that output’s base value' if plan.additive else ''}."


def _say_rounding(run: FinishedRun, words: Vocabulary) -> str:
    """Say how far attributions may be from adding up."""
    if not run.manifest.residual:
        return ""
    if run.plan.space != MARGIN or not run.manifest.bound:
        return ", but for rounding in the last digits"
    largest = 10.0 ** math.ceil(math.log10(run.manifest.residual * max(run.manifest.bound)))
    return f" (rounding error below {words.write(largest, digits=1)})"


def judge(run: FinishedRun, words: Vocabulary) -> Verdict:
    """Judge whether the run is sound as published."""
    manifest, total = run.manifest, words.total
    adds = "What this method says of a row has no sum to be checked by."
    if run.manifest.residual is not None:
        adds = f"On each of them the attributions and the base value add up to the {total}{_say_rounding(run, words)}."
    if manifest.rejected:
        pieces, n = count(len(manifest.rejected), "piece"), manifest.n_rejected
        rows = f" with {count(n, 'row')}" if n else ""
        return Verdict("partly", "Partly rejected.", f"{pieces} of the data{rows} could not be read; what is shown is of the others. {adds}")
    if not manifest.n_rows:
        return Verdict("none", "No rows.", "The data have none, so there is nothing to show.")
    labelled = " that has a label" if any(totals.get("n_unlabelled") for totals in manifest.totals.values()) else ""
    return Verdict("sound", "Checked.", f"Every {words.names.row}{labelled} is explained, none was rejected. {adds}")


def list_facts(run: FinishedRun, summaries: Mapping[str, Sequence[Row]], words: Vocabulary) -> tuple[tuple[str, str], ...]:
    """List the key numbers of a report."""
    plan, manifest = run.plan, run.manifest
    unit = f" {words.unit}" if words.unit else ""
    facts = [
        (words.names.rows, f"{manifest.n_rows:,}"),
        *([(f"{words.names.rows} forgotten", f"{manifest.n_forgotten:,}")] if manifest.forgotten else []),
        ("features", f"{len(plan.features):,}"),
    ]
    facts += [("groups", f"{len(plan.groups):,}")] if plan.groups else []
    facts += [("features that the model uses", f"{len(manifest.used):,}")]
    if len(plan.outputs) > 1:
        facts.append(("outputs", f"{len(plan.outputs):,}"))
    elif plan.base_columns:
        means = ((name, manifest.totals.get("loss", {}).get(f"mean_{name}")) for name in ("base", "loss"))
        facts += [(f"mean {name}", write_number(mean)) for name, mean in means if mean is not None]
    elif plan.additive:
        found = [row["mean"] for row in summaries.get("importance", ())]
        known = bool(manifest.n_rows and found and None not in found)
        base, mean = _write_two(manifest.base[0], manifest.base[0] + math.fsum(found) if known else None)
        facts += [("base value", f"{base}{unit}"), *([(f"mean {words.total}", f"{mean}{unit}")] if known else [])]
    return tuple(facts)


def _write_two(first: float, second: float | None) -> tuple[str, str]:
    """Write two numbers as a person would, with more digits where they would look equal."""
    three = write_number(first, digits=3), write_number(second, digits=3)
    return three if three[0] != three[1] and max(abs(first), abs(second or 0.0)) < 1000 else write_two(first, second)


def _list_made(made: Provenance) -> dict[str, str]:
    """List time, machine and versions."""
    stages = ", ".join(f"{name} {write_number(seconds)} s" for name, seconds in made.seconds.items())
    workers = [f"{each.processes:,} {'process' if each.processes == 1 else 'processes'} on {_say_machine(each.machine)}" for each in made.workers]
    deployment = f" of deployment {shorten_name(made.flow.deployment)}" if made.flow is not None and made.flow.deployment else ""
    packages = {"Python": made.python} | made.packages
    return {
        "made": f"{shorten_name(made.started)} to {shorten_name(made.finished)}: {stages}",
        "parts": f"{made.parts_made:,} computed, {made.parts_found:,} taken over from an earlier attempt",
        "planned and published on": _say_machine(made.client),
        "explained on": ", ".join(workers),
        "scheduler": shorten_name(made.scheduler or ""),
        "flow run": "" if made.flow is None else f"{shorten_name(made.flow.name)}, {shorten_name(made.flow.id)}{deployment}",
        "packages": ", ".join(f"{shorten_name(name)} {shorten_name(version)}" for name, version in packages.items()),
    }


def _say_machine(machine: Machine) -> str:
    return f"{shorten_name(machine.host)} ({shorten_name(machine.cpu, 60)})"


def list_provenance(run: FinishedRun, made: Provenance | None, words: Vocabulary) -> tuple[tuple[str, str], ...]:
    """List the provenance of the numbers."""
    plan, manifest = run.plan, run.manifest
    parameters = ", ".join(f"{name} = {shorten_name(str(value))}" for name, value in plan.parameters if value not in ((), None))
    base = [f"{name} {write_number(value)}" for name, value in zip(shorten_names(plan.outputs[:OUTPUTS]), manifest.base, strict=False)]
    more = f", and {len(plan.outputs) - OUTPUTS:,} more" if len(plan.outputs) > OUTPUTS else ""
    groups = shorten_names([name for name, _ in plan.groups[:GROUPS]])
    units = say_carried(plan.space, plan.link, plan.quantity) or plan.space
    terms = {
        "model": f"{shorten_name(plan.model, 200)} ({manifest.library})",
        "SHA-256 of the model": plan.model_digest,
        "iterations": "" if plan.trees is None else "{}:{}".format(*plan.trees),
        "data": shorten_name(plan.data, 200),
        "method": f"{plan.method}{f', {parameters}' if parameters else ''}",
        "background": "" if plan.background is None else shorten_name(plan.background, 200),
        "SHA-256 of the background": plan.background_digest or "",
        "groups": ", ".join(f"{name} ({count(len(features), 'feature')})" for name, (_, features) in zip(groups, plan.groups, strict=False))
        + (" …" if len(plan.groups) > GROUPS else ""),
        "units": f"{words.unit} ({units})" if words.unit else units,
        "base values": "each row’s own" if plan.base_columns else ", ".join(base) + more if len(base) > 1 else write_number(manifest.base[0]),
        "precision": plan.precision,
        "files of attributions": f"{len(manifest.parts):,}",
        "SHA-256 of plan.json": manifest.plan,
        "SHA-256 of manifest.json": manifest.sha256,
        "Leafledger": manifest.version,
    } | ({} if made is None else _list_made(made))
    return tuple((name, text) for name, text in terms.items() if text)
