"""Figures of a report as SVG: every kind of drawing has its marks, labels and legend, and several stand one below the other."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from leafledger.pipeline.plots.svg import KINDS, MARGIN, TEXT, TITLE, TRACK, WIDTH, draw_picture, measure
from leafledger.pipeline.report.figures.figure import Drawing, Figure, Matrix, Plane, Shape, Strip, Strips, Table, Track, Tracks, draw_bar
from leafledger.pipeline.report.figures.scale import Axis
from tests.pipeline.plots.drawn import SVG, count, said, texts

AXIS = Axis(0.0, 10.0)
NOTHING = Table((), ())


def tracks(*names):
    """Bars, one for each name."""
    drawn = tuple(Track(name, (draw_bar(AXIS, 0, 5, "plain"),), text=f"n{i}") for i, name in enumerate(names))
    return Figure("Bars", "They are bars.", Tracks(drawn, AXIS.ticks(), 0.0, "size"), NOTHING)


def test_every_kind_of_drawing_is_drawn():
    assert set(KINDS) == set(Drawing.__args__)


def test_bars_have_labels_and_numbers_in_order():
    svg = draw_picture(tracks("a", "b", "c"))
    assert [text for text in texts(svg) if text in "abc"] == ["a", "b", "c"]
    assert [text for text in texts(svg) if text.startswith("n")] == ["n0", "n1", "n2"]
    assert count(svg, "rect", "plain") == 3
    assert said(svg) == ("Bars", "They are bars.")


def test_long_labels_are_shortened_and_stay_different():
    names = ("od280/od315_of_diluted_wines", "od280/od316_of_diluted_wines")
    labels = [text for text in texts(draw_picture(tracks(*names))) if text.startswith("od280")]
    assert len(set(labels)) == 2
    assert max(map(len, labels)) <= 27


@pytest.mark.parametrize(
    "name", ["W" * 27, "mm_MWMW_mm_WMWM_mmmm_WWWWW", "od280_od315_of_diluted_wine", "年齢と収入と職業と教育と家族と住所の組み合わせの値", "narrow"]
)
def test_no_label_runs_over_the_edge(name):
    """Wide ones are smaller, usual ones stay as they are; a title too."""
    svg = draw_picture(replace(tracks(name), title="Which way " + name * 6))
    title, label = [element for element in ElementTree.fromstring(svg).iter(f"{SVG}text") if name in (element.text or "")]
    wide = name != "narrow"
    assert ("style" in label.attrib) == wide
    if wide:
        for text, full, room in ((label, TEXT, float(label.get("x"))), (title, TITLE, WIDTH - float(title.get("x")))):
            size = float(text.get("style").removeprefix("font-size: ").removesuffix("px"))
            assert size < full
            assert measure(text.text) * size / TEXT <= room - MARGIN + 0.5


def test_pictures_of_several_figures_stand_below_each_other():
    one, two = draw_picture(tracks("a")), draw_picture(tracks("a"), tracks("b", "c"))
    heights = [int(ElementTree.fromstring(svg).get("height")) for svg in (one, two)]
    assert heights[1] == 2 * heights[0] + TRACK
    groups = [group.get("transform") for group in ElementTree.fromstring(two).findall(f"{SVG}g")]
    assert groups == ["translate(0 0)", f"translate(0 {heights[0]})"]
    assert two.count("<style>") == 1


def test_a_matrix_has_a_cell_for_every_pair():
    """Those without interaction are empty; a name is numbered like its column."""
    matrix = Matrix(("a", "b", "c"), ((-1,), (6, -1), (0, 2, -1)), "0", "1.5")
    svg = draw_picture(Figure("Pairs", "", matrix, NOTHING))
    assert count(svg, "rect", "rule") == 3
    assert count(svg, "path", "d6") == 1 + 1  # one in the legend
    assert count(svg, "path", "d2") == 1 + 1
    assert [text for text in texts(svg) if text[-1] in "abc"] == ["1  a", "2  b", "3  c"]
    assert texts(svg)[-2:] == ["0", "1.5"]


@pytest.mark.parametrize(("grey", "swatches"), [("missing", 1), ("", 0)])
def test_a_legend_says_what_colours_mean(grey, swatches):
    strips = Strips((Strip("a", (Shape("v3", "M0 0h1v1z"),)),), 10, AXIS.ticks(), None, "size", coloured=True, shades=("−1", "+1", grey))
    plane = Plane(
        10, 10, (), (Shape("mean", "M0 0"), Shape("l1", "M0 1")), (), (), None, "x", "y", (("mean", "Oslo"), ("l1", "Rome")), ("−1", "+1", grey)
    )
    for drawing in (strips, plane):
        svg = draw_picture(Figure("Colours", "", drawing, NOTHING))
        assert {"−1", "+1", grey} <= set(texts(svg))
        assert count(svg, "path", "unknown") == swatches
        assert count(svg, "path", *(f"v{level}" for level in range(9))) == 9 + (drawing is strips)
    assert {"Oslo", "Rome"} <= set(texts(svg))


def test_lines_are_as_wide_in_every_program():
    """Their points are the picture's own: cairosvg would scale the width as well. They end at the field's edges, where its zero and axis are."""
    plane = Plane(40, 40, (), (Shape("mean", "M0 40L20 20.5L40 0"),), (), (), 0.0, "x", "y")
    root = ElementTree.fromstring(draw_picture(Figure("A line", "", plane, NOTHING)))
    assert not [line for field in root.iter(f"{SVG}g") for line in field if "line" in (line.get("class") or "").split()]
    (line,) = (path for path in root.iter(f"{SVG}path") if path.get("class") == "line mean")
    first, middle, last = ([float(number) for number in point.split()] for point in line.get("d").removeprefix("M").split("L"))
    (zero,) = (mark for mark in root.iter(f"{SVG}line") if mark.get("class") == "zero")
    left, right, bottom = (float(zero.get(name)) for name in ("x1", "x2", "y1"))
    assert (first, last[0]) == ([left, bottom], right)
    assert middle[0] == pytest.approx((left + right) / 2)
    assert bottom - middle[1] == pytest.approx((bottom - last[1]) * 19.5 / 40)
