"""Items of effects: rows that are others than were planned are refused; an item's rows are numbered in the whole background."""

import pytest

import leafledger
from leafledger.pipeline.effects import effects as module
from leafledger.pipeline.effects import items
from leafledger.pipeline.errors import InvalidData
from tests.pipeline.effects.trained import make_rows, train


def test_rows_are_numbered_and_counted(tmp_path, monkeypatch):
    """Items that are cut otherwise deal the same rows out to the same lots; a file that lost rows meanwhile is refused."""
    rows = make_rows(300)
    model, _ = train("lightgbm", rows)
    model.save_model(tmp_path / "model.txt")
    (tmp_path / "rows").mkdir()
    for k in range(3):
        rows[100 * k : 100 * (k + 1)].to_parquet(tmp_path / "rows" / f"part-{k}.parquet")
    asked = {"features": ["x"], "scheduler": "serial"}
    leafledger.effects(tmp_path / "model.txt", tmp_path / "rows", tmp_path / "whole", **asked)
    monkeypatch.setattr(module, "ITEM_ROWS", 100)
    leafledger.effects(tmp_path / "model.txt", tmp_path / "rows", tmp_path / "cut", **asked)
    assert (tmp_path / "whole" / "curves.parquet").read_bytes() == (tmp_path / "cut" / "curves.parquet").read_bytes()
    monkeypatch.setattr(items, "read_slices", lambda item, wanted, size: iter(()))
    with pytest.raises(InvalidData, match="rows"):
        leafledger.effects(tmp_path / "model.txt", tmp_path / "rows", tmp_path / "none", **asked)
