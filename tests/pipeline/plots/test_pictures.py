"""Pictures of attributions: their marks and labels are those of the numbers, of several outputs, categories and missing values too."""

from dataclasses import replace
from functools import cache

import lightgbm
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from leafledger import attribute
from leafledger.pipeline.errors import UsageError
from tests.pipeline.plots.drawn import count, said, texts
from tests.pipeline.plots.models import CLASSES, FRAME, MODEL, NUMBERS, TARGET


@cache
def explained():
    """Made by the first test: every process of pytest's imports this."""
    return attribute(MODEL, FRAME, interactions="all")


@cache
def several():
    return attribute(CLASSES, NUMBERS)


def order(svg, names):
    """Labels among names, in the order in which they are drawn."""
    return [text for text in texts(svg) if text in names]


def test_bars_are_the_importances_in_order():
    picture, table = explained().plot.bar(), explained().importance()
    assert order(picture.svg, explained().names) == table["feature"].tolist()
    assert count(picture.svg, "rect", "plain") == 5
    assert picture.alt.startswith(f"{table['feature'][0]} moves the margin most, by ")
    assert said(picture.svg) == (picture.title, f"{picture.alt} {said(picture.svg)[1].removeprefix(picture.alt).strip()}")
    assert count(explained().plot.bar(top=2).svg, "rect", "plain") == 2


def test_a_beeswarm_has_a_strip_for_every_feature_that_moves():
    """In the order of importance, with its direction; what moves nothing is left out."""
    picture, table = explained().plot.beeswarm(), explained().importance()
    moving = table[table["mean_abs"] > 0]["feature"].tolist()
    assert order(picture.svg, explained().names) == moving
    assert "idle" not in moving
    assert "high values of income raise it" in picture.alt
    assert count(picture.svg, "path", *(f"v{level}" for level in range(9))) > 9
    assert len(order(explained().plot.beeswarm(top=2).svg, explained().names)) == 2


def test_a_scatter_of_numbers_has_a_line_and_a_strip_of_missing_values():
    picture = explained().plot.scatter("age")
    assert {"none", "value of age", "How age acts"} <= set(texts(picture.svg))
    assert count(picture.svg, "path", "line mean") == 1
    assert "where it is missing" in picture.alt


def test_a_scatter_of_categories_has_a_box_for_each_and_for_missing_values():
    picture = explained().plot.scatter("site")
    means = {name: explained()["site"][(FRAME["site"] == name).to_numpy()].mean() for name in ("Oslo", "Rome", "Bern")}
    means["missing"] = explained()["site"][FRAME["site"].isna().to_numpy()].mean()
    known = ["Oslo", "Rome", "Bern"]
    assert order(picture.svg, means) == [*sorted(known, key=lambda name: -means[name]), "missing"]
    assert count(picture.svg, "rect", "box") == 4
    assert f"adds most on average as {max(means, key=means.get)}" in picture.alt


def test_a_scatter_is_coloured_by_another_feature():
    assert "high value of income" in texts(explained().plot.scatter("age", "income").svg)
    assert {"Oslo", "Rome"} <= set(texts(explained().plot.scatter("age", color="site").svg))


def test_a_waterfall_has_the_steps_of_a_row():
    picture, way = explained().plot.waterfall(3), explained().waterfall(3)
    bars = count(picture.svg, "rect", "up", "down") - 2  # in the legend
    assert bars == len(way.steps)
    assert count(picture.svg, "line", "point") == 2
    assert picture.alt.startswith(f"The margin of row 3 is {way.total:.4g}")
    predicted = CLASSES.predict(NUMBERS)[5]
    assert several().plot.waterfall(5).title == f"Row 5, output {predicted}"
    assert several().plot.waterfall(5, output=0).title == "Row 5, output 0"


def test_a_heat_map_has_a_line_for_every_feature_that_moves():
    picture = explained().plot.heatmap()
    assert order(picture.svg, explained().names) == order(explained().plot.beeswarm().svg, explained().names)
    assert "lowest tenth by margin" in picture.alt


def test_interactions_are_a_matrix_of_pairs_or_bars_of_sets():
    picture = explained().plot.interactions()
    sizes = np.abs(explained().interactions[:, 0]).mean(axis=0)
    first = explained().pairs[int(sizes.argmax())]
    assert picture.alt.startswith(f"{first[0]} and {first[1]} (")
    acting = {name for pair, size in zip(explained().pairs, sizes, strict=True) if size > 0 for name in pair}
    assert {text.split("  ")[1] for text in texts(picture.svg) if "  " in text} == acting
    sets = attribute(MODEL, FRAME, interactions="all", order=3).plot.interactions()
    assert count(sets.svg, "circle", "member") >= 2
    assert sets.title == "The largest interactions"


def test_of_several_outputs_the_first_stand_below_each_other():
    """Each with its name; one that is asked for stands alone."""
    assert len(several().outputs) == 5
    picture = several().plot.bar()
    assert [text for text in texts(picture.svg) if text.startswith("How much")] == [
        f"How much each feature moves predictions, output {k}" for k in range(3)
    ]
    assert picture.alt.endswith("The first 3 of 5 outputs.")
    for k, name in enumerate(("4", 4)):
        alone = several().plot.beeswarm(output=name)
        assert alone.title.endswith(", output 4"), k
        assert alone.size[1] < picture.size[1]


def test_of_two_classes_that_mirror_each_other_the_second_is_drawn():
    """And the words say what the first one has; of two that do not both are drawn, and one that is asked for is."""
    forest = RandomForestClassifier(6, max_depth=4, random_state=0).fit(NUMBERS, FRAME["income"] > 0)
    found = attribute(forest, NUMBERS)
    picture = found.plot.bar()
    assert picture.title == "How much each feature moves predictions, output True"
    assert picture.size == found.plot.bar(output=0).size
    assert picture.alt.endswith("Output False has the same with the other sign.")
    both = replace(found, phi=found.phi * [[[1.0], [2.0]]])
    assert both.plot.bar().size[1] == 2 * both.plot.bar(output=0).size[1]


def test_rankings_are_drawn_by_mean_places():
    """The first with the shortest bar; they are those of the summary of all rows, and some rows have their own."""
    for method, asked, summary in (("curves", {}, "areas"), ("gap", {"background": FRAME[:20]}, "gaps")):
        found = attribute(MODEL, FRAME[:60], method, **asked)
        table = found.summaries[summary].to_pandas().query("rank > 0").sort_values("rank")
        picture = found.plot.bar()
        assert order(picture.svg, found.names) == table["feature"].tolist()
        assert [text for text in texts(picture.svg) if text in {f"{mean:.3g}" for mean in table["mean"]}]
        assert picture.alt.startswith(f"First in the rows' rankings, by mean place, come {table['feature'].iloc[0]} ({table['mean'].iloc[0]:.3g}), ")
        assert order(found[:9].plot.bar(top=2).svg, found.names) == [found.names[j] for j in found.phi[:9, 0, :5].mean(axis=0).argsort()[:2]]


def test_curves_go_through_the_means_of_rows():
    """Two of a ranking, with their highest and lowest point in words; of the ranker its objective."""
    found = attribute(MODEL, FRAME[:60], "curves")
    picture = found.plot.curves()
    table = found.summaries["curves"].to_pandas().set_index("curve")["mean"]
    assert {"insertion", "deletion", "features present"} <= set(texts(picture.svg))
    assert f" up to {table['insertion'].max():.4g} with {table['insertion'].argmax()} feature" in picture.alt
    assert "down to" in picture.alt
    ranker = attribute(MODEL, FRAME[:60], "ranker")
    assert ranker.plot.curves().title == "How the ranker got there"
    assert f"{ranker.summaries['objective'].to_pandas()['mean'].iloc[-1]:.4g} in 10 steps" in ranker.plot.curves().alt


def test_truth_values_are_told_as_such():
    """In boxes, as colours and in words; a missing one too."""
    rows = NUMBERS.assign(member=np.arange(len(NUMBERS)) % 3 == 0)
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(rows, FRAME["income"] + rows["member"])
    found = attribute(model, rows)
    picture = found.plot.scatter("member")
    assert {"True", "False"} <= set(texts(picture.svg))
    assert picture.alt.startswith("member adds most on average as True, ")
    assert {"True", "False"} <= set(texts(found.plot.scatter("income", color="member").svg))
    assert "high values of member raise it" in found.plot.beeswarm().alt
    lacking = attribute(model, rows.astype({"member": object}).assign(member=[None, *rows["member"][1:]]))
    assert "missing" in texts(lacking.plot.scatter("member").svg)


def test_losses_and_shares_have_their_own_bars():
    losses = attribute(MODEL, FRAME, space="loss", label=TARGET, background=FRAME[:50])
    assert losses.plot.bar().title == "Which features helped, and which hurt"
    assert count(losses.plot.bar().svg, "rect", "up", "down") >= 3
    assert attribute(MODEL, FRAME, "r2", label=TARGET).plot.bar().title == "What each feature adds to R²"


def test_pictures_of_some_rows_are_of_these():
    few = explained()[:30]
    assert order(few.plot.bar().svg, explained().names) == few.importance()["feature"].tolist()
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
        call(explained().plot)
    assert str(refusal.value) == line


def test_what_is_not_there_is_not_drawn():
    """Interactions that were not asked for, values of a group, ranks, attributions of 0."""
    plain = attribute(MODEL, FRAME[:5])
    for call, line in (
        (plain.plot.interactions, "plot.interactions needs interactions, and none were asked for; give interactions='all'"),
        (plain.plot.curves, "plot.curves is of methods 'curves' and 'ranker', but method 'shapley' has no steps"),
        (
            attribute(MODEL, FRAME[:5], "curves").plot.heatmap,
            "plot.heatmap is of attributions, but method 'curves' ranks features; plot.bar() draws mean places, plot.curves() the curves",
        ),
        (
            attribute(MODEL, FRAME[:5], "gap", background=FRAME[:9]).plot.curves,
            "plot.curves is of methods 'curves' and 'ranker', but method 'gap' has no steps",
        ),
        (attribute(MODEL, FRAME[:5], "curves")[:0].plot.curves, "plot.curves is of rows, and there are none"),
        (plain[:0].plot.beeswarm, "a beeswarm is of attributions, and all of them are 0"),
        (plain[:0].plot.heatmap, "a heat map is of attributions, and all of them are 0"),
        (lambda: attribute(MODEL, FRAME[:5], partition={"g": ["age", "site"]}).plot.scatter("g"), "a scatter plot needs values, and 'g' has none"),
        (lambda: attribute(MODEL, FRAME[:5], partition={"g": ["age", "site"]}).plot.scatter("income", "g"), "color needs values, and 'g' has none"),
    ):
        with pytest.raises(UsageError) as refusal:
            call()
        assert str(refusal.value).startswith(line)
