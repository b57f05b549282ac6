"""What a waterfall prints."""

import numpy as np

from leafledger.pipeline.display.waterfall import Step, Waterfall, plain, shorten_steps, write_whole


def test_the_largest_come_first_and_the_others_are_added_up():
    steps = [Step("a", 1.0, 0.5), Step("b", None, -2.0), Step("c", "x", 0.5), Step("d", 3, 0.0)]
    assert [step.player for step in shorten_steps(steps, 4)] == ["b", "a", "c", "d"]
    assert [step.player for step in shorten_steps(steps, 3)] == ["b", "a", "c", "d"]  # one other has its own name
    assert shorten_steps(steps, 2) == (steps[1], steps[0], Step("2 others", None, 0.5))
    assert shorten_steps([], 3) == ()


def test_it_prints_every_step_with_its_value_and_a_bar():
    found = Waterfall("row 7", 1.5, (Step("pay", 1234.5, -2.0), Step("city", "Bern", 0.5), Step("2 others", None, 0.01)), 0.01, "margin")
    assert repr(found).splitlines() == [
        "row 7",
        "base value            1.5",
        "pay = 1234.5           -2  ████████████████████████",
        "city = Bern          +0.5  ██████",
        "2 others            +0.01",
        "margin               0.01",
    ]
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + 5
    assert "<td>city = Bern</td><td>0.5</td>" in html


def test_numbers_have_all_digits_before_the_point():
    """Days as YYYYMMDD are days, also where a column with missing values has them as floating-point numbers."""
    numbers = [20260105.0, 1234567.89, -999999.5, 999999.25, 0.1234567, 1e15, float("inf")]
    assert [Step("x", number, 0.0).label for number in numbers] == [
        "x = 20260105",
        "x = 1234568",
        "x = -1000000",
        "x = 999999",
        "x = 0.123457",
        "x = 1e+15",
        "x = inf",
    ]


def test_ends_have_all_digits_before_the_point():
    """Of a model of days, or of prices, the base value and the margin would read the same."""
    found = Waterfall("row 1", 20260105.25, (Step("a", None, 2.5),), 20260107.75, "margin")
    first, *_, last = repr(found).splitlines()[1:]
    assert (first.split()[-1], last.split()[-1]) == ("20260105", "20260108")
    assert "<td>base value</td><td>20260105</td>" in found._repr_html_()
    assert [write_whole(number) for number in (99999.4, 123456.7, 0.1234567)] == ["99999", "123457", "0.12346"]


def test_nothing_in_the_data_is_markup_or_a_control_character():
    step = Step("<b>\x1b[31m", "\n", 1.0)
    found = Waterfall("row <i>", 0.0, (step,), 1.0, "margin")
    assert len(repr(found).splitlines()) == 4
    assert "\x1b" not in repr(found)
    assert "<b>" not in found._repr_html_()
    assert "<i>" not in found._repr_html_()


def test_a_row_to_which_nothing_is_added_has_no_bars():
    assert "█" not in repr(Waterfall("row 0", 1.0, (Step("a", None, 0.0),), 1.0, "margin"))


def test_values_are_python_s():
    assert plain(np.float32(0.5)) == 0.5
    assert type(plain(np.int64(3))) is int
    assert plain("x") == "x"


def test_what_rounding_leaves_prints_as_nothing():
    """Beside the numbers that it is added to; the record keeps it, and small numbers of a small row stay."""
    way = Waterfall("row 1", 3.0, (Step("a", None, 1.0), Step("b", None, 6.1954e-19), Step("c", None, -0.0)), 4.0, "margin")
    assert [line.split()[:2] for line in str(way).splitlines()[3:5]] == [["b", "+0"], ["c", "+0"]]
    assert "e-19" not in way._repr_html_()
    assert way.steps[1].phi == 6.1954e-19
    assert "6.1954e-19" in str(Waterfall("row 1", 0.0, (Step("b", None, 6.1954e-19),), 6.1954e-19, "margin"))
