"""Attributions of Spark's data frames, by a real Spark on this machine: the bits of a run; skipped where there is no PySpark or no Java."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost

import leafledger
import leafledger.spark
from leafledger import explain, prepare
from leafledger.pipeline.errors import SchemaMismatch, UsageError
from tests.pipeline.registering import quiet

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
ROOT = Path(__file__).parents[3]
RNG = np.random.default_rng(4)
FRAME = pd.DataFrame({"a": RNG.normal(size=2000), "b": RNG.integers(0, 9, 2000), "c": pd.Categorical(RNG.choice(["x", "y", "z"], 2000))})
TABLE = pa.Table.from_pandas(FRAME.astype({"c": object}).assign(id=range(2000)), preserve_index=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The file of a model of numbers, integers and categories."""
    path = tmp_path_factory.mktemp("model") / "model.ubj"
    booster = xgboost.XGBRegressor(n_estimators=5, max_depth=4, enable_categorical=True, n_jobs=1).fit(FRAME, FRAME.a + FRAME.b * (FRAME.c == "y"))
    booster.save_model(path)
    return str(path)


@pytest.fixture(scope="module")
def spark():
    """A session of two workers on this machine, which are kept from task to task."""
    sql = pytest.importorskip("pyspark.sql", reason="no PySpark here; make spark has it")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java here, which Spark needs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {"spark.ui.enabled": "false", "spark.sql.execution.arrow.maxRecordsPerBatch": "100", "spark.sql.shuffle.partitions": "4"}
        builder = sql.SparkSession.builder.master("local[2]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="module")
def frame(spark):
    """The rows in five partitions, each of several batches."""
    return spark.createDataFrame(TABLE).repartition(5)


@pytest.mark.slow
def test_a_frame_gets_the_values_of_a_run(model, frame, tmp_path):
    """Bit for bit, in its columns, against the same background; types are known before anything runs."""
    (tmp_path / "data").mkdir()
    pq.write_table(TABLE, tmp_path / "data" / "rows.parquet")
    pq.write_table(TABLE.slice(0, 40), tmp_path / "background.parquet")
    asked = {"scheduler": "serial", "ids": "id", "background": str(tmp_path / "background.parquet"), "precision": "float64"}
    explain(model, str(tmp_path / "data"), str(tmp_path / "run"), **asked)
    expected = pa.Table.from_batches(leafledger.read_run(str(tmp_path / "run")).attributions().sort_by("id").to_batches())
    found = leafledger.spark.attribute(frame, model, ids="id", background=frame.where("id < 40"))
    assert dict(found.dtypes) == {"id": "bigint"} | dict.fromkeys(("margin", "phi_a", "phi_b", "phi_c"), "double")
    got = found.toArrow().sort_by("id")
    assert [got.column(name).to_pylist() for name in got.column_names] == [expected.column(name).to_pylist() for name in got.column_names]


@pytest.mark.slow
def test_a_process_opens_an_explainer_once(spark, model, frame, tmp_path):
    """However many tasks and batches it has; tables in a folder are mapped from there."""

    def count(batches):
        from leafledger.pipeline.serving.pyspark_frames import open_pickled

        for _ in batches:
            yield pa.RecordBatch.from_pylist([{"process": os.getpid(), **dict(zip(("hits", "misses"), open_pickled.cache_info(), strict=False))}])

    def look():
        told = frame.mapInArrow(count, "process long, hits long, misses long").collect()
        return {row.process: np.array([row.hits, row.misses]) for row in told}

    before = look()
    found = leafledger.spark.attribute(frame, prepare(model, tables=str(tmp_path / "tables")), ids="id").toArrow()
    hits, misses = zip(*(told - before.get(process, 0) for process, told in look().items()), strict=True)
    assert found.num_rows == 2000
    assert sum(hits) + sum(misses) >= 20  # batches of at most 100 rows
    assert max(misses) == 1


@pytest.mark.slow
def test_what_does_not_fit_is_refused_before_any_task(model, frame):
    """In one line."""
    for error, given, line in (
        (SchemaMismatch, {"frame": frame.drop("b")}, "rows: column 'b' missing, got a, c, id$"),
        (
            SchemaMismatch,
            {"frame": frame.selectExpr("CAST(a AS STRING) AS a", "b", "c")},
            "rows: column 'a' is string, the model was trained on numbers$",
        ),
        (UsageError, {"frame": frame, "ids": "flight"}, "flight"),
        (UsageError, {"frame": frame, "output": "other:3"}, "is drawn by a row's number, which rows of Spark do not have"),
        (UsageError, {"frame": FRAME}, "frame is a DataFrame, expected a data frame of Spark$"),
        (
            UsageError,
            {"frame": frame, "model": prepare(model), "method": "banzhaf"},
            "the explainer was prepared before, expected no other arguments than ids",
        ),
    ):
        with pytest.raises(error, match=line):
            leafledger.spark.attribute(**{"model": model} | given)


@pytest.mark.slow
def test_a_logged_explainer_is_a_function_of_spark(spark, model, frame, tmp_path):
    """By MLflow's ``spark_udf``, from rows to structs."""
    with quiet():
        from mlflow import pyfunc

        leafledger.mlflow.save_explainer(model, tmp_path / "model", example=FRAME)
        why = pyfunc.spark_udf(
            spark, str(tmp_path / "model"), result_type="margin double, phi_a double, phi_b double, phi_c double", env_manager="local"
        )
        found = frame.withColumn("why", why()).select("id", "why.*").toArrow().sort_by("id")
    expected = leafledger.attribute(model, TABLE).to_arrow("id")
    assert found.select(expected.column_names).equals(expected)
