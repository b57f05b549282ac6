"""``python -m tests.papers [--quick | --full] [--only NAME]``: print every figure as a table and what it must show, keep the numbers; fail where it
does not."""

import argparse
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.machine import describe_machine
from tests.papers.accuracy import draw_accuracy
from tests.papers.banzhaf import draw_banzhaf
from tests.papers.boosted import draw_boosted
from tests.papers.examples import draw_examples
from tests.papers.explained import draw_explained
from tests.papers.figures import Figure, draw_figures
from tests.papers.gap import draw_gap
from tests.papers.impacts import draw_impacts
from tests.papers.implementations import draw_implementations
from tests.papers.leaf_pairs import draw_leaf_pairs
from tests.papers.marginal import draw_marginal
from tests.papers.one_hot import draw_one_hot
from tests.papers.rankings import draw_rankings
from tests.papers.record import Drawn, columns_of, save, verdict
from tests.papers.removal import draw_removal
from tests.papers.sampling import draw_sampling
from tests.papers.shapes import draw_shapes

DRAWN = (
    draw_explained,
    draw_accuracy,
    draw_leaf_pairs,
    draw_figures,
    draw_rankings,
    draw_boosted,
    draw_examples,
    draw_marginal,
    draw_shapes,
    draw_gap,
    draw_sampling,
    draw_removal,
    draw_banzhaf,
    draw_impacts,
    draw_one_hot,
    draw_implementations,
)
MORE = (draw_explained, draw_accuracy, draw_marginal)  # those that are asked for more where all is drawn in full
PACKAGES = ("scikit-learn", "matplotlib", "mlxtend", "sage-importance", "shap")
FOLDER = Path("build/papers")
WIDTH = 170  # of the tables, also where there is no terminal


def show(figure: Figure) -> Table:
    """Numbers are relative errors, or what the title says."""
    table, columns = Table(), columns_of(figure)
    for name in (*figure.headings, *columns):
        table.add_column(name, justify="right")
    for line in figure.lines:
        numbers = (f"{line.numbers[name]:{figure.digits}}" if name in line.numbers else "" for name in columns)
        table.add_row(*map(str, line.labels), *numbers)
    return table


def _draw(quick: bool, full: bool, only: str) -> Iterator[Drawn]:
    """All figures, or those that one of the functions of this name draws."""
    for draw in DRAWN:
        if only in draw.__name__:
            yield from draw(quick, full=True) if full and draw in MORE else draw(quick)


def main() -> None:
    """Compute, print, compare with the papers, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers", description="The papers' figures as numbers.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer depths, models and rows: less than a minute once kernels are compiled")
    size.add_argument("--full", action="store_true", help="ten times as many repetitions, and CatBoost's own values of depth 12: some hours")
    parser.add_argument("--only", default="", metavar="NAME", help=f"of {', '.join(draw.__name__.removeprefix('draw_') for draw in DRAWN)}")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where numbers, pictures and results.json are written")
    asked = parser.parse_args()
    about = {"quick": asked.quick, "date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": describe_machine(PACKAGES)}
    console, started, drawn, failed = Console(width=max(WIDTH, Console().width)), time.perf_counter(), [], 0
    console.print("Errors: mean over rows of |found - exact| / |exact|; inf where numbers overflowed.\n", highlight=False)
    for figure, claims in _draw(asked.quick, asked.full, asked.only):
        data = f" (other data than the paper's: {figure.other_data})" if figure.other_data else ""
        console.print(f"{figure.title}{data}", highlight=False, soft_wrap=True)
        console.print(show(figure))
        for claim in claims:
            console.print(f"{verdict(figure, claim)}  {claim.text}", highlight=False, soft_wrap=True)
        console.print()
        drawn.append((figure, claims))
        failed += sum(not claim.holds for claim in claims)
    seconds = time.perf_counter() - started
    path = save(asked.folder, drawn, about | {"seconds": round(seconds)})
    console.print(f"{path} written; {seconds:.0f} s in all", highlight=False, soft_wrap=True)
    if failed:
        raise SystemExit(f"{failed} of the claims above do not hold")


if __name__ == "__main__":
    main()
