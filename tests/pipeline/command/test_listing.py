"""The command that lists runs: a line each, a document, and a page that is replaced from night to night."""

import json
import shutil

from pipeline.command import cli


def test_runs_are_listed(serial, tmp_path, capsys):
    """The page is the same bytes where the runs are the same, and another one where there is one more."""
    for name in ("2026-03-01", "2026-03-02"):
        shutil.copytree(serial[0], tmp_path / name)
    (tmp_path / "2026-03-02/manifest.json").unlink()
    page = tmp_path / "index.html"
    assert cli.main(["runs", str(tmp_path), "--html", str(page)]) == 0
    said = capsys.readouterr().out
    assert "2026-03-01 │ finished" in said
    assert "unfinished, 4 of 4 parts" in said
    before = page.read_bytes()
    assert cli.main(["runs", str(tmp_path), "--html", str(page), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["state"] for run in found["runs"]] == ["finished", "unfinished"]
    assert page.read_bytes() == before
    shutil.copytree(serial[0], tmp_path / "2026-03-03")
    (tmp_path / "2026-03-03/attributions/part-00000.parquet").unlink()
    assert cli.main(["runs", str(tmp_path), "--html", str(page)]) == 0
    assert page.read_bytes() != before
    assert f"leafledger: damaged: {tmp_path}/2026-03-03: attributions/part-00000.parquet: is missing" in capsys.readouterr().err


def test_no_runs_and_no_folder(tmp_path, capsys):
    assert cli.main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}: no runs there\n"
    assert cli.main(["runs", str(tmp_path / "nowhere")]) == 6
