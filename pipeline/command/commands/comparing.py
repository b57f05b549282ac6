"""The command ``compare``: comparison of rankings."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from ...errors import UsageError
from ..terminal.dated import Day, fill_day
from ..terminal.documents import write_document
from ..terminal.flags import CLUSTER, DOUBTFUL, METHOD, MODEL, Json, PathArgument, Quiet, Threads, Wait, Whole, Workers, as_whole
from ..terminal.terminal import open_console, say

MEASURES = Group("Measures", sort_key=3)


def _numbers(name: str, given: str, read: Callable[[str], Any]) -> list:
    """Read comma-separated numbers."""
    try:
        return [read(number) for number in given.split(",") if given]
    except ValueError:
        raise UsageError(f"{name} is {given!r}, expected numbers with commas between them") from None


def compare(
    model: PathArgument,
    data: PathArgument,
    *,
    methods: Annotated[str, Parameter(group=METHOD)],
    out: PathArgument,
    partition: Annotated[str | None, Parameter(group=METHOD)] = None,
    top: Annotated[str, Parameter(group=MEASURES)] = "1,3,10",
    scales: Annotated[str, Parameter(group=MEASURES)] = "0.1,0.5,1",
    noise: Annotated[Literal["normal", "uniform", "laplace"], Parameter(group=MEASURES)] = "normal",
    gap_rows: Annotated[Whole, Parameter(group=MEASURES)] = 200,
    budget: Annotated[float, Parameter(group=MEASURES)] = 1e8,
    approximate: Annotated[bool, Parameter(group=MEASURES, negative=())] = False,
    label: Annotated[str | None, Parameter(group=MEASURES)] = None,
    ids: Annotated[tuple[str, ...], Parameter(name="--id", group=MEASURES, negative=(), consume_multiple=True)] = (),
    differing_rows: Annotated[Whole, Parameter(group=MEASURES)] = 10,
    threads: Threads = None,
    scheduler: Annotated[str | None, Parameter(group=CLUSTER)] = None,
    workers: Workers = None,
    plain_tcp: Annotated[bool, Parameter(group=CLUSTER, negative=())] = False,
    wait: Wait = 15.0,
    trees: Annotated[str | None, Parameter(group=MODEL)] = None,
    outputs: Annotated[tuple[str, ...], Parameter(group=MODEL, negative=(), consume_multiple=True)] = (),
    output: Annotated[str | None, Parameter(group=MODEL)] = None,
    missing: Annotated[float | None, Parameter(group=DOUBTFUL)] = None,
    allow_unseen: Annotated[bool, Parameter(group=DOUBTFUL, negative=())] = False,
    date: Day = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare how several methods rank the features of every row: how good each is, how far every two agree, and where they do not.

    Parameters
    ----------
    model
        As for explain.
    data
        As for explain.
    methods
        Methods with commas between them, their parameters in order after colons, as beta:4:1, or by name in parentheses, as
        semivalue(atoms=0.25:1,0.75:1); run:URI for the columns of an earlier run on the same data.
    out
        Parquet object of the measures to write, a path or an fsspec URI. Beside x.parquet come x.features.parquet and x.rows.parquet.
    partition
        As for explain, for the methods that need one; what is ranked are the features.
    top
        Numbers of the largest features: how many two rankings have in common, how many swaps put one's list into the other's order or turn it into
        the other's list, and, with --label, without how many the label is predicted.
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
    label
        Column with what the model, a regression, predicts: also measure the error of its mean prediction when the first features of a ranking are
        drawn from the data.
    ids
        Columns that are passed through to the rows on which rankings differ most.
    differing_rows
        How many such rows are listed of every output and two rankings, at most.
    threads
        Threads of this process, by default one per core that it may use.
    scheduler
        Address of a Dask scheduler, tls:// where it is another host, or "serial" for one thread; by default this process does all.
    workers
        Processes of a local Dask cluster, in the place of threads.
    plain_tcp
        As for explain.
    wait
        As for explain.
    trees
        As for explain.
    outputs
        As for explain.
    output
        As for explain.
    missing
        As for explain.
    allow_unseen
        As for explain.
    date
        YYYY-MM-DD, today or yesterday, in local time; fills {date} in MODEL, DATA, --out and the runs among --methods.
    quiet
        Show nothing but errors.
    json
        Write one JSON document instead.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from leafledger.kernels.method.notation import split_methods

    from ...comparisons.compare import compare as compare_rankings
    from ...comparisons.publish import name_beside
    from ..terminal.progress import watched
    from ..terminal.show import show_comparison

    sizes, sigmas = _numbers("top", top, as_whole), _numbers("scales", scales, float)
    console = open_console(quiet or json)
    with watched(quiet) as progress:
        found = compare_rankings(
            model,
            data,
            out,
            methods=split_methods(methods),
            partition=partition,
            top=sizes,
            scales=sigmas,
            noise=noise,
            gap_rows=gap_rows,
            budget=budget,
            approximate=approximate,
            label=label,
            ids=ids,
            differing_rows=differing_rows,
            scheduler=scheduler,
            threads=threads,
            workers=workers,
            plain_tcp=plain_tcp,
            wait=wait,
            trees=trees,
            outputs=outputs,
            output=output,
            missing=missing,
            allow_unseen=allow_unseen,
            date=date,
            progress=progress,
        )
    place = fill_day(out, date)
    places = {"measures": place, **name_beside(place)}
    if json:
        write_document(places | {"table": found.to_pylist()})
        return
    show_comparison(console, found)
    for name, uri in places.items():
        say(console, f"{f'{name}:':<10}{uri}")
