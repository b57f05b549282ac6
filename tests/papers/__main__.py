"""``python -m tests.papers [--quick]``: print every figure as a table and what it must show; fail where it does not."""

import argparse
import time

from rich.console import Console
from rich.table import Table

from .explained import draw_explained
from .figures import Figure, draw_figures
from .gap import draw_gap
from .marginal import draw_marginal
from .rankings import draw_rankings

DRAWN = (draw_figures, draw_marginal, draw_explained, draw_rankings, draw_gap)
WIDTH = 170  # of the tables, also where there is no terminal


def show(figure: Figure) -> Table:
    """Numbers are relative errors, or what the title says."""
    table = Table(title=figure.title, title_justify="left")
    columns = list(dict.fromkeys(name for line in figure.lines for name in line.numbers))
    columns.sort(key=lambda name: name.startswith("ours"))
    for name in (*figure.headings, *columns):
        table.add_column(name, justify="right")
    for line in figure.lines:
        numbers = (f"{line.numbers[name]:{figure.digits}}" if name in line.numbers else "" for name in columns)
        table.add_row(*map(str, line.labels), *numbers)
    return table


def main() -> None:
    """Compute, print, compare with the papers."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers", description="The papers' figures as numbers.")
    parser.add_argument("--quick", action="store_true", help="fewer depths, models and rows: less than a minute once kernels are compiled")
    quick = parser.parse_args().quick
    console, started, failed = Console(width=max(WIDTH, Console().width)), time.perf_counter(), 0
    console.print("Errors: mean over rows of |found - exact| / |exact|; inf where numbers overflowed.\n", highlight=False)
    for figure, claims in (drawn for draw in DRAWN for drawn in draw(quick)):
        console.print(show(figure))
        for claim in claims:
            console.print(f"{'holds' if claim.holds else 'FAILS'}  {claim.text}", highlight=False, soft_wrap=True)
        console.print()
        failed += sum(not claim.holds for claim in claims)
    console.print(f"{time.perf_counter() - started:.0f} s in all", highlight=False)
    if failed:
        raise SystemExit(f"{failed} of the claims above do not hold")


if __name__ == "__main__":
    main()
