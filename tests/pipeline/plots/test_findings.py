"""What a figure shows, in a sentence."""

import numpy as np

from leafledger.pipeline.plots.findings import say_dependence, say_directions, say_ends, say_parts, say_shares, say_sizes, say_together, say_way


def test_sizes_name_the_first_features():
    said = say_sizes(["a", "b", "c", "d"], [2.0, 1.0, 0.5, 0.1], [0.55, 0.28, 0.14, 0.03], "margin")
    assert said == "a moves the margin most, by 2 on average, 55% of all; then b (1) and c (0.5)."
    assert say_sizes(["a"], [2.0], [1.0], "margin") == "a moves the margin most, by 2 on average, 100% of all."
    assert say_sizes([], [], [], "margin") == "No feature moves the margin."


def test_losses_and_shares_name_theirs():
    assert say_parts(["a", "b"], [-0.5, 0.25]) == "a (−0.5) made the mean loss smaller most; b (+0.25) made it larger."
    assert say_shares(["a", "b"], [0.5, 0.2]) == "Of R² most comes from a (0.5) and b (0.2)."


def test_directions_follow_rank_correlations():
    said = say_directions(["a", "b", "c"], [0.9, -0.8, 0.1], "margin")
    assert said == "What moves the margin most: high values of a raise it, high values of b lower it, values of c go both ways."
    assert "values of a have no order" in say_directions(["a"], [np.nan], "margin")


def test_a_dependence_says_its_ends():
    values = np.r_[np.arange(100.0), np.nan]
    said = say_dependence("age", values, np.r_[np.arange(100.0) - 50, 7.0])
    assert said == "age adds −45.5 on average up to 9.9, and +44.5 from 89.1 on; where it is missing +7."
    sites = np.array(["Oslo", "Rome", None], object)
    assert say_dependence("site", sites, np.array([1.0, -2.0, 0.5])) == "site adds most on average as Oslo, +1, and least as Rome, −2."
    assert say_dependence("site", None, np.zeros(2)) == "Attributions of site."


def test_a_way_has_its_largest_steps():
    said = say_way("row 7", 2.0, 5.0, "margin", [("age = 57", 4.0), ("job = cook", -1.0)])
    assert said == "The margin of row 7 is 5, the base value 2: age = 57 raises it by 4 and job = cook lowers it by 1."
    assert say_way("row 7", 2.0, 2.0, "margin", [("age = 57", 0.0)]).endswith(": nothing moves it.")


def test_ends_and_what_acts_together():
    said = say_ends(["a", "b"], np.array([-3.0, 1.0]), np.array([1.0, 2.0]), "margin")
    assert said == "a moves the lowest tenth by margin most, by −3 on average; b moves the highest tenth by margin most, by +2 on average."
    assert say_together([("a", "b"), ("a", "c")], [2.0, 1.0]) == "a and b (2) act together most; then a and c (1)."
