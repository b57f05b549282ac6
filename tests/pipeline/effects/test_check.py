"""Checks of published effects: what was changed is found, and all can be computed again."""

import json

import pyarrow.parquet as pq
import pytest

import leafledger
from leafledger.pipeline.errors import InvalidRun, NotFinished, NotThere, UsageError
from leafledger.pipeline.stores import storage
from tests.pipeline.effects.trained import make_rows, train


@pytest.fixture
def place(tmp_path):
    """A model, its background, and their effects."""
    rows = make_rows(300)
    train("lightgbm", rows)[0].save_model(tmp_path / "model.txt")
    rows.to_parquet(tmp_path / "rows.parquet")
    asked = {"features": ["x", "colour"], "pairs": [("x", "y")], "trees": (0, 5), "outputs": ["price"], "scheduler": "serial"}
    leafledger.effects(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "out", **asked)
    return tmp_path


def check(place, **given):
    return leafledger.check_effects(place / "out", scheduler="serial", **given)


def rewrite(place, **changed):
    """Change what the record says."""
    record = json.loads((place / "out" / "effects.json").read_text())
    (place / "out" / "effects.json").write_text(json.dumps(record | changed))


def test_sound_effects_are_sound(place):
    """As they are listed, and once more from the model and the background."""
    found = check(place)
    assert (found.n_rows, found.again, found.unverified) == (300, False, ())
    assert {"curves.parquet", "surfaces.parquet", "figures/feature-00002.svg"} <= set(found.objects)
    again = check(place, deep=True)
    assert (again.again, again.unverified, again.objects) == (True, (), found.objects)
    (place / "moved").mkdir()
    (place / "model.txt").rename(place / "moved" / "model.txt")
    assert "model.txt" in check(place, deep=True).unverified[0]
    assert check(place, deep=True, model=place / "moved" / "model.txt").again


def test_objects_that_were_changed_are_found(place):
    """One byte more, other bytes, and none at all."""
    curves = place / "out" / "curves.parquet"
    whole = curves.read_bytes()
    curves.write_bytes(whole + b" ")
    with pytest.raises(InvalidRun, match=r"curves\.parquet: size is \d+, effects\.json says \d+"):
        check(place)
    curves.write_bytes(whole[:-1] + b" ")
    with pytest.raises(InvalidRun, match=r"curves\.parquet: sha256 is "):
        check(place)
    curves.unlink()
    with pytest.raises((InvalidRun, NotThere), match=r"curves\.parquet"):
        check(place)
    rewrite(place, objects={"curves.parquet": 3})
    curves.write_bytes(whole)
    with pytest.raises(InvalidRun, match=r"size is .*, effects\.json says None"):
        check(place)


def test_numbers_that_were_never_computed_are_found(place):
    """A table that was changed together with what the record says of it; and the same table, written by something else, is the same."""
    curves, record = place / "out" / "curves.parquet", json.loads((place / "out" / "effects.json").read_text())

    def put(table):
        pq.write_table(table, curves, compression="gzip")
        entry = {"size": curves.stat().st_size, "sha256": storage.sha256(curves)}
        rewrite(place, objects=record["objects"] | {"curves.parquet": entry})

    table = pq.read_table(curves)
    put(table)
    assert check(place, deep=True).again
    put(table.set_column(table.column_names.index("value"), "value", [[0.0] * table.num_rows]))
    assert not check(place).again
    with pytest.raises(InvalidRun, match=r"curves\.parquet: differs from what was computed again"):
        check(place, deep=True)


def test_what_cannot_be_computed_again_is_said(place):
    """Another version, another background, a record that lacks what was asked for; nothing there; a model that nobody asks for."""
    make_rows(200).to_parquet(place / "rows.parquet")
    assert "rows.parquet: the background is another one by now" in check(place, deep=True).unverified[0]
    rewrite(place, leafledger="0.0.1")
    assert "the effects are of leafledger '0.0.1', this is" in check(place, deep=True).unverified[0]
    record = json.loads((place / "out" / "effects.json").read_text())
    del record["pairs"]
    (place / "out" / "effects.json").write_text(json.dumps(record | {"leafledger": leafledger.__version__}))
    assert check(place, deep=True).unverified == ("nothing was computed again: effects.json does not say what was asked for",)
    with pytest.raises(UsageError, match="a model is given, but nothing is computed again"):
        check(place, model="model.txt")
    with pytest.raises(NotFinished, match="holds no finished effects"):
        leafledger.check_effects(place)


def test_other_objects_than_those_computed_again(place):
    """A picture that the record does not list."""
    record = json.loads((place / "out" / "effects.json").read_text())
    del record["objects"]["figures/feature-00000.svg"]
    (place / "out" / "effects.json").write_text(json.dumps(record))
    with pytest.raises(InvalidRun, match="lists other objects or notes than the same effects computed again"):
        check(place, deep=True)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_cluster_computes_them_beside_the_folder(place):
    """And leaves nothing behind."""
    before = sorted(each.name for each in place.iterdir())
    assert leafledger.check_effects(place / "out", deep=True, workers=1).again
    assert sorted(each.name for each in place.iterdir()) == before
