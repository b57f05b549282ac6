"""The command that takes old runs away: what it would remove, what it removed, and what it keeps."""

import json
import shutil

from leafledger.pipeline.command import cli


def test_prune_says_what_it_does(serial, tmp_path, capsys):
    """As lines, and as a document."""
    for name in ("2026-01-01", "2026-01-02", "other"):
        shutil.copytree(serial[0], tmp_path / name)
    told = ["prune", str(tmp_path), "--keep", "30d", "--date", "2026-03-31"]
    assert cli.main([*told, "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "would remove 2026-01-01: finished, 3,000 rows",
        "keeps other: its name has no day",
        "keeps 2026-01-02: no finished run is newer",
        "1 run of days before 2026-03-01 would be removed",
    ]
    assert cli.main([*told, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in found["removed"]] == ["2026-01-01"]
    assert {each["run"] for each in found["kept"]} == {"other", "2026-01-02"}
    assert not (tmp_path / "2026-01-01").exists()
    assert cli.main([*told[:2], "--keep", "x"]) == 2


def test_a_run_that_stays_in_its_table_has_an_exit_code(serial, tmp_path, capsys):
    """The others are removed; which one stays and why is an error's line, and in the document."""
    for name in ("2026-01-01", "2026-01-02", "2026-01-03", "2026-03-30"):
        shutil.copytree(serial[0], tmp_path / name)
    (tmp_path / "2026-01-02" / "after").mkdir()
    (tmp_path / "2026-01-02" / "after" / "table.json").write_text('{"format": "hudi", "uri": "x"}')
    told = ["prune", str(tmp_path), "--keep", "30d", "--date", "2026-03-31"]
    assert cli.main([*told, "--quiet"]) == 3
    said = "it cannot be taken out of its table: "
    assert capsys.readouterr().err.startswith(f"leafledger: keeps 2026-01-02: {said}{tmp_path}/2026-01-02/after/table.json: does not name a table: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-01-02", "2026-03-30"]
    assert cli.main([*told, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["removed"], found["held"], [each["run"] for each in found["kept"]]) == ([], ["2026-01-02"], ["2026-01-02"])
    (tmp_path / "2026-01-02" / "after" / "table.json").unlink()
    assert cli.main(told) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-03-30"]
