"""Stages: what is tried again, and where the last ones work."""

import pytest
from prefect.states import Failed

from leafledger.flows import stages
from leafledger.flows.stages import may_pass
from leafledger.pipeline.drift import against
from leafledger.pipeline.errors import InvalidData, StorageError
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.stores import storage


def test_neither_a_refusal_nor_a_missing_file_may_pass(tmp_path):
    """Only what time can mend is tried again."""
    with pytest.raises(StorageError) as missing:
        storage.read(str(tmp_path / "model.txt"))
    tried = {error: may_pass(None, None, Failed(data=error)) for error in (missing.value, InvalidData("x"), KeyError("x"))}
    assert not any(tried.values())
    assert may_pass(None, None, Failed(data=StorageError("x")))


@pytest.mark.parametrize(
    ("owner", "name", "work"),
    [(against, "drift", lambda job: stages.compare.fn(job, None, "night/before", {})), (stages, "report", lambda job: stages.write_page.fn(job))],
)
def test_the_last_stages_work_where_the_run_did(monkeypatch, owner, name, work):
    """And wait for workers as long: by then a cluster may have let go of its own."""
    told = {}

    def take(*_, **given):
        told.update(given)
        raise StorageError("enough")

    monkeypatch.setattr(owner, name, take)
    where = {"scheduler": "tcp://10.0.0.1:8786", "plain_tcp": True, "wait": 600.0}
    with pytest.raises(StorageError, match="enough"):
        work(make_job("model.txt", "data", "night/this", Options(**where)))
    assert where.items() <= told.items()
