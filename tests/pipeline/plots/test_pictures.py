"""Pictures of attributions: their marks and labels are those of the numbers, of several outputs, categories and missing values too."""

import numpy as np
import pytest

from leafledger import attribute
from leafledger.pipeline.errors import UsageError
from tests.pipeline.plots.drawn import count, said, texts
from tests.pipeline.plots.models import CLASSES, FRAME, MODEL, NUMBERS, TARGET

FOUND = attribute(MODEL, FRAME, interactions="all")
SEVERAL = attribute(CLASSES, NUMBERS)


def order(svg, names):
    """Labels among names, in the order in which they are drawn."""
    return [text for text in texts(svg) if text in names]


def test_bars_are_the_importances_in_order():
    picture, table = FOUND.plot.bar(), FOUND.importance()
    assert order(picture.svg, FOUND.names) == table["feature"].tolist()
    assert count(picture.svg, "rect", "plain") == 5
    assert picture.alt.startswith(f"{table['feature'][0]} moves the margin most, by ")
    assert said(picture.svg) == (picture.title, f"{picture.alt} {said(picture.svg)[1].removeprefix(picture.alt).strip()}")
    assert count(FOUND.plot.bar(top=2).svg, "rect", "plain") == 2


def test_a_beeswarm_has_a_strip_for_every_feature_that_moves():
    """In the order of importance, with its direction; what moves nothing is left out."""
    picture, table = FOUND.plot.beeswarm(), FOUND.importance()
    moving = table[table["mean_abs"] > 0]["feature"].tolist()
    assert order(picture.svg, FOUND.names) == moving
    assert "idle" not in moving
    assert "high values of income raise it" in picture.alt
    assert count(picture.svg, "path", *(f"v{level}" for level in range(9))) > 9
    assert len(order(FOUND.plot.beeswarm(top=2).svg, FOUND.names)) == 2


def test_a_scatter_of_numbers_has_a_line_and_a_strip_of_missing_values():
    picture = FOUND.plot.scatter("age")
    assert {"none", "value of age", "How age acts"} <= set(texts(picture.svg))
    assert count(picture.svg, "path", "line mean") == 1
    assert "where it is missing" in picture.alt


def test_a_scatter_of_categories_has_a_box_for_each_and_for_missing_values():
    picture = FOUND.plot.scatter("site")
    means = {name: FOUND["site"][(FRAME["site"] == name).to_numpy()].mean() for name in ("Oslo", "Rome", "Bern")}
    means["missing"] = FOUND["site"][FRAME["site"].isna().to_numpy()].mean()
    known = ["Oslo", "Rome", "Bern"]
    assert order(picture.svg, means) == [*sorted(known, key=lambda name: -means[name]), "missing"]
    assert count(picture.svg, "rect", "box") == 4
    assert f"adds most on average as {max(means, key=means.get)}" in picture.alt


def test_a_scatter_is_coloured_by_another_feature():
    assert "high value of income" in texts(FOUND.plot.scatter("age", "income").svg)
    assert {"Oslo", "Rome"} <= set(texts(FOUND.plot.scatter("age", color="site").svg))


def test_a_waterfall_has_the_steps_of_a_row():
    picture, way = FOUND.plot.waterfall(3), FOUND.waterfall(3)
    bars = count(picture.svg, "rect", "up", "down")
    assert bars == len(way.steps)
    assert count(picture.svg, "line", "point") == 2
    assert picture.alt.startswith(f"The margin of row 3 is {way.total:.4g}")
    predicted = CLASSES.predict(NUMBERS)[5]
    assert SEVERAL.plot.waterfall(5).title == f"Row 5, output {predicted}"
    assert SEVERAL.plot.waterfall(5, output=0).title == "Row 5, output 0"


def test_a_heat_map_has_a_line_for_every_feature_that_moves():
    picture = FOUND.plot.heatmap()
    assert order(picture.svg, FOUND.names) == order(FOUND.plot.beeswarm().svg, FOUND.names)
    assert "lowest tenth by margin" in picture.alt


def test_interactions_are_a_matrix_of_pairs_or_bars_of_sets():
    picture = FOUND.plot.interactions()
    sizes = np.abs(FOUND.interactions[:, 0]).mean(axis=0)
    first = FOUND.pairs[int(sizes.argmax())]
    assert picture.alt.startswith(f"{first[0]} and {first[1]} (")
    acting = {name for pair, size in zip(FOUND.pairs, sizes, strict=True) if size > 0 for name in pair}
    assert {text.split("  ")[1] for text in texts(picture.svg) if "  " in text} == acting
    sets = attribute(MODEL, FRAME, interactions="all", order=3).plot.interactions()
    assert count(sets.svg, "circle", "member") >= 2
    assert sets.title == "The largest interactions"


def test_of_several_outputs_the_first_stand_below_each_other():
    """Each with its name; one that is asked for stands alone."""
    assert len(SEVERAL.outputs) == 5
    picture = SEVERAL.plot.bar()
    assert [text for text in texts(picture.svg) if text.startswith("How much")] == [
        f"How much each feature moves predictions, output {k}" for k in range(3)
    ]
    assert picture.alt.endswith("The first 3 of 5 outputs.")
    for k, name in enumerate(("4", 4)):
        alone = SEVERAL.plot.beeswarm(output=name)
        assert alone.title.endswith(", output 4"), k
        assert alone.size[1] < picture.size[1]


def test_losses_and_shares_have_their_own_bars():
    losses = attribute(MODEL, FRAME, space="loss", label=TARGET, background=FRAME[:50])
    assert losses.plot.bar().title == "Which features helped, and which hurt"
    assert count(losses.plot.bar().svg, "rect", "up", "down") >= 3
    assert attribute(MODEL, FRAME, "r2", label=TARGET).plot.bar().title == "What each feature adds to R²"


def test_pictures_of_some_rows_are_of_these():
    few = FOUND[:30]
    assert order(few.plot.bar().svg, FOUND.names) == few.importance()["feature"].tolist()
    assert few.plot.interactions().alt


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda plot: plot.scatter("aeg"), "there is no feature 'aeg', expected one of age, income, rooms, site, idle; did you mean 'age'?"),
        (lambda plot: plot.scatter("age", "aeg"), "there is no feature 'aeg', expected one of age, income, rooms, site, idle; did you mean 'age'?"),
        (lambda plot: plot.scatter(3), "feature is 3, expected the name of a feature"),
        (lambda plot: plot.scatter("age", 3), "color is 3, expected the name of a feature"),
        (lambda plot: plot.scatter("site", "age"), "color is 'age', but colours are for features with numbers, and 'site' has categories"),
        (lambda plot: plot.scatter("idle"), "a scatter plot needs values that differ, and 'idle' has one alone"),
        (lambda plot: plot.bar(top=0), "top is 0, expected a number of at least 1"),
        (lambda plot: plot.bar(output="x"), "output is 'x', expected one of 0, or a position"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, line):
    with pytest.raises(UsageError) as refusal:
        call(FOUND.plot)
    assert str(refusal.value) == line


def test_what_is_not_there_is_not_drawn():
    """Interactions that were not asked for, values of a group, ranks, attributions of 0."""
    plain = attribute(MODEL, FRAME[:5])
    for call, line in (
        (plain.plot.interactions, "plot.interactions needs interactions, and none were asked for; give interactions='all'"),
        (attribute(MODEL, FRAME[:5], "curves").plot.bar, "plot.bar is of attributions, but method 'curves' ranks features"),
        (plain[:0].plot.beeswarm, "a beeswarm is of attributions, and all of them are 0"),
        (plain[:0].plot.heatmap, "a heat map is of attributions, and all of them are 0"),
        (lambda: attribute(MODEL, FRAME[:5], partition={"g": ["age", "site"]}).plot.scatter("g"), "a scatter plot needs values, and 'g' has none"),
        (lambda: attribute(MODEL, FRAME[:5], partition={"g": ["age", "site"]}).plot.scatter("income", "g"), "color needs values, and 'g' has none"),
    ):
        with pytest.raises(UsageError) as refusal:
            call()
        assert str(refusal.value).startswith(line)
