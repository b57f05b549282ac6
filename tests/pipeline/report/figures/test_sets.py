"""The largest interactions have their bars, members and lines, coloured by which way they go on the whole."""

import itertools

import pytest

from leafledger.pipeline.report.figures.matrix import draw_interactions
from leafledger.pipeline.report.figures.sets import draw_network, draw_sets

SIZES = {"a": 4.0, "b": 1.0, "c": 0.0}


def pair(first, second, size, rank, mean=0.0):
    return {"first": first, "second": second, "mean_abs": size, "mean": mean, "min": -1.0, "max": 1.0, "rank": rank}


ROWS = [pair("b", "c", 1.0, 3, -0.5), pair("a", "b", 4.0, 1, 3.0), pair("c", "a", 2.0, 2, 0.5), pair("a", "d", 0.0, 4)]


def test_bars_are_as_high_as_interactions_and_stand_above_their_members():
    """The largest first; a line for each feature, that which interacts most first, and nothing of what does not."""
    figure = draw_sets(ROWS, "margin")
    assert figure.drawing.names == ("a", "b", "c")
    assert [(column.mark.width, column.members, column.mark.kind) for column in figure.drawing.columns] == [
        (100.0, (0, 1), "up"),
        (50.0, (0, 2), "before"),
        (25.0, (1, 2), "down"),
    ]
    assert [column.at for column in figure.drawing.columns] == pytest.approx([100 / 6, 50, 500 / 6], abs=0.01)
    assert figure.table.rows[0] == ("a and b", "4", "3", "−1", "1")
    assert [kind for kind, _ in figure.drawing.keys] == ["up", "down", "before"]
    assert "left" not in figure.description


def test_a_network_has_a_line_as_wide_as_each_interaction():
    """Between its features, which are circles by the size of their attributions; lines that would not be seen are left out."""
    figure = draw_network([*ROWS, pair("b", "d", 0.1, 5)], SIZES, "margin")
    nodes = {node.label: node for node in figure.drawing.nodes}
    assert [node.radius for node in figure.drawing.nodes] == [14.0, 9.5, 5.0, 5.0]
    at = {label: f"{node.x:g} {node.y:g}" for label, node in nodes.items()}
    assert [line.path for line in figure.drawing.lines] == [f"M{at[first]}L{at[second]}" for first, second in ("bc", "ac", "ab")]
    assert [(line.size, line.kind) for line in figure.drawing.lines] == [(2.25, "down"), (4.5, "before"), (9.0, "up")]
    assert all(node.side == ("right" if node.x > 50 else "left") for node in nodes.values())
    assert "the widest 4 in units of the margin" in figure.description
    assert "3 of 4 interactions are drawn." in figure.description
    assert draw_network(ROWS, {}, "margin").drawing.nodes[0].radius == 5.0


def test_of_many_interactions_the_largest_are_shown():
    """As many as there is room for, and as many features as can be told apart; names stay different."""
    names = [f"{'customer_' * 6}{i}_of_the_last_twelve_months" for i in range(40)]
    rows = [pair(first, second, 1.0 / (k + 1), k + 1) for k, (first, second) in enumerate(itertools.combinations(names, 2))]
    figure, network = draw_sets(rows, "margin"), draw_network(rows, {}, "margin")
    assert len(figure.drawing.columns) == len(figure.table.rows) == 11  # of the first feature with eleven others
    assert len(set(figure.drawing.names)) == len(figure.drawing.names) == len(network.drawing.nodes) == 12
    assert "The first 11 of 780 interactions." in figure.description
    assert figure.table.note == "The first 11 of 780 interactions."
    assert len(network.drawing.lines) <= 30
    assert all(0 <= place <= 100 for node in network.drawing.nodes for place in (node.x, node.y))


@pytest.mark.parametrize("rows", [[], [pair("a", "b", 0.0, 1)], [pair("a", "b", None, 1)]])
def test_nothing_is_drawn_where_nothing_interacts(rows):
    assert draw_sets(rows, "margin") is None
    assert draw_network(rows, SIZES, "margin") is None


def test_two_features_are_no_network():
    """A bar says it all."""
    assert draw_network([pair("a", "b", 1.0, 1)], SIZES, "margin") is None
    assert draw_sets([pair("a", "b", 1.0, 1)], "margin").drawing.names == ("a", "b")


def of_sets(features, size, rank, mean=0.0):
    return {"features": features, "mean_abs": size, "mean": mean, "min": -1.0, "max": 1.0, "rank": rank}


def test_sets_of_three_are_areas():
    """Bars have three members, the network an area as clear as an interaction is large; a feature by itself is no interaction."""
    rows = [of_sets(["a"], 9.0, 1), of_sets(["a", "c"], 4.0, 2), of_sets(["a", "b", "c"], 2.0, 3, -2.0), of_sets(["d", "b", "c", "a"], 1.0, 4)]
    figure, network = draw_sets(rows, "margin"), draw_network(rows, SIZES, "margin")
    assert figure.drawing.names == ("a", "c", "b", "d")
    assert [column.members for column in figure.drawing.columns] == [(0, 1), (0, 1, 2), (0, 1, 2, 3)]
    assert [row[0] for row in figure.table.rows] == ["a and c", "a and b and c", "d and b and c and a"]
    at = {node.label: f"{node.x:g} {node.y:g}" for node in network.drawing.nodes}
    corners = ["L".join(at[name] for name in names) for names in ("acbd", "acb")]  # in their order on the circle, so that sides do not cross
    assert [(area.path, area.size, area.kind) for area in network.drawing.areas] == [
        (f"M{corners[0]}z", 0.2, "before"),
        (f"M{corners[1]}z", 0.4, "down"),
    ]
    assert [line.size for line in network.drawing.lines] == [9.0]
    assert "line" not in draw_network(rows[2:], SIZES, "margin").description
    assert "An area is one of three features or more, the clearer, the larger, up to 2." in network.description


def test_the_matrix_of_pairs_has_those_of_sets_of_two():
    """Others have no cell."""
    figure = draw_interactions([of_sets(["a"], 9.0, 1), of_sets(["a", "c"], 4.0, 2), of_sets(["a", "b", "c"], 2.0, 3)], "margin")
    assert (figure.drawing.names, figure.drawing.cells) == (("a", "c"), ((-1,), (6, -1)))
    assert len(figure.table.rows) == 1
    assert draw_interactions([of_sets(["a", "b", "c"], 2.0, 1)], "margin") is None
