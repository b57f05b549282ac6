"""The command ``drift``: changes between two runs."""

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from ...display.text import count, printable, write_two
from ...errors import Exit
from ..terminal.dated import Day, fill_day
from ..terminal.documents import write_document
from ..terminal.flags import CLUSTER, INPUT, MEASURES, METRICS, Json, Quiet, Threads, Wait, Workers
from ..terminal.terminal import open_console, print_whole, say

if TYPE_CHECKING:
    from ...drift.compare.mix import Mix
    from ...drift.compare.shifts import Shift
    from ...drift.compare.split import Split
    from ...drift.drift import Drift
    from ...report.vocabulary import Vocabulary
    from ...runs.monitor.night_metrics import NightFile


TOP = 10  # features shown of an output
MOST = 20  # alarms shown
NAME = 40  # characters of a line of a name


def _number(found: float | None, form: str = ".4g") -> str:
    return "–" if found is None or math.isnan(found) else format(found, form)


def _signed(change: float, error: float) -> str:
    return _number(change, "+.4g") + ("" if math.isnan(error) else f" ({error:.2g})")


def _arrow(before: Any, now: Any, form: str) -> str:
    return f"{_number(before, form)} → {_number(now, form)}"


def _means(before: float, now: float) -> str:
    return "{} → {}".format(*write_two(before, now)) if math.isfinite(before) and math.isfinite(now) else _arrow(before, now, ".4g")


def _rows_of(shift: "Shift", parts: bool) -> list[str | Text]:
    cells: list[str | Text] = [
        Text(printable(shift.feature)),
        _means(shift.reference_mean, shift.mean),
        _signed(shift.change, shift.standard_error),
        *((_number(shift.data, "+.4g"), _number(shift.model, "+.4g")) if parts else ()),
        _signed(shift.change_abs, shift.standard_error_abs),
        _arrow(shift.reference_share, shift.share, ".1%"),
        _arrow(shift.reference_rank, shift.rank, "d"),
        _number(shift.psi, ".3f"),
        _number(shift.distance, ".3f"),
        _number(shift.corrected, ".1g"),
        "yes" if shift.drifted else "",
    ]
    return cells


def _show_output(console: Console, found: "Drift", split: "Split", words: "Vocabulary | None") -> None:
    """Show the features with the largest changes of mean attribution."""
    several, total = len(found.outputs) > 1, found.total if words is None else words.total
    of = f" of output {printable(split.output)}" if several else ""
    what = "" if split.features is None else f": features {_number(split.features, '+.4g')}, base value {_number(split.base, '+.4g')}"
    unit = f" {printable(words.unit)}" if words is not None and words.unit else ""
    means = f"{_means(split.reference_mean, split.mean)}{unit}"
    say(console, f"mean {printable(total)}{of} {means}, {_signed(split.change, split.standard_error)}{what}")
    for part in found.parts:
        if part.output == split.output:
            say(console, f"  the data did {part.data:+.4g}, the model did {part.model:+.4g}")
    say(console, f"order of the features by importance{of}: nDCG {_number(split.ndcg, '.3f')}")
    mine = [shift for shift in found.shifts if shift.kind == "phi" and shift.output == split.output]
    heads = ["mean", "change", *(("of data", "of model") if found.parts else ()), "importance", "share", "rank", "PSI", "KS", "p", "alarm"]
    table = Table(
        Column("feature", max_width=NAME, overflow="fold"),
        *(Column(head, justify="right", no_wrap=True) for head in heads),
        title=Text(printable(f"attributions{of}: means before → now, changes (standard error)")),
    )
    for shift in sorted(mine, key=lambda shift: -abs(shift.change) if shift.change == shift.change else 0.0)[:TOP]:
        table.add_row(*_rows_of(shift, bool(found.parts)))
    print_whole(console, table)


def _show_mix(console: Console, found: "Drift", mix: "Mix") -> None:
    """Show the groups with the largest contributions to the change of the mean margin."""
    several, total = len(found.outputs) > 1, found.total
    of, by = f" of output {printable(mix.output)}" if several else "", ", ".join(found.by)
    said = f"{_number(mix.change, '+.4g')}: mix of groups {_number(mix.mix, '+.4g')}, within groups {_number(mix.within, '+.4g')}"
    say(console, f"mean {total}{of} by {printable(by)} {said}")
    heads = ["rows", "share", f"mean {total}", "of mix", "within", "alarms", ""]
    table = Table(
        Column(Text(printable(by)), max_width=NAME, overflow="fold"),
        *(Column(head, justify="right", no_wrap=True) for head in heads),
        title=Text(printable(f"groups{of}")),
    )
    both = zip(found.groups, mix.groups, strict=True) if mix.groups else ()
    for group, each in sorted(both, key=lambda pair: -abs(pair[1].mix + pair[1].within))[:TOP]:
        table.add_row(
            Text(printable(group.group)),
            _arrow(group.reference_rows, group.rows, ","),
            _arrow(each.reference_share, each.share, ".1%"),
            _means(each.reference_mean, each.mean),
            _number(each.mix, "+.4g"),
            _number(each.within, "+.4g"),
            str(sum(shift.drifted for shift in group.shifts)) if group.state == "tested" else "–",
            group.state if group.state != "tested" else "",
        )
    print_whole(console, table)


def show_drift(console: Console, found: "Drift", words: "Vocabulary | None" = None) -> None:
    """Show changes: differences of plans, margins and attributions, then drifted columns; in words of people, as reports do, where they are given."""
    said = found.alarms
    if words is not None:
        from ...report.changes import list_alarms, rename_document

        said = tuple(list_alarms(rename_document(found.to_dict(), words.names), words))
        found = replace(found, shifts=tuple(replace(shift, feature=words.names.title(shift.feature)) for shift in found.shifts))
    console.width = max(console.width, 150)
    say(console, f"{found.run} against {found.reference}")
    for line in found.differs:
        say(console, f"differs: {line}")
    for split in found.outputs:
        _show_output(console, found, split, words)
    for mix in found.mix:
        _show_mix(console, found, mix)
    for line in found.worse:
        say(console, line)
    for line in said[:MOST]:
        say(console, f"drift: {printable(line)}")
    if len(said) > MOST:
        say(console, f"{len(said) - MOST:,} more: --json has all")
    groups = f" and {count(len(found.groups), 'group')}" if found.by else ""
    if found.thresholds.ignore:
        say(console, f"not judged, since known to change: {printable(', '.join(found.thresholds.ignore))}")
    say(console, f"{count(len(found.alarms), 'alarm')}; compared were {_list_compared(found)}{groups}")


def _list_compared(found: "Drift") -> str:
    """Say what was compared: attributions, values, and shares of missing and new ones."""
    kinds = Counter(shift.kind for shift in found.shifts)
    words = {"phi": "attributions", "value": "features' values", "missing": "shares of missing values", "unseen": "shares of new categories"}
    return ", ".join([f"the {found.total}", *(f"{kinds[kind]:,} {word}" for kind, word in words.items() if kinds[kind])])


def _write_metrics(file: "NightFile", found: "Drift") -> None:
    """Write the night's gauges into the file of its run's metrics."""
    from ...runs.monitor.night_metrics import read_night
    from ...runs.records.manifest import read_manifest

    manifest = read_manifest(found.run)
    if manifest is not None:  # not removed meanwhile
        file.write(read_night(found.run, manifest, len(found.alarms)))


def _read_words(run: str, names: str) -> "Vocabulary":
    """Read what the features and the prediction of a run are called."""
    from ...finished.names import read_names_file
    from ...report.vocabulary import make_vocabulary
    from ...runs.records.current_run import read_finished

    _, plan = read_finished(run)
    return make_vocabulary(plan, read_names_file(names, plan))


def drift(
    run: Annotated[str, Parameter(group=INPUT)],
    *,
    against: Annotated[str, Parameter(group=INPUT)],
    thresholds: Annotated[str | None, Parameter(group=MEASURES)] = None,
    by: Annotated[tuple[str, ...], Parameter(group=MEASURES, negative=(), consume_multiple=True)] = (),
    both_ways: Annotated[bool, Parameter(group=MEASURES, negative=())] = False,
    ignore: Annotated[tuple[str, ...], Parameter(group=MEASURES, negative=(), consume_multiple=True)] = (),
    names: Annotated[str | None, Parameter(group=INPUT)] = None,
    metrics_file: Annotated[str | None, Parameter(group=METRICS)] = None,
    date: Day = None,
    json: Json = False,
    threads: Threads = None,
    scheduler: Annotated[str | None, Parameter(group=CLUSTER)] = None,
    workers: Workers = None,
    plain_tcp: Annotated[bool, Parameter(group=CLUSTER, negative=())] = False,
    wait: Wait = 15.0,
    quiet: Quiet = False,
) -> int:
    """Say what changed from one finished run to another, and whether that is drift. Writes after/drift.parquet and after/drift.json below the run.

    Parameters
    ----------
    run
        Folder of the run, a path or an fsspec URI.
    against
        Folder of the run that it is compared with, or the JSON object that --latest moves.
    thresholds
        TOML or JSON file that says what counts as drift: false_discovery_rate, distance, share, psi, loss, mean, ndcg; and ignore, as --ignore.
    by
        Columns that both runs wrote, as ids or as values of features: every group of rows with the same values in them is compared as well, and the
        change of the mean margin is split into what comes of the mix of groups and what happened within them.
    both_ways
        Where the models differ, explain both nights by both, and split each change into what the data did and what the model did.
    ignore
        Features or groups that are known to change, as the month: neither their values nor their attributions make an alarm.
    names
        TOML or JSON file of readable names, as of report: what is shown calls features, prediction and unit by them, and says alarms as reports do.
    metrics_file
        Write how many alarms there are, and the run's mean prediction and shares of importance, for Prometheus: into the file NAME.prom that explain
        got for the run, whose other metrics stay, or a new one.
    date
        YYYY-MM-DD, today or yesterday, in local time; fills {date} in RUN, --against, --thresholds and --names.
    json
        Write one JSON document instead, with everything.
    threads
        Threads of this process, by default one per core that it may use.
    scheduler
        Address of a Dask scheduler, tls:// where it is another host, or "serial" for one thread; by default this process does all.
    workers
        Processes of a local Dask cluster, in the place of threads.
    plain_tcp
        Reach a scheduler on another host without TLS: whoever shares that network can run code on its workers.
    wait
        As for explain.
    quiet
        Show nothing but errors.

    Returns
    -------
    int
        Exit code: DRIFT where a threshold is crossed.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...drift.drift import drift as compare_nights
    from ...runs.monitor.night_metrics import NightFile
    from ...stores.uris import normalise
    from ..terminal.progress import watched

    words = None if names is None else _read_words(normalise(fill_day(run, date)), fill_day(names, date))
    file = None if metrics_file is None else NightFile(metrics_file, normalise(run))
    with watched(quiet) as progress:
        found = compare_nights(
            fill_day(run, date),
            against=fill_day(against, date),
            thresholds=None if thresholds is None else fill_day(thresholds, date),
            by=by,
            both_ways=both_ways,
            ignore=ignore,
            scheduler=scheduler,
            threads=threads,
            workers=workers,
            plain_tcp=plain_tcp,
            wait=wait,
            progress=progress,
        )
    if file is not None:
        _write_metrics(file, found)
    if json:
        write_document(found.to_dict())
    else:
        show_drift(open_console(quiet), found, words)
    return Exit.DRIFT if found.crossed else Exit.DONE
