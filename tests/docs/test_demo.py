"""The demo's words are of its features, and its months hold what they tell of."""

import json
import tomllib

import pandas as pd
import pyarrow.parquet as pq

from infra.demo import FEATURES, INCIDENT, KNOWN, MONTHS, TRAINED, WORDS, changes_by_month, write_departed
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.runs.columns.reasons_file import read_reasons


def test_every_feature_has_a_title_and_those_of_the_months_words():
    """Other names would be passed over, and a feature without words refused once the demo has run for half a minute."""
    names = tomllib.loads((WORDS / "names.toml").read_text())
    assert set(names["features"]) == set(FEATURES) >= set(KNOWN)
    assert len({each["title"] for each in names["features"].values()}) == len(FEATURES)
    features = [Feature(name, categorical=name in ("carrier", "origin", "dest")) for name in KNOWN]
    reasons = read_reasons(str(WORDS / "reasons.toml"), KNOWN, features, (), KNOWN)
    assert {each.player for each in reasons.worded} | set(reasons.never) == set(KNOWN)


def test_cancelled_flights_are_in_the_data_of_one_month_alone(tmp_path):
    """Which the model was not trained on."""
    flights = pd.DataFrame({"month": [month for month in range(1, 13) for _ in range(2)], "dep_delay": [5.0, None] * 12})
    write_departed(flights, tmp_path)
    lacking = {month: pq.read_table(tmp_path / f"month={month}/flights.parquet")["dep_delay"].null_count for month in range(1, 13)}
    assert lacking == {month: int(month == INCIDENT) for month in range(1, 13)}
    assert INCIDENT in MONTHS
    assert not set(TRAINED) & set(MONTHS)


def test_what_hardly_moved_a_month_is_not_among_what_moved_it_most(tmp_path):
    """It would be told as +0.0."""
    changes = {"dep_delay": -2.5, "dest": 0.0502, "carrier": -0.0498, "seats": 0.001}
    shifts = [{"kind": "phi", "feature": name, "change": change, "drifted": False} for name, change in changes.items()]
    found = {"outputs": [{"mean": 7.0, "change": -2.4}], "shifts": shifts, "alarms": []}
    (tmp_path / "2013-05/after").mkdir(parents=True)
    (tmp_path / "2013-05/after/drift.json").write_text(json.dumps(found))
    cells = [list(column.cells) for column in changes_by_month(tmp_path).columns]
    assert cells == [["2013-05"], ["7.0 min"], ["-2.4"], ["departure delay -2.5, destination +0.1"], ["none"]]
