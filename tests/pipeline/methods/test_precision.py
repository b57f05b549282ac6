"""Numbers are published in a precision that holds them, or not at all."""

import json
from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import pytest

from leafledger import explain, load_ensemble
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.methods.precision import check_precision, round_to
from tests.pipeline.running import attributions


def scaled(example, by):
    """The example's model with leaves of other units."""
    model = load_ensemble(example.model)
    return replace(model, ensemble=model.ensemble._replace(value=model.ensemble.value * by, base=model.ensemble.base * by))


@pytest.mark.parametrize(
    ("by", "precision", "says"),
    [
        (1e38, "float32", r"margins may be as large as [\d.]+e\+\d\d, float32 holds 3\.4e\+38; use precision float64$"),
        (1e-35, "float32", r"leaf values are [\d.]+e-\d\d at most, float32 keeps all digits from 9\.86e-32 on; use precision float64$"),
        (1e155, "float64", r"float64 holds 1\.34e\+154; train on a label in other units$"),
        (1e-160, "float64", r"float64 keeps all digits from 1\.49e-154 on; train on a label in other units$"),
    ],
)
def test_margins_that_do_not_fit_are_refused(example, by, precision, says):
    """Too large they would be infinite, too small zero."""
    with pytest.raises(UsageError, match=says):
        check_precision(scaled(example, by), precision)


@pytest.mark.parametrize(
    ("by", "precision"), [(1.0, "float32"), (0.0, "float32"), (1e30, "float32"), (1e-28, "float32"), (1e100, "float64"), (1e-100, "float64")]
)
def test_margins_that_fit_pass(example, by, precision):
    """A model without any effect too."""
    check_precision(scaled(example, by), precision)


@pytest.mark.parametrize(("precision", "most", "least"), [("float32", 2.0**128 - 2.0**104, 2.0**-103), ("float64", 2.0**512, 2.0**-511)])
def test_bounds_are_those_of_the_sum_of_all_trees(example, precision, most, least):
    """As large as a margin may be, and as small as leaves may be, passes; a bit more, or less, does not. Signs and splits do not matter."""
    model = load_ensemble(example.model)

    def check(leaf, base):
        values = np.where(model.ensemble.feature < 0, leaf, np.inf)
        tried = model.ensemble._replace(value=values, feature=np.minimum(model.ensemble.feature, 0), base=np.full_like(model.ensemble.base, base))
        check_precision(replace(model, ensemble=tried), precision)

    most, n_trees = np.nextafter(most, 0), model.ensemble.root.size
    assert n_trees == 8  # so that a share of the bound is exact
    for leaf, base in ((most / 8, 0.0), (-most / 16, -most / 2), (0.0, most), (least, 0.0), (-least, 0.0)):
        check(leaf, base)
    for leaf, base in ((most / 7, 0.0), (-most / 7, 0.0), (most / 16, -most * 0.51), (0.0, -most * 1.1)):
        with pytest.raises(UsageError, match="margins may be as large as"):
            check(leaf, base)
    for leaf in (least * 0.99, -least * 0.99):
        with pytest.raises(UsageError, match="keeps all digits from"):
            check(leaf, 1.0)


def test_rounding_keeps_what_is_finite():
    """What is smaller than the rest may become zero; nothing becomes infinite."""
    assert round_to(np.array([1.0, 1e-50]), np.dtype("float32")).tolist() == [1.0, 0.0]
    assert round_to(np.array([3.0, 1.0]), np.dtype("int32")).dtype == np.int32
    with pytest.raises(UsageError, match=r"^attributions are up to 1e\+39, float32 holds 3\.4e\+38; use precision float64$"):
        round_to(np.array([0.0, -1e39]), np.dtype("float32"))


@pytest.mark.slow
def test_a_label_beyond_float32_is_explained_in_float64(tmp_path):
    """By default it is refused while planning, and nothing is written; in float64 all numbers and summaries are finite."""
    x = np.arange(200) % 10.0
    frame = pd.DataFrame({"x": x, "y": np.arange(200) % 7.0})
    booster = lightgbm.train({"verbosity": -1, "min_data_in_leaf": 5}, lightgbm.Dataset(frame, x * 1e38), 20)
    booster.save_model(tmp_path / "model.txt")
    frame.to_parquet(tmp_path / "rows.parquet")
    given = tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "run"
    with pytest.raises(UsageError, match="use precision float64"):
        explain(*given, scheduler="serial")
    assert not (tmp_path / "run").exists()
    explain(*given, precision="float64", scheduler="serial")
    np.testing.assert_allclose(attributions(tmp_path / "run")["margin"], booster.predict(frame, raw_score=True), rtol=1e-6)
    summary = json.loads((tmp_path / "run" / "summary" / "importance.json").read_text())
    assert all(np.isfinite(value) for row in summary for value in row.values() if isinstance(value, float))
