"""The command that lists runs: a line each, a document, and a page that is replaced from night to night."""

import json
import shutil

from leafledger.pipeline.command import cli
from leafledger.pipeline.history import listed_runs as listed
from leafledger.pipeline.history.listed_runs import ListedRun


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


def test_what_is_not_known_of_a_run_is_a_dash(monkeypatch, capsys):
    """The rest stands below its name, numbers to the right, so that their digits are below each other."""
    known = ListedRun("f/a", "a", "2026-03-01", "finished", None, "", "", "0123456789abcdef", "banzhaf", 12_345, 6, 6, 7, 1.5e-9, 0.98764, ("x", "y"))
    whole = ListedRun("f", "", "2026-03-02", "finished", n_rows=8, n_rejected=0, r2=0.5, alarms=())
    begun, left = ListedRun("f/b", "b", None, "unfinished", n_parts=2, n_planned=5), ListedRun("f/c", "c", None, "unfinished")
    monkeypatch.setattr(listed, "list_runs", lambda folder: [known, whole, begun, left])
    assert cli.main(["runs", "f"]) == 0
    _, header, _, *rows, _ = capsys.readouterr().out.splitlines()
    cells = [line.strip("┃│").replace("┃", "│").split("│") for line in (header, *rows)]
    assert [[cell.strip() for cell in row] for row in cells] == [
        ["date", "run", "state", "method", "model", "rows", "rejected", "residual", "R²", "drift"],
        ["2026-03-01", "a", "finished", "banzhaf", "0123456789ab", "12,345", "7", "1.5e-09", "0.9876", "2 alarms"],
        ["2026-03-02", "f", "finished", "–", "–", "8", "0", "–", "0.5000", "no"],
        ["–", "b", "unfinished, 2 of 5 parts", "–", "–", "–", "–", "–", "–", "–"],
        ["–", "c", "unfinished", "–", "–", "–", "–", "–", "–", "–"],
    ]
    for *texts, rows, rejected, residual, r2, drift in cells[1:]:
        assert all(cell.startswith(" ") and not cell.startswith("  ") for cell in (*texts, drift))
        assert all(cell.endswith(" ") and not cell.endswith("  ") for cell in (rows, rejected, residual, r2))


def test_long_names_of_runs_are_whole(monkeypatch, capsys):
    """Cut where a terminal is too narrow they would be the same."""
    names = [f"{'x' * 150}{k}" for k in range(2)]
    monkeypatch.setattr(listed, "list_runs", lambda folder: [ListedRun(f"f/{name}", name, None, "unfinished") for name in names])
    assert cli.main(["runs", "f"]) == 0
    rows = [line.strip("│").split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert "".join(row[1].strip() for row in rows) == "".join(names)


def test_names_without_a_page_are_refused(tmp_path, capsys):
    assert cli.main(["runs", str(tmp_path), "--names", "names.toml"]) == 2
    assert "--names is of the page that --html writes, expected --html too" in capsys.readouterr().err


def test_no_runs_and_no_folder(tmp_path, capsys):
    assert cli.main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}: no runs there\n"
    assert cli.main(["runs", str(tmp_path / "nowhere")]) == 6
