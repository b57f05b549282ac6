"""What tests make outside of their own folders is made once, however many of them want it."""

import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pandas as pd
from rich.console import Console

from infra import demo


def test_inputs_are_made_once_by_many_at_a_time(tmp_path, monkeypatch):
    """Processes of one run of the tests want the demo's inputs at once; a lock serves threads and processes alike."""
    made = []

    def train(rows, target, path):
        made.append(path.name)
        time.sleep(0.2)
        path.write_text("a model")

    flights = pd.DataFrame(dict.fromkeys(demo.FEATURES, [1] * 12) | {"month": range(1, 13), demo.TARGET: 0.0})
    monkeypatch.setattr(demo, "read_flights", lambda: flights)
    monkeypatch.setattr(demo, "MODELS", {"one.txt": train, "two.txt": train})
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(demo.make_inputs, tmp_path, Console(file=StringIO())) for _ in range(4)]
    data, models = found[0].result()
    assert [each.result() for each in found] == [(data, models)] * 4
    assert len(made) == 2
    assert [path.read_text() for path in models] == ["a model"] * 2
    assert len(list(data.glob("month=*/flights.parquet"))) == 12
