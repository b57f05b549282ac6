"""What is given in the place of a model or of data by mistake is refused by what it is."""

import pytest

import leafledger
from leafledger.pipeline.command import cli


@pytest.mark.parametrize("command", ["explain", "plan"])
def test_model_and_data_swapped(example, tmp_path, capsys, command):
    """A file of Parquet, and a folder."""
    for data, code, says in (
        (f"{example.data}/month=1/data.parquet", 8, "is Parquet, which holds rows and no model; are model and data swapped?"),
        (example.data, 2, "is a folder, expected a model's file; are model and data swapped?"),
    ):
        assert cli.main([command, data, example.model, "--out", str(tmp_path / "run")]) == code
        assert capsys.readouterr().err == f"leafledger: {data}: {says}\n"


@pytest.mark.slow
def test_a_folder_of_a_bucket_is_no_model(example, bucket, tmp_path, capsys):
    """As on a disk."""
    leafledger.save_model(example.model, f"{bucket}/models/a.trees")
    assert cli.main(["explain", f"{bucket}/models", example.data, "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == f"leafledger: {bucket}/models: is a folder, expected a model's file; are model and data swapped?\n"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("flights.csv", "pandas.read_csv('flights.csv').to_parquet('flights.parquet') makes one of it"),
        ("flights.CSV.gz", "pandas.read_csv('flights.CSV.gz').to_parquet('flights.parquet') makes one of it"),
        ("flights.jsonl", "pandas.read_json('flights.jsonl').to_parquet('flights.parquet') makes one of it"),
    ],
)
def test_other_files_of_rows_say_how_parquet_is_made(example, tmp_path, capsys, name, line):
    """By their names."""
    example.frame[:9].to_csv(tmp_path / name, index=False)
    assert cli.main(["explain", example.model, str(tmp_path / name), "--out", str(tmp_path / "run")]) == 8
    assert capsys.readouterr().err == f"leafledger: {tmp_path}/{name}: not a Parquet file: {line}\n"


def test_a_model_in_memory_goes_to_attribute(example, tmp_path):
    """Or to a file, for a run."""
    with pytest.raises(leafledger.UsageError) as refusal:
        leafledger.explain(example.booster, example.data, tmp_path / "run")
    assert str(refusal.value) == (
        "model is a Booster, expected a path or URI: save it by leafledger.save_model(model, 'model.trees'), or explain rows in memory by "
        "leafledger.attribute"
    )
