"""One output for every row, against loops over rows."""

from collections import Counter

import numpy as np
from numpy.testing import assert_array_equal

from leafledger.kernels.slices.buffers import Buffers
from leafledger.kernels.slices.labels import no_labels
from leafledger.kernels.slices.row_outputs import draw_other, find_predicted, keep_outputs, take_outputs

RNG = np.random.default_rng(5)


def splitmix(state: int) -> int:
    """The finaliser of SplitMix64 as Vigna prints it, in Python's own integers."""
    z = state % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_the_predicted_output_has_the_largest_margin_of_equal_ones_the_first():
    margin = np.array([[1.0, 2.0, 0.0], [1.0, 3.0, -1.0], [0.5, 3.0, 4.0]])
    assert find_predicted(margin).tolist() == [0, 1, 2]


def test_the_other_output_is_drawn_by_seed_and_row_from_all_but_the_predicted_one():
    golden = 0x9E3779B97F4A7C15
    margin, rows = RNG.normal(size=(4, 50)), np.arange(50)
    for seed in (0, 7, 2**64 - 1):
        wanted = []
        for row in range(50):
            others = [k for k in range(4) if k != max(range(4), key=lambda k, row=row: margin[k, row])]
            wanted.append(others[splitmix(splitmix(seed + golden) + (row + 1) * golden) % 3])
        assert draw_other(margin, rows, seed).tolist() == wanted
    assert_array_equal(draw_other(margin[:, 20:], rows[20:], 7), draw_other(margin, rows, 7)[20:])  # whatever is read along with a row
    assert (draw_other(margin, rows, 7) != draw_other(margin, rows, 8)).any()
    assert draw_other(margin[:2], rows, 3).tolist() == (1 - find_predicted(margin[:2])).tolist()


def test_draws_are_even():
    """Of 30,000 draws among three, each third is within six standard deviations."""
    counts = Counter(draw_other(np.array([[1.0], [0], [0], [0]]).repeat(30_000, axis=1), np.arange(30_000), 11).tolist())
    assert counts.keys() == {1, 2, 3}
    assert all(abs(n - 10_000) < 6 * (30_000 * 2 / 9) ** 0.5 for n in counts.values())


def test_what_belongs_to_an_output_is_taken_of_every_row():
    output = np.array([2, 0, 1, 1])
    for shape in ((3, 4), (3, 5, 4), (3, 0, 4)):
        values = RNG.normal(size=shape)
        found = take_outputs(values, output)
        assert found.shape == (1, *shape[1:])
        assert found.flags.c_contiguous
        for row, k in enumerate(output):
            assert_array_equal(found[0, ..., row], values[k, ..., row])


def test_all_that_was_found_of_a_row_is_of_its_output():
    """Attributions, with and without every lot of a background, interactions, paths and margins; what is said of the row itself stays."""
    tables = np.zeros((0, 0))
    shapes = {"phi": (3, 2, 4), "pairs": (3, 1, 4), "path": (3, 0, 4), "margin": (3, 4), "ends": (3, 4, 4), "without": (5, 3, 2, 4)}
    filled = {name: RNG.normal(size=shape) for name, shape in shapes.items()}
    buffers = Buffers(
        values=tables, bins=tables, kinds=tables, played=tables, labels=no_labels(4), n_rows=4, scratch=tables, scratch_pairs=tables, **filled
    )
    output = np.array([1, 0, 2, 2])
    found = keep_outputs(buffers, output)
    for row, k in enumerate(output):
        for name in ("phi", "pairs", "path", "margin", "ends"):
            assert_array_equal(getattr(found, name)[0, ..., row], filled[name][k, ..., row])
        assert_array_equal(found.without[:, 0, :, row], filled["without"][:, k, :, row])
    assert found.values is tables
    assert keep_outputs(buffers._replace(without=np.zeros((0, 3, 2, 4))), output).without.shape == (0, 1, 2, 4)
