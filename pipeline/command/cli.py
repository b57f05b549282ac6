"""The command ``leafledger``: explain, plan, compare, check. A mistake gets one line on standard error; exit code 0 only when the run is finished."""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from ..errors import LeafledgerError, UsageError

PARTLY = 3  # exit code of a run that had to leave rows out
SHOWN = 60  # characters of a parameter

app = App(
    name="leafledger",
    help="Explain every row of a Parquet data set with an XGBoost, LightGBM or CatBoost model.",
    help_epilogue="Example: leafledger explain model.json flights/ --out explained/ --id flight",
    version=lambda: version("leafledger"),
    version_flags=["--version"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # main says how to go on
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What explain and plan share."""

    out: Annotated[str, Parameter(name="--out")]
    """Folder of the run: a path or an fsspec URI such as s3://bucket/prefix; {date} is filled in."""

    latest: str | None = None
    """JSON object that is to name the run of the latest --date, for readers: moved when the run is finished, and never back to an earlier date."""

    method: str = "shapley"
    """shapley; banzhaf (parameter p); beta (alpha, beta); semivalue (atoms, density); probabilistic (sizes or weights); owen and two_step
    (with --partition); ranker (steps, rate, optimizer); curves (ranking); gap (ranking, noise, scale, budget, resample, approximate, seed) and
    gap_greedy (top, and all of these but ranking); r2 (with --label)."""

    id: Annotated[tuple[str, ...], Parameter(name="--id", negative=(), consume_multiple=True)] = ()
    """Columns to pass through to the attributions."""

    max_rejected: int | None = None
    """Pieces of the data, files or work items, that may be left out since they cannot be read; by default any number, as long as something is left.
    Where any are, the exit code is 3."""

    single_writer: Annotated[bool, Parameter(negative=())] = False
    """Nobody else writes this run, so that a store that ignores conditions on writes will do."""

    scheduler: str | None = None
    """Address of a Dask scheduler, tls:// where it is another host, or "serial" for this process alone; by default a local cluster."""

    plain_tcp: Annotated[bool, Parameter(negative=())] = False
    """Reach a scheduler on another host without TLS: whoever shares that network can run code on its workers."""

    workers: int | None = None
    """Processes of the local cluster; by default one per core."""

    precision: Literal["float32", "float64"] = "float32"
    """Of the attributions as stored."""

    parameter: Annotated[tuple[str, ...], Parameter(name="--parameter", negative=(), consume_multiple=True)] = ()
    """NAME=VALUE, parameters of the method: p=0.25, sizes=0.5,0.25,0.25 (numbers), density=0:0,0.5:2,1:0 (points t:height)."""

    partition: str | None = None
    """JSON file, a path or an fsspec URI: {"group": ["feature", …]}. Values are the groups', with owen the features' within their groups."""

    interactions: str | None = None
    """Also the interactions of every two features or groups: how many of a row to keep, the largest, or "all"."""

    background: str | None = None
    """Averages absent features over these rows instead of over the trees' own covers (the marginal game): a Parquet data set as DATA, or "model"
    for the model's own leaf weights (symmetric trees, CatBoost's default). With gap and gap_greedy: what rows are perturbed by is measured on it."""

    tables: str | None = None
    """Folder where what is prepared for a background is kept for later runs; by default _leafledger beside the run's folder."""

    label: str | None = None
    """Column with what the model predicts, for method r2."""

    weight: str | None = None
    """Column with how much a row counts, for method r2."""

    by: Annotated[tuple[str, ...], Parameter(name="--by", negative=(), consume_multiple=True)] = ()
    """Columns of groups of rows, whose own R² is shared out as well, for method r2."""

    missing_labels: Annotated[Literal["count", "refuse"], Parameter(name="--missing-labels")] = "count"
    """What to do with rows without a label: leave them out and count them, or refuse."""

    global_only: Annotated[bool, Parameter(name="--global-only", negative=())] = False
    """Publish summaries alone, without rows."""

    date: str | None = None
    """YYYY-MM-DD, fills {date} in MODEL, DATA, --out, --latest, --partition, --background and --tables."""

    def arguments(self) -> dict[str, Any]:
        """As ``make_job`` takes them."""
        for entry in self.parameter:
            if "=" not in entry:
                raise UsageError(f"--parameter is {entry!r}, expected NAME=VALUE")
        return {
            "latest": self.latest,
            "method": self.method,
            "parameters": dict(entry.split("=", 1) for entry in self.parameter),
            "partition": self.partition,
            "interactions": self.interactions,
            "background": self.background,
            "tables": self.tables,
            "label": self.label,
            "weight": self.weight,
            "by": self.by,
            "missing_labels": self.missing_labels,
            "global_only": self.global_only,
            "ids": self.id,
            "precision": self.precision,
            "max_rejected": self.max_rejected,
            "plain_tcp": self.plain_tcp,
            "single_writer": self.single_writer,
            "scheduler": self.scheduler,
            "workers": self.workers,
            "date": self.date,
        }


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


@app.command
def explain(model: str, data: str, *, options: Options, quiet: bool = False) -> int:
    """Explain every row and publish attributions and summaries. A rerun of an unfinished run does what is missing.

    Parameters
    ----------
    model
        XGBoost JSON or UBJ, LightGBM text, CatBoost cbm or JSON.
    data
        Parquet file, folder, glob or Hive-partitioned data set, a path or an fsspec URI.
    quiet
        Show nothing but errors.
    """
    from ..runs.job import make_job
    from ..runs.stages import explain_job
    from .progress import Bar, log_lines, silent
    from .show import show_summaries

    console = Console(quiet=quiet)
    job = make_job(model, data, options.out, **options.arguments())
    bar = Bar(Console(stderr=True)) if sys.stderr.isatty() and not quiet else None
    with bar or nullcontext():
        progress = bar or (silent if quiet else log_lines)
        manifest, again, latest = explain_job(job, progress)
    out = job.out if "{" in options.out else options.out.rstrip("/")
    stays = "" if latest is None or latest.run == job.out else f" stays at {latest.run}, of {latest.date}"
    if again:
        console.print(f"{out}: finished before, nothing to do ({manifest.n_rows:,} rows in {len(manifest.parts)} parts)", soft_wrap=True)
        if latest is not None:
            console.print(f"{job.latest}:{stays or f' names it, of {latest.date}'}", soft_wrap=True)
        return _tell_rejected(manifest)
    console.print(f"{manifest.n_rows:,} rows explained in {len(manifest.parts)} parts", soft_wrap=True)
    if manifest.residual is not None:
        console.print(f"attributions add up to margin - base value within {manifest.residual:.1e} of the margin's bound", soft_wrap=True)
    where = {"attributions": "" if job.global_only else "attributions", "summary": "summary", "manifest": "manifest.json"}
    for name, below in where.items():
        if below:
            console.print(f"{f'{name}:':<14}{out}/{below}", soft_wrap=True)
    if latest is not None:
        console.print(f"{'latest:':<14}{job.latest}{stays}", soft_wrap=True)
    show_summaries(console, job.out, manifest)
    return _tell_rejected(manifest)


def _tell_rejected(manifest: Any) -> int:
    """Say what could not be explained; the exit code."""
    for entry in manifest.rejected:
        print(f"leafledger: rejected: {entry.reason}", file=sys.stderr)  # noqa: T201 - where a command's errors go
    return PARTLY if manifest.rejected else 0


def _describe(game: Any) -> str:
    """The background of a marginal game, and its tables."""
    said = "the model's own leaf weights"
    if game.listing is not None:
        said = f"{game.listing.n_rows:,} rows in {len(game.listing.files)} files"
    size = f"{game.extent.n_bytes / 2**20:.1f} MiB"
    return f"{said}, {f'at most {size} of tables for' if game.uncounted else f'{size} of tables there already in'} {game.tables}"


def _describe_labels(labels: Any) -> str:
    """Their column, and what goes with them."""
    if labels is None:
        return ""
    weight = "" if labels.weight is None else f", weight {labels.weight}"
    by = f", by {' and '.join(labels.by)}" if labels.by else ""
    return f"{labels.label}{weight}{by}; rows without one are {'left out' if labels.missing == 'count' else 'refused'}"


@app.command
def plan(model: str, data: str, *, options: Options) -> None:
    """Show what explain would do: work items, rows, memory, refusals. Writes nothing.

    Parameters
    ----------
    model
        As for explain.
    data
        As for explain.
    """
    from ..runs.job import make_job
    from ..runs.stages import load_model, plan_run

    job = make_job(model, data, options.out, **options.arguments())
    run = plan_run(job, load_model(job))
    parameters = ", ".join(f"{name}={_write_value(value)}" for name, value in run.plan.parameters if value != ())
    n_players = len(run.plan.groups)
    said = {
        "model": f"{run.model.library}, {len(run.plan.features)} features, outputs {', '.join(run.plan.outputs)}, "
        f"SHA-256 {run.plan.model_digest[:12]}",
        "method": f"{run.plan.method} {parameters}".strip(),
        "groups": f"{n_players} of {len(run.plan.features)} features" if n_players else "",
        "pairs": f"{run.n_pairs:,} interact, {job.interactions} kept of a row" if job.interactions is not None else "",
        "background": _describe(run.game) if run.plan.background else "",
        "labels": _describe_labels(run.plan.labels),
        "input": f"{run.plan.n_rows:,} rows in {len({item.uri for item in run.plan.items})} files",
        "work": f"{len(run.plan.items)} items, one part each, slices of {run.plan.slice_rows} rows",
        "where": job.scheduler or f"local cluster of {min(job.workers, max(1, len(run.plan.items)))} processes",
        "memory": f"{run.memory.total >> 20} MiB a worker (tables {run.memory.tables / 2**20:.1f}, slice {run.memory.slice >> 20}, "
        f"largest row group {run.memory.row_group / 2**20:.1f}, footer {run.memory.footer / 2**20:.1f}), {job.worker_memory >> 20} MiB allowed",
        "output": job.out + (" (finished before: nothing to do)" if run.finished else ""),
    }
    console = Console()
    shown = {name: text for name, text in said.items() if text}
    for name, text in shown.items():
        console.print(f"[bold]{name:<{max(map(len, shown)) + 2}}[/bold]{text}", soft_wrap=True, highlight=False)


def _numbers(name: str, given: str, kind: type) -> list:
    """Numbers with commas between them."""
    try:
        return [kind(number) for number in given.split(",") if given]
    except ValueError:
        raise UsageError(f"{name} is {given!r}, expected numbers with commas between them") from None


@app.command
def compare(
    model: str,
    data: str,
    *,
    methods: str,
    out: str,
    top: str = "1,3,10",
    scales: str = "0.1,0.5,1",
    noise: Literal["normal", "uniform", "laplace"] = "normal",
    gap_rows: int = 200,
    budget: float = 1e8,
    approximate: Annotated[bool, Parameter(negative=())] = False,
    scheduler: str | None = None,
    workers: int | None = None,
    plain_tcp: Annotated[bool, Parameter(negative=())] = False,
    date: str | None = None,
    quiet: bool = False,
) -> None:
    """Compare how several methods rank the features of every row: insertion and deletion areas, prediction gaps, agreement of every two.

    Parameters
    ----------
    model
        As for explain.
    data
        As for explain.
    methods
        Methods with commas between them, their parameters in order after colons, as beta:4:1; run:URI for the columns of an earlier run on the same
        data.
    out
        Parquet object to write, a path or an fsspec URI.
    top
        Sizes of sets of the largest features, whose agreement is measured.
    scales
        Perturbations under which PGI² is measured, in standard deviations of each feature on the data, with commas; "" for none.
    noise
        Their distribution.
    gap_rows
        Rows that PGI² is measured on, spread evenly over the data: it costs thousands of times what attributions do.
    budget
        Pairs of leaves that PGI² may look at for a row; what the model may need beyond it is refused.
    approximate
        Or estimated by quasi-Monte Carlo, with the mean of the rows' standard errors.
    scheduler
        As for explain.
    workers
        As for explain.
    plain_tcp
        As for explain.
    date
        YYYY-MM-DD, fills {date} in MODEL, DATA and --out.
    quiet
        Show nothing but errors.
    """
    from ..comparisons.compare import compare as compare_rankings
    from .progress import Bar, log_lines, silent
    from .show import show_comparison

    sizes, sigmas = _numbers("top", top, int), _numbers("scales", scales, float)
    console, bar = Console(quiet=quiet), Bar(Console(stderr=True)) if sys.stderr.isatty() and not quiet else None
    with bar or nullcontext():
        progress = bar or (silent if quiet else log_lines)
        found = compare_rankings(
            model,
            data,
            out,
            methods=methods.split(","),
            top=sizes,
            scales=sigmas,
            noise=noise,
            gap_rows=gap_rows,
            budget=budget,
            approximate=approximate,
            scheduler=scheduler,
            workers=workers,
            plain_tcp=plain_tcp,
            date=date,
            progress=progress,
        )
    show_comparison(console, found)


@app.command
def check(run: str, *, deep: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Verify a finished run by what its objects say of themselves: every part once, row counts, summaries computed again.

    Parameters
    ----------
    run
        Folder of the run, a path or an fsspec URI.
    deep
        Read every byte: digests, additivity of every row, and the first rows of every part explained again.
    """
    from ..runs.check import check_run

    report = check_run(run, deep)
    additive = "" if report.residual is None else f", attributions add up within {report.residual:.1e} of the margin's bound"
    rejected = f", {report.n_rejected} pieces of the data rejected" if report.n_rejected else ""
    again = f", {report.n_again:,} rows explained again" if report.n_again else ""
    Console().print(f"{run}: sound, {report.n_rows:,} rows in {report.parts} parts{rejected}{additive}{again}", soft_wrap=True, highlight=False)


def _fails(message: str, code: int) -> int:
    print(f"leafledger: {message}", file=sys.stderr)  # noqa: T201 - where a command's errors go
    return code


def main(arguments: list[str] | None = None, command: App = app) -> int:
    """Run a command line and return its exit code: 0 done, 1 failed, 2 a wrong argument, 3 done but for rows that cannot be read, 130 interrupted."""
    try:
        return command(arguments, exit_on_error=False, print_error=False) or 0
    except CycloptsError as error:
        return _fails(" ".join(str(error).split()), 2)
    except LeafledgerError as error:
        return _fails(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fails("interrupted; run the same command again to go on from there", 130)
