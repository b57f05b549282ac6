"""``python -m tests.bench [--quick] [--cases KEY...] [--marginal [KEY...]] [--rankings [KEY...]] [--interactions] [--gap]
[--effects] [--changes] [--by-row] [--forecasts] [--folder FOLDER]``: measure everything, print, write ``results.json``."""

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from leafledger.pipeline.cluster.resources import count_cores
from tests.bench.bars import (
    TOTALS,
    judge,
    judge_by_row,
    judge_calls,
    judge_changes,
    judge_effects,
    judge_forecasts,
    judge_gaps,
    judge_interactions,
    judge_runs,
    judge_starts,
    judge_usual,
)
from tests.bench.by_row import measure_by_row, show_by_row
from tests.bench.calls import measure_calls
from tests.bench.changes import KEYS, measure_changes, show_changes
from tests.bench.compare import compare
from tests.bench.effects import measure_effects
from tests.bench.forecasts import measure_forecasts
from tests.bench.gap import SIZES, measure_gaps
from tests.bench.interaction_sets import measure_sets
from tests.bench.interactions import measure_interactions
from tests.bench.machine import describe_machine, find_version
from tests.bench.marginal import BACKGROUNDS, QUICK_BACKGROUNDS, measure_marginal
from tests.bench.models import CASES, CATBOOST, MARGINAL, Case, trained
from tests.bench.peers import PEERS
from tests.bench.rankings import measure_rankings
from tests.bench.report import (
    show_bars,
    show_calls,
    show_comparison,
    show_effects,
    show_first,
    show_forecasts,
    show_gaps,
    show_interactions,
    show_marginal,
    show_memory,
    show_preparations,
    show_rankings,
    show_runs,
    show_scaling,
    show_starts,
    show_totals,
    show_usual,
)
from tests.bench.runs import measure_first, measure_memory, measure_warm, race_runs
from tests.bench.scaling import measure_scaling
from tests.bench.starts import measure_starts
from tests.bench.totals import race_totals
from tests.bench.usual import measure_usual

WIDTH = 150  # of the tables, also where there is no terminal
REPEATS, SECONDS = 5, 0.4  # of a contender, and how long a repeat lasts at most, where rows do not cost more
QUICK_REPEATS, QUICK_SECONDS = 3, 0.1
MOST_QUICK_ROWS = 20_000


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Benchmark of kernels and whole runs.")
    keys, marginal = [case.key for case in CASES], [case.key for case in MARGINAL]
    parser.add_argument(
        "--quick", action="store_true", help="the first model only unless named, fewer rows, sizes and repeats: a minute once kernels are compiled"
    )
    parser.add_argument("--cases", nargs="+", choices=keys, metavar="KEY", help=f"these models and nothing else; of {', '.join(keys)}")
    parser.add_argument("--marginal", nargs="*", choices=marginal, metavar="KEY", help=f"the marginal game alone, of these; of {', '.join(marginal)}")
    parser.add_argument("--rankings", nargs="*", choices=keys, metavar="KEY", help="the ranker and curves alone, on these models or all")
    parser.add_argument("--interactions", action="store_true", help="interactions of every two features alone")
    parser.add_argument("--gap", action="store_true", help="the prediction gap alone")
    parser.add_argument("--effects", action="store_true", help="partial dependence alone")
    parser.add_argument("--changes", action="store_true", help="nearest changes alone")
    parser.add_argument("--by-row", action="store_true", help="predictions and losses background row by background row alone")
    parser.add_argument("--forecasts", action="store_true", help="forecasts of runs beside the runs, alone")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"), help="where models are kept and results.json is written")
    return parser.parse_args()


def _choose(cases: Sequence[Case], keys: list[str] | None, first: bool, otherwise: bool) -> list[Case]:
    """Cases by their keys; without any, all or the first where they are asked for otherwise."""
    if keys:
        return [case for case in cases if case.key in keys]
    return list(cases[:1] if first else cases) if otherwise else []


def main() -> None:
    """Measure, print, write."""
    options = _options()
    quick, folder = options.quick, options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # the peers' own
    console, cores, started = Console(width=max(WIDTH, Console().width)), count_cores(), time.perf_counter()
    parts = (options.cases, options.interactions, options.gap, options.effects, options.changes, options.by_row, options.forecasts)
    whole = not any(parts) and options.marginal is None and options.rankings is None
    chosen = _choose(CASES, options.cases, quick and whole, whole)
    marginal_cases = _choose(MARGINAL, options.marginal, quick, whole or options.marginal == [])
    ranked_cases = _choose(CASES, options.rankings, quick, whole or options.rankings == [])
    repeats, seconds = (QUICK_REPEATS, QUICK_SECONDS) if quick else (REPEATS, SECONDS)

    machine = describe_machine(peer.package for peer in PEERS if peer.package)
    results: dict[str, Any] = {"machine": machine, "quick": quick}

    def keep(key: str, found: Any) -> None:
        """Into the file at once: whoever stops the rest has what there is."""
        results[key] = found
        (folder / "results.json").write_text(json.dumps(results, indent=1))

    console.print(", ".join(f"{name} {value}" for name, value in machine.items()), highlight=False)
    console.print(
        "rows/s: medians of interleaved repeats; spread: (slowest - fastest) / median; ours /: rows/s of shapley with bins and margins over the "
        "peer's, / predict: over the model's own predictions, both on as many threads; difference: from ours, of the largest phi\n",
        highlight=False,
    )
    comparisons, totals, marginal, rankings = [], [], [], []
    with ThreadPoolExecutor(cores) as threads:
        for case in chosen:
            comparisons.append(compare(case, folder, threads, cores, repeats, seconds))
            keep("comparisons", [asdict(comparison) for comparison in comparisons])
            console.print(show_comparison(comparisons[-1]))
            if case.library == CATBOOST:
                totals = race_totals(case, folder, tuple(n for n in TOTALS if not quick or n <= MOST_QUICK_ROWS), repeats)
                keep("totals", [asdict(total) for total in totals])
                console.print(show_totals(totals))
    for case in marginal_cases:
        marginal.append(measure_marginal(case, folder, QUICK_BACKGROUNDS if quick else BACKGROUNDS, repeats, seconds))
        keep("marginal", [asdict(found) for found in marginal])
        console.print(show_preparations(marginal[-1]))
        console.print(show_marginal(marginal[-1]))
    for case in ranked_cases:
        rankings.append(measure_rankings(case, folder, repeats))
        keep("rankings", [asdict(found) for found in rankings])
        console.print(show_rankings(rankings[-1]))
    interactions = []
    asked = (*measure_interactions(quick, folder, repeats, seconds), *measure_sets(folder, repeats, seconds)) if whole or options.interactions else ()
    for found in asked:
        interactions.append(found)
        keep("interactions", [asdict(each) for each in interactions])
        console.print(show_interactions(found))
    gaps = list(measure_gaps(folder, repeats, SIZES[:4] if quick else SIZES)) if whole or options.gap else []
    if gaps:
        keep("gaps", [asdict(step) for step in gaps])
        console.print(show_gaps(gaps))
    effects = [measure_effects(repeats, quick)] if whole or options.effects else []
    if effects:
        keep("effects", [asdict(each) | {"ratio": each.ratio} for each in effects])
        console.print(show_effects(effects))
    changes = list(measure_changes(folder, repeats, KEYS[:1] if quick else KEYS)) if whole or options.changes else []
    if changes:
        keep("changes", [asdict(found) for found in changes])
        console.print(show_changes(changes))
    by_row = list(measure_by_row(folder, repeats, quick, find_version("shap") is not None)) if whole or options.by_row else []
    if by_row:
        keep("by_row", [asdict(found) for found in by_row])
        console.print(show_by_row(by_row))
    usual = measure_usual(cores, repeats, quick) if whole else []
    if usual:
        keep("usual", [asdict(found) for found in usual])
        console.print(show_usual(usual))
    forecasts = []
    for found in measure_forecasts(folder, quick) if options.forecasts else ():
        forecasts.append(found)
        keep("forecasts", [asdict(each) for each in forecasts])
    if forecasts:
        console.print(show_forecasts(forecasts))
    bars = judge(comparisons, totals, marginal, rankings, cores) + judge_interactions(interactions) + judge_gaps(gaps) + judge_usual(usual)
    bars += judge_effects(effects) + judge_changes(changes) + judge_by_row(by_row) + judge_forecasts(forecasts)
    if whole:
        calls = list(measure_calls(CASES[0], folder, repeats))
        keep("calls", [asdict(found) for found in calls])
        console.print(show_calls(calls))
        scaling = measure_scaling(folder, repeats, quick)
        keep("scaling", [asdict(step) | {"nanoseconds": step.nanoseconds} for step in scaling])
        console.print(show_scaling(scaling))
        model = trained(CASES[0], folder)
        runs = race_runs(model, 50_000 if quick else 400_000, 2_000 if quick else 10_000, cores, 1 if quick else 3)
        keep("runs", [asdict(speed) for speed in runs])
        console.print(show_runs(runs))
        memory = measure_memory(model, (20_000, 200_000) if quick else (200_000, 2_000_000))
        keep("memory", [asdict(entry) for entry in memory])
        console.print(show_memory(memory))
        starts = measure_warm(model) if quick else measure_first(model, trained(CASES[1], folder), 3)
        keep("first_attribution", {start: asdict(first) for start, first in starts.items()})
        console.print(show_first(starts))
        processes = measure_starts(model, repeats)
        keep("starts", processes)
        console.print(show_starts(processes))
        bars += judge_calls(calls) + judge_runs(runs, starts) + judge_starts(processes)
    keep("bars", [asdict(bar) | {"met": bar.met} for bar in bars])
    console.print(show_bars(bars))
    console.print(f"{folder}/results.json written; {time.perf_counter() - started:.0f} s in all", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
