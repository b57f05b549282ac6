"""Stages: what is tried again."""

import pytest
from prefect.states import Failed

from flows.stages import may_pass
from pipeline.errors import InvalidData, StorageError
from pipeline.stores import storage


def test_neither_a_refusal_nor_a_missing_file_may_pass(tmp_path):
    """Only what time can mend is tried again."""
    with pytest.raises(StorageError) as missing:
        storage.read(str(tmp_path / "model.txt"))
    tried = {error: may_pass(None, None, Failed(data=error)) for error in (missing.value, InvalidData("x"), KeyError("x"))}
    assert not any(tried.values())
    assert may_pass(None, None, Failed(data=StorageError("x")))
