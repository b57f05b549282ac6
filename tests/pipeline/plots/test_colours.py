"""Colours of a picture as plain numbers, light and dark, which every program that draws SVG knows."""

import re

from leafledger.pipeline.plots.colours import write_plain
from leafledger.pipeline.plots.svg import draw_picture
from leafledger.pipeline.report.page import TEMPLATES
from tests.pipeline.plots.bars import BARS


def read_sheet():
    """Light and dark colours by name, read line by line."""
    light, _, dark = (TEMPLATES / "colours.css").read_text().partition("@media")
    found = [dict(re.findall(r"--([\w-]+): (#\w+)", each)) for each in (light, dark)]
    return found[0], found[0] | found[1]


def test_no_variable_is_left():
    """Neither of style sheets' functions: what an office suite or cairosvg does not know."""
    svg = write_plain(draw_picture(BARS))
    style = svg[svg.index("<style>") : svg.index("</style>")]
    for word in ("var(", "--", "color-mix", ":root", "url("):
        assert word not in style


def test_both_themes_have_the_colours_of_the_report():
    light, dark = read_sheet()
    style = write_plain(draw_picture(BARS))
    day, _, night = style.partition("@media screen and (prefers-color-scheme: dark)")
    for colours, some in ((light, day), (dark, night)):
        for kind, name in (("rect.plain", "bar"), ("rect.up", "up"), ("rect.down", "down"), (".v0", "v0"), (".v8", "v8"), (".soft", "soft")):
            assert f"{kind} {{ fill: {colours[name]} }}" in some
        assert f"path.d2 {{ fill: {colours['bar']}; fill-opacity: 0.28 }}" in some
    assert light["bar"] != dark["bar"]


def test_on_paper_there_is_no_dark():
    svg = write_plain(draw_picture(BARS), dark=False)
    assert "prefers-color-scheme" not in svg
    assert "color-scheme: light }" in svg


def test_what_has_no_style_stays():
    assert write_plain("<svg/>") == "<svg/>"
