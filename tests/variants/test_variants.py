"""Every variant of models is as near to its own library as the documentation says, now and where its table was made."""

import json

import pytest

from docs import generated
from leafledger.pipeline.models import list_loaders
from tests.variants.__main__ import VARIANTS, main, within
from tests.variants.variant import BOUNDS, Measured, measure


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: f"{variant.library}: {variant.name}")
def test_margins_and_attributions_are_the_library_s(variant, tmp_path):
    """On rows with missing values, zeros and categories; more than one feature counts, and where there are categories more than the numbers."""
    found = measure(variant, tmp_path)
    assert within(found), found
    assert found.features >= (4 if "categories" in found.name or "statistics" in found.name else 2)


def test_the_table_is_of_these_variants():
    """Of all of them, of every library that models are read of, and all of it holds."""
    kept = json.loads(generated.VARIANTS.read_text())
    found = [Measured(**each) for each in kept["variants"]]
    assert [(each.library, each.name) for each in found] == [(variant.library, variant.name) for variant in VARIANTS]
    assert len(set(found)) == len(found)
    assert all(map(within, found))
    assert kept["bounds"] == BOUNDS
    assert {each.library.lower() for each in found} == {loader.library for loader in list_loaders()} - {"neutral"}


def test_the_command_writes_the_table_and_fails_with_a_variant(tmp_path, monkeypatch, capsys):
    """A model that is further off than is claimed ends it with a message, and is in the table all the same."""
    for bound in (BOUNDS["XGBoost"], 0.0):
        monkeypatch.setitem(BOUNDS, "XGBoost", bound)
        monkeypatch.setattr("tests.variants.__main__.VARIANTS", VARIANTS[:1])
        monkeypatch.setattr(generated, "VARIANTS", tmp_path / "variants.json")
        if bound:
            main(tmp_path / "variants.json")
        else:
            with pytest.raises(SystemExit, match="some variants are further from their library than is claimed"):
                main(tmp_path / "variants.json")
        assert capsys.readouterr().out.startswith(f"{'holds' if bound else 'FAILS'}  XGBoost, gbtree: margins ")
        said, table = generated.variants().split("\n\n")
        assert said.startswith("1 variants, made by `make variants` with XGBoost ")
        assert table.splitlines()[2].startswith("| XGBoost | gbtree | 1 | 3 | ")
