"""Attributions as Arrow: the columns, types and nulls of a run's parts, for every kind of run."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import attribute, explain
from leafledger.pipeline.errors import SchemaMismatch, UsageError
from tests.pipeline.conftest import FEATURES, train

ASKED = [
    {"interactions": 2},
    {"method": "curves"},
    {"method": "r2", "label": "delay"},
    {"output": "predicted"},
    {"space": "probability"},
    {"partition": {"when": ["month", "delay"]}},
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: "-".join(map(str, asked.values())))
def test_columns_are_those_of_a_run(example, tmp_path, asked):
    """Names, types and values, with float64 as the run's precision; null where a label is missing, and zeros of interactions left out."""
    classes = "output" in asked or "space" in asked
    model = train(example.frame, objective="multiclass", num_class=3) if classes else example.booster
    model.save_model(tmp_path / "model.txt")
    frame = example.frame[:200].reset_index(drop=True)
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    explain(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "run", ids=["flight"], precision="float64", scheduler="serial", **asked)
    expected = pa.concat_tables([pq.read_table(part) for part in sorted((tmp_path / "run" / "attributions").iterdir())])
    if "label" in asked:  # kept in parts for reports; in memory the caller has them
        assert expected.schema.names[-1] == "label"
        expected = expected.drop_columns("label")
    found = attribute(tmp_path / "model.txt", frame, **asked).to_arrow("flight")
    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    assert found.to_pydict() == expected.to_pydict()


def test_errors_have_columns(example):
    """Of the background as a sample."""
    frame = example.frame[FEATURES][:100]
    found = attribute(example.model, frame[:10], background=frame, background_errors=True)
    assert found.to_arrow().column("error_delay").to_pylist() == found.errors[:, 0, FEATURES.index("delay")].tolist()


def test_ids_are_columns_of_the_rows(example):
    """Whatever the rows are, and of some of them those that were picked; other names are refused, and those that stand twice."""
    frame = example.frame[:50]
    for rows in (
        frame,
        pa.table(frame),
        pa.table(frame).to_batches()[0],
        {name: frame[name].to_numpy() for name in frame if name != "carrier"} | {"carrier": frame["carrier"]},
    ):
        found = attribute(example.model, rows)
        assert found.to_arrow(["flight"])["flight"].to_pylist() == frame["flight"].tolist()
        assert found[[7, 3]].to_arrow(["flight"])["flight"].to_pylist() == frame["flight"].iloc[[7, 3]].tolist()
    found = attribute(example.model, frame)
    with pytest.raises(UsageError, match="ids have 'nowhere', which is no column of the rows"):
        found.to_arrow("nowhere")
    with pytest.raises(SchemaMismatch, match="output column 'margin' would stand twice"):
        attribute(example.model, frame.assign(margin=1)).to_arrow("margin")
    twice = pa.table(frame).append_column("mixed", pa.nulls(50)).append_column("mixed", pa.nulls(50))
    for rows in (frame.assign(mixed=[1, "a"] * 25), twice):
        with pytest.raises(UsageError, match=r"^ids have 'mixed', a column that Arrow cannot read: .*$"):
            attribute(example.model, rows).to_arrow("mixed")
    matrix = pd.DataFrame(np.zeros((2, 4)), columns=FEATURES).to_numpy()
    with pytest.raises(UsageError, match="ids have 'flight', which is no column of the rows"):
        attribute(example.model, matrix, allow_unseen=True).to_arrow("flight")
