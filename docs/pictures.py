"""Pictures of the pages: figures of a report of February's flights against January's, in SVG, by the report's own code and in its own colours.

``python -m docs.pictures`` draws them anew where the demo's flights and models are, and leaves them as they are elsewhere."""

import json
import re
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pandas

from docs.generated import SCALE
from docs.plots import plot_methods
from leafledger import Picture, attribute, explain, read_run
from leafledger.pipeline.plots.svg import draw_picture
from leafledger.pipeline.report.contents import compose
from leafledger.pipeline.report.figures.figure import Figure, Plane, Shape, Table
from leafledger.pipeline.report.figures.scale import make_axis
from leafledger.pipeline.report.report import LIMITS, gather

FOLDER = Path(__file__).parent / "figures"
GALLERY = Path(__file__).parent / "gallery"
DEMO = Path(__file__).parents[1] / "build" / "demo"
PICTURES = {  # titles of figures
    "report-importance": "How much each feature moves predictions",
    "report-directions": "Which way features move predictions",
    "report-dependence": "How air_time acts",
    "report-interactions": "The largest interactions",
    "report-network": "How features hang together",
    "report-row": "Lowest prediction",
    "drift-mean": "Why the mean prediction changed",
    "drift-columns": "How different each column is",
}
RANKED = 60  # features in the picture of shares


def plot_scale() -> Figure:
    """CPU time of a part, by how many workers there are: the first measurement of every number of workers."""
    cells = {found["cell"]["workers"]: found for found in reversed(json.loads(SCALE.read_text())["cells"])}
    costs = []
    for n, found in sorted(cells.items()):
        each = 1e3 / found["cell"]["parts"]
        costs.append((n, each * (found["scheduler_cpu"] - found["quiet"] * found["seconds"]), each * found["client_cpu"]))
    across, upright = make_axis((n for n, *_ in costs), zero=True), make_axis((cost for _, *both in costs for cost in both), zero=True)
    lines = []
    for kind, which in (("mean", 1), ("l1", 2)):
        points = (f"{across.at(each[0]):g} {100 - upright.at(each[which]):g}" for each in costs)
        lines.append(Shape(kind, "M" + "L".join(points)))
    plane = Plane(100, 100, (), tuple(lines), across.ticks(), upright.ticks(4), None, "workers", "milliseconds of CPU a part")
    rows = tuple((f"{n:,}", f"{scheduler:.2f}", f"{client:.2f}") for n, scheduler, client in costs)
    description = "The solid line is the scheduler, beyond what it takes without work; the broken one the client."
    return Figure("What a part costs the scheduler and the client", description, plane, Table(("workers", "scheduler", "client"), rows))


def plot_shares() -> Figure:
    """Shares of R² by rank, and their sums, as the recipe of docs/methods/r2.md finds them."""
    recipe = (Path(__file__).parent / "methods" / "r2.md").read_text().partition("## From shares to a smaller model")[2]
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()):
        exec(re.findall(r"```python\n(.*?)```", recipe, re.DOTALL)[0], names)  # noqa: S102 - the page's own block: the picture is of what readers type
    shares = names["shares"]["r2"].to_numpy()[:RANKED]
    across, upright = make_axis((0, RANKED), zero=True), make_axis((0, float(shares.sum())), zero=True)
    lines = []
    for kind, heights in (("mean", shares.cumsum()), ("l1", shares)):
        points = (f"{across.at(rank):.4g} {100 - upright.at(height):.4g}" for rank, height in enumerate(heights.tolist(), 1))
        lines.append(Shape(kind, "M" + "L".join(points)))
    plane = Plane(100, 100, (), tuple(lines), across.ticks(), upright.ticks(4), None, "features by rank", "R²")
    rows = tuple((str(rank), f"{share:.3f}", f"{shares[:rank].sum():.3f}") for rank, share in enumerate(shares.tolist(), 1))
    description = "The broken line is the share of a feature, the solid one of all up to it."
    return Figure("Shares of R² by rank, and what they add up to", description, plane, Table(("rank", "share", "together"), rows))


def draw_plots(demo: Path) -> dict[str, Picture]:
    """Draw what docs/figures.md draws, by name."""
    flights = pandas.read_parquet(demo / "flights" / "month=2").assign(month=2).set_index("flight").head(3000)
    plot = attribute(demo / "models" / "lightgbm.txt", flights, interactions="all").plot
    return {
        "bar": plot.bar(),
        "beeswarm": plot.beeswarm(),
        "scatter": plot.scatter("air_time"),
        "colour": plot.scatter("air_time", color="distance"),
        "categories": plot.scatter("carrier"),
        "waterfall": plot.waterfall(3),
        "heatmap": plot.heatmap(),
        "pairs": plot.interactions(),
    }


def draw_gallery(demo: Path) -> dict[str, Picture]:
    """Draw the picture of every page of the gallery, by its own block in a folder of its own, by the page's name."""
    drawn, demo = {}, demo.resolve()
    for page in sorted(GALLERY.glob("*.md")):
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            names: dict[str, Any] = {}
            with tempfile.TemporaryDirectory() as made, chdir(made), redirect_stdout(StringIO()):
                Path("build").mkdir()
                Path("build/demo").symlink_to(demo)
                exec(block, names)  # noqa: S102 - the page's own block: the picture is of what readers type
            drawn[page.stem] = names["picture"]
    return drawn


def draw_pictures(demo: Path) -> dict[str, str]:
    """Explain two months of the demo's flights, and draw the figures of their report, by name."""
    where = {"scheduler": "serial", "workers": None, "plain_tcp": False}
    with tempfile.TemporaryDirectory() as made:
        january, february = Path(made) / "january", Path(made) / "february"
        for month, run in enumerate((january, february), 1):
            data = demo / "flights" / f"month={month}"
            explain(demo / "models" / "lightgbm.txt", data, run, ids=["carrier", "flight"], values=True, interactions=3, scheduler="serial")
        page = compose(gather(read_run(february), january, where), LIMITS[0])
    figures = {figure.title: figure for section in page.sections for figure in section.figures}
    return {f"{name}.svg": draw_picture(figures[title]) for name, title in PICTURES.items()} | {
        "scale.svg": draw_picture(plot_scale()),
        "shares.svg": draw_picture(plot_shares()),
        **{f"{name}.svg": draw_picture(figure) for name, figure in plot_methods(demo).items()},
        **{f"plot-{name}.svg": picture.svg for name, picture in draw_plots(demo).items()},
        **{f"gallery-{name}.svg": picture.svg for name, picture in draw_gallery(demo).items()},
    }


def main() -> None:
    """Draw them anew, or say that they stay."""
    if not all((DEMO / name).exists() for name in ("models/lightgbm.txt", "flights/month=1", "flights/month=2")):
        sys.stderr.write(f"{DEMO} has no flights and models, which make demo brings: pictures stay as they are\n")
        return
    for name, picture in draw_pictures(DEMO).items():
        (FOLDER / name).write_text(picture)


if __name__ == "__main__":
    main()
