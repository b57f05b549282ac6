"""Importance as a data frame: what a run's summary says, sorted, with errors; of some rows what NumPy finds."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier

from leafledger import attribute
from leafledger.pipeline.errors import UsageError

RNG = np.random.default_rng(9)
FRAME = pd.DataFrame(RNG.normal(size=(120, 4)), columns=list("abcd"))
TARGET = FRAME["a"] * FRAME["b"] + FRAME["c"]
MODEL = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(FRAME, TARGET)
ABOUT = ["mean_abs", "standard_error", "share", "mean", "std", "min", "max"]


def by_numpy(phi, names):
    """From the attributions of one output, sorted."""
    size = np.abs(phi)
    columns = {"feature": names, "mean_abs": size.mean(axis=0), "standard_error": size.std(axis=0, ddof=1) / np.sqrt(len(phi))}
    columns |= {"share": size.mean(axis=0) / size.mean(axis=0).sum(), "mean": phi.mean(axis=0), "std": phi.std(axis=0)}
    columns |= {"min": phi.min(axis=0), "max": phi.max(axis=0)}
    return pd.DataFrame(columns).sort_values("mean_abs", ascending=False, ignore_index=True)


@pytest.mark.parametrize("some", [slice(None), slice(10, 50)], ids=["all", "some"])
@pytest.mark.parametrize("picked", [False, True])
def test_importance_is_what_numpy_finds(some, picked):
    found = attribute(MODEL, FRAME)[some] if picked else attribute(MODEL, FRAME[some])
    table, wanted = found.importance(), by_numpy(found.phi[:, 0], list("abcd"))
    assert table.columns.tolist() == ["feature", *ABOUT]
    assert table["feature"].tolist() == wanted["feature"].tolist()
    assert_allclose(table[ABOUT].to_numpy(), wanted[ABOUT].to_numpy(), rtol=1e-9, atol=1e-12)


def test_outputs_come_one_after_the_other():
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(FRAME, np.digitize(TARGET, [-1, 1]))
    found = attribute(forest, FRAME)
    for each in (found, found[:]):
        table = each.importance()
        assert table.columns[:2].tolist() == ["feature", "output"]
        assert table["output"].tolist() == [name for name in found.outputs for _ in range(4)]
        for k, name in enumerate(found.outputs):
            wanted = by_numpy(found.phi[:, k], list("abcd"))
            assert table[table["output"] == name]["feature"].tolist() == wanted["feature"].tolist()


def test_errors_of_the_background_stand_beside():
    found = attribute(MODEL, FRAME, background=FRAME[:40], background_errors=True)
    table = found.importance().set_index("feature")
    wanted = found.summaries["background_errors"].to_pandas().set_index("feature")["mean_abs_error"]
    assert_allclose(table["background_error"][wanted.index], wanted)
    assert table["background_error"]["c"] > 0


def test_losses_and_shares_have_their_own_errors():
    """Of losses the error of the mean part; of some rows neither, since rows may have weights."""
    losses = attribute(MODEL, FRAME, space="loss", label=TARGET, background=FRAME[:40])
    table = losses.importance()
    assert table.columns.tolist()[:3] == ["feature", "mean", "standard_error"]
    assert_allclose(table["mean"], losses.phi[:, 0].mean(axis=0)[[list("abcd").index(name) for name in table["feature"]]])
    assert table["mean"].abs().is_monotonic_decreasing
    shares = attribute(MODEL, FRAME, "r2", label=TARGET)
    assert shares.importance().columns.tolist() == ["feature", "r2", "standard_error"]
    assert shares.importance()["r2"].is_monotonic_decreasing
    for found in (losses[:5], shares[:5]):
        with pytest.raises(UsageError, match=r"^importance of what labels are for is of all rows that were explained, and these are some of them"):
            found.importance()


def test_rankings_are_refused():
    with pytest.raises(UsageError, match=r"^importance is of attributions, but method 'curves' ranks features$"):
        attribute(MODEL, FRAME[:5], "curves").importance()
