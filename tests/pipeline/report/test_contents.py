"""A page has the sections that its run has, and says what it leaves out."""

import re
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from leafledger import explain, read_run, report
from leafledger.pipeline.dataset.columns.grouping import GroupColumn
from leafledger.pipeline.dataset.files.listing import Rejected
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.finished.names import Names
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.models.row_output import RowOutput
from leafledger.pipeline.report.contents import Limits, Material, compose, read_summaries
from leafledger.pipeline.report.figures.figure import Figure, Table, Tracks
from leafledger.pipeline.report.figures.scale import write_number
from leafledger.pipeline.report.page import MOST_BYTES, write_page
from leafledger.pipeline.report.report import write_report

LIMITS = Limits(3, 20, 6)


def test_the_sections_are_those_of_the_run(reported):
    run = read_run(reported)
    page = compose(Material(run, read_summaries(run), {}, ()), LIMITS)
    assert [section.id for section in page.sections] == ["output-1", "inputs", "glossary", "provenance"]
    assert [figure.title for figure in page.sections[0].figures] == [
        "How much each feature moves predictions",
        "Which features act together",
        "The largest interactions",
    ]


def test_of_no_rows_nothing_is_shown(reported):
    """Summaries have zeros of them, and no value of theirs is missing."""
    run = read_run(reported)
    empty = replace(run, manifest=replace(run.manifest, n_rows=0))
    page = compose(Material(empty, read_summaries(run) | {"r2": []}, {}, ()), LIMITS)
    assert [section.id for section in page.sections] == ["provenance"]


def of_many(reported, n_outputs, n_features):
    """Of outputs and features with long names."""
    run = read_run(reported)
    outputs = tuple(f"output {k} " + "x" * 300 for k in range(n_outputs))
    features = tuple(Feature(f"feature {j} " + "y" * 300) for j in range(n_features))
    plan = replace(run.plan, outputs=outputs, features=features)
    run = replace(run, plan=plan, manifest=replace(run.manifest, base=(0.0,) * n_outputs, outputs=outputs))
    row = {"mean_abs": 1.0, "mean": 0.5, "std": 1.0, "min": -1.0, "max": 1.0, "share": 1e-4}
    rows = [row | {"output": name, "feature": feature.name, "rank": j + 1} for name in outputs for j, feature in enumerate(features)]
    return Material(run, {"importance": rows}, {}, ())


@pytest.mark.parametrize(
    ("n_outputs", "n_features", "text"),
    [(500, 30, "Figures are of the first 3 of 500 outputs. Of these, 437 are left out."), (5, 10_000, "Figures are of the first 3 of 5 outputs.")],
)
def test_many_outputs_are_listed_and_the_rest_counted(reported, n_outputs, n_features, text):
    """The first ones have figures, some are listed, all are counted, and of 10,000 features the first: the page stays small."""
    material = of_many(reported, n_outputs, n_features)
    page = compose(material, LIMITS)
    others = next(section for section in page.sections if section.id == "others")
    assert others.text == (text,)
    assert others.tables[0][1].rows[0][0].startswith("output 3")
    assert f"The first 20 of {n_features:,} features." in page.sections[0].figures[0].description
    assert len(write_report(material)) < MOST_BYTES


def test_a_page_that_is_too_large_has_fewer_figures(reported, monkeypatch):
    """It is the first that is small enough, else the smallest."""
    material = of_many(reported, 5, 30)
    module = import_module("leafledger.pipeline.report.report")
    pages = [write_page(compose(material, limits)).encode() for limits in module.LIMITS]
    assert len(pages[0]) > len(pages[1]) > len(pages[-1])
    for most, expected in ((len(pages[0]), pages[0]), (len(pages[0]) - 1, pages[1]), (1, pages[-1])):
        monkeypatch.setattr(module, "MOST_BYTES", most)
        assert write_report(material) == expected


@pytest.mark.parametrize(("unseen", "says"), [(0, "does not know."), (None, "does not know, of those features whose categories it tells.")])
def test_nothing_is_said_of_categories_that_the_model_does_not_tell(reported, unseen, says):
    run, row = read_run(reported), {"feature": "a", "rows": 9, "missing": 0, "below": 0, "above": 0}
    page = compose(Material(run, {"inputs": [row | {"unseen": unseen}]}, {}, ()), LIMITS)
    (text,) = next(section for section in page.sections if section.id == "inputs").text
    assert text == f"No value of a feature that the model uses is missing, and none is a category that it {says}"


def test_methods_have_their_own_sections(reported):
    run = read_run(reported)
    shares = [{"feature": "a", "r2": 0.5, "standard_error": 0.1, "rank": 1}]
    steps = [{"output": run.plan.outputs[0], "step": step, "mean": 1.0 / step} for step in (1, 2)]
    curves = [{"output": run.plan.outputs[0], "curve": name, "present": i, "mean": float(i)} for name in ("insertion", "deletion") for i in range(3)]
    run = replace(run, manifest=replace(run.manifest, totals={"r2": {"total_r2": 0.5, "n_unlabelled": 3}}))
    page = compose(Material(run, {"r2": shares, "objective": steps, "curves": curves}, {}, ()), LIMITS)
    found = {section.id: section for section in page.sections}
    assert found["r2"].text == ("R² 0.5; rows without a label 3.",)
    assert [figure.title for figure in found["output-1"].figures] == ["How the ranker got there", "Insertion and deletion"]
    lines = found["output-1"].figures[1].drawing
    assert [name for _, name in lines.keys] == ["insertion", "deletion"]


def test_groups_of_rows_are_listed_the_largest_first(reported):
    """With the first features of each; those without a value have a dash, and those that are left out are counted."""
    run = read_run(reported)
    row = {"output": run.plan.outputs[0], "mean_abs": 2.0}
    rows = [
        row | {"k": k or None, "feature": name, "rank": rank, "share": share, "rows": 100 - k}
        for k in range(25)
        for name, rank, share in (("b", 2, 0.25), ("a", 1, 0.75))
    ]
    run = replace(run, plan=replace(run.plan, by=(GroupColumn("k", "int64"),)))
    page = compose(Material(run, {"importance_by": rows}, {}, (), Names(row="flight", rows="flights")), LIMITS)
    (section,) = (section for section in page.sections if section.id == "groups")
    assert section.title == "What moves predictions by k"
    ((title, table),) = section.tables
    assert (title, table.heads[:2]) == ("Groups of flights", ("k", "flights"))
    assert table.rows[:2] == (("–", "100", "4", "a 75%, b 25%"), ("1", "99", "4", "a 75%, b 25%"))
    assert len(table.rows) == 20
    assert "20 of 25 groups" in table.note
    assert len(write_report(Material(run, {"importance_by": rows}, {}, ()))) < MOST_BYTES


@pytest.mark.parametrize(
    ("output", "start"), [(None, "base value, where every row starts,"), (RowOutput("predicted"), "base value of the row’s own output")]
)
def test_single_rows_start_at_a_base_value_of_their_own_where_they_have_one(reported, output, start):
    """With --output predicted or other."""
    run = read_run(reported)
    row = Figure("Highest margin", "", Tracks((), (), None, ""), Table(("feature",), ()))
    page = compose(Material(replace(run, plan=replace(run.plan, row_output=output)), {}, {}, (row,)), LIMITS)
    (section,) = (section for section in page.sections if section.id == "rows")
    assert section.text == (f"From the {start} to what the model says of it, the largest step first.",)


def test_what_was_rejected_comes_first_and_is_counted(reported):
    run = read_run(reported)
    rejected = tuple(Rejected(None, f"{i}.parquet", (), None, f"{i}.parquet: damaged") for i in range(20))
    run = replace(run, manifest=replace(run.manifest, rejected=rejected))
    first = compose(Material(run, read_summaries(run), {}, ()), LIMITS).sections[0]
    assert first.text == ("The first 12 of 20.",)
    assert first.items[0] == "0.parquet: damaged"
    assert len(first.items) == 12


def test_a_damaged_summary_is_one_line(reported, tmp_path):
    copy = shutil.copytree(reported, tmp_path / "run")
    (copy / "summary/importance.parquet").write_bytes(b"no parquet")
    with pytest.raises(InvalidRun, match=r"importance.parquet: is damaged"):
        read_summaries(read_run(copy))


def test_a_summary_without_a_column_is_one_line(reported, tmp_path):
    """Whose bytes are sound, and whose name of a column is not."""
    copy = shutil.copytree(reported, tmp_path / "run")
    path = copy / "summary/inputs.parquet"
    pq.write_table(pq.read_table(path).drop_columns("missing"), path)
    with pytest.raises(InvalidRun, match=r"inputs.parquet: is damaged: it has no column 'missing'"):
        read_summaries(read_run(copy))


def test_interactions_of_three_are_in_the_report_of_a_run_with_an_order(acting):
    """As a bar with three dots and an area; from the run's summary, which has all sets of up to three."""
    run = read_run(acting)
    matrix, sets, network = compose(Material(run, read_summaries(run), {}, ()), LIMITS).sections[0].figures[1:]
    assert sorted(row[0].count(" and ") for row in sets.table.rows) == [1, 1, 1, 2]
    assert max((column.members for column in sets.drawing.columns), key=len) == (0, 1, 2)
    assert (len(matrix.table.rows), len(network.drawing.lines), len(network.drawing.areas)) == (3, 3, 1)


def test_a_loss_is_said_to_be_moved_and_is_no_prediction_of_its_label(tmp_path):
    """A residual would be the label less the loss, which means nothing."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    label = 100 + rows["a"] + rng.normal(0, 0.1, 120)
    model = lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(rows, label), 5)
    model.save_model(tmp_path / "model.txt")
    rows.assign(label=label).to_parquet(tmp_path / "rows.parquet")
    data = tmp_path / "rows.parquet"
    explain(tmp_path / "model.txt", data, tmp_path / "run", space="loss", label="label", background=data, scheduler="serial")
    page = Path(report(tmp_path / "run", scheduler="serial").uri).read_text()
    assert "residual" not in page.split('<section id="rows"')[1].split("</section>")[0]
    worst = int(np.square(model.predict(rows) - label).argmax())
    shown = re.search(r"Row ([\d,]+) of part 0: loss [^<]*, label ([\d.]+)\.", page)
    assert (shown[1], shown[2]) == (f"{worst:,}", write_number(label[worst]))
    assert all(f"{what} the loss" in page for what in ("What moves", "How much each feature moves"))
    assert "how wrong the prediction of a row is. A feature with a negative attribution made it smaller" in page
