"""Tables on the terminal: the first by rank of every output, numbers as their summaries declare them, and texts that are never markup."""

import json
from types import SimpleNamespace

import pyarrow as pa
import pytest
from rich.console import Console

from leafledger.pipeline.command.terminal.show import TOP, WIDE, show_comparison, show_summaries


@pytest.fixture
def console(tmp_path):
    """A console that keeps what it shows."""
    with (tmp_path / "screen").open("w") as screen:
        yield Console(file=screen, record=True, width=120)


def cells(line):
    return [cell.strip() for cell in line.strip().strip("│┃").replace("┃", "│").split("│")]


def tables(text):
    """Tables by their titles, as lists of rows of cells, the head first."""
    found, title = {}, None
    for line in text.splitlines():
        if line.startswith(("│", "┃")):
            found.setdefault(title, []).append(cells(line))
        elif line.strip() and line.strip()[0].isalpha():
            title = line.strip()
    return found


def importance(output, n, **changes):
    """Rows of a summary, the last feature ranked first."""
    rows = [{"output": output, "feature": f"f{j}", "rank": n - j, "mean_abs": j / 7, "mean": -j / 7, "std": 0.0, "share": j / 100} for j in range(n)]
    return [row | changes for row in rows]


def show(console, tmp_path, rows, totals=None, method="shapley", name="importance"):
    (tmp_path / "run" / "summary").mkdir(parents=True)
    (tmp_path / "run" / "summary" / f"{name}.json").write_text(json.dumps(rows))
    listed = {f"{name}.json": {"uri": f"summary/{name}.json"}}
    manifest = SimpleNamespace(sets=None, method=method, summary=listed.get, totals=totals or {})
    show_summaries(console, str(tmp_path / "run"), manifest)
    return console.export_text()


def test_the_first_by_rank_are_shown(console, tmp_path):
    """With four digits, and shares in percent."""
    found = tables(show(console, tmp_path, importance("0", TOP + 5)))["importance"]
    assert found[0] == ["rank", "feature", "mean |phi|", "mean phi", "std", "share"]
    assert [row[:2] for row in found[1:]] == [[str(rank), f"f{TOP + 5 - rank}"] for rank in range(1, TOP + 1)]
    assert found[1][2:] == [f"{14 / 7:.4g}", f"{-14 / 7:.4g}", "0", "14.0%"]
    assert found[2][2] == f"{13 / 7:.4g}"


def test_numbers_end_and_names_begin_in_one_column(console, tmp_path):
    """So that digits of the same weight stand above each other."""
    said = show(console, tmp_path, importance("0", TOP + 5, feature="a"))
    assert f"│    1 │ a       │ {14 / 7:>10.4g} │" in said
    assert f"│   10 │ a       │ {5 / 7:>10.4g} │" in said


def test_a_headline_is_one_line(console, tmp_path):
    """Of what a run has in all; none where there is nothing to tell."""
    told = show(console, tmp_path / "told", importance("0", 1), totals={"inputs": {"rows": 9, "unseen": {"x": 7}}})
    assert told.splitlines()[-1] == "values that are no category of the model: 7 of 9 in 'x'"
    nothing = show(console, tmp_path / "nothing", importance("0", 1), totals={"inputs": {"rows": 9, "unseen": {}}})
    assert nothing.splitlines()[-1].startswith("└")


def test_every_output_has_a_table(console, tmp_path):
    """In the order of the file."""
    found = tables(show(console, tmp_path, importance("yes", 2) + importance("no", 3)))
    assert {title: len(rows) - 1 for title, rows in found.items()} == {"importance, output yes": 2, "importance, output no": 3}
    assert list(found) == ["importance, output yes", "importance, output no"]


def test_what_is_null_is_a_dash_and_markup_is_text(console, tmp_path):
    """A feature may be called anything."""
    rows = importance("0", 1, feature="[bold]x[/bold]", mean=None)
    assert tables(show(console, tmp_path, rows))["importance"][1] == ["1", "[bold]x[/bold]", "0", "–", "0", "0.0%"]


def test_long_names_are_whole(console, tmp_path):
    """Cut where a terminal is too narrow they would be the same."""
    rows = [row | {"feature": f"{'x' * 150}{row['feature']}"} for row in importance("0", 2)]
    found = tables(show(console, tmp_path, rows))["importance"]
    assert "".join(row[1] for row in found[1:]) == "".join(f"{'x' * 150}f{j}" for j in (1, 0))


def test_summaries_that_the_run_has_not_are_not_shown(console, tmp_path):
    """Interactions that were not asked for, and a summary of another method."""
    assert show(console, tmp_path, importance("0", 1), name="other") == ""


def measured(rows):
    names = ("output", "measure", "ranking", "other", "mean", "standard_error", "rows")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def test_a_comparison_has_a_row_per_ranking(console):
    """Its own measures with standard errors; then how far it agrees with the first, of other pairs nothing; differences stay in the file."""
    found = measured(
        [
            ("0", "insertion", "a", None, 1.25, 0.125, 3000),
            ("0", "insertion", "b[x]", None, 2.0, 0.5, 3000),
            ("0", "insertion", "c", None, 3.0, 0.25, 3000),
            ("0", "insertion", "a", "b[x]", -0.75, 0.1, 3000),
            ("0", "top 3", "a", "b[x]", 0.5, 0.01, 3000),
            ("0", "top 3", "a", "c", 0.25, 0.02, 3000),
            ("0", "top 3", "b[x]", "c", 0.99, 0.03, 3000),
            ("0", "pgi2 1", "a", None, 7.0, 1.0, 200),
        ]
    )
    show_comparison(console, found)
    said = console.export_text()
    assert console.width == WIDE
    shown = tables(said)
    assert shown["comparison"] == [
        ["ranking", "insertion", "pgi2 1"],
        ["a", "1.25 (0.12)", "7 (1)"],
        ["b[x]", "2 (0.5)", ""],
        ["c", "3 (0.25)", ""],
    ]
    assert next(iter(shown.items()))[0] == "comparison"
    assert shown["agreement with a"] == [["measure", "b[x]", "c"], ["top 3", "0.5 (0.01)", "0.25 (0.02)"]]
    assert "means of 3,000, of PGI² 200 rows (standard errors)" in " ".join(said.split())  # it may be broken into lines
    assert "0.99" not in said
    assert "-0.75" not in said


def test_a_comparison_of_one_row_has_no_errors(console):
    """And a long name of a run leaves the measures their room."""
    name = "run:" + "x" * 200
    found = measured([("0", measure, name, None, 1.25, None, 1) for measure in ("insertion", "deletion", "pgi2 0.5")])
    show_comparison(console, found)
    said = console.export_text()
    assert tables(said)["comparison"] == [["ranking", "insertion", "deletion", "pgi2 0.5"], [name, "1.25", "1.25", "1.25"]]
    assert "means of 1 row (standard errors)" in said


def test_removal_has_a_table_of_its_own(console):
    """It is about rows with labels, of which there may be fewer."""
    names = [("insertion", 10), ("removal 0", 7), ("removal 1", 7)]
    show_comparison(console, measured([("0", name, "a", None, 2.0, 0.5, rows) for name, rows in names]))
    said = console.export_text()
    shown = tables(said)
    assert shown["comparison"] == [["ranking", "insertion"], ["a", "2 (0.5)"]]
    assert shown["without the first features"] == [["ranking", "removal 0", "removal 1"], ["a", "2 (0.5)", "2 (0.5)"]]
    assert "means of 10 rows" in " ".join(said.split())
    assert "root mean squared error of 7 labels" in " ".join(said.split())


def test_a_single_ranking_agrees_with_nobody(console):
    """There is no second table; several outputs have one each."""
    show_comparison(console, measured([(output, "insertion", "a", None, 1.0, 0.5, 10) for output in ("no", "yes")]))
    assert list(tables(console.export_text())) == ["comparison, output no", "comparison, output yes"]
