"""Runs of predictions and losses with a background: as in memory, the same bits wherever they are made, checked, shown and compared."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute, check_run, drift, explain, read_run, report
from leafledger.pipeline.errors import InvalidLabel, InvalidRun, UnlikeRuns, UsageError
from leafledger.pipeline.runs.check import check_parts

FEATURES = list("abcd")
STORED = 1e-6  # single precision, in which parts hold numbers
SAME = 1e-12


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A model, three files of rows with labels, some missing, and two of a background; and all rows in memory."""
    folder, rng = tmp_path_factory.mktemp("by_row"), np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(1500, 4)), columns=FEATURES)
    late = (frame.a * frame.b + frame.c + rng.normal(size=1500) > 0).astype(float)
    model = xgboost.train({"objective": "binary:logistic", "max_depth": 3, "eta": 0.3}, xgboost.DMatrix(frame, late), 12)
    model.save_model(folder / "model.ubj")
    rows = frame.assign(late=late, weight=1.0 + np.arange(1500) % 3, region=np.where(np.arange(1500) % 2, "n", "s"), id=np.arange(1500))
    rows.loc[::50, "late"] = np.nan
    for name, some in (("data", rows[:900]), ("background", rows[900:])):
        (folder / name).mkdir()
        for k, piece in enumerate(np.array_split(np.arange(len(some)), 3)):
            some.iloc[piece].to_parquet(folder / name / f"{k}.parquet")
    return folder, model, rows


def make(there, out, space, **options):
    """A run."""
    folder, _, _ = there
    labels = {"label": "late"} if space == "loss" else {}
    background = {"background": folder / "background"} if options.pop("against", True) else {}
    return explain(folder / "model.ubj", folder / "data", out, space=space, ids=["id"], **{"scheduler": "serial", **background, **labels, **options})


@pytest.mark.parametrize("space", ["probability", "loss"])
@pytest.mark.slow
def test_a_run_has_what_memory_has(there, tmp_path, space):
    """In parts and manifest, which name the quantity; a deep check explains rows again, from a background that it counts again."""
    _, model, rows = there
    make(there, tmp_path / "run", space)
    given = {"label": rows[:900]["late"]} if space == "loss" else {}
    found = attribute(model, rows[:900][FEATURES], background=rows[900:][FEATURES], space=space, **given)
    parts = read_run(tmp_path / "run").attributions().to_pandas().sort_values("id")
    assert_allclose(parts[[f"phi_{name}" for name in FEATURES]], found.phi[:, 0], rtol=0, atol=STORED)
    assert_allclose(parts["loss" if space == "loss" else "prediction"], found.prediction[:, 0], rtol=0, atol=STORED)
    manifest, checked = json.loads((tmp_path / "run" / "manifest.json").read_text()), check_run(tmp_path / "run", deep=True)
    assert manifest["quantity"] == {"name": "log" if space == "loss" else "sigmoid", "scale": 1.0}
    assert (checked.n_again > 0, checked.total) == (True, "loss" if space == "loss" else "prediction")
    if space == "loss":
        assert manifest["base"] == []
        assert_allclose(parts["base"], found.base[:, 0], rtol=0, atol=STORED)
        assert parts["loss"].isna().sum() == parts["phi_a"].isna().sum() == parts["base"].isna().sum() == 18
    else:
        assert manifest["base"] == pytest.approx(found.base.tolist(), abs=SAME)
        assert manifest["base"][0] == pytest.approx(model.predict(xgboost.DMatrix(rows[900:][FEATURES])).mean(), abs=1e-6)


@pytest.mark.parametrize("space", ["probability", "loss"])
@pytest.mark.slow
def test_bits_do_not_depend_on_where_a_run_is_made(there, tmp_path, space):
    """On one thread, on two, and from counts that were kept: parts and summaries; other spaces keep counts of their own."""
    folder, _, _ = there
    make(there, tmp_path / "one", space, tables=tmp_path / "counts", item_rows="file")
    kept = {path.name for path in (tmp_path / "counts").iterdir()}
    for name, options in (("again", {"tables": tmp_path / "counts"}), ("threads", {"scheduler": None, "threads": 2, "tables": tmp_path / "others"})):
        make(there, tmp_path / name, space, item_rows="file", **options)
        for part in sorted((tmp_path / "one" / "attributions").iterdir()):
            assert part.read_bytes() == (tmp_path / name / "attributions" / part.name).read_bytes()
    assert {path.name for path in (tmp_path / "counts").iterdir()} == kept == {path.name for path in (tmp_path / "others").iterdir()}
    make(there, tmp_path / "margins", "margin", tables=tmp_path / "counts")
    assert len(list((tmp_path / "counts").iterdir())) == 2
    assert (folder / "data").exists()


def test_summaries_count_rows_by_their_weights_and_groups(there, tmp_path):
    """Mean loss, its base and what lies between, over all rows that have a label and by group."""
    make(there, tmp_path / "run", "loss", weight="weight", by=["region"])
    _, _, rows = there
    parts = read_run(tmp_path / "run").attributions().to_pandas().merge(rows[["id", "weight", "region"]], on="id").dropna()
    totals = read_run(tmp_path / "run").manifest.totals["loss"]
    assert totals["mean_loss"] == pytest.approx(np.average(parts["loss"], weights=parts["weight"]), abs=STORED)
    assert totals["mean_base"] == pytest.approx(np.average(parts["base"], weights=parts["weight"]), abs=STORED)
    assert (totals["n"], totals["n_unlabelled"]) == (882, 18)
    shares = pd.read_parquet(tmp_path / "run" / "summary" / "loss.parquet")
    assert shares["mean"].sum() == pytest.approx(totals["mean_loss"] - totals["mean_base"])
    by = pd.read_parquet(tmp_path / "run" / "summary" / "loss_by.parquet").set_index(["region", "feature"])
    for region, some in parts.groupby("region"):
        assert by.loc[(region, "c"), "mean"] == pytest.approx(np.average(some["phi_c"], weights=some["weight"]), abs=STORED)
        assert by.loc[(region, "c"), "n"] == len(some)
    assert set(pd.read_parquet(tmp_path / "run" / "summary" / "importance_by.parquet")["region"]) == {"n", "s"}


@pytest.mark.slow
def test_a_loss_run_can_be_read_shown_and_reported(there, tmp_path):
    """Each row has its own base value; one without a label has none."""
    make(there, tmp_path / "run", "loss", values=True)
    run = read_run(tmp_path / "run")
    sampled = run.sample(40)
    assert sampled.base.shape == (40, 1)
    assert sampled.by_row
    assert_allclose(np.nan_to_num(sampled.phi[:, 0].sum(axis=1) + sampled.base[:, 0] - sampled.prediction[:, 0]), 0.0, atol=1e-5)
    page = report(tmp_path / "run")
    assert page is not None
    text = next((tmp_path / "run").rglob("*.html")).read_text()
    assert "background row by background row" in text
    assert "mean loss" in text


@pytest.mark.slow
def test_damaged_losses_are_found(there, tmp_path):
    """A row whose parts do not add up to its loss, and one that has a loss without a label."""
    make(there, tmp_path / "run", "loss", item_rows="file")
    run = read_run(tmp_path / "run")
    part = sorted((tmp_path / "run" / "attributions").iterdir())[0]
    table = pq.read_table(part)
    asked = type("Asked", (), {"base": (), "bound": run.manifest.bound})
    with pq.ParquetFile(part) as parquet:
        assert check_parts._check_sums("there", run.plan, asked, parquet) < 1e-6
    for column, row in (("base", 3), ("phi_a", 0), ("loss", 0)):  # row 0 has no label
        values = table[column].to_pylist()
        values[row] = 0.5
        changed = table.set_column(table.column_names.index(column), table.schema.field(column), [pa.array(values, pa.float32())])
        pq.write_table(changed, tmp_path / "changed.parquet")
        with (
            pq.ParquetFile(tmp_path / "changed.parquet") as parquet,
            pytest.raises(InvalidRun, match=f"row {row}: attributions miss loss - base value"),
        ):
            check_parts._check_sums("there", run.plan, asked, parquet)


@pytest.mark.slow
def test_nights_of_one_definition_are_compared(there, tmp_path):
    """Losses with losses; neither with predictions, nor predictions along a line with those of background rows."""
    make(there, tmp_path / "first", "loss", weight="weight")
    make(there, tmp_path / "second", "loss", weight="weight")
    found = drift(tmp_path / "second", against=tmp_path / "first")
    assert found.space == "loss"
    make(there, tmp_path / "rows", "probability")
    make(there, tmp_path / "line", "probability", against=False)
    with pytest.raises(UnlikeRuns, match="space is loss"):
        drift(tmp_path / "first", against=tmp_path / "rows")
    with pytest.raises(UnlikeRuns, match=r"way from margins is background row by background row, .* has line"):
        drift(tmp_path / "rows", against=tmp_path / "line")
    with pytest.raises(UsageError, match="of losses every row has its own"):
        drift(tmp_path / "second", against=tmp_path / "first", both_ways=True)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"label": None}, UsageError, "space 'loss' needs labels; name their column with --label"),
        ({"missing_labels": "refuse"}, InvalidLabel, "label 'late' is missing"),
        ({"label": "weight"}, InvalidLabel, "label 'weight' is 2, expected a number from 0 to 1, as the model's loss"),
        ({"against": False}, UsageError, "give a background of rows"),
        ({"method": "banzhaf"}, UsageError, "shares out losses, but what method 'banzhaf'"),
    ],
)
def test_what_has_no_loss_is_refused(there, tmp_path, options, error, says):
    """Before a row is written, or by the row."""
    with pytest.raises(error, match=says):
        make(there, tmp_path / "run", "loss", **options)
    assert not (tmp_path / "run" / "manifest.json").exists()


@pytest.mark.slow
def test_errors_of_the_background_are_of_the_quantity(there, tmp_path):
    """Beside every attribution; a row without a label has none."""
    make(there, tmp_path / "run", "loss", background_errors=True)
    parts = read_run(tmp_path / "run").attributions().to_pandas()
    assert parts["error_a"].isna().sum() == 18
    assert 0 < parts["error_c"].mean() < 0.1
    assert check_run(tmp_path / "run", deep=True).n_again > 0
    summary = pd.read_parquet(tmp_path / "run" / "summary" / "background_errors.parquet")
    assert_array_equal(summary["feature"], FEATURES)
    assert summary.set_index("feature").loc["c", "mean"] == pytest.approx(parts["phi_c"].mean(), abs=STORED)
