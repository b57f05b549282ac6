"""Two nights whose labels are known: in the second, half of the values of c are not those that labels came of, and fewer rows are late."""

import numpy as np
import pandas as pd
import xgboost

from leafledger import explain, read_run

FEATURES = list("abcd")
WEIGHTED = {"weight": "weight"}


def make_night(rng, n, broken):
    """Rows with labels, some missing."""
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=FEATURES)
    frame["late"] = (frame.a * frame.b + frame.c + rng.normal(size=n) > (0.4 if broken else 0.0)).astype(float)
    frame["weight"], frame["id"] = 1.0 + np.arange(n) % 3, np.arange(n)
    frame["region"] = np.where(np.arange(n) % (3 if broken else 2), "n", "s")
    if broken:
        frame.loc[::2, "c"] = rng.normal(size=(n + 1) // 2)
    frame.loc[::50, "late"] = np.nan
    frame.loc[:19, "region"], frame.loc[:19, "late"] = "unlabelled", np.nan
    return frame


def make_inputs(folder):
    """A model, a background, and both nights."""
    rng = np.random.default_rng(2)
    trained = make_night(rng, 2000, False).dropna()
    model = xgboost.train({"objective": "binary:logistic", "max_depth": 3, "eta": 0.3}, xgboost.DMatrix(trained[FEATURES], trained.late), 12)
    model.save_model(folder / "model.ubj")
    for name, n, broken in (("background", 300, False), ("before", 1500, False), ("now", 1300, True)):
        make_night(rng, n, broken).to_parquet(folder / f"{name}.parquet")


def explain_losses(folder, night, out, **options):
    """A loss run of a night, in double precision."""
    asked = {"space": "loss", "label": "late", "background": folder / "background.parquet", "ids": ["id", "region"], "scheduler": "serial"}
    explain(folder / "model.ubj", folder / f"{night}.parquet", out, **{**asked, **options})
    return out


def read_labelled(folder, night, run):
    """A run's rows that have a label, with the weights that data have."""
    parts, data = read_run(run).attributions().to_pandas(), pd.read_parquet(folder / f"{night}.parquet")
    return parts.merge(data[["id", "weight"]], on="id").dropna()
