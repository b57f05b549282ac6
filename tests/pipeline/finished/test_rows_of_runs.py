"""Rows of one person in all nights: each with its run, nothing passed over in silence."""

import json
import shutil

import duckdb
import pytest

from leafledger import explain, find_in_runs
from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import NoSuchRow, UsageError


@pytest.fixture(scope="module")
def nights(example, tmp_path_factory):
    """Two finished nights, one of summaries alone, one without ids, an unfinished and a damaged one."""
    folder = tmp_path_factory.mktemp("across")
    for name, more in {"2026-11-01": {}, "2026-11-02": {}, "2026-11-03": {"global_only": True, "ids": ()}, "2026-11-04": {"ids": ()}}.items():
        data = f"{example.data}/month={2 if name == '2026-11-02' else 1}"
        explain(example.model, data, folder / name, scheduler="serial", **({"ids": ["flight", "name"]} | more))
    shutil.copytree(folder / "2026-11-01", folder / "2026-11-05")
    (folder / "2026-11-05" / "manifest.json").unlink()
    shutil.copytree(folder / "2026-11-01", folder / "2026-11-06")
    (folder / "2026-11-06" / "manifest.json").write_text("{}")
    return folder


def typed(capsys, *arguments):
    code = cli.main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


UNSEARCHED = ["2026-11-03", "2026-11-04", "2026-11-05", "2026-11-06"]


def flight_of(folder, name):
    return duckdb.sql(f"SELECT flight FROM '{folder}/{name}/attributions/*.parquet' ORDER BY flight LIMIT 1").fetchone()[0]


def test_every_row_is_told_with_its_run(nights, capsys):
    """What DuckDB finds in all parts, by night; what was not searched is counted and named with its reason, and the exit code says so."""
    flight = flight_of(nights, "2026-11-02")
    code, said, log = typed(capsys, "show", nights, "--where", f"flight={flight}", "--top", "1")
    lines = said.splitlines()
    assert (code, lines[0], lines[1].startswith(f"row flight = {flight}, "), lines[-1]) == (3, "2026-11-02", True, "1 row in 1 of 2 runs")
    assert log == (
        f"leafledger: {nights}: 4 runs not searched: 2026-11-03 (has no rows), 2026-11-04 (has no column 'flight'; its id columns are none), "
        f"2026-11-05 (unfinished), 2026-11-06 (damaged: {nights}/2026-11-06/manifest.json: not a manifest: its plan does not say "
        "what it lacks: KeyError 'players')\n"
    )
    code, said, _ = typed(capsys, "show", nights, "--where", f"flight={flight}", "--json")
    found = json.loads(said)
    assert code == 3
    assert (found["n_searched"], found["n_found"], [each["name"] for each in found["runs"]]) == (2, 1, ["2026-11-02"])
    assert [each["name"] for each in found["not_searched"]] == UNSEARCHED
    assert found["runs"][0]["rows"][0]["ids"]["flight"] == flight


def test_rows_of_several_nights(example, nights, tmp_path, capsys):
    """Each below its run's name, in Python as in the command; a page has them all; each is explained again."""
    for name in ("2026-12-01", "2026-12-02"):
        shutil.copytree(nights / "2026-11-01", tmp_path / "runs" / name)
    flight, page = flight_of(nights, "2026-11-01"), tmp_path / "page.html"
    code, said, log = typed(capsys, "show", tmp_path / "runs", "--where", f"flight={flight}", "--verify", "--html", page)
    found = find_in_runs(tmp_path / "runs", {"flight": flight})
    again = "verified: 1 row explained again agrees with what is stored; model and data are those of the plan"
    assert (code, log) == (0, "")
    assert said == f"{found}\n2026-12-01: {again}\n2026-12-02: {again}\n"
    assert (found.n_found, found.n_searched, [each.name for each in found.found]) == (2, 2, ["2026-12-01", "2026-12-02"])
    assert str(found).splitlines()[0] == "2026-12-01"
    assert all(f"<h1>{tmp_path}/runs/{name}</h1>" in page.read_text() for name in ("2026-12-01", "2026-12-02"))


def test_nothing_found_is_said_with_how_many_runs_were_searched(nights, tmp_path, capsys):
    code, said, log = typed(capsys, "show", nights, "--where", "flight=-7")
    assert (code, said) == (5, "")
    assert log.startswith(f"leafledger: {nights}: no such row: flight='-7'; 2 runs searched; 4 runs not searched: 2026-11-03 (has no rows), ")
    shutil.copytree(nights / "2026-11-01", tmp_path / "2026-11-01")
    with pytest.raises(NoSuchRow, match=rf"^{tmp_path}: no such row: flight=-7; 1 run searched$"):
        find_in_runs(tmp_path, {"flight": -7})


def test_what_no_run_can_answer_is_refused(nights, tmp_path, capsys):
    """A column that none has; a value of another type; a place without runs is told as before."""
    for name in ("2026-11-01", "2026-11-02"):
        shutil.copytree(nights / name, tmp_path / name)
    with pytest.raises(UsageError, match=rf"^{tmp_path}/2026-11-01: has no column 'customer'; its id columns are flight, name$"):
        find_in_runs(tmp_path, {"customer": 1})
    with pytest.raises(UsageError, match=rf"^{tmp_path}/2026-11-01: column 'flight' is int64, got 'x'$"):
        find_in_runs(tmp_path, {"flight": "x"})
    (tmp_path / "empty").mkdir()
    assert typed(capsys, "show", tmp_path / "empty", "--where", "flight=1")[0] == 6
    (tmp_path / "2026-11-02" / "manifest.json").unlink()
    code, _, log = typed(capsys, "show", tmp_path / "2026-11-02", "--where", "flight=1")
    said = "not a finished run, 1 of 1 part is there; the command that explains it goes on from there"
    assert (code, log) == (6, f"leafledger: {tmp_path}/2026-11-02: {said}\n")
