"""Where model files come from."""

import pytest

from leafledger.pipeline.errors import InvalidModel, StorageError
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


def test_a_store_that_is_away_is_asked_once(monkeypatch):
    """And not once more whether the model is a folder: what is told is that it cannot be read."""
    asked = []

    def answer(uri):
        asked.append(uri)
        raise StorageError(f"{uri}: cannot read: no answer")

    for name in ("stat", "exists", "is_folder"):
        monkeypatch.setattr(source.storage, name, answer)
    with pytest.raises(StorageError, match=r"^s3://models/late\.json: cannot read: no answer$"):
        read_source("s3://models/late.json")
    assert asked == ["s3://models/late.json"]
