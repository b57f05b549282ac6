"""Models and attributions that pictures are drawn of: numbers, categories, missing values, several outputs."""

import lightgbm
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

RNG = np.random.default_rng(12)
N = 400
SITE = np.where(np.arange(N) % 9 == 0, None, RNG.choice(["Oslo", "Rome", "Bern"], N, p=[0.6, 0.3, 0.1]))
FRAME = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 10 == 0, np.nan, RNG.normal(50, 10, N)),
        "income": RNG.normal(size=N),
        "rooms": RNG.integers(1, 5, N),
        "site": pd.Categorical(SITE),
        "idle": 1.0,
    }
)
TARGET = FRAME["age"].fillna(80) / 5 * (1 + (FRAME["site"] == "Oslo")) + FRAME["income"] + FRAME["rooms"] / 10
MODEL = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1).fit(FRAME, TARGET)
NUMBERS = FRAME[["income", "rooms"]]
CLASSES = RandomForestClassifier(6, max_depth=4, random_state=0).fit(NUMBERS, np.digitize(FRAME["income"], [-1, -0.3, 0.3, 1]))
