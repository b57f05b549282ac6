"""Numbers stay as they are: of every method, game and library, to the last bit, unless the changelog says why."""

import numpy as np
import pytest

from leafledger.kernels.methods import METHODS
from tests.golden.cases import LIBRARIES, compute, list_cases
from tests.golden.numbers import BOUND, NUMBERS, keeps_bits, list_changes, read_numbers, write_numbers

KEPT = read_numbers()
CASES = {case.name: case for case in list_cases()}


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_that_are_kept(name):
    """``python -m tests.golden`` writes them anew, where a change is meant."""
    assert list_changes(KEPT[name], compute(CASES[name]), keeps_bits()) == []


def test_every_method_game_and_library_is_there():
    """And no number is kept of which nothing is computed."""
    assert KEPT.keys() == CASES.keys()
    for name, method in METHODS.items():
        mine = [case for case in CASES.values() if case.method == name]
        assert any(not case.rows_as_background for case in mine)
        assert any(case.rows_as_background for case in mine) == bool(method.games.background or method.perturbs)
        assert any("interactions" in case.asked for case in mine) == bool(method.games.value)
    for library in LIBRARIES:
        assert {case.rows_as_background for case in CASES.values() if case.model == library} == {False, True}


def test_kept_numbers_are_no_zeros():
    """Every array says something; of margins, attributions and base value the sums are what they have to be."""
    for name, arrays in KEPT.items():
        assert all(np.isfinite(value).all() for value in arrays.values()), name
        assert np.abs(arrays["phi"]).sum() > 0, name
        case = CASES[name]
        check = METHODS[case.method].check_of(
            {each.name: each.default for each in METHODS[case.method].parameters} | case.asked.get("parameters", {})
        )
        if check is not None and check.of_margins:
            total = arrays["phi"].sum(axis=2) + arrays["base"]
            np.testing.assert_allclose(total, arrays["prediction"], rtol=0, atol=1e-12 * np.abs(arrays["prediction"]).max())


@pytest.mark.parametrize(
    ("change", "bits", "said"),
    [
        (lambda x: x, True, []),
        (lambda x: np.nextafter(x, np.inf), True, ["phi by 1.1e-16 of its largest number"]),
        (lambda x: np.nextafter(x, np.inf), False, []),
        (lambda x: x * (1 + 10 * BOUND), False, ["phi by 1.0e-12 of its largest number"]),
        (lambda x: x * np.nan, False, ["phi by nan of its largest number"]),
        (lambda x: x[:1], True, ["['phi'], kept are ['phi'], or their shapes differ"]),
    ],
)
def test_changes_are_found(change, bits, said):
    """Of the last bit, where bits are kept; beyond the bound, where they are not; and of shapes."""
    assert list_changes({"phi": np.array([1.0, 2.0])}, {"phi": change(np.array([1.0, 2.0]))}, bits) in (
        said,
        [each.replace("1.1e-16", "2.2e-16") for each in said],
    )


def test_the_file_has_all_bits(tmp_path):
    """Also of what is no number, and of -0."""
    found = {"a": {"x": np.array([[0.1, -0.0], [np.nan, np.inf]]), "y": np.zeros((0, 3))}}
    write_numbers(found, tmp_path / "numbers.json")
    again = read_numbers(tmp_path / "numbers.json")
    assert again["a"]["x"].tobytes() == found["a"]["x"].tobytes()
    assert again["a"]["y"].shape == (0, 3)
    write_numbers(KEPT, tmp_path / "numbers.json")
    assert (tmp_path / "numbers.json").read_text() == NUMBERS.read_text()
