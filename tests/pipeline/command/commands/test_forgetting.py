"""The command forget, line by line: what it would do, what it did, what is left, and an exit code that only proof makes 0."""

import json
import shutil

import pytest

from leafledger import explain, read_manifest, report
from leafledger.pipeline.command import cli


def typed(capsys, *arguments):
    """Exit code, lines of standard output, standard error."""
    code = cli.main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


@pytest.fixture(scope="module")
def nights(example, tmp_path_factory):
    """Three nights, one of which has a report; the third has other rows."""
    folder = tmp_path_factory.mktemp("forgetting") / "runs"
    for day, months in {"2026-11-01": "*", "2026-11-02": "*", "2026-11-03": "2"}.items():
        data = f"{example.data}/month={months}/data.parquet" if months != "*" else example.data
        explain(example.model, data, folder / day, ids=["flight", "name"], scheduler="serial")
    report(folder / "2026-11-01")
    return folder


@pytest.fixture
def runs(nights, tmp_path):
    shutil.copytree(nights, tmp_path / "runs")
    run = tmp_path / "runs" / "2026-11-02"
    named = {"date": "2026-11-02", "run": str(run), "manifest": read_manifest(str(run)).sha256, "n_rows": 3000, "share": 1.0}
    (tmp_path / "runs" / "latest.json").write_text(json.dumps({"format_version": 3} | named))
    return tmp_path / "runs"


@pytest.mark.slow
def test_forget_says_what_it_does(example, runs, capsys):
    """First what it would do, then what it did; then nothing is left to do."""
    asked = ["forget", runs, "--where", "name=row 1234"]
    month = int(example.frame.set_index("name")["month"]["row 1234"])
    n_runs = 3 if month == 2 else 2
    code, lines, log = typed(capsys, *asked, "--dry-run")
    assert (code, log) == (0, "")
    assert (
        lines[0]
        == "would forget 1 row of 2026-11-01: 1 of 4 parts written anew; after/distributions.parquet, report/index.html removed, make them again"
    )
    assert lines[1] == "would forget 1 row of 2026-11-02: 1 of 4 parts written anew"
    assert lines[n_runs] == f"3 runs searched for name=row 1234: {n_runs} rows in {n_runs} runs"
    assert lines[n_runs + 1].endswith(f" objects searched, of which {n_runs} hold it")
    assert sorted(lines[n_runs + 2 :])[0] == f"  {runs}/2026-11-01/attributions/part-0000{month - 1}.parquet: 1 row"
    code, lines, log = typed(capsys, *asked)
    assert (code, log) == (0, "")
    assert lines[1] == "forgot 1 row of 2026-11-02: 1 of 4 parts written anew"
    assert lines[-2] == f"3 runs searched for name=row 1234: {n_runs} rows in {n_runs} runs"
    assert lines[-1].endswith(" objects searched byte by byte: none holds it")
    code, lines, log = typed(capsys, *asked, "--json")
    found = json.loads(lines[0])
    assert (code, log, found["n_rows"], found["runs"], found["holding"], found["proved"]) == (0, "", 0, [], [], True)


@pytest.mark.slow
def test_check_and_runs_say_that_rows_were_forgotten(runs, capsys):
    typed(capsys, "forget", runs, "--where", "name=row 1234", "--quiet")
    code, lines, _ = typed(capsys, "check", runs / "2026-11-02")
    assert code == 0
    assert lines[0].startswith(f"{runs}/2026-11-02: sound, 2,999 rows in 4 parts, 1 row forgotten, attributions add up within ")
    assert json.loads(typed(capsys, "check", runs / "2026-11-02", "--json")[1][0])["n_forgotten"] == 1
    _, lines, _ = typed(capsys, "runs", runs)
    assert sum("finished, 1 row forgotten" in line for line in lines) >= 2


def test_what_is_not_proved_is_exit_code_3(runs, capsys):
    """A run that is not finished, and an object of somebody's; with --quiet these lines alone are there."""
    (runs / "2026-11-03" / "manifest.json").unlink()
    (runs / "notes.txt").write_text("name: row 1234 called")
    code, lines, log = typed(capsys, "forget", runs, "--where", "name=row 1234", "--quiet")
    assert (code, lines) == (3, [])
    assert f"leafledger: not touched: 2026-11-03: unfinished\nleafledger: still holds it: {runs}/notes.txt: names it\n" in log
    code, lines, _ = typed(capsys, "forget", runs, "--where", "name=row 1234", "--json")
    found = json.loads(lines[0])
    assert (code, found["proved"], found["untouched"]) == (3, False, [{"name": "2026-11-03", "why": "unfinished"}])


@pytest.mark.parametrize("where", ["name", "=x", "name=", ""])
def test_a_question_about_nobody_is_one_line(runs, capsys, where):
    code, lines, log = typed(capsys, "forget", runs, "--where", where)
    assert (code, lines) == (2, [])
    assert log == f"leafledger: where is {where!r}, expected COLUMN=VALUE of an id column, such as customer_id=4711\n"


def test_one_run_and_a_place_without_runs(runs, tmp_path, capsys):
    code, lines, _ = typed(capsys, "forget", runs / "2026-11-02", "--where", "name=row 1234")
    assert (code, lines[0]) == (0, f"forgot 1 row of {runs}/2026-11-02: 1 of 4 parts written anew")
    assert lines[1] == f"{runs}/latest.json names the run by its new manifest"
    assert typed(capsys, "forget", tmp_path / "nowhere", "--where", "name=x")[0] == 6
