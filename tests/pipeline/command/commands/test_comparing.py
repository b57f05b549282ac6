"""The command that compares: its tables, its flags, its mistakes."""

import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.command import cli


@pytest.mark.slow
def test_the_command_shows_a_table(example, tmp_path, capsys):
    """A row per ranking with its areas and how far it agrees with the first; mistakes get a line."""
    out = tmp_path / "out.parquet"
    arguments = ["compare", example.model, example.data, "--methods", "shapley,banzhaf,beta:4:1,ranker", "--scheduler", "serial"]
    assert cli.main([*arguments, "--out", str(out), "--top", "1,2", "--scales", "0.5", "--gap-rows", "20"]) == 0
    said = capsys.readouterr()
    for text in (
        "ranking",
        "insertion",
        "deletion",
        "top 2",
        "correlation",
        "│ shapley",
        "│ beta:4:1",
        "│ ranker",
        "pgi2 0.5",
        "means of 3,000, of PGI² 20 rows",
    ):
        assert text in said.out
    assert said.err.count("comparing: part") == 4
    assert said.out.endswith(f"measures: {out}\nfeatures: {tmp_path}/out.features.parquet\nrows:     {tmp_path}/out.rows.parquet\n")
    assert pq.read_table(out).num_rows == 3 * 4 + 3 * 6 + 10 * 6 + 4 + 6
    some = ["--out", str(tmp_path / "estimated.parquet"), "--scales", "0.5", "--gap-rows", "2", "--budget", "10"]
    assert cli.main([*arguments, *some]) == 2
    assert "raise it, have it approximate" in capsys.readouterr().err
    assert cli.main([*arguments, *some, "--approximate"]) == 0
    assert "pgi2 0.5 error" in capsys.readouterr().out
    labelled = ["--out", str(tmp_path / "{date}.parquet"), "--date", "2026-01-02", "--scales", "", "--label", "delay", "--id", "flight", "name"]
    assert cli.main([*arguments, *labelled, "--differing-rows", "3"]) == 0
    said = capsys.readouterr().out
    assert "without the first features" in said
    assert f"rows:     {tmp_path}/2026-01-02.rows.parquet" in said
    rows = pq.read_table(tmp_path / "2026-01-02.rows.parquet")
    assert rows.column_names[6:8] == ["flight", "name"]
    assert max(rows["place"].to_pylist()) == 3
    assert cli.main([*arguments, "--out", str(out), "--top", "few"]) == 2
    assert "top is 'few', expected numbers with commas between them" in capsys.readouterr().err
