"""Which columns of a run are measured: totals, attributions of players, values; no scores, no lists."""

import pytest

from leafledger import explain, read_run
from leafledger.pipeline.drift.measure.columns import Column, has_categories, list_columns, lists_categories
from leafledger.pipeline.models.catboost.cityhash import HashedCategory
from leafledger.pipeline.models.model import Feature
from tests.pipeline.conftest import FEATURES


@pytest.fixture(scope="module")
def runs(example, tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    asked = {"all": {"values": True}, "top": {"top": 2, "columns": "top", "values": True}, "curves": {"method": "curves"}}
    for name, options in asked.items():
        explain(example.model, example.data, folder / name, scheduler="serial", **options)
    return {name: list_columns(read_run(folder / name).plan) for name in asked}


def test_columns_are_those_of_the_parts(runs):
    """The margin, a phi for every feature, its values; lists alone have no phi, and curves' areas are no player's."""
    values = [Column(f"value_{name}", "value", "", name) for name in FEATURES]
    phi = [Column(f"phi_{name}", "phi", "0", name) for name in FEATURES]
    assert runs["all"] == (Column("margin", "total", "0", ""), *phi, *values)
    assert runs["top"] == (Column("margin", "total", "0", ""), *values)
    assert [column.name for column in runs["curves"]] == ["margin", *(f"rank_{name}" for name in FEATURES)]


def test_categories_are_told_from_numbers():
    """By what the model says of a feature; those that it knows by hashes or codes alone it does not list."""
    known, codes = Feature("a", True, ("x", "y")), Feature("b", True)
    hashed, looked_up = Feature("c", True, (HashedCategory(1),)), Feature("d", hashed=True)
    assert [has_categories(each) for each in (known, codes, hashed, looked_up, Feature("e"))] == [True, True, True, True, False]
    assert [lists_categories(each) for each in (known, codes, hashed, looked_up, Feature("e"))] == [True, False, False, False, False]
    assert not lists_categories(Feature("a", True, ("x", "y"), partial=True))
