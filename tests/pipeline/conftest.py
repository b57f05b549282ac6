"""A small model and a small data set with everything a real one has: missing values, categories, partitions, several row groups;
a run against a background of rows; a format of tables, and nights that go into one."""

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import distributed
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import explain
from leafledger.pipeline.cluster import start_client as cluster
from tests.pipeline.forking import forked_workers
from tests.pipeline.registering import make_registry

N_ROWS = 3000
FEATURES = ["distance", "delay", "carrier", "month"]
TRAINING = {"verbosity": -1, "num_threads": 1, "deterministic": True, "seed": 1, "num_leaves": 15, "min_data_in_leaf": 5}
TRAINING |= {"min_data_per_group": 5, "cat_smooth": 1.0, "cat_l2": 1.0}  # so that few rows suffice for splits on categories
FRAME = pd.DataFrame({"x": [1.0, 2.0]})
WRONG = (FRAME, FRAME.astype(str).to_numpy(), object(), 1.5, b"x", [1], {1: 2}, len)  # in the place of almost any argument


@dataclass(frozen=True)
class Example:
    """A trained model's file, the booster, the rows as a frame, and where they lie as a partitioned data set."""

    model: str
    booster: lightgbm.Booster
    frame: pd.DataFrame
    data: str


LATE = 2  # the file of this month comes late
SMALL = (7, 30, 1, 44, 60, 39, 2, 120, 13, 19)  # rows of files


def make_frame():
    """Rows with missing numbers and categories; ``month`` is what the data set is partitioned by."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "flight": np.arange(N_ROWS),
            "name": [f"row {i}" for i in range(N_ROWS)],
            "distance": rng.normal(800, 300, N_ROWS),
            "delay": rng.integers(-20, 200, N_ROWS).astype(float),
            "carrier": rng.choice(["UA", "AA", "B6", "DL"], N_ROWS),
            "month": rng.integers(1, 5, N_ROWS),
        }
    )
    frame.loc[rng.random(N_ROWS) < 0.1, "delay"] = np.nan
    frame.loc[rng.random(N_ROWS) < 0.05, "carrier"] = None
    return frame.sort_values("month", kind="stable", ignore_index=True)


def write_data(frame, folder, row_group_size=300):
    """Write a data set partitioned by month, ``row_group_size`` rows to a row group."""
    for month, rows in frame.groupby("month"):
        path = Path(folder) / f"month={month}" / "data.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pandas(rows.drop(columns="month"), preserve_index=False), path, row_group_size=row_group_size)
    return str(folder)


def write_nights(frame, folder):
    """Three nights of 1,000 rows each, ``folder/2026-01-01`` to ``2026-01-03``; the last is another one: half as far, and later."""
    for day in (1, 2, 3):
        rows = frame.drop(columns="month").iloc[1000 * (day - 1) : 1000 * day]
        if day == 3:
            rows = rows.assign(distance=rows["distance"] / 2, delay=rows["delay"] + 30)
        place = folder / f"2026-01-0{day}" / "month=1"
        place.mkdir(parents=True)
        rows.to_parquet(place / "data.parquet")


def write_small(frame, folder):
    """Write two months of small files; ids are dictionaries, and have nulls in some files alone."""
    first = 0
    for month in (1, 2):
        for k, size in enumerate(SMALL):
            rows = frame[first : first + size].drop(columns="month")
            first += size
            path = folder / f"month={month}" / f"{k:02}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            table = pa.Table.from_pandas(rows, preserve_index=False)
            names = table["name"].dictionary_encode()
            at = table.schema.get_field_index("name")
            field = pa.field("name", names.type, nullable=k != 0)
            names = names if k != 1 else pa.chunked_array([pa.array([None] * size, pa.string()).dictionary_encode().cast(names.type)])
            pq.write_table(table.set_column(at, field, names), path, write_page_checksum=True)
    return folder


def damage(path):
    """Another byte in the column of delays, which its page's checksum tells."""
    group = pq.read_metadata(path).row_group(0)
    chunk = next(each for each in map(group.column, range(group.num_columns)) if each.path_in_schema == "delay")
    data = bytearray(path.read_bytes())
    data[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1] ^= 0x5A
    path.write_bytes(data)


def train(frame, **parameters):
    """A LightGBM model of the frame, a regression unless told otherwise."""
    inputs = frame[FEATURES].assign(carrier=frame["carrier"].astype("category"))
    target = frame["delay"].fillna(0) + 70 * (frame["carrier"] == "UA") + frame["month"] * 3
    target = target % parameters["num_class"] if "num_class" in parameters else target
    return lightgbm.train(TRAINING | parameters, lightgbm.Dataset(inputs, target), 8)


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """The example, made once."""
    folder = tmp_path_factory.mktemp("example")
    frame = make_frame()
    booster = train(frame)
    booster.save_model(folder / "model.txt")
    return Example(str(folder / "model.txt"), booster, frame, write_data(frame, folder / "data"))


@pytest.fixture(scope="session")
def serial(example, tmp_path_factory):
    """A serial run, and its manifest."""
    out = tmp_path_factory.mktemp("serial") / "run"
    return out, explain(example.model, example.data, out, ids=["flight", "name"], scheduler="serial")


@contextmanager
def local_workers(n):
    """The address of a scheduler with so many worker processes, forked of one that has imported everything: they start in no time.

    Their environment is that of the first of them."""
    with (
        forked_workers(),
        distributed.LocalCluster(n_workers=n, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
    ):
        yield cluster.scheduler_address


@pytest.fixture
def forked():
    """Clusters that a test starts, itself or through what it calls, have workers that are forked; those know a bucket that was made before."""
    with forked_workers(**{name: value for name, value in os.environ.items() if name.startswith("AWS_")}):
        yield


@pytest.fixture(scope="module")
def two_workers():
    """Two of them. Idle, they cost as much as a test, and so they end with a file."""
    with local_workers(2) as address:
        yield address


@pytest.fixture(scope="session")
def s3_endpoint():
    """A moto server for the whole session."""
    from tests.moto_store import run_moto

    with run_moto() as url:
        yield url


@pytest.fixture
def bucket(s3_endpoint, monkeypatch):
    """An empty bucket's URI; credentials and endpoint come from the environment, as in production."""
    import s3fs

    from tests.moto_store import kept_clients

    for name, value in {
        "AWS_ENDPOINT_URL": s3_endpoint,
        "AWS_ACCESS_KEY_ID": "canary-id",
        "AWS_SECRET_ACCESS_KEY": "canary-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    with kept_clients(s3_endpoint):
        filesystem = s3fs.S3FileSystem()
        if filesystem.exists("nightly"):
            filesystem.rm("nightly", recursive=True)
        filesystem.mkdir("nightly")
        yield "s3://nightly"


@pytest.fixture(scope="session")
def registry_settings(tmp_path_factory):
    """A registry of MLflow over SQLite, made once, which takes seconds."""
    return make_registry(tmp_path_factory.mktemp("mlflow"))


@pytest.fixture
def registry(registry_settings, monkeypatch):
    """The registry, as the environment names it."""
    for name, value in registry_settings.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def background_rows(example):
    """Rows of a background."""
    return example.frame[::3]


@pytest.fixture(scope="module")
def background_uri(background_rows, tmp_path_factory):
    """Where they lie: a file per month, in row groups of 60."""
    return write_data(background_rows, tmp_path_factory.mktemp("background") / "rows", row_group_size=60)


@pytest.fixture(scope="module")
def against_rows(example, background_uri, tmp_path_factory):
    """A serial run against the background; its tables are beside it."""
    out = tmp_path_factory.mktemp("serial") / "run"
    return out, explain(example.model, example.data, out, background=background_uri, precision="float64", scheduler="serial")


@pytest.fixture(params=["delta", "iceberg"])
def kind(request, tmp_path, monkeypatch):
    """A format of tables; what names Iceberg's catalog is in the environment."""
    import pyiceberg.catalog
    from pyiceberg.utils.config import Config

    from tests.pipeline.runs.publish.tabling import KINDS

    for name, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}/warehouse"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__NIGHTS__{name}", value)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    return KINDS[request.param]


@pytest.fixture
def night(example, tmp_path, kind):
    """``(run, late, there)``: what explains a copy of the data for a day, what makes a file of it another, and the table."""
    data = tmp_path / "data"
    shutil.copytree(example.data, data)
    root = tmp_path / "explained"

    def run(day, place=root, **arguments):
        given = {"scheduler": "serial", "ids": ["flight", "name"], "table": kind.table, "date": day} | arguments
        return explain(example.model, given.pop("data", data), f"{place}/date={{date}}", **given)

    def late():
        path = data / f"month={LATE}" / "data.parquet"
        pq.write_table(pq.read_table(path, partitioning=None).slice(10), path)

    return run, late, kind(root)


@pytest.fixture
def in_process(monkeypatch):
    """Instead of a local cluster, one whose workers are threads of this process."""

    def client(placement, n_items):
        return distributed.Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0")

    monkeypatch.setattr(cluster, "local_client", client)
