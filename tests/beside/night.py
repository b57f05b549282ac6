"""Two nights of 50,000 flights each, as Parquet, and a model of their delay that saw other ones: the same for every tool."""

from pathlib import Path

import pandas as pd

TARGET = "arr_delay"
NUMBERS = ["month", "day", "hour", "sched_dep_time", "dep_delay", "air_time", "distance", "plane_year", "seats"]
CATEGORIES = ["carrier", "origin", "dest"]  # as numbers, by their frequency: not every tool reads XGBoost's own
FEATURES = [*NUMBERS, *CATEGORIES]
MISSING = -999.0  # in the place of a missing value: shapash draws no feature that has one
N_ROWS, N_TREES, DEPTH = 50_000, 100, 6
BEFORE, NIGHT, TRAINING, MODEL = "before.parquet", "night.parquet", "training.parquet", "model.ubj"


def make_night(folder: Path, n_rows: int = N_ROWS, n_trees: int = N_TREES) -> None:
    """Write both nights, what the model was trained on, and the model. The nights are the year's first flights, in the order of their departure."""
    import xgboost

    from infra.demo import read_flights

    flights = read_flights().sort_values(["time_hour", "carrier", "flight"], kind="stable", ignore_index=True)
    for name in CATEGORIES:
        flights[name] = flights[name].map({value: k for k, value in enumerate(flights[name].value_counts().index)})
    rows = flights[[*FEATURES, TARGET]].fillna(dict.fromkeys(FEATURES, MISSING)).astype("float32")
    folder.mkdir(parents=True, exist_ok=True)
    pieces = {BEFORE: rows[:n_rows], NIGHT: rows[n_rows : 2 * n_rows], TRAINING: rows[2 * n_rows : 4 * n_rows].dropna(subset=[TARGET])}
    for name, piece in pieces.items():
        piece.to_parquet(folder / name, index=False)
    model = xgboost.XGBRegressor(n_estimators=n_trees, max_depth=DEPTH, learning_rate=0.1, random_state=1, n_jobs=2)
    model.fit(pieces[TRAINING][FEATURES], pieces[TRAINING][TARGET]).save_model(folder / MODEL)


def read_night(folder: Path, name: str = NIGHT) -> pd.DataFrame:
    """Read the features of a night."""
    return pd.read_parquet(Path(folder) / name, columns=FEATURES)
