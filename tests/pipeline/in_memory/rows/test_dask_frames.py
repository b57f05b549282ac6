"""A Dask DataFrame is explained partition by partition, by one explainer in its graph."""

import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import dask.dataframe
import lightgbm
import numpy as np
import pandas as pd
import pytest
from distributed import Client

from leafledger import attribute, curves, prediction_gap, prepare
from leafledger.pipeline.errors import SchemaMismatch, UsageError
from tests.pipeline.conftest import FEATURES, train

ROOT = Path(__file__).parents[4]
N = 300


@pytest.fixture(scope="module")
def frame(example):
    """Rows with an index of their own, which is sorted."""
    return example.frame[[*FEATURES, "flight"]][:N].sort_values("flight").set_index("flight", drop=False)


def assert_same(found, expected):
    assert found.columns.equals(expected.columns)
    assert found.index.equals(expected.index)
    assert found.index.name == expected.index.name
    assert found.dtypes.equals(expected.dtypes)
    assert found.to_numpy().tobytes() == expected.to_numpy().tobytes()


def test_partitions_have_the_bits_of_the_whole(example, frame):
    """On threads: index, divisions, columns and types, and nothing is computed before it is asked for."""
    rows = dask.dataframe.from_pandas(frame, npartitions=7)
    found = prepare(example.model)(rows)
    assert isinstance(found, dask.dataframe.DataFrame)
    assert (found.divisions, found.npartitions) == (rows.divisions, 7)
    assert list(found.columns) == FEATURES
    assert_same(found.compute(scheduler="threads"), attribute(example.model, frame).to_frame())


@pytest.mark.slow
def test_workers_have_the_same_bits(example, frame, tmp_path, two_workers):
    """On a cluster of two processes; the explainer's tables travel in the graph, or lie in a folder."""
    rows, expected = dask.dataframe.from_pandas(frame, npartitions=4), attribute(example.model, frame).to_frame()
    with Client(two_workers):
        for tables in (None, tmp_path / "tables"):
            assert_same(prepare(example.model, tables=tables)(rows).compute(), expected)


@pytest.mark.slow
def test_the_graph_has_one_explainer(example, frame):
    """Two hundred partitions do not make two hundred copies of the tables."""
    explainer = prepare(example.model)
    size = len(pickle.dumps(explainer))
    rows = dask.dataframe.from_pandas(
        frame[["delay"]].reindex(range(200)).assign(**dict.fromkeys(FEATURES, 1.0)).assign(carrier="UA"), npartitions=200
    )
    assert rows.npartitions == 200
    tasks = explainer(rows).__dask_graph__()
    sizes = [len(cloudpickle.dumps(task)) for task in dict(tasks).values()]
    assert sum(each > size / 2 for each in sizes) == 1
    assert sorted(sizes)[-2] < size / 10


def test_labels_and_classes(example, frame):
    """Labels are a column; columns of several classes have two levels."""
    rows = dask.dataframe.from_pandas(frame, npartitions=3)
    found = prepare(example.model, "r2")(rows, label="delay", weight="month").compute(scheduler="sync")
    assert_same(found, attribute(example.model, frame, "r2", label="delay", weight="month").to_frame())
    with pytest.raises(UsageError, match="label is a Series, expected the name of a column of the Dask DataFrame"):
        prepare(example.model, "r2")(rows, label=frame["delay"])
    model = train(example.frame, objective="multiclass", num_class=3)
    assert_same(prepare(model)(rows).compute(scheduler="sync"), attribute(model, frame).to_frame())


def test_what_does_not_fit_is_refused_at_once(example, frame):
    """Columns are looked at before anything is computed."""
    with pytest.raises(SchemaMismatch, match="rows: column 'delay' missing"):
        prepare(example.model)(dask.dataframe.from_pandas(frame.drop(columns="delay"), npartitions=2))


@pytest.mark.slow
def test_dask_is_imported_only_by_who_uses_it(example):
    """Rows of other kinds are explained without it."""
    program = "import sys, numpy, leafledger\nleafledger.prepare(sys.argv[1])(numpy.zeros((1, 4)))\nprint('dask.dataframe' in sys.modules)\n"
    said = subprocess.run([sys.executable, "-c", program, example.model], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_unknown_categories_may_be_numbers(frame):
    """Dask says that they are texts, until a partition is there."""
    rows = frame[["distance", "delay"]].assign(kind=pd.Categorical(np.arange(N) % 4))
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1).fit(rows, rows["delay"].fillna(0) + rows["kind"].astype(int))
    lazy = dask.dataframe.from_pandas(rows, npartitions=3)
    found = prepare(model)(lazy.assign(kind=lazy["kind"].cat.as_unknown()))
    assert_same(found.compute(), attribute(model, rows).to_frame())


def test_rows_that_have_to_be_there_are_not_lazy(example, frame):
    """What they would choose is asked for, and a background, as rows of everything else, is refused by what it is."""
    rows = dask.dataframe.from_pandas(frame, npartitions=2)
    with pytest.raises(UsageError, match=r"^rate is left open, which rows choose, and there are none yet; give a number$"):
        attribute(example.model, rows, "ranker", parameters={"rate": "auto"})
    for where, call in (
        ("rows of the background", lambda: attribute(example.model, frame, background=rows)),
        ("rows of the background", lambda: prediction_gap(example.model, frame, data=rows)),
        ("rows", lambda: prediction_gap(example.model, rows)),
        ("rows", lambda: curves(example.model, rows, 0.0)),
    ):
        with pytest.raises(SchemaMismatch, match=rf"^{where} are a Dask DataFrame, .*expected rows in memory, as its compute\(\) makes$"):
            call()
