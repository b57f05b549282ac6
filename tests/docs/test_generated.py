"""What is made for the pages is what ``make papers`` and ``make bench`` stored."""

import json
import re
import statistics
import tomllib
from collections import Counter
from dataclasses import asdict, replace

import pytest

from docs import benchmarked, generated
from docs import benchmarked as benchmarked_
from docs.foreseen import OFF
from tests.bench.bars import judge_by_row
from tests.bench.by_row import ByRow
from tests.bench.changes import Changed
from tests.bench.compare import Check, Comparison
from tests.bench.effects import EffectSpeed
from tests.bench.ours import BANZHAF, SHAPLEY, WHOLE
from tests.bench.timing import Speed
from tests.bench.usual import Usual
from tests.papers.figures import Claim, Figure, Line
from tests.papers.record import save
from tests.supported.__main__ import ENVIRONMENTS

TABLE = Figure("Anna et al. 2020, Table 1: errors", ("D",), (Line((5,), {"printed": 0.25, "ours: x": 1e-16}), Line((9,), {"ours: x": 0.5})), ".2g")
OTHER = Figure("Berta 2021, Figure 2: more", ("data",), (Line(("a|b",), {"ours": 3.0}),), ".1f", "drawn", "error")


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A file of two papers' figures."""
    about = {"quick": False, "date": "2030-01-02", "seconds": 7, "machine": {"cores": "2"}}
    drawn = [(TABLE, [Claim("small", True), Claim("smaller", False)]), (OTHER, [])]
    monkeypatch.setattr(generated, "PAPERS", save(tmp_path, drawn, about))


def test_figures_that_were_drawn_again_say_when(stored):
    """Beside the date of all others."""
    found = json.loads(generated.PAPERS.read_text())
    assert "Drawn again" not in generated.verdicts()
    found["figures"][1]["date"] = "2030-02-03"
    generated.PAPERS.write_text(json.dumps(found))
    assert "claims hold. Drawn again since: Figure 2: more (2030-02-03).\n" in generated.verdicts()


def test_a_papers_figures_are_tables_with_verdicts(stored):
    """Numbers in the figure's own digits, an empty cell where there is none, a picture where one was drawn."""
    title, table, claims = generated.papers("Anna").split("\n\n")
    assert title == "**Table 1: errors.**"
    assert table.splitlines() == ["| D | printed | ours: x |", "| --- | ---: | ---: |", "| 5 | 0.25 | 1e-16 |", "| 9 |  | 0.5 |"]
    assert claims == "* holds: small\n* FAILS: smaller"
    found = generated.papers("Berta")
    assert "On other data than the paper's: drawn." in found
    assert "a\\|b" in found
    assert "![Figure 2: more](papers/berta-2021-figure-2-more.svg)" in found


def test_verdicts_count_what_holds(stored):
    found = generated.verdicts()
    assert "2 figures and tables; 1 of 2 claims hold." in found
    assert "| Anna et al. 2020 | Table 1: errors | the paper's | 1 of 2 |" in found
    assert "| Berta 2021 | Figure 2: more | other: drawn | nothing claimed |" in found


def test_without_results_the_page_says_how_to_make_them(tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "PAPERS", tmp_path / "results.json")
    assert "make papers" in generated.verdicts()
    assert generated.papers("Anna") == ""


def test_every_figure_that_is_kept_is_on_the_page():
    """Each paper has its part of the page, every picture is there, and what is shown was not made in a hurry."""
    kept = json.loads(generated.PAPERS.read_text())
    page = (generated.ROOT / "docs" / "papers.md").read_text()
    authors = re.findall(r"^```\{generated\} papers (\w+)$", page, re.MULTILINE)
    shown = "".join(map(generated.papers, authors))
    for figure in kept["figures"]:
        assert f"**{re.split(r'[0-9]{4}, ', figure['title'], maxsplit=1)[1]}.**" in shown
        assert bool(figure["plot"]) == (generated.PAPERS.parent / f"{figure['name']}.svg").exists()
    assert not kept["quick"]
    assert {claim["verdict"].partition(",")[0] for figure in kept["figures"] for claim in figure["claims"]} == {"holds"}


def test_figures_of_speed_are_those_of_the_benchmark(tmp_path, monkeypatch):
    """As ``make bench`` writes them: rates, how many times a peer's where it is exact, and nothing of what was not measured."""
    speeds = (
        Speed(f"{SHAPLEY}: {WHOLE}", 1, 3_000, 0.5, 0.1),
        Speed(f"{SHAPLEY}: {WHOLE}", 2, 9_000, 0.5, 0.1),
        Speed(f"{BANZHAF}: {WHOLE}", 1, 8_000, 0.5, None),
        Speed("slow", 1, 10, 0.1, None),
        Speed("wrong", 1, 10, 0.1, None),
    )
    checks = (Check("slow", 1e-9, 0.0), Check("wrong", 0.3, 0.0))
    found = Comparison("a", "A model", 1, 0.1, 2.0, speeds, checks, ())
    usual = Usual("b", "B model", "peer", Speed("ours", 2, 100, 0.1, None), Speed("peer", 1, 100, 2.0, None), speeds[0], 1e-16)
    results = {"machine": {"cores": "2"}, "quick": False, "comparisons": [asdict(found)], "usual": [asdict(usual)]}
    (tmp_path / "results.json").write_text(json.dumps(results))
    monkeypatch.setattr(benchmarked, "RESULTS", tmp_path / "results.json")
    measured, one, two = benchmarked_.benchmarks().split("\n\n")
    assert measured == "Measured by `make bench`, on: cores 2."
    assert one.splitlines()[2] == "| A model | 6,000 | 100 (60 ×) | not exact | 16,000 |"
    assert two.splitlines()[2] == "| B model | 1,000 | peer 50 (20 ×) |"


def test_effects_and_changes_are_on_the_page(tmp_path, monkeypatch):
    """Seconds, and how many times ours the others take, where they were there; rows a second, and how many predictions that is."""
    effects = [EffectSpeed("E", 1_000, 2_000, 0.5, 600.0, 0.0, 10.0, 0.0), EffectSpeed("F", 10, 20, 0.25, 1.0, 0.0, None, None)]
    changed = Changed("a", "A model", Speed("changes", 1, 100, 0.5, None), Speed("predict", 1, 100, 0.05, None), 1.0)
    results = {"machine": {}, "quick": False, "effects": [asdict(each) for each in effects], "changes": [asdict(changed)]}
    (tmp_path / "results.json").write_text(json.dumps(results))
    monkeypatch.setattr(benchmarked, "RESULTS", tmp_path / "results.json")
    _, one, two = benchmarked_.benchmarks().split("\n\n")
    assert one.splitlines()[2:] == ["| E, 1,000 rows | 2,000 | 0.5 | 600 (1,200 ×) | 10 (20 ×) |", "| F, 10 rows | 20 | 0.25 | 1 (4 ×) |  |"]
    assert two.splitlines()[2] == "| A model | 200 | 10.0 |"


def test_predictions_and_losses_stand_beside_the_margin_and_shap(tmp_path, monkeypatch):
    """Two backgrounds: twice and four times the margin's own time, a hundred times shap's rate."""
    margin, shap = Speed("margin", 1, 800, 1.0, 0.1), Speed("shap", 1, 2, 1.0, None)
    small, large = (
        ByRow("A model", n, "loss", games, 0.1, 0.2, Speed("x", 1, rate, 1.0, 0.1), margin) for n, games, rate in ((10, 3, 400), (99, 2, 200))
    )
    found = [replace(small, theirs=replace(shap, n_rows=4), difference=1e-9), large]
    results = {"machine": {"cores": "2"}, "quick": False, "by_row": [asdict(each) for each in found]}
    (tmp_path / "results.json").write_text(json.dumps(results))
    monkeypatch.setattr(benchmarked, "RESULTS", tmp_path / "results.json")
    _, table = benchmarked_.benchmarks().split("\n\n")
    assert table.splitlines()[2] == "| loss | 2–3 | 400 (2.0) | 200 (4.0) | 4 (100 ×) |"
    judged = {(bar.case, bar.what.partition(",")[0]): (bar.measured, bar.met) for bar in judge_by_row(found)}
    assert judged == {
        ("loss, 10 background rows", "times the margin's own time"): (2.0, True),
        ("loss, 10 background rows", "times shap"): (100.0, False),
        ("loss, 99 background rows", "times the margin's own time"): (4.0, False),
        ("loss", "slowest background over fastest"): (1 / 3, False),
    }


def test_every_bar_is_on_the_page_with_its_verdict():
    """Judged again by hand; what misses its bar comes first. Those of R² are of another environment, and of another file."""
    judged = json.loads(benchmarked.RESULTS.read_text())["bars"]
    said, _, _, *rows = benchmarked_.bars().replace("\n\n", "\n").splitlines()
    right = [bar["measured"] <= bar["bar"] if bar["most"] else bar["measured"] >= bar["bar"] for bar in judged]
    assert said == f"{sum(right)} of {len(judged)} are met."
    assert [row.endswith("| met |") for row in rows] == sorted(right)
    assert len(rows) == len(judged)


def test_forecasts_on_the_page_keep_their_promise():
    """Three models, two methods, one worker and two, twice: what was kept was not made in a hurry, and the page says how many are off by how much."""
    found = json.loads(generated.FORECASTS.read_text())
    cells = Counter((each["model"], each["method"], each["workers"]) for each in found["forecasts"])
    assert [len(set(some)) for some in zip(*cells, strict=True)] == [3, 2, 2]
    assert len(cells) == 12
    assert set(cells.values()) == {2}
    assert not found["quick"]
    page = generated.forecasts()
    for name, said in OFF.items():
        off = [abs(each["forecast"][name] / each["run"][name] - 1) for each in found["forecasts"]]
        assert f"{said} {sum(each <= 0.2 for each in off)} of 24" in page
        assert statistics.median(off) <= 0.1, name


def test_a_billion_rows_take_so_many_times_what_was_measured(tmp_path, monkeypatch):
    """By hand: two workers took 100 seconds of a million rows, after 10 seconds in which they started."""
    run = {"seconds": 110.0, "read_bytes": 5_000_000, "written_bytes": 80_000_000}
    forecast = {"seconds": 120.0, "stages": {"explaining": 110.0}}
    each = {"model": "Model", "method": "m", "n_rows": 1_000_000, "workers": 2, "forecast": forecast, "run": run}
    path = tmp_path / "forecasts.json"
    path.write_text(json.dumps({"forecasts": [each, each | {"workers": 1}]}))
    monkeypatch.setattr(generated, "FORECASTS", path)
    *_, row = generated.billion().splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    # 200 µs a row of a worker are 2e5 seconds, 55.6 hours; 3,815 parts of 52.4 s are 1,908 rounds of 2, 39 of 100 and 4 of 1,000 workers
    assert cells == ["Model: m", "200.00 µs", "55.6", "27.8 h", "34.2 min", "3.7 min", "5 GB", "80 GB", "3,815"]


def test_every_environment_is_on_the_page_with_its_versions(tmp_path, monkeypatch):
    """A column each; a package that one of them lacks leaves its cell empty, and tests that failed are counted."""
    newest = {"date": "2030-01-02", "python": "3.12.1", "passed": 5, "skipped": 1, "failed": [], "versions": {"numpy": "2.5.0", "shap": "0.54.0"}}
    pinned = newest | {"python": "3.14.0", "failed": ["a", "b"], "versions": {"numpy": "2.4.0"}}
    (tmp_path / "supported.json").write_text(json.dumps({"newest": newest, "3.14": pinned}))
    monkeypatch.setattr(generated, "SUPPORTED", tmp_path / "supported.json")
    head, _, *rows = generated.supported().splitlines()
    assert head == "|  | newest | pinned, 3.14 |"
    assert rows[0] == "| Python | 3.12.1 | 3.14.0 |"
    assert rows[-3:] == ["| failed | 0 | 2 |", "| numpy | 2.5.0 | 2.4.0 |", "| shap | 0.54.0 |  |"]


def test_what_is_supported_was_tried():
    """In every environment, where nothing failed; the oldest has the versions that the package's metadata begin with."""
    kept = json.loads(generated.SUPPORTED.read_text())
    assert [(name, each["python"].rpartition(".")[0], each["failed"]) for name, each in kept.items()] == [
        (name, chosen.python, []) for name, chosen in ENVIRONMENTS.items()
    ]
    project = tomllib.loads((generated.ROOT / "pyproject.toml").read_text())["project"]
    asked = " ".join((*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)))
    for name, version in kept["oldest"]["versions"].items():
        assert f"{version}.".startswith(f"{re.search(rf'(?:^| ){name}>=([0-9.]+[0-9])', asked)[1]}."), name
