"""What is published: a table that differs is refused, and left as it is."""

import pytest

import leafledger
from leafledger.pipeline.errors import RunConflict
from tests.pipeline.effects.trained import make_rows, train


@pytest.mark.parametrize("name", ["curves.parquet", "figures/feature-00000.svg"])
def test_other_objects_are_in_the_way(tmp_path, name):
    """Of an attempt with other rows, say, whose record was not written."""
    rows = make_rows(300)
    model, _ = train("lightgbm", rows)
    model.save_model(tmp_path / "model.txt")
    rows.to_parquet(tmp_path / "rows.parquet")
    place = tmp_path / "out" / name
    place.parent.mkdir(parents=True)
    place.write_text("something else")
    with pytest.raises(RunConflict, match="exists already and differs from these effects"):
        leafledger.effects(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "out", scheduler="serial")
    assert place.read_text() == "something else"
    assert not (tmp_path / "out" / "effects.json").exists()
