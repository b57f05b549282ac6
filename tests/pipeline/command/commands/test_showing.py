"""The command show: what it prints for people and programs, and an exit code for whatever it is asked."""

import json
import shutil

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import explain, read_run
from leafledger.pipeline.command import cli
from tests.pipeline.conftest import FEATURES


def typed(capsys, *arguments):
    """Exit code, standard output, standard error."""
    code = cli.main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    """A run with values and interactions."""
    out = tmp_path_factory.mktemp("showing") / "run"
    explain(example.model, example.data, out, ids=["flight", "name"], values=True, interactions=2, scheduler="serial")
    return out


def test_a_row_is_shown_as_python_shows_it(run, capsys):
    """Line by line; conditions are read by the columns' types; several features are added up."""
    code, said, log = typed(capsys, "show", run, "--where", "flight=1234")
    assert (code, log) == (0, "")
    assert said == f"{read_run(run).show({'flight': 1234})}\n"
    assert "name = row 1234" in said.split("\n")[0]
    code, short, _ = typed(capsys, "show", run, "--where", "flight=1234", "name=row 1234", "--top", "1")
    assert code == 0
    assert "\n3 others " in short


@pytest.mark.parametrize("flight", [17, 2500])
def test_json_is_one_document_of_what_duckdb_selects(run, capsys, flight):
    code, said, log = typed(capsys, "show", run, "--where", f"name=row {flight}", "--json")
    (row,) = json.loads(said)["rows"]
    selected = duckdb.sql(f"SELECT * FROM '{run}/attributions/*.parquet' WHERE name = 'row {flight}'")
    stored = dict(zip(selected.columns, selected.fetchall()[0], strict=True))
    (output,) = row["outputs"]
    assert (code, log) == (0, "")
    assert row["ids"] == {"flight": stored["flight"], "name": stored["name"]}
    assert output["margin"] == stored["margin"]
    assert {entry["feature"]: (entry["phi"], entry.get("value")) for entry in output["attributions"]} == {
        name: (stored[f"phi_{name}"], stored[f"value_{name}"]) for name in FEATURES
    }
    assert output["interactions"] == stored["interactions"]


def test_rows_are_verified(run, capsys):
    code, said, log = typed(capsys, "show", run, "--where", "flight=7", "--verify")
    assert (code, log) == (0, "")
    assert said.endswith("verified: 1 row explained again agrees with what is stored; model and data are those of the plan\n")
    code, said, _ = typed(capsys, "show", run, "--where", "flight=7", "--verify", "--json")
    assert (code, json.loads(said)["verified"]) == (0, True)


def test_what_does_not_agree_or_cannot_be_repeated_has_the_codes_of_check(example, tmp_path, capsys):
    """1 where a number differs, 3 where the model is gone, until it is said where it is."""
    shutil.copy(example.model, tmp_path / "model.txt")
    out = tmp_path / "run"
    explain(tmp_path / "model.txt", example.data, out, ids="flight", top=1, columns="top", scheduler="serial")
    (tmp_path / "model.txt").rename(tmp_path / "kept.txt")
    code, said, log = typed(capsys, "show", out, "--where", "flight=7", "--verify")
    assert code == 3
    assert said.startswith("row flight = 7\n")
    assert log.startswith("leafledger: not verified: ")
    assert log.count("\n") == 1
    code, said, _ = typed(capsys, "show", out, "--where", "flight=7", "--verify", "--json")
    assert (code, json.loads(said)["verified"]) == (3, False)
    assert typed(capsys, "show", out, "--where", "flight=7", "--verify", "--model", tmp_path / "kept.txt")[0] == 0
    (place,) = read_run(out).find({"flight": 7}).places
    with pq.ParquetFile(place.uri) as parquet:
        table, kept = parquet.read(), parquet.metadata.metadata[b"leafledger"].decode()
    margins = [*table["margin"].to_pylist()[: place.row], 5.0, *table["margin"].to_pylist()[place.row + 1 :]]
    with pq.ParquetWriter(place.uri, table.schema) as writer:
        writer.write_table(table.set_column(1, table.schema.field("margin"), pa.array(margins, pa.float32())))
        writer.add_key_value_metadata({"leafledger": kept})
    code, said, log = typed(capsys, "show", out, "--where", "flight=7", "--verify", "--model", tmp_path / "kept.txt")
    assert (code, said) == (1, "")
    assert log == f"leafledger: {place.uri}: row {place.row} explained again differs in column 'margin'\n"


def test_a_page_is_written(run, tmp_path, capsys):
    """With what was verified; one that is there is left alone."""
    page = tmp_path / "row.html"
    assert typed(capsys, "show", run, "--where", "flight=7", "--html", page, "--verify")[0] == 0
    assert "verified: 1 row explained again" in page.read_text()
    code, _, log = typed(capsys, "show", run, "--where", "flight=8", "--html", page)
    assert code == 7
    assert "row.html" in log


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("{run}", "--where", "flight=99999"), 5, "run: no such row: flight=99999"),
        (("{run}", "--where", "flight=7", "name=row 8"), 5, "run: no such row: flight=7, name='row 8'"),
        (("{run}", "--null", "name"), 5, "run: no such row: name=None"),
        (("{run}", "--where", "customer=1"), 2, "run: has no column 'customer'; its id columns are flight, name"),
        (("{run}", "--where", "flight=late"), 2, "run: column 'flight' is int64, got 'late'"),
        (("{run}", "--where", "flight"), 2, "where is 'flight', expected NAME=VALUE; --null NAME asks for a missing value"),
        (("{run}", "--where", "flight=1", "--null", "flight"), 2, "where names 'flight' twice, expected every column once"),
        (("{run}",), 2, "run: which row? Give columns and their values, such as flight=…"),
        (("{run}", "--where", "flight=1", "--output", "x"), 2, "output is 'x', expected one of 0"),
        (("{run}", "--where", "flight=1", "--most", "0"), 2, "most is 0, expected a number of at least 1"),
        (("{run}", "--where", "flight=1", "--top", "0"), 2, "top is 0, expected a number of at least 1"),
        (("{run}", "--where", "flight=1", "--model", "m"), 2, "a model is given, but no row is explained again; ask for --verify"),
        (("{run}/none", "--where", "flight=1"), 6, "none: no manifest.json there: not a finished run"),
    ],
)
def test_mistakes_are_one_line(run, capsys, arguments, code, says):
    found, said, log = typed(capsys, "show", *(text.format(run=run) for text in arguments))
    assert (found, said) == (code, "")
    assert log.startswith("leafledger: ")
    assert log.endswith(f"{says}\n")
    assert log.count("\n") == 1


def test_runs_without_rows_or_parts_are_one_line(example, tmp_path, capsys):
    """Summaries alone; no row at all; a part that is gone."""
    out = tmp_path / "global"
    explain(example.model, example.data, out, global_only=True, scheduler="serial")
    assert typed(capsys, "show", out, "--where", "flight=1") == (2, "", f"leafledger: {out}: has no rows\n")
    empty = tmp_path / "empty.parquet"
    example.frame.iloc[:0].astype({"carrier": str}).to_parquet(empty)
    out = tmp_path / "nothing"
    explain(example.model, empty, out, ids="flight", scheduler="serial")
    assert typed(capsys, "show", out, "--where", "flight=1") == (5, "", f"leafledger: {out}: no such row: the run has none\n")
    out = tmp_path / "run"
    explain(example.model, example.data, out, ids="flight", scheduler="serial")
    (out / "attributions/part-00002.parquet").unlink()
    code, said, log = typed(capsys, "show", out, "--where", "flight=1")
    assert (code, said) == (1, "")
    assert log == f"leafledger: {out}/attributions/part-00002.parquet: cannot read: no such file or object, though the run is finished\n"
