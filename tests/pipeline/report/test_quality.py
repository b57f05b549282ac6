"""Missing values are told with what they do to predictions, by the attributions of the rows that lack them."""

import shutil

import lightgbm
import numpy as np
import pandas as pd
import pytest

from leafledger import explain, read_run, report
from leafledger.pipeline.report.figures.scale import write_number, write_share

N = 1000


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """A night without missing values, and one with a tenth of them in one column."""
    folder, rng = tmp_path_factory.mktemp("lacking"), np.random.default_rng(2)
    rows = pd.DataFrame(rng.normal(size=(N, 2)), columns=["late", "far"])
    seen = rows.mask(rng.random((N, 2)) < [0.1, 0.0])
    label = np.where(seen["late"].isna(), 100.0, 5 * rows["late"]) + rows["far"]
    settings = {"verbosity": -1, "num_threads": 1, "seed": 1}
    lightgbm.train(settings, lightgbm.Dataset(seen, label), 30).save_model(folder / "model.txt")
    for name, night in (("before", rows), ("now", seen)):
        night.to_parquet(folder / f"{name}.parquet")
        explain(folder / "model.txt", folder / f"{name}.parquet", folder / name, values=True, scheduler="serial")
    return folder


def test_what_missing_values_do_is_said_in_units_of_the_prediction(nights):
    """The mean attribution of the rows without a value, and of the others, are those of the parts; and their part of the change of the mean."""
    report(nights / "now", against=nights / "before", scheduler="serial")
    page = (nights / "now/report/index.html").read_text()
    frame = read_run(nights / "now").attributions().to_pandas()
    missing = frame["value_late"].isna()
    phi, other = frame["phi_late"][missing].mean(), frame["phi_late"][~missing].mean()
    before = read_run(nights / "before").attributions().to_pandas()
    whole = frame["margin"].mean() - before["margin"].mean()
    said = f"{write_share(missing.mean())} of the rows have no late, in before none."
    assert said in page
    part = write_number(missing.mean() * (phi - other), True, 3)
    moves = f"That moves their prediction by {write_number(phi, True, 3)} on average"
    assert f"{moves}: about {part} of the {write_number(whole, True, 3)} that the mean changed by." in page


def test_the_rest_of_what_a_feature_changed_is_said_too(nights, tmp_path):
    """Where the rows that have a value also moved: their mean attributions on both nights, and the difference."""
    frame = pd.read_parquet(nights / "now.parquet")
    early = pd.read_parquet(nights / "before.parquet").assign(late=lambda rows: rows["late"] - 3)
    early.to_parquet(tmp_path / "early.parquet")
    frame.to_parquet(tmp_path / "now.parquet")
    for name in ("early", "now"):
        explain(nights / "model.txt", tmp_path / f"{name}.parquet", tmp_path / name, values=True, scheduler="serial")
    report(tmp_path / "now", against=tmp_path / "early", names={"rows": {"one": "flight", "many": "flights"}}, scheduler="serial")
    (before, now) = (read_run(tmp_path / name).attributions().to_pandas() for name in ("early", "now"))
    other, was = now["phi_late"][now["value_late"].notna()].mean(), before["phi_late"].mean()
    page = (tmp_path / "now/report/index.html").read_text()
    assert other - was > 5
    means = f"by {write_number(other, True, 3)} on average, in early by {write_number(was, True, 3)}"
    assert f" For the flights that have one, late moves the prediction {means}: about {write_number(other - was, True, 3)} more." in page


def test_the_headline_names_what_made_most_of_it(nights):
    report(nights / "now", against=nights / "before", scheduler="serial")
    page = (nights / "now/report/index.html").read_text()
    assert "<h1>The mean prediction rose from " in page
    assert ", mostly by late</h1>" in page


def test_without_another_run_they_are_told_on_the_mean(nights, tmp_path):
    alone = shutil.copytree(nights / "now", tmp_path / "alone", ignore=shutil.ignore_patterns("after*", "report"))
    report(alone, scheduler="serial")
    page = (alone / "report/index.html").read_text()
    assert "of the rows have no late. That moves" in page
    assert ", while late moves that of the other rows by " in page
    assert " on the mean prediction." in page


def test_nothing_is_said_where_nothing_is_missing(nights):
    report(nights / "before", scheduler="serial")
    page = (nights / "before/report/index.html").read_text()
    assert "No value of a feature that the model uses is missing" in page
    assert "That moves their" not in page
