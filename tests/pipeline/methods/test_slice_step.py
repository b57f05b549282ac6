"""A slice whose attributions do not add up, or are no numbers, ends the run: the message names file and row, and nothing is published."""

import dataclasses

import numpy as np
import pytest

from leafledger import explain
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import AdditivityBreach


def test_a_breach_of_additivity_stops_the_run(example, tmp_path, monkeypatch):
    """A kernel that is off on one row is caught on that row: the message names file and row, and nothing is published."""
    wrong = METHODS["shapley"]

    def off_on_one_row(buffers, tables):
        wrong.kernel(buffers, tables)
        buffers.phi[0, 0, 17] += 1e-3

    monkeypatch.setitem(METHODS, "shapley", dataclasses.replace(wrong, kernel=off_on_one_row))
    with pytest.raises(AdditivityBreach, match=r"month=1/data\.parquet: row 17: attributions miss margin - base value"):
        explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    assert not (tmp_path / "run" / "manifest.json").exists()
    assert not list((tmp_path / "run").glob("attributions/*"))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_stop_the_run(example, tmp_path, monkeypatch, value):
    """Of a method, too, whose attributions need not add up to anything: the message names file and row, and nothing is published."""
    wrong = METHODS["banzhaf"]

    def off_on_one_row(buffers, tables):
        wrong.kernel(buffers, tables)
        buffers.phi[0, 0, 17] = value

    monkeypatch.setitem(METHODS, "banzhaf", dataclasses.replace(wrong, kernel=off_on_one_row))
    with pytest.raises(
        AdditivityBreach, match=r"month=1/data\.parquet: row 17: its margin or an attribution is infinite or NaN, expected finite numbers$"
    ):
        explain(example.model, example.data, tmp_path / "run", method="banzhaf", scheduler="serial")
    assert not (tmp_path / "run" / "manifest.json").exists()
    assert not list((tmp_path / "run").glob("attributions/*"))
