"""How sure values against a background are: in memory, in runs, and whether two standard errors hold what they promise."""

import lightgbm
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute, check_run, explain
from leafledger.kernels.method.jackknife import N_GROUPS, assign_groups
from leafledger.pipeline.errors import InvalidRun, SchemaMismatch, UsageError
from leafledger.pipeline.runs.plan import background
from leafledger.pipeline.runs.records.plan_file import from_json
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import attributions, contents, read_phi


@pytest.fixture(scope="module")
def run(example, background_uri, tmp_path_factory):
    out = tmp_path_factory.mktemp("errors") / "run"
    explain(
        example.model, example.data, out, background=background_uri, background_errors=True, precision="float64", scheduler="serial", ids="flight"
    )
    return out


@pytest.mark.slow
@pytest.mark.more
def test_two_standard_errors_hold_the_populations_value_on_94_of_100_attributions():
    """Backgrounds are drawn from a population whose own values are known. Of t with 19 degrees of freedom, 94.0 % lie within two."""
    rng = np.random.default_rng(3)
    population = rng.normal(size=(20_000, 4))
    population[:, 1] += population[:, 0]
    label = population[:, 0] * population[:, 1] + np.sin(population[:, 2]) + population[:, 3]
    model = lightgbm.LGBMRegressor(n_estimators=8, num_leaves=6, verbose=-1, n_jobs=1).fit(population, label)
    rows = population[:40]
    truth, held = attribute(model, rows, background=population).phi, []
    for _ in range(100):
        sample = population[rng.integers(0, len(population), 300)]
        found = attribute(model, rows, background=sample, background_errors=True)
        held.append(np.abs(found.phi - truth) <= 2 * found.errors)
    assert np.mean(held) == pytest.approx(0.94, abs=0.02)


@pytest.mark.slow
def test_errors_of_a_sorted_background_are_those_of_the_bootstrap():
    """Rows in the order of the feature that matters most, and in turns low and high: errors do not shrink or grow with it."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(600, 2))
    model = lightgbm.LGBMRegressor(n_estimators=8, num_leaves=6, verbose=-1, n_jobs=1).fit(rows, 3 * rows[:, 0] + rows[:, 1])
    samples = (rows[rng.integers(0, 600, 600)] for _ in range(100))
    wanted = np.std([attribute(model, rows[:20], background=sample).phi[:, 0, 0] for sample in samples], axis=0).mean()
    by_size = np.argsort(rows[:, 0])
    for order in (by_size, by_size.reshape(2, 300).T.ravel()):
        found = attribute(model, rows[:20], background=rows[order], background_errors=True).errors[:, 0, 0].mean()
        assert found == pytest.approx(wanted, rel=0.5)  # of 19 degrees of freedom, a third is the most in 95 of 100 cases


@pytest.mark.slow
def test_a_run_has_an_error_beside_every_attribution(run, example, background_rows):
    """They are the jackknife of runs without each lot of the background; values are those of a run without errors."""
    rows = example.frame[FEATURES]
    phi = attribute(example.model, rows, background=background_rows[FEATURES]).phi[:, 0]
    lot = assign_groups(0, len(background_rows), len(background_rows))  # numbered through all files
    without = [attribute(example.model, rows, background=background_rows[FEATURES][lot != k]).phi[:, 0] for k in range(N_GROUPS)]
    wanted = np.sqrt(sum((each - phi) ** 2 for each in without) * (N_GROUPS - 1) / N_GROUPS)
    assert_array_equal(read_phi(run), phi)
    found = attributions(run)
    names = [f"error_{feature}" for feature in FEATURES]
    assert [name for name in found.column_names if name.startswith("error_")] == names
    assert_allclose(np.stack([found[name].to_numpy() for name in names], axis=1), wanted, rtol=1e-9, atol=1e-12)
    summary = pq.read_table(run / "summary" / "background_errors.parquet").to_pandas().set_index("feature")
    means = np.stack([np.abs(each).mean(axis=0) for each in (*without, phi)])
    assert_allclose(summary.loc[FEATURES, "mean_abs"], means[-1], rtol=1e-9)
    assert_allclose(
        summary.loc[FEATURES, "mean_abs_error"], np.sqrt(((means[:-1] - means[-1]) ** 2).sum(axis=0) * (N_GROUPS - 1) / N_GROUPS), rtol=1e-6
    )
    assert_allclose(summary.loc[FEATURES, "error"], wanted.mean(axis=0), rtol=1e-9)
    report = check_run(run, all_rows=True)
    assert report.sound
    assert report.n_again == len(example.frame)


@pytest.mark.slow
def test_in_memory_and_in_a_run_rows_are_dealt_out_alike(run, example, background_rows):
    """However the background is cut into files."""
    one = run.parent / "one.parquet"
    pq.write_table(pa.Table.from_pandas(background_rows[FEATURES], preserve_index=False), one)
    explain(example.model, example.data, run.parent / "one", background=one, background_errors=True, precision="float64", scheduler="serial")
    found = attribute(example.model, example.frame[FEATURES], background=background_rows[FEATURES], background_errors=True)
    for other in (run.parent / "one", run):
        stored = np.stack([attributions(other)[f"error_{feature}"].to_numpy() for feature in FEATURES], axis=1)
        assert_allclose(stored, found.errors[:, 0], rtol=1e-12, atol=1e-14)
    assert found.summaries["background_errors"].num_rows == len(FEATURES)


@pytest.mark.slow
def test_errors_are_the_same_bits_on_a_cluster_and_from_counts_that_were_kept(run, example, background_uri, monkeypatch, two_workers):
    monkeypatch.setattr(background, "ITEM_ROWS", 100)
    given = {"background": background_uri, "background_errors": True, "precision": "float64", "ids": "flight"}
    explain(example.model, example.data, run.parent / "serial" / "run", **given, scheduler="serial")
    explain(example.model, example.data, run.parent / "cluster" / "run", **given, scheduler=two_workers)
    assert contents(run.parent / "serial") == contents(run.parent / "cluster")
    counted = []
    given["progress"] = lambda work: counted.append(work.doing) or (lambda done: None)
    explain(example.model, example.data, run.parent / "serial" / "again", **given, scheduler="serial")
    assert "counting background" not in counted
    monkeypatch.setattr(background, "DEALING", "in turn")  # counts of other lots are not those that are looked for
    explain(example.model, example.data, run.parent / "serial" / "other", **given, scheduler="serial")
    assert "counting background" in counted


def test_what_has_no_errors_is_refused_while_planning(example, background_uri, tmp_path):
    given = {"scheduler": "serial", "background_errors": True}
    for without in (None, "model"):
        with pytest.raises(UsageError, match="background_errors are of a background of rows as a sample, but none was given"):
            explain(example.model, example.data, tmp_path / "run", background=without, **given)
        with pytest.raises(UsageError, match="background_errors are of a background of rows as a sample, but none was given"):
            attribute(example.model, example.frame[FEATURES], background=without, background_errors=True)
    with pytest.raises(UsageError, match="what method 'ranker' finds has no standard errors"):
        explain(example.model, example.data, tmp_path / "run", background=background_uri, method="ranker", **given)
    with pytest.raises(UsageError, match="at least 40 rows, got 39 rows"):
        attribute(example.model, example.frame[FEATURES], background=example.frame[FEATURES][:39], background_errors=True)
    assert not (tmp_path / "run").exists()


def test_columns_of_errors_have_names_of_their_own(example, tmp_path):
    rows = example.frame[["distance", "delay"]].assign(error_distance=1.0)
    model = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(rows[["distance", "delay"]], example.frame["month"])
    model.booster_.save_model(tmp_path / "model.txt")
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / "rows.parquet")
    given = {"background": tmp_path / "rows.parquet", "background_errors": True, "scheduler": "serial", "ids": "error_distance"}
    with pytest.raises(SchemaMismatch, match="output column 'error_distance' would stand twice"):
        explain(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "run", **given)


def test_a_plan_of_errors_without_rows_is_none(run):
    text = (run / "plan.json").read_text()
    start = text.index('"background_digest": "')
    end = text.index('"', start + len('"background_digest": "')) + 1
    with pytest.raises(InvalidRun, match="there are errors of a background, and no rows of one"):
        from_json(text[:start] + '"background_digest": null' + text[end:], "plan.json")
