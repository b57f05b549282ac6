"""Labels come a week after the night: its losses are a run of their own then, with a place, a ``latest`` and a table of their own."""

import json
from datetime import date

import numpy as np
import pandas as pd
import polars
import pytest

from leafledger.flows.explain import explain
from tests.flows.reading import artifacts_of
from tests.pipeline.drift.loss_nights import make_inputs

STORED = 1e-5  # single precision
NIGHTS = {1: "before", 2: "now", 8: "before"}  # days, and whose rows came then


@pytest.fixture
def folder(tmp_path):
    """What came each night, without labels, and what is known of the first two a week later."""
    make_inputs(tmp_path)
    for day, name in NIGHTS.items():
        rows = pd.read_parquet(tmp_path / f"{name}.parquet")
        for kind, there in (("nightly", rows.drop(columns="late")), ("labelled", rows)):
            (tmp_path / kind / f"2026-01-0{day}").mkdir(parents=True)
            there.to_parquet(tmp_path / kind / f"2026-01-0{day}" / "rows.parquet")
    return tmp_path


def run_night(folder, kind, out, day, **asked):
    """The state of the flow of a day."""
    places = (str(folder / each) for each in ("model.ubj", f"{kind}/{{date}}", f"{out}/date={{date}}"))
    told = {"latest": str(folder / f"{out}.json"), "against": str(folder / f"{out}.json"), "table": "delta", "ids": ["id"], "scheduler": "serial"}
    return explain(*places, date=date(2026, 1, day), report=True, return_state=True, **told, **asked)


def test_losses_of_a_night_are_explained_a_week_later(server, client, folder):
    """The alarm says which feature made the predictions worse; nights and their losses leave one another alone, and are joined by id and date."""
    losses = {"space": "loss", "label": "late", "background": str(folder / "background.parquet")}
    for day in NIGHTS:
        assert run_night(folder, "nightly", "explained", day).is_completed()
    first, worse = (run_night(folder, "labelled", "losses", day, **losses) for day in (1, 2))
    assert (first.name, worse.name) == ("Completed", "Drifted")
    (sentence,) = json.loads((folder / "losses/date=2026-01-02/after/drift.json").read_text())["worse"]
    assert sentence.startswith("the mean loss rose from ")
    assert " by c" in sentence
    assert sentence.partition(" (")[0] in artifacts_of(client, worse)["leafledger-drift"].data.replace("\\", "")
    assert "What made the predictions worse" in (folder / "losses/date=2026-01-02/report/index.html").read_text()
    named = {out: json.loads((folder / f"{out}.json").read_text())["run"] for out in ("explained", "losses")}
    assert named == {"explained": str(folder / "explained/date=2026-01-08"), "losses": str(folder / "losses/date=2026-01-02")}
    tables = [polars.read_delta(str(folder / out)) for out in ("explained", "losses")]
    both = tables[0].join(tables[1], on=["date", "id"], suffix="_of_loss").drop_nulls("loss")
    labels = [pd.read_parquet(folder / f"{NIGHTS[day]}.parquet").late.notna().sum() for day in (1, 2)]
    assert both["date"].value_counts().sort("date")["count"].to_list() == labels
    margin = both["margin"].to_numpy().astype(np.float64)
    expected = np.logaddexp(0.0, margin) - both["label"].to_numpy() * margin
    assert np.abs(both["loss"].to_numpy() - expected).max() < STORED
