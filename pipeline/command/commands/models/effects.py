"""The command ``effects``: what a model predicts as features change."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from ....display.text import count
from ....errors import UsageError
from ...terminal.dated import Day
from ...terminal.documents import write_document
from ...terminal.flags import CLUSTER, DOUBTFUL, INPUT, MODEL, Json, PathArgument, Quiet, Threads, Wait, Whole, Workers
from ...terminal.terminal import open_console, say

ASKED = Group("Which effects", sort_key=3)


def _read_pairs(pairs: tuple[str, ...]) -> list[list[str]]:
    """Read pairs of names with a comma between them."""
    found = [pair.split(",") for pair in pairs]
    wrong = next((pair for pair, names in zip(pairs, found, strict=True) if len(names) != 2), None)
    if wrong is not None:
        raise UsageError(f"pairs have {wrong!r}, expected two features with a comma between them; names with commas are for Python")
    return found


def _say_planned(console: Any, found: Any, planned: Any) -> None:
    """Say what there is to do."""
    done = f", {planned.n_counted} counted and {planned.n_summed} passed over before" if planned.n_counted or planned.n_summed else ""
    passes = f"in two passes of {count(planned.n_items, 'item')}"
    if not planned.counts:
        passes, done = f"counted before, in one pass of {count(planned.n_items, 'item')}", f", {planned.n_summed} done" if planned.n_summed else ""
    what = [count(len(planned.features), "feature"), *([count(len(planned.pairs), "pair")] if planned.pairs else [])]
    say(console, f"effects of {' and '.join(what)} in {planned.n_states:,} states of {count(found.n_rows, 'row')}: {found.uri}")
    say(console, f"background: {count(planned.n_files, 'file')}, {passes} {planned.where}{done}")
    if found.again:
        say(console, "finished before: nothing to do")
    for note in found.notes:
        say(console, note)


def effects(
    model: PathArgument,
    *,
    background: Annotated[str, Parameter(group=INPUT)],
    out: PathArgument,
    features: Annotated[tuple[str, ...], Parameter(group=ASKED, negative=(), consume_multiple=True)] = (),
    pairs: Annotated[tuple[str, ...], Parameter(group=ASKED, negative=(), consume_multiple=True)] = (),
    partition: Annotated[str | None, Parameter(group=ASKED)] = None,
    intervals: Annotated[Whole, Parameter(group=ASKED)] = 40,
    space: Annotated[Literal["margin", "probability", "response"], Parameter(group=ASKED)] = "margin",
    tables: Annotated[str | None, Parameter(group=INPUT)] = None,
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
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find what a model predicts as features change: means, how rows differ, local effects, and what only acts together.

    Parameters
    ----------
    model
        As for explain.
    background
        Parquet data set whose rows change, given like the data of explain: all its rows count.
    out
        Folder for tables and pictures, a path or an fsspec URI. The same command goes on where it was interrupted.
    features
        Features, or groups, whose effects are found; by default all.
    pairs
        Two features or groups that change together, with a comma between them; several pairs may follow each other.
    partition
        Groups of one-hot columns, {"group": ["feature", ...]} in a JSON file: a group changes as one feature, which is one of its columns or none.
    intervals
        Of accumulated local effects: between so many quantiles of a feature's values, at most.
    space
        What curves are of: margin, probability or response.
    tables
        Folder where what is counted of the background is kept for later runs, by default _leafledger beside OUT.
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
        YYYY-MM-DD, today or yesterday, in local time; fills {date} in MODEL, --background, --out and --tables.
    dry_run
        Only say what would be done: files, rows, work, and what an interrupted attempt has done of it. Nothing is computed or written.
    quiet
        Show nothing but errors.
    json
        Write one JSON document instead.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ....effects.effects import effects as find_effects
    from ...terminal.progress import watched

    asked = _read_pairs(pairs)
    with watched(quiet) as progress:
        found = find_effects(
            model,
            background,
            out,
            features=features or None,
            pairs=asked,
            partition=partition,
            intervals=intervals,
            space=space,
            tables=tables,
            trees=trees,
            outputs=outputs,
            output=output,
            scheduler=scheduler,
            threads=threads,
            workers=workers,
            plain_tcp=plain_tcp,
            wait=wait,
            missing=missing,
            allow_unseen=allow_unseen,
            date=date,
            dry_run=dry_run,
            progress=progress,
        )
    if json:
        said = {"out": found.uri, "n_rows": found.n_rows, "objects": list(found.objects), "notes": list(found.notes), "found": found.again}
        write_document(said if found.planned is None else said | {"planned": asdict(found.planned)})
        return
    console = open_console(quiet)
    if found.planned is not None:
        _say_planned(console, found, found.planned)
        return
    say(console, f"effects over {count(found.n_rows, 'row')}{', found as they were' if found.again else ''}: {found.uri}")
    for note in found.notes:
        say(console, note)
