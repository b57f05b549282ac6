"""Pictures of curves: well-formed, with every state in its place, whatever the feature is called."""

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
        drawn = ElementTree.fromstring(found.figure(name))
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
    assert several.figure("x").count("<path") == 3
    model, _ = train("lightgbm", rows.assign(w=0.0))
    covered = leafledger.partial_dependence(model, features=["w", "x"], pairs=[("w", "x")])
    assert covered.figure("w").count("<path") == 1
    assert "#dddddd" not in covered.figure("w")
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
