"""Plots of the methods' pages: what a method weighs, and what it gives of a few hundred of February's flights."""

from collections.abc import Sequence
from math import gamma
from pathlib import Path

import numpy as np
import pandas as pd

from leafledger import Model, attribute, curves, load_ensemble, prediction_gap
from leafledger.pipeline.report.figures.figure import Figure, Mark, Plane, Shape, Table, Track, Tracks
from leafledger.pipeline.report.figures.scale import make_axis

ROWS = 300  # flights that are explained
GAP_ROWS = 10
FEATURES = 8  # with bars
LINES = ("mean", "l1")  # kinds of lines of a plane: solid, broken
GROUPS = {"route": ["origin", "dest", "distance", "air_time"], "when": ["month", "day", "hour", "sched_dep_time"], "plane": ["plane_year", "seats"]}


def plot_lines(title: str, said: str, axes: tuple[str, str], x: Sequence[float], lines: dict[str, Sequence[float]]) -> Figure:
    """Up to two lines over one axis, the first of which is solid."""
    across, upright = make_axis(x, zero=True), make_axis((y for line in lines.values() for y in line), zero=True)
    shapes = []
    for kind, line in zip(LINES, lines.values(), strict=False):
        shapes.append(Shape(kind, "M" + "L".join(f"{across.at(at):.4g} {100 - upright.at(y):.4g}" for at, y in zip(x, line, strict=True))))
    zero = upright.at(0.0) if min(map(min, lines.values())) < 0 else None
    plane = Plane(100, 100, (), tuple(shapes), across.ticks(), upright.ticks(4), zero, *axes)
    rows = tuple((f"{at:g}", *(f"{y:.3g}" for y in line)) for at, *line in zip(x, *lines.values(), strict=True))
    return Figure(title, said, plane, Table((axes[0], *lines), rows))


def plot_bars(title: str, said: str, axis: str, sizes: dict[str, float], before: dict[str, float] | None = None) -> Figure:
    """The largest of some numbers of at least 0 as bars, with an upright line each where there is another one to compare with."""
    first = sorted(sizes, key=lambda name: -sizes[name])[:FEATURES]
    across = make_axis([*(sizes[name] for name in first), *((before[name] for name in first) if before else ())], zero=True)
    tracks = []
    for name in first:
        points = (across.at(before[name]),) if before else ()
        tracks.append(Track(name, (Mark(0.0, across.at(sizes[name]), "plain"),), points=points, text=f"{sizes[name]:.3g}"))
    rows = tuple((name, f"{sizes[name]:.3g}", *((f"{before[name]:.3g}",) if before else ())) for name in first)
    heads = ("player", "bar", *(("line",) if before else ()))
    return Figure(title, said, Tracks(tuple(tracks), across.ticks(), None, axis), Table(heads, rows))


def _sizes(model: Model, rows: pd.DataFrame, *given: str, **options: object) -> dict[str, float]:
    """Mean size of every player's attributions."""
    found = attribute(model, rows, *given, **options)
    return dict(zip(found.players, np.abs(found.phi[:, 0]).mean(axis=0).tolist(), strict=True))


def plot_weights() -> Figure:
    """How likely another feature is there, by Shapley and Beta values."""
    share = [k / 50 for k in range(51)]
    beta = [gamma(5) / (gamma(4) * gamma(1)) * (1 - t) ** 3 for t in share]
    said = "Solid: Shapley values, for which every share is as likely. Broken: Beta values with alpha 4, which weigh small coalitions."
    return plot_lines(
        "How many others are there", said, ("share of the others that are present", "density"), share, {"shapley": [1.0] * 51, "beta:4:1": beta}
    )


def plot_methods(demo: Path) -> dict[str, Figure]:
    """A plot for every page, by name."""
    model = load_ensemble(demo / "models" / "lightgbm.txt")
    flights = pd.read_parquet(demo / "flights", filters=[("month", "in", [1, 2])])
    rows, january = flights[flights["month"] == 2].head(ROWS), flights[flights["month"] == 1].head(1000)
    minutes = "minutes, mean size"
    plain = _sizes(model, rows)
    sequence = _sizes(model, rows, "asymmetric", partition={}, parameters={"sequence": list(plain)})
    ranking = curves(model, rows, attribute(model, rows, "ranker").phi)
    some = rows.dropna(subset=["distance", "air_time"]).head(GAP_ROWS)
    scales = [0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0]
    gaps = {
        name: [0.0, *(float(prediction_gap(model, some, features=[name], scale=scale, data=january).mean()) for scale in scales[1:])]
        for name in ("air_time", "distance")
    }
    shapley, banzhaf = (np.abs(attribute(model, rows, method).phi[:, 0]).argsort(axis=1)[:, ::-1] for method in ("shapley", "banzhaf"))
    most = list(range(1, len(plain) + 1))
    common = [float(np.mean([len({*one[:k]} & {*other[:k]}) / k for one, other in zip(shapley, banzhaf, strict=True)])) for k in most]
    steps = list(range(ranking.insertion.shape[-1]))
    return {
        "method-weights": plot_weights(),
        "method-marginal": plot_bars(
            "Against January's flights", "The line is the size in the path-dependent game.", minutes, _sizes(model, rows, background=january), plain
        ),
        "method-groups": plot_bars("Values of groups", "And of what no group names.", minutes, _sizes(model, rows, partition=GROUPS)),
        "method-sequence": plot_bars("One feature after the other", "The line is the size of the Shapley value.", minutes, sequence, plain),
        "method-curves": plot_lines(
            "What a ranking is worth",
            "Solid: features are added from the top of the ranking. Broken: from its bottom.",
            ("features present", "mean margin"),
            steps,
            {"insertion": ranking.insertion[:, 0].mean(axis=0).tolist(), "deletion": ranking.deletion[:, 0].mean(axis=0).tolist()},
        ),
        "method-gaps": plot_lines(
            "How far noise moves predictions",
            "Solid: noise on air_time. Broken: on distance.",
            ("standard deviations of noise", "mean squared change"),
            scales,
            gaps,
        ),
        "method-agreement": plot_lines(
            "Features that two rankings have in common",
            "The first ones by Shapley and Banzhaf values.",
            ("first features", "share"),
            most,
            {"common": common},
        ),
    }
