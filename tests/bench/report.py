"""What was measured as tables on a terminal."""

from rich.table import Table

from tests.bench.bars import Bar
from tests.bench.calls import Calls
from tests.bench.compare import EXACT, PREDICT, Comparison
from tests.bench.effects import BRUTE, EffectSpeed
from tests.bench.forecasts import Foreseen
from tests.bench.gap import PLAIN, SET, GapStep
from tests.bench.interactions import OURS, Interactions
from tests.bench.marginal import TOTAL_BACKGROUND, Marginal
from tests.bench.models import CASES
from tests.bench.ours import BANZHAF, KERNEL, SHAPLEY, WHOLE
from tests.bench.rankings import Rankings
from tests.bench.runs import STARTS, First, Memory
from tests.bench.scaling import Step
from tests.bench.timing import Speed
from tests.bench.totals import Total
from tests.bench.usual import Usual

RUNS_CAPTION = "by hand: read_parquet, pred_contribs on all cores, to_parquet; on fewer rows, for it is slow"


def _columns(title: str, *numbers: str, caption: str | None = None) -> Table:
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    table.add_column("", no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _cells(speed: Speed) -> tuple[str, ...]:
    return speed.name, str(speed.threads), f"{speed.n_rows:,}", f"{speed.rate:,.0f}", "once" if speed.spread is None else f"{speed.spread:.0%}"


def show_comparison(found: Comparison) -> Table:
    """A model's contenders; how often Shapley's whole rate holds theirs, and theirs that of predict, on as many threads."""
    caption = f"tables {found.table_bytes / 1e6:.1f} MB, prepared in {found.table_seconds:.2f} s on one thread; largest phi {found.largest_phi:.3g}"
    caption += "".join(f"\nfailed: {failure}" for failure in found.failures)
    table = _columns(found.model, "threads", "rows", "rows/s", "spread", "ours /", "/ predict", "prepared", "difference", "exact", caption=caption)
    for speed in sorted(found.speeds, key=lambda speed: speed.threads):
        check = found.check(speed.name)
        ours, floor = found.rate(f"{SHAPLEY}: {WHOLE}", speed.threads), found.rate(PREDICT, speed.threads)
        checked = (f"{check.preparation:.2f} s", f"{check.difference:.0e}", "yes" if check.exact else "no") if check else ("", "", "")
        table.add_row(*_cells(speed), f"{ours / speed.rate:.3g}" if check else "", f"{speed.rate / floor:.2g}", *checked)
    return table


def show_preparations(found: Marginal) -> Table:
    table = _columns(f"Marginal game, {found.model}: once for each background, one thread", "survey s", "count s", "tables s", "MB")
    for made in found.preparations:
        seconds = (f"{seconds:.3f}" for seconds in (made.survey, made.count, made.tables))
        table.add_row(f"{made.n_rows:,} background rows", *seconds, f"{made.n_bytes / 1e6:.1f}")
    return table


def show_marginal(found: Marginal) -> Table:
    """Contenders on one thread; how often ours, with the background it is slowest with, holds their rows/s."""
    caption = ""
    if total := found.total:
        caption = f"{total.n_rows:,} rows against {TOTAL_BACKGROUND:,}, everything included: ours {total.ours.seconds:.2f} s, "
        caption += f"woodelf {total.theirs.seconds:.2f} s, {total.ratio:.3g} times"
    caption += "".join(f"\nfailed: {failure}" for failure in found.failures)
    table = _columns(f"{found.model}: rows", "threads", "rows", "rows/s", "spread", "ours /", "/ predict", "difference", "exact", caption=caption)
    ours, floor = min(found.ours), found.rate(PREDICT)
    for speed in found.speeds:
        check = found.check(speed.name)
        checked = (f"{check.difference:.0e}", "yes" if check.exact else "no") if check else ("", "")
        table.add_row(*_cells(speed), f"{ours / speed.rate:.3g}" if check else "", f"{speed.rate / floor:.2g}", *checked)
    return table


def show_interactions(found: Interactions) -> Table:
    """Contenders on one thread, and how often ours holds their rows/s."""
    caption = f"with values; tables and explainers are prepared before{''.join(f'{chr(10)}failed: {failure}' for failure in found.failures)}"
    title = f"{found.n_pairs:,} interactions, {found.game}: {found.model}: rows"
    table = _columns(title, "threads", "rows", "rows/s", "spread", "ours /", "difference", "exact", caption=caption)
    for speed in found.speeds:
        check = found.check(speed.name)
        of_peer = (f"{found.rate(OURS) / speed.rate:.3g}", f"{check.difference:.0e}", "yes" if check.exact else "no") if check else ("", "", "")
        table.add_row(*_cells(speed), *of_peer)
    return table


def show_rankings(found: Rankings) -> Table:
    """Microseconds of a row, and as many times those of Banzhaf values."""
    caption = f"{found.n_features + 1:,} points to a curve, two curves to a ranking"
    table = _columns(f"Rankings, {found.model}: one thread", "rows", "µs / row", "spread", f"/ {BANZHAF}", caption=caption)
    for speed in found.speeds:
        spread = "once" if speed.spread is None else f"{speed.spread:.0%}"
        table.add_row(speed.name, f"{speed.n_rows:,}", f"{1e6 / speed.rate:.1f}", spread, f"{found.seconds(speed.name) / found.seconds(BANZHAF):.3g}")
    return table


def show_totals(totals: list[Total]) -> Table:
    table = _columns("CatBoost, 500 trees, depth 6: one thread, tables included", "ours s", "theirs s", "ours rows/s", "theirs rows/s", "ratio")
    for total in totals:
        ours, theirs = total.ours, total.theirs
        table.add_row(
            f"{total.n_rows:,} rows",
            *(f"{seconds:.2f}" for seconds in (ours.seconds, theirs.seconds)),
            *(f"{rate:,.0f}" for rate in (ours.rate, theirs.rate)),
            f"{total.ratio:.3g}",
        )
    return table


def show_scaling(steps: list[Step]) -> Table:
    caption = "points: of the quadrature, one for every two features of a tree's longest path, one in all for Banzhaf values"
    heads = ("method", "rows", "trees", "depth", "nodes", "points", "ms", "ns / row / node / point")
    table = _columns(f"Growth of the {KERNEL}, one thread", *heads, caption=caption)
    for step in steps:
        table.add_row(
            step.along,
            step.method,
            *(f"{number:,}" for number in (step.n_rows, step.n_trees, step.depth, step.n_nodes)),
            f"{step.n_points:.2f}",
            f"{1e3 * step.seconds:.1f}",
            f"{step.nanoseconds:.2f}",
        )
    return table


def show_gaps(steps: list[GapStep]) -> Table:
    names = list(steps[0].seconds) + [PLAIN] * (PLAIN not in steps[0].seconds)
    table = _columns("Prediction gap, milliseconds per row, one thread", "depth", "leaves", *names, f"{PLAIN} / {SET}")
    for step in steps:
        times = (f"{1e3 * step.seconds[name]:.3g}" if name in step.seconds else "" for name in names)
        ratio = f"{step.seconds[PLAIN] / step.seconds[SET]:.0f}" if PLAIN in step.seconds else ""
        table.add_row(f"{step.n_trees:,} trees", f"{step.depth}", f"{step.n_leaves:,}", *times, ratio)
    return table


def show_effects(found: list[EffectSpeed]) -> Table:
    table = _columns(
        "Partial dependence, all features at all thresholds, all cores",
        "background",
        "values",
        "s",
        f"s {BRUTE}",
        "times",
        "difference",
        "s woodelf",
        "",
    )
    for each in found:
        numbers = f"{each.ours:.3g}", f"{each.theirs:.4g}", f"{each.ratio:,.0f}", f"{each.difference:.0e}"
        other = ("", "") if each.woodelf is None else (f"{each.woodelf:.4g}", f"{each.woodelf_difference:.0e}")
        table.add_row(each.model, f"{each.n_rows:,}", f"{each.n_values:,}", *numbers, *other)
    return table


def show_usual(found: list[Usual]) -> Table:
    table = _columns("As people train and ask: data frame in, attributions out", "threads", "rows", "rows/s", "spread", "ours /", "difference")
    for each in found:
        table.add_row(f"[bold]{each.model}")
        for speed in (each.ours, each.theirs, each.predict):
            of_peer = (f"{each.ratio:.3g}", f"{each.difference:.0e}") if speed is each.theirs else ("", "")
            table.add_row(*_cells(speed), *of_peer)
    return table


def show_calls(found: list[Calls]) -> Table:
    """Milliseconds of a call."""
    table = _columns(f"Small calls, {found[0].model}: rows in memory, one thread", "rows", "ms", "spread")
    for each in found:
        for speed in (each.ours, each.theirs):
            table.add_row(speed.name, str(each.n_rows), f"{1e3 * speed.seconds:.2f}", "once" if speed.spread is None else f"{speed.spread:.0%}")
    return table


def show_forecasts(found: list[Foreseen]) -> Table:
    """Seconds, and the forecast of everything over what the run took."""
    table = _columns("Forecasts and their runs", "workers", "rows", "forecast s", "run s", *found[0].run, caption="forecast over run")
    for each in found:
        seconds = (f"{said['seconds']:.1f}" for said in (each.forecast, each.run))
        ratios = (f"{each.ratio(name):.2f}" for name in each.run)
        table.add_row(f"{each.model}: {each.method}", str(each.workers), f"{each.n_rows:,}", *seconds, *ratios)
    return table


def show_runs(speeds: list[Speed]) -> Table:
    table = _columns(
        f"Parquet in, Parquet out: {CASES[0].name}", "processes", "rows", "rows/s", "spread", "seconds", "/ by hand", caption=RUNS_CAPTION
    )
    for speed in speeds:
        table.add_row(*_cells(speed), f"{speed.seconds:.1f}", f"{speed.rate / speeds[-1].rate:.3g}")
    return table


def show_memory(found: list[Memory]) -> Table:
    table = _columns("Memory of a worker", "peak MiB", "projected MiB")
    for memory in found:
        table.add_row(f"{memory.n_rows:,} rows", str(memory.peak >> 20), str(memory.projected >> 20))
    return table


def show_first(found: dict[str, First]) -> Table:
    table = _columns("Start of Python to the first attribution, seconds", *First.__annotations__)
    for start, first in found.items():
        table.add_row(STARTS[start], *(f"{getattr(first, column):.2f}" for column in First.__annotations__))
    return table


def show_starts(found: dict[str, float]) -> Table:
    table = _columns("Starts of whole processes", "seconds of processor time")
    for start, seconds in found.items():
        table.add_row(start, f"{seconds:.2f}")
    return table


def show_bars(bars: list[Bar]) -> Table:
    caption = f"a peer is exact where it is within {EXACT:g} of the largest phi; rates on one thread unless said"
    table = _columns("Bars", "", "measured", "bar", "", caption=caption)
    table.columns[1].justify = "left"
    for bar in bars:
        number = f"{bar.measured:.3g}"
        table.add_row(bar.case, bar.what, number, f"{'≤' if bar.most else '≥'} {bar.bar:.3g}", "met" if bar.met else "[bold]missed")
    return table
