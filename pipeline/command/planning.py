"""The command that shows what a run would do."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from ..display import printable
from .documents import write_document
from .flags import DEFAULTS, Flags, Json, Place

SHOWN = 60  # characters of a parameter


def _write_value(value: Any) -> str:
    """A parameter's value as it is written on the command line, shortened."""
    if isinstance(value, str):
        return value
    entries = value if isinstance(value, tuple) else (value,)
    text = ",".join(
        ":".join(f"{number:g}" for number in entry) if isinstance(entry, tuple) else entry if isinstance(entry, str) else f"{entry:g}"
        for entry in entries
    )
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _describe(game: Any) -> str:
    """The background of a marginal game, its tables, and where its counts are kept."""
    size = f"at most {game.extent.n_bytes / 2**20:.1f} MiB of tables"
    if game.listing is None:
        return f"the model's own leaf weights, {size}"
    counts = "counts will be in" if game.uncounted else "counted before in"
    return f"{game.listing.n_rows:,} rows in {len(game.listing.files)} files, {size}, {counts} {game.counts}"


def _describe_link(link: Any) -> str:
    """The function that makes predictions of margins."""
    scale = "" if link.scale == 1 else f"{link.scale:g} times "
    return f"{link.name} of {scale}the margin"


def _describe_labels(labels: Any) -> str:
    """Their column, and what goes with them."""
    if labels is None:
        return ""
    weight = "" if labels.weight is None else f", weight {labels.weight}"
    return f"{labels.label}{weight}; rows without one are {'left out' if labels.missing == 'count' else 'refused'}"


def _describe_place(run: Any) -> str:
    from ..runs.plan import differences

    if run.kept:
        return f" (kept as it is: what is asked for differs in {run.kept})"
    if run.replaced is not None:
        return f" (takes the place of another run: what is asked for differs in {differences(run.replaced.plan, run.plan)})"
    return " (finished before: nothing to do)" if run.finished else ""


def _document(job: Any, run: Any) -> dict[str, Any]:
    return {
        "run": run.out,
        "finished": run.finished is not None,
        "model": run.plan.model,
        "model_digest": run.plan.model_digest,
        "library": run.model.library,
        "n_features": len(run.plan.features),
        "outputs": run.plan.outputs,
        "method": run.plan.method,
        "parameters": dict(run.plan.parameters),
        "space": run.plan.space,
        "n_rows": run.plan.n_rows,
        "n_files": len({item.uri for item in run.plan.items}),
        "n_items": len(run.plan.items),
        "where": run.where,
        "slice_rows": run.plan.slice_rows,
        "memory": run.memory.total,
        "memory_allowed": job.worker_memory,
        "rejected": [asdict(entry) for entry in run.plan.rejected],
    }


def plan(model: Place, data: Place, *, out: Place, options: Flags = DEFAULTS, json: Json = False) -> None:
    """Show what explain would do: work items, rows, memory, refusals. Leaves nothing behind.

    Parameters
    ----------
    model
        As for explain.
    data
        As for explain.
    out
        As for explain.
    options
        As for explain.
    json
        Write one JSON document instead.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ..dataset.names import say_positions
    from ..runs.job import make_job
    from ..runs.load import load_model
    from ..runs.stages import plan_run

    job = make_job(model, data, out, options)
    run = plan_run(job, load_model(job))
    if json:
        write_document(_document(job, run))
        return
    parameters = ", ".join(f"{name}={_write_value(value)}" for name, value in run.plan.parameters if value != ())
    n_players = len(run.plan.groups)
    said = {
        "model": ("" if run.model.origin is None else f"{run.model.origin}, ")
        + f"{run.model.library}, {len(run.plan.features)} features, outputs {', '.join(run.plan.outputs)}, "
        f"SHA-256 {run.plan.model_digest[:12]}" + ("" if run.plan.trees is None else ", iterations {}:{}".format(*run.plan.trees)),
        "method": f"{run.plan.method} {parameters}".strip(),
        "features": say_positions(run.model),
        "space": "" if run.plan.link is None else f"{run.plan.space}, by {_describe_link(run.plan.link)}",
        "groups": f"{n_players} of {len(run.plan.features)} features" if n_players else "",
        "combinations": f"{len(run.plan.combinations)} are players of their own" if run.plan.combinations else "",
        "pairs": f"{run.n_pairs:,} interact, {job.options.interactions} kept of a row" if job.options.interactions is not None else "",
        "background": _describe(run.game) if run.plan.background else "",
        "labels": _describe_labels(run.plan.labels),
        "by": ", ".join(column.name for column in run.plan.by),
        "input": f"{run.plan.n_rows:,} rows in {len({item.uri for item in run.plan.items})} files",
        "work": f"{len(run.plan.items)} items, one part each, slices of {run.plan.slice_rows} rows",
        "where": run.where,
        "memory": f"{run.memory.total >> 20} MiB a worker (tables {run.memory.tables / 2**20:.1f}, slice {run.memory.slice >> 20}, "
        f"largest row group {run.memory.row_group / 2**20:.1f}, footer {run.memory.footer / 2**20:.1f}), {job.worker_memory >> 20} MiB allowed",
        "output": run.out + _describe_place(run),
    }
    console = Console()
    shown = {name: text for name, text in said.items() if text}
    for name, text in shown.items():
        line = Text.assemble((f"{name:<{max(map(len, shown)) + 2}}", "bold"), printable(text))
        console.print(line, soft_wrap=True, highlight=False)
