"""leafledger.explain says what changed since another run, before ``latest`` moves on from that one."""

import json
import logging

import pytest

from leafledger import explain, list_runs, read_latest
from leafledger.pipeline.errors import LeafledgerError
from tests.pipeline.conftest import write_nights


@pytest.fixture
def nights(example, tmp_path):
    """Three nights of data, the last of which drifted."""
    write_nights(example.frame, tmp_path / "data")
    return tmp_path


def night(example, nights, day, **given):
    """Explain a night, compared with the one that ``latest`` names."""
    told = {"latest": nights / "latest.json", "against": nights / "latest.json", "scheduler": "serial", "date": f"2026-01-0{day}"} | given
    return explain(example.model, nights / "data" / "{date}", nights / "runs" / "{date}", **told)


def test_every_night_is_compared_with_the_one_before(example, nights, caplog):
    """The first with nothing; what drifted is said by the logger, and kept with the run. The same again says the same, when latest names it."""
    night(example, nights, 1)
    assert not (nights / "runs" / "2026-01-01" / "after.json").exists()
    night(example, nights, 2, thresholds={"distance": 0.2, "share": 0.5})
    assert json.loads((nights / "runs" / "2026-01-02" / "after" / "drift.json").read_text())["reference"] == f"{nights}/runs/2026-01-01"
    assert [entry for entry in caplog.records if entry.levelno >= logging.WARNING] == []
    for _ in range(2):
        caplog.clear()
        night(example, nights, 3)
        said = [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.WARNING]
        found = json.loads((nights / "runs" / "2026-01-03" / "after" / "drift.json").read_text())
        assert (found["reference"], said) == (f"{nights}/runs/2026-01-02", [f"drift: {alarm}" for alarm in found["alarms"]])
        assert len(said) >= 2
    assert read_latest(nights / "latest.json").run == f"{nights}/runs/2026-01-03"
    assert [run.alarms for run in list_runs(nights / "runs")] == [None, (), tuple(found["alarms"])]


def test_a_night_that_cannot_be_compared_is_published(example, nights, caplog):
    """And latest moves; what is asked for wrongly ends it before a row is explained."""
    night(example, nights, 1, method="banzhaf", against=None)
    night(example, nights, 2)
    (said,) = [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.WARNING]
    assert said.startswith(f"not compared: {nights}/runs/2026-01-02: method is shapley, ")
    assert read_latest(nights / "latest.json").run == f"{nights}/runs/2026-01-02"
    for given, says in (
        ({"against": nights / "runs" / "{date}"}, f"{nights}/runs/{{date}}: is the very run; expected another one, such as that of the night before"),
        ({"against": None, "thresholds": {"psi": 0.1}}, "thresholds are of what is compared, but nothing is: against was not given"),
        ({"thresholds": nights / "{date}.toml"}, f"{nights}/2026-01-03.toml: cannot read: no such file or object"),
    ):
        with pytest.raises(LeafledgerError) as error:
            night(example, nights, 3, **given)
        assert str(error.value) == says
    assert not (nights / "runs" / "2026-01-03").exists()
