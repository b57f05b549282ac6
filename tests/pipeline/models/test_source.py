"""Where model files come from."""

import pytest

from leafledger.pipeline.errors import InvalidModel
from leafledger.pipeline.models import source
from leafledger.pipeline.models.source import normalise_source, read_source


def test_a_path_is_made_absolute_and_an_uri_of_mlflow_stays(tmp_path, monkeypatch):
    """What an alias means is not asked before the model is read."""
    monkeypatch.chdir(tmp_path)
    assert normalise_source("models/late") == f"{tmp_path}/models/late"
    assert normalise_source("models:/late@champion/") == "models:/late@champion"


def test_a_file_has_no_other_name_and_a_largest_size(tmp_path, monkeypatch):
    """It is refused before it is read."""
    path = tmp_path / "model"
    path.write_bytes(b"12345")
    found = read_source(str(path))
    assert (found.data, found.where, found.origin) == (b"12345", str(path), None)
    monkeypatch.setattr(source, "MAX_BYTES", 4)
    with pytest.raises(InvalidModel, match=r"model: 5 bytes, expected at most 4$"):
        read_source(str(path))
