"""The demo's words are of its features, and its months hold what they tell of."""

import tomllib

import pandas as pd
import pyarrow.parquet as pq

from infra.demo import FEATURES, INCIDENT, KNOWN, MONTHS, TRAINED, WORDS, write_departed
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
