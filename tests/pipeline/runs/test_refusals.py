"""What a run refuses, in one line."""

import numpy as np
import pytest

from leafledger import explain
from leafledger.pipeline.errors import SchemaMismatch, StorageError, UsageError
from leafledger.pipeline.methods import worker_memory as sizes


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"data": "nowhere"}, StorageError, "nowhere: cannot list: no such file or object"),
        ({"model": "nowhere.json"}, StorageError, "nowhere.json: cannot read: no such file or object"),
        ({"method": "shap"}, UsageError, "method 'shap' is unknown, expected one of shapley, banzhaf, beta"),
        ({"parameters": {"p": 0.5}}, UsageError, "method 'shapley' has no parameter 'p', it takes none"),
        ({"method": "banzhaf", "parameters": {"p": 2}}, UsageError, "parameter 'p' is 2, expected a number between 0 and 1"),
        ({"method": "banzhaf", "parameters": {"p": "half"}}, UsageError, "parameter 'p' is 'half', expected a number"),
        (
            {"method": "semivalue", "parameters": {"density": "0:0,2:1"}},
            UsageError,
            "parameter 'density' is '0:0,2:1', expected points t:height with t ascending",
        ),
        ({"method": "semivalue"}, UsageError, "method 'semivalue' needs parameter 'atoms' or 'density'"),
        (
            {"method": "semivalue", "parameters": {"density": lambda t, rest: t}},
            UsageError,
            "parameter 'density' is a function, which cannot be written into a plan; give numbers in its place",
        ),
        ({"method": "probabilistic", "parameters": {"sizes": "1,0"}}, UsageError, "parameter 'sizes' has 2 numbers, expected one for each of 4"),
        (
            {"method": "probabilistic", "parameters": {"sizes": np.array([np.nan] * 99)}},
            UsageError,
            "parameter 'sizes' is a ndarray, expected finite",
        ),
        ({"method": "owen"}, UsageError, "method 'owen' needs a partition of the features"),
        ({"method": "asymmetric", "parameters": {"sequence": "delay"}}, UsageError, "parameter 'sequence' lacks 'distance' and 2 more, expected"),
        ({"method": "asymmetric", "partition": {}}, UsageError, "method 'asymmetric' needs parameter 'sequence': every group, and every feature"),
        ({"partition": {"flight": ["delays"]}}, UsageError, "partition: group 'flight' names 'delays', which is no feature of the model"),
        ({"partition": "groups.json"}, StorageError, "groups.json: cannot read: no such file or object"),
        ({"ids": ["nowhere"]}, SchemaMismatch, "column 'nowhere' missing, got flight, name, distance"),
        ({"ids": ["flight", "flight"]}, UsageError, "ids has 'flight' twice, expected once"),
        ({"precision": "float16"}, UsageError, "precision is 'float16', expected 'float32' or 'float64'"),
        ({"date": "tomorrow"}, UsageError, "date is 'tomorrow', expected YYYY-MM-DD"),
        ({"workers": 0}, UsageError, "workers is 0, expected a number of at least 1"),
        ({"model": ""}, UsageError, "model is '', expected a path or URI"),
        ({"out": ""}, UsageError, "out is '', expected a path or URI"),
        ({"scheduler": "tcp://10.0.0.1:8786"}, UsageError, "tcp://10.0.0.1:8786: is another host without TLS; use tls://"),
        ({"scheduler": "tcp://dask-scheduler:8786"}, UsageError, "tcp://dask-scheduler:8786: is another host without TLS"),
        ({"max_rejected": -1}, UsageError, "max_rejected is -1, expected a number of at least 0"),
        ({"scheduler": "ftp://127.0.0.1:1"}, Exception, "ftp://127.0.0.1:1: no Dask scheduler answers there"),
    ],
)
def test_mistakes_are_refused_in_one_line(example, tmp_path, monkeypatch, arguments, error, says):
    """Got, expected, where; and nothing is written."""
    monkeypatch.chdir(tmp_path)
    given = {"model": example.model, "data": example.data, "out": tmp_path / "run", "scheduler": "serial"} | arguments
    with pytest.raises(error, match=says) as refusal:
        explain(given.pop("model"), given.pop("data"), given.pop("out"), **given)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "run" / "attributions").exists()


def test_an_output_within_the_data_is_refused(example):
    """A run must not become the next run's input."""
    for out in (example.data, f"{example.data}/explained"):
        with pytest.raises(UsageError, match="lies within the data"):
            explain(example.model, example.data, out, scheduler="serial")


def test_tables_that_do_not_fit_are_refused(example, tmp_path, monkeypatch):
    """The projected memory of a worker is compared with what it has, while planning."""
    monkeypatch.setattr(sizes, "WORKER_OVERHEAD", 1 << 50)
    with pytest.raises(UsageError, match=r"a worker needs \d+ MiB .* it has \d+; use fewer workers"):
        explain(example.model, example.data, tmp_path / "run")
