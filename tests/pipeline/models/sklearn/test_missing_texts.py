"""Missing texts are known as the steps of a Pipeline were fitted; rows are spelled so in tests of attributions."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder

from leafledger.pipeline.models.sklearn.missing_texts import find_spellings

NEITHER, NONE, NAN = frozenset(), frozenset([None]), frozenset([math.nan])
FRAME = pd.DataFrame(
    {
        "none": pd.Series(["a", None] * 10, dtype=object),
        "whole": pd.Series(["a", "b"] * 10, dtype=object),
        "nan": pd.Series(["a", math.nan] * 10, dtype=object),
        "number": [1.0, math.nan] * 10,
    }
)


def spell(known):
    """NaN is not itself, so that sets of it compare by its text."""
    return [sorted(map(str, each)) for each in known]


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder(), TargetEncoder(cv=2)], ids=str)
def test_encoders_know_what_they_were_fitted_on(encoder):
    """By column, in whatever order steps take them; numbers, and columns without a missing value, have none."""
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    steps = ColumnTransformer([("numbers", scaled, ["number"]), ("texts", encoder, ["nan", "whole", "none"])])
    model = make_pipeline(steps, RandomForestRegressor(2)).fit(FRAME, np.linspace(0, 1, 20))
    assert spell(find_spellings(model[:-1], 4)) == spell([NONE, NEITHER, NAN, NEITHER])


def test_imputers_know_what_they_fill():
    """What follows sees it no more; what several steps know is known as all of it."""
    texts = make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder())
    steps = ColumnTransformer([("first", texts, ["none"]), ("second", OrdinalEncoder(), ["nan"]), ("dropped", "drop", ["number", "whole"])])
    assert spell(find_spellings(make_pipeline(steps).fit(FRAME), 4)) == spell([NONE, NEITHER, NAN, NEITHER])
    late = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()).fit(FRAME[["none"]][:-1])  # None passes by it
    assert spell(find_spellings(late, 1)) == spell([frozenset([None, math.nan])])
