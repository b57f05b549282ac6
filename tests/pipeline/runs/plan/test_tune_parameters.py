"""What is left open is chosen once, on the first rows that can be read: the number stands in plan and manifest, and a run is as with that number."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import leafledger
from leafledger.kernels.ranking.rates import candidate_rates
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.planned_run import plan_run
from tests.hypercubes import full_tree
from tests.pipeline.running import as_model, contents

OPEN = {"steps": 6, "rate": "auto", "optimizer": "ascent"}
FUNCTION = full_tree(np.random.default_rng(35).normal(size=8), [0, 1, 2])
FALLING, RISING = [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]  # rows of which the objective falls by large rates, and by none


def frame(*rows):
    """As many of each row as are asked for."""
    return pd.DataFrame(np.repeat([row for row, _ in rows], [n for _, n in rows], axis=0), columns=["f0", "f1", "f2"])


def chosen(data, **options):
    """The parameters in a run's plan."""
    options = {"method": "ranker", "parameters": OPEN, "scheduler": "serial"} | options
    job = make_job("model.txt", data, str(data) + "-run", Options(**options))
    return dict(plan_run(job, as_model(FUNCTION)).plan.parameters)


def by_hand(rows):
    """The largest candidate with which the mean objective of rows never falls, a call for each."""
    for rate in candidate_rates(float(np.abs(FUNCTION.value.max() - FUNCTION.value.min())), False):
        path = leafledger.attribute(as_model(FUNCTION), rows, "ranker", parameters=OPEN | {"rate": rate}).path.mean(axis=0)
        if (np.diff(path, axis=1) >= -1e-9 * path.max()).all():
            return rate
    return None


@pytest.fixture
def write(tmp_path):
    """Files of a data set, in order."""

    def write(*frames):
        folder = tmp_path / f"data{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        for k, some in enumerate(frames):
            some.to_parquet(folder / f"{k}.parquet", index=False)
        return folder

    return write


def test_the_first_rows_choose(write):
    """200 of them, across files, in a run and in memory; those behind have no say."""
    few, many = by_hand(frame((FALLING, 1))), by_hand(frame((RISING, 1)))
    assert few < many
    for first, second, expected in ((RISING, FALLING, many), (FALLING, RISING, few)):
        rows = frame((first, 200), (second, 300))
        assert chosen(write(rows[:150], rows[150:]))["rate"] == expected
        assert leafledger.attribute(as_model(FUNCTION), rows, "ranker", parameters=OPEN).parameters == OPEN | {"rate": expected}
    mixed = frame((RISING, 150), (FALLING, 100))
    assert chosen(write(mixed))["rate"] == by_hand(mixed[:200])


def test_the_paths_that_choose_are_those_of_the_first_rows(write, monkeypatch):
    """As many, in their order, by the rate that is tried, whatever files they are in."""
    rows, followed = frame((FALLING, 2), (RISING, 1), ([0.0, 1.0, 1.0], 2)), []
    monkeypatch.setattr("leafledger.kernels.ranking.rates.never_falls", lambda path: followed.append(path.copy()) or True)
    rate = chosen(write(rows[:2], rows[2:]))["rate"]
    expected = leafledger.attribute(as_model(FUNCTION), rows, "ranker", parameters=OPEN | {"rate": rate}).path
    assert_array_equal(followed[0].transpose(2, 0, 1), expected)


def test_the_rate_of_the_method_that_ranks(write):
    """Of curves it stands in the text of the ranking."""
    data = write(frame((FALLING, 20)))
    rate = chosen(data)["rate"]
    assert chosen(data, method="curves", parameters={"ranking": "ranker:6:auto:ascent"}) == {"ranking": f"ranker:6:{rate}:ascent"}


def test_rows_that_cannot_be_read_have_no_say(write):
    """They are rejected later; those behind them choose. Where there are none at all, any rate is right."""
    data = write(frame((FALLING, 150)), frame((RISING, 150)))
    damaged = bytearray((data / "0.parquet").read_bytes())
    damaged[4:40] = bytes(36)
    (data / "0.parquet").write_bytes(damaged)
    largest = by_hand(frame((RISING, 1)))
    assert chosen(data)["rate"] == largest
    assert chosen(write(frame((FALLING, 0))))["rate"] == largest


def test_a_run_is_as_with_the_number(example, tmp_path):
    """In every byte of its parts, and found sound; done again it finds itself finished."""
    given = {"method": "ranker", "scheduler": "serial"}
    manifest = leafledger.explain(example.model, example.data, tmp_path / "open", parameters=OPEN, **given)
    number = manifest.parameters["rate"]
    leafledger.explain(example.model, example.data, tmp_path / "given", parameters=OPEN | {"rate": number}, **given)
    one, other = contents(tmp_path / "open"), contents(tmp_path / "given")
    assert isinstance(number, float)
    assert one["plan.json"] == other["plan.json"]
    assert {name for name in one if one[name] != other[name]} <= {"manifest.json"}
    assert leafledger.check_run(tmp_path / "open", deep=True).n_again
    assert leafledger.read_run(tmp_path / "open").sample(1).parameters["rate"] == number
    assert leafledger.explain(example.model, example.data, tmp_path / "open", parameters=OPEN, **given) == manifest


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"parameters": {"rate": "fast"}}, r"^parameter 'rate' is 'fast', expected a number, or 'auto'$"),
        ({"parameters": {"steps": "auto"}}, r"^parameter 'steps' is 'auto', expected a number$"),
        ({"method": "shapley", "parameters": {"rate": "auto"}}, r"^method 'shapley' has no parameter 'rate', it takes none$"),
        ({"method": "curves", "parameters": {"ranking": "shapley:auto"}}, "expected at most 0 parameters"),
        ({"background": "model"}, r"^ranker leaves a parameter open, which is chosen while planning, before a background is counted; give a number$"),
    ],
)
def test_what_leaves_nothing_open_is_refused(tmp_path, given, says):
    """In one line, before any data are looked at."""
    with pytest.raises(UsageError, match=says):
        chosen(tmp_path / "data", **given)
