"""The command ``plan``: plan of a run, with an optional forecast."""

import dataclasses
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from ...display.text import count, printable
from ..terminal.documents import write_document
from ..terminal.flags import DEFAULTS, INPUT, Flags, Json, PathArgument, Replace

SHOWN = 60  # characters of a parameter
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
Forecast = Annotated[bool, Parameter(group=INPUT, negative=())]


def _write_value(value: Any) -> str:
    """Format a parameter as on the command line, shortened."""
    if isinstance(value, str):
        return value
    entries = value if isinstance(value, tuple) else (value,)
    text = ",".join(
        ":".join(f"{number:g}" for number in entry) if isinstance(entry, tuple) else entry if isinstance(entry, str) else f"{entry:g}"
        for entry in entries
    )
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _describe(game: Any) -> str:
    """Describe the background of a marginal game, its tables, and its cached counts."""
    size = f"at most {game.extent.n_bytes / 2**20:.1f} MiB of tables"
    if game.listing is None:
        return f"the model's own leaf weights, {size}"
    counts = "counts will be in" if game.uncounted else "counted before in"
    return f"{count(game.listing.n_rows, 'row')} in {count(len(game.listing.files), 'file')}, {size}, {counts} {game.counts}"


def _describe_labels(labels: Any) -> str:
    """Describe the columns of labels and weights."""
    if labels is None:
        return ""
    weight = "" if labels.weight is None else f", weight {labels.weight}"
    return f"{labels.label}{weight}; rows without one are {'left out' if labels.missing == 'count' else 'refused'}"


def _describe_place(run: Any) -> str:
    if run.kept:
        return f" (kept as it is: what is asked for differs in {run.kept})"
    if run.replaced is not None:
        differs = f"another run: what is asked for differs in {run.replaced.differs}" if run.replaced.differs else "the same run, which is made anew"
        return f" (takes the place of {differs})"
    return " (finished before: nothing to do)" if run.finished else ""


def _time(seconds: float) -> str:
    """Format a duration in words."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"


def _size(n_bytes: float) -> str:
    return next((f"{n_bytes / unit:,.3g} {name}" for unit, name in UNITS if n_bytes >= unit), f"{n_bytes:.0f} bytes")


def _describe_forecast(found: Any, one: str) -> dict[str, str]:
    """Describe the forecast, and its basis; ``one`` says whether threads or workers do the work."""
    stages = ", ".join(f"{name} {_time(seconds)}" for name, seconds in found.stages.items())
    row = ", ".join(f"{name} {1e6 * seconds:.3g} µs" for name, seconds in found.row.items())
    return {
        "time": f"{_time(found.seconds)} on {count(found.workers, one)} ({stages})",
        "of a row": f"{row}, of a {one}",
        "processors": f"{found.cpu_seconds / 3600:,.3g} CPU hours",
        "held": f"{_size(found.memory)} by all processes",
        "read": _size(found.read_bytes),
        "written": f"{_size(found.written_bytes)} in {count(found.objects, 'object')}",
        "measured": f"on {found.tried_rows:,} rows in {_time(found.tried_seconds)}, beside the output; they are removed again",
    }


def _document(run: Any, found: Any) -> dict[str, Any]:
    return {
        "run": run.out,
        "finished": run.finished is not None,
        "kept": run.kept,
        "replaces": None if run.replaced is None else run.replaced.differs,
        "model": run.plan.model,
        "model_digest": run.plan.model_digest,
        "library": run.model.library,
        "n_features": len(run.plan.features),
        "outputs": run.plan.outputs,
        "method": run.plan.method,
        "parameters": dict(run.plan.parameters),
        "space": run.plan.space,
        "n_rows": run.plan.n_rows,
        "n_files": len(run.plan.files),
        "n_items": len(run.plan.items),
        "where": run.where,
        "slice_rows": run.plan.slice_rows,
        "memory": run.memory.total,
        "memory_allowed": run.job.placement.worker_memory,
        "rejected": [asdict(entry) for entry in run.plan.rejected],
        "forecast": None if found is None else asdict(found),
    }


def _describe_interactions(run: Any) -> dict[str, str]:
    """Say how many pairs or sets interact, and how many are kept."""
    sets, kept = run.plan.sets, run.plan.interactions
    if kept is None:
        return {}
    if sets is None:
        return {"pairs": f"{run.n_pairs:,} interact, {kept} kept of a row"}
    return {"sets": f"{run.n_pairs:,} of up to {sets.order} interact, {f'index {sets.index}, ' * bool(sets.index)}{kept} kept of a row"}


def _describe_memory(run: Any) -> str:
    """What the process needs with its threads, or each worker, and may take."""
    needs, placement = run.memory, run.job.placement
    n_threads = placement.threads if placement.is_here else 1
    return (
        f"{needs.of(n_threads) >> 20} MiB {f'for {n_threads} threads' if placement.is_here else 'a worker'} (tables {needs.tables / 2**20:.1f}, of a "
        f"thread slice {needs.slice >> 20}, largest row group {needs.row_group / 2**20:.1f}, footer {needs.footer / 2**20:.1f}), "
        f"{placement.worker_memory >> 20} MiB allowed"
    )


def plan(
    model: PathArgument,
    data: PathArgument,
    *,
    out: PathArgument,
    options: Flags = DEFAULTS,
    replace: Replace = False,
    forecast: Forecast = False,
    json: Json = False,
) -> None:
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
    replace
        As for explain.
    forecast
        Also explain a few seconds' worth of rows where the run would, beside OUT, remove them, and say what the run will take: time, CPU hours,
        memory, bytes and objects. Takes as long as workers take to start, and these seconds.
    json
        Write one JSON document instead.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...cluster.resource_usage import ResourceUsage, measure_usage
    from ...dataset.columns.categories import say_codes
    from ...dataset.columns.names import say_positions
    from ...dataset.columns.notes import say_missing
    from ...methods.output_space import say_carried
    from ...runs.forecast.forecast import forecast_run
    from ...runs.job.job import make_job
    from ...runs.plan.model import load_model
    from ...runs.plan.planned_run import plan_run

    asked = dataclasses.replace(options, if_changed="replace" if replace else options.if_changed)
    job, planning, found = make_job(model, data, out, asked), list[ResourceUsage](), None
    with measure_usage(planning):
        run = plan_run(job, load_model(job))
    if forecast and run.finished is None:
        found = forecast_run(run, *planning)
    if json:
        write_document(_document(run, found))
        return
    parameters = ", ".join(f"{name}={_write_value(value)}" for name, value in run.plan.parameters if value != ())
    n_players = len(run.plan.groups)
    said = {
        "model": ("" if run.model.origin is None else f"{run.model.origin}, ")
        + f"{run.model.library}, {count(len(run.plan.features), 'feature')}, outputs {', '.join(run.plan.outputs)}, "
        f"SHA-256 {run.plan.model_digest[:12]}" + ("" if run.plan.trees is None else ", iterations {}:{}".format(*run.plan.trees)),
        "method": f"{run.plan.method} {parameters}".strip(),
        "features": say_positions(run.model),
        "columns": say_codes(run.model),
        "missing": say_missing(run.model),
        "space": say_carried(run.plan.space, run.plan.link, run.plan.quantity),
        "groups": f"{n_players} of {len(run.plan.features)} features" if n_players else "",
        "combinations": f"{len(run.plan.combinations)} are players of their own" if run.plan.combinations else "",
        **_describe_interactions(run),
        "background": _describe(run.game) if run.plan.background else "",
        "labels": _describe_labels(run.plan.labels),
        "by": ", ".join(column.name for column in run.plan.by),
        "input": f"{count(run.plan.n_rows, 'row')} in {count(len(run.plan.files), 'file')}",
        "work": f"{count(len(run.plan.items), 'item')}, one part each, slices of {run.plan.slice_rows} rows",
        "where": run.where,
        "memory": _describe_memory(run),
        "output": run.out + _describe_place(run),
    } | ({} if found is None else _describe_forecast(found, "thread" if job.placement.is_here else "worker"))
    console = Console()
    shown = {name: text for name, text in said.items() if text}
    for name, text in shown.items():
        line = Text.assemble((f"{name:<{max(map(len, shown)) + 2}}", "bold"), printable(text))
        console.print(line, soft_wrap=True, highlight=False)
