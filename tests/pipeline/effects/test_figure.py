"""Pictures of curves: well-formed, with every state in its place, whatever the feature is called."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import leafledger
from leafledger.pipeline.effects.figure import LEFT, MOST, RIGHT, draw_curve
from leafledger.pipeline.effects.named_axis import NamedAxis
from tests.pipeline.effects.trained import make_rows, train, train_classes

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("library", ["xgboost", "catboost", "lightgbm"])
def test_pictures_are_well_formed(library):
    """Numbers, categories and missing values; bars as high as shares, within the field."""
    rows = make_rows(300)
    model, _ = train(library, rows)
    found = leafledger.partial_dependence(model, rows)
    for name in rows.columns:
        drawn = ElementTree.fromstring(found.figure(name).svg)
        assert drawn.find(f"{SVG}title").text == f"margin by {name}"
        ground = drawn.find(f"{SVG}rect")
        assert (ground.get("width"), ground.get("height"), ground.get("fill")) == ("640", "400", "#ffffff")
        frame = found.to_frame(name)
        below = frame["share"].where(frame["kind"] == "interval", 0.0).cumsum()  # outermost intervals with next to no values are not drawn
        drawn_ones = (below >= 0.005 * below.iloc[-1]) & (below - frame["share"] <= 0.995 * below.iloc[-1])
        frame = frame[drawn_ones | (frame["kind"] != "interval")] if (frame["kind"] == "interval").any() else frame
        bars = [each for each in drawn.iter(f"{SVG}rect") if each.get("fill") == "#dddddd"]
        assert len(bars) == len(frame)
        heights, widths = (np.array([float(bar.get(of)) for bar in bars]) for of in ("height", "width"))
        for part, tall in ((frame["kind"] == "interval", heights * widths), (frame["kind"] != "interval", heights)):
            if frame["share"][part].sum():
                of_part, shares = tall[part], frame["share"][part]
                np.testing.assert_allclose(of_part / of_part.sum(), shares / shares.sum(), atol=0.02)
        assert all(LEFT - 0.1 <= float(bar.get("x")) <= RIGHT for bar in bars)


def test_outputs_flat_curves_and_many_categories():
    """A line of each output; one that is flat; no more categories than can be read; no mark-up from names."""
    rows = make_rows(300)
    several = leafledger.partial_dependence(train_classes("multiclass", rows), rows)
    assert several.figure("x").svg.count("<path") == 3
    values = several.to_frame("x").groupby("output", sort=False)["value"]
    reach = ", ".join(f"{name} from {low:.4g} to {high:.4g}" for name, low, high in zip(several.outputs, values.min(), values.max(), strict=True))
    assert several.figure("x").alt == f"Mean margin by x: {reach}."
    model, _ = train("lightgbm", rows.assign(w=0.0))
    covered = leafledger.partial_dependence(model, features=["w", "x"], pairs=[("w", "x")])
    assert covered.figure("w").svg.count("<path") == 1
    assert "#dddddd" not in covered.figure("w").svg
    with pytest.raises(leafledger.UsageError, match="is a pair, expected one feature or group"):
        covered.figure(("w", "x"))
    n, nothing = 2 * MOST, np.full(2 * MOST, np.nan)
    axis = NamedAxis("<b>", covered.axes[0].axis, 0, ("category",) * n, nothing, nothing, tuple(f"<{k}>" for k in range(n)), (), None)
    share = np.arange(n) / n
    made = draw_curve(axis, several.curves[0]._replace(value=np.zeros((1, n))), share, ("one",), "margin")
    assert made.count("rotate(-50)") == MOST
    assert "<b>" not in made
    ElementTree.fromstring(made)


@pytest.mark.parametrize(
    ("values", "above", "below"),
    [
        ((270.48, 664.9), ["300", "400", "500", "600"], ["2", "4", "6"]),
        ((0.3111, 0.3535), ["0.32", "0.33", "0.34", "0.35"], ["2", "4", "6"]),
        ((2.5, 2.5), ["2.5"], ["2", "4", "6"]),
        ((1e300, 1.00000000000001e300), ["1e+300", "1e+300"], ["2", "4", "6"]),
    ],
    ids=["hundreds", "shares", "flat", "next to nothing apart"],
)
def test_axes_have_round_numbers(values, above, below):
    """A feature of whole numbers has these below, and rows that are the same everywhere look so at both ends."""
    rows = make_rows(300)
    some = leafledger.partial_dependence(train("lightgbm", rows)[0], rows)
    ends = np.arange(1.5, 6)
    lower, upper = np.append(-np.inf, ends), np.append(ends, np.inf)
    axis = NamedAxis("rooms", some.axes[0].axis, 0, ("interval",) * 6, lower, upper, (None,) * 6, (), None)
    axis = replace(axis, features=some.axes[0].features)
    curve = some.curves[0]._replace(value=np.linspace(*values, 6)[None])
    drawn = ElementTree.fromstring(draw_curve(axis, curve, np.full(6, 1 / 6), ("one",), "margin"))
    texts = {anchor: [each.text for each in drawn.iter(f"{SVG}text") if each.get("text-anchor") == anchor] for anchor in ("end", "middle")}
    assert texts["end"] == above
    assert texts["middle"][:-2] == below
    heights = {each.get("height") for each in drawn.iter(f"{SVG}rect") if each.get("fill") == "#dddddd"}
    assert heights == {"40.0"}


def test_bands_and_local_effects_are_drawn_around_the_mean():
    """All three on one scale: the mean lies in the band, and the heights of all are one straight function of their numbers."""
    rows = make_rows(300)
    found = leafledger.feature_effects(train("lightgbm", rows)[0], rows, features=["x", "colour"])
    drawn = ElementTree.fromstring(found.figure("x").svg)
    band, mean = list(drawn.iter(f"{SVG}path"))
    (line,) = drawn.iter(f"{SVG}polyline")
    states = found.partial_dependence.to_frame("x")
    bands = found.bands("x", [0.05, 0.95])
    ends = bands["at_least"][bands["quantile"] == 0.05].to_numpy(), bands["at_most"][bands["quantile"] == 0.95].to_numpy()
    boxes = [[float(each) for each in re.split("[MHVZ ]", box) if each] for box in band.get("d").split("Z")[:-1]]  # x0 y1 x1 y0 x0
    first = int(np.argmax((states["share"].cumsum() >= 0.005 * states["share"].sum()).to_numpy()))
    some = slice(first, first + len(boxes)) if states["kind"].iloc[-1] != "missing" else slice(first, first + len(boxes) - 1)
    boxes = boxes[: some.stop - some.start]
    centred = (states["value"] - (states["share"] * states["value"]).sum()).to_numpy()
    heights = [float(each.split("H")[0].split(" ")[1]) for each in mean.get("d").split("M")[1:]][: len(boxes)]
    numbers = np.concatenate((ends[1][some], ends[0][some], centred[some]))
    at = np.concatenate(([box[1] for box in boxes], [box[3] for box in boxes], heights))
    slope, origin = np.polyfit(numbers, at, 1)
    np.testing.assert_allclose(slope * numbers + origin, at, atol=0.2)
    assert slope < 0
    local = found.local_effects("x")["value"].to_numpy()
    ys = [float(point.split(",")[1]) for point in line.get("points").split(" ")]
    assert 1 < len(ys) <= local.size
    assert np.abs(slope * local[:, None] + origin - ys).min(axis=0).max() < 0.2
    texts = [each.text for each in drawn.iter(f"{SVG}text")]
    assert {"mean of rows", "5% to 95% of rows", "local effects", "centred margin"} <= set(texts)
    assert "polyline" not in found.figure("colour").svg
    with pytest.raises(leafledger.UsageError, match="output is 'z', expected"):
        found.figure("x", "z")
