"""A report is written once and whole, of any run there is, the same wherever its rows were counted."""

import json
import re
import shutil
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from unittest.mock import patch

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import attribute, check_run, drift, effects, explain, load_ensemble, read_run, report
from leafledger.pipeline.errors import InvalidRun, NotFinished, RunConflict, UsageError
from leafledger.pipeline.report import report as module
from leafledger.pipeline.report.contents import compose
from leafledger.pipeline.report.figures.scale import write_number
from leafledger.pipeline.report.report import LIMITS, gather
from leafledger.pipeline.runs.records.derived import read_after, write_derived
from leafledger.pipeline.stores import storage
from tests.pipeline.running import contents


def written(run, **where):
    uri = report(run, **({"scheduler": "serial"} | where)).uri
    return contents(run)[uri.removeprefix(f"{run}/")].decode()


def copied(run, folder):
    """A copy of a run as it was published, without what was made of it later."""
    return shutil.copytree(run, folder / "run", ignore=shutil.ignore_patterns("after*", "report"))


def test_a_report_is_listed_beside_the_manifest_and_the_run_stays_sound(reported, tmp_path):
    run = copied(reported, tmp_path)
    before = contents(run)
    page = report(run, scheduler="serial")
    after = contents(run)
    assert page.uri == f"{run}/report/index.html"
    assert page.size == len(after["report/index.html"]) < 1_000_000
    assert {name: after[name] for name in before} == before
    assert "report/index.html" in [entry["uri"] for entry in read_after(str(run), read_run(run).manifest.sha256).objects]
    assert check_run(run, deep=True).sound
    (run / "report/index.html").write_text("changed")
    with pytest.raises(InvalidRun, match=r"index\.html"):
        check_run(run)
    report(run, scheduler="serial")
    assert contents(run) == after


@pytest.mark.slow
def test_the_page_is_the_same_on_dask(reported, tmp_path, two_workers):
    """Two processes count what one counts."""
    copy = copied(reported, tmp_path)
    serial = written(copy)
    shutil.rmtree(copy / "report")
    assert written(copy, scheduler=two_workers) == serial


def test_how_the_run_was_made_is_on_the_page_as_text(reported, tmp_path):
    """Also where a host is called like markup; a page without the record is the same but for that."""
    copy = shutil.copytree(reported, tmp_path / "run", ignore=shutil.ignore_patterns("after*", "report"))
    uri = copy / "provenance.json"
    made = json.loads(uri.read_text())
    uri.write_text(json.dumps(made | {"client": {"host": "<b>host</b>", "cpu": "a\x1b[2Jcpu"}}))
    page = written(copy)
    assert "<dd>&lt;b&gt;host&lt;/b&gt; (a\\x1b[2Jcpu)</dd>" in page
    assert written(copy) == page
    uri.unlink()
    without = written(copy)
    assert set(re.findall("<dt>([^<]*)", page)) - set(re.findall("<dt>([^<]*)", without)) >= {"made", "packages", "explained on"}


@pytest.mark.slow
def test_a_rare_value_is_reported_by_its_own_rows(tmp_path):
    """One row in a thousand has the flag: the mean on the page is that of its attributions, not of the end of an axis."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"flag": (np.arange(40_000) % 1000 == 7).astype(float), "x": rng.normal(size=40_000)})
    settings = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5}
    lightgbm.train(settings, lightgbm.Dataset(frame, 30 * frame["flag"] + 0.3 * frame["x"]), 20).save_model(tmp_path / "model.txt")
    frame.to_parquet(tmp_path / "data.parquet", index=False)
    explain(tmp_path / "model.txt", tmp_path / "data.parquet", tmp_path / "run", values=True, scheduler="serial")
    table = read_run(tmp_path / "run").attributions().to_pandas()
    page = written(tmp_path / "run")
    for value, rows in table.groupby("value_flag"):
        cells = re.search(rf'<th scope="row">{value:g}</th><td>{len(rows):,}</td><td>[^<]*</td><td>([^<]*)</td>', page)
        assert cells[1] == write_number(float(rows["phi_flag"].astype(float).mean()), signed=True)


def test_everything_of_the_run_is_on_the_page(reported):
    page = written(reported)
    titles = re.findall(r"<h3 id=[^>]*>([^<]*)", page)
    first = ["Where values are missing or new", "Distribution of the prediction", "How much each feature moves predictions"]
    assert titles[:4] == [*first, "Which way features move predictions"]  # missing values move predictions here
    assert {"How delay acts", "How carrier acts", "Which features act together"} <= set(titles)
    assert titles[-3:] == ["Highest prediction", "Lowest prediction", "A typical row: the median prediction"]


def test_classes_have_a_section_each(classes):
    page = written(classes)
    assert re.findall(r'<section id="([^"]*)"', page) == ["output-1", "output-2", "output-3", "rows", "inputs", "glossary", "provenance"]
    assert "explain --values keeps them" in page


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("ranker", {}), ("curves", {}), ("gap_greedy", {"parameters": {"top": 2}}), ("r2", {"label": "delay", "missing_labels": "count"})],
)
def test_every_kind_of_method_has_a_page(example, tmp_path, method, arguments):
    explain(example.model, f"{example.data}/month=1", tmp_path / "run", method=method, scheduler="serial", **arguments)
    assert "<figure" in written(tmp_path / "run")


@pytest.mark.parametrize("arguments", [{"global_only": True}, {"top": 2, "columns": "top"}, {"space": "response"}])
def test_what_a_run_does_not_keep_is_not_drawn(example, tmp_path, arguments):
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", **arguments)
    page = written(tmp_path / "run")
    assert ("is not drawn" in page) == ("space" not in arguments)


@pytest.mark.parametrize("n", [0, 1, 300])
def test_a_page_is_made_of_whatever_rows_there_are(odd, n):
    """None, one, or some with all values missing and some infinite; names that are markup are texts."""
    page = written(odd(n))
    assert "<script" not in page
    assert ("&lt;script&gt;" in page) == (n > 0)  # of no rows nothing is shown
    assert ("No rows were explained" in page) == (n == 0)
    assert "nan" not in re.sub(r"[A-Za-z]nan|nan[A-Za-z]", "", page)


def trained(folder, frame, label):
    """A run of a model of its own, with values."""
    model = lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(frame, label), 3)
    model.save_model(folder / "model.txt")
    (folder / "data").mkdir()
    frame.to_parquet(folder / "data/x.parquet", index=False)
    explain(folder / "model.txt", folder / "data", folder / "run", values=True, scheduler="serial")
    return folder / "run"


def test_where_nothing_moves_predictions_the_page_says_so_and_draws_no_zeros(tmp_path):
    """A model that was trained on a single class has no splits."""
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 3)), columns=["a", "b", "c"])
    page = written(trained(tmp_path, frame, np.ones(200)))
    assert "No feature moves the prediction" in page
    assert "Which way features move predictions" not in page


def test_rows_without_any_value_have_a_page(example, tmp_path):
    frame = example.frame.copy()
    frame[["delay", "distance", "carrier"]] = None
    (tmp_path / "data").mkdir()
    frame.astype({"delay": float, "distance": float, "carrier": "string"}).to_parquet(tmp_path / "data/x.parquet", index=False)
    explain(example.model, tmp_path / "data", tmp_path / "run", values=True, scheduler="serial")
    assert "Where values are missing or new" in written(tmp_path / "run")


def test_where_all_shares_are_small_the_first_features_are_drawn_all_the_same(reported, tmp_path):
    """As of thousands of features: none has 1 %, and yet the page says how the first ones act."""
    run = read_run(copied(reported, tmp_path))
    material = gather(run, None, {"scheduler": "serial", "workers": None, "plain_tcp": False})
    small = [row | {"share": row["share"] / 1000} for row in material.summaries["importance"]]

    def acting(found):
        return {figure.title for section in compose(found, LIMITS[0]).sections for figure in section.figures if figure.title.endswith(" acts")}

    first = acting(replace(material, summaries={**material.summaries, "importance": small}))
    assert {"How delay acts"} <= first <= acting(material)


def test_what_changed_comes_first_and_stays(example, reported, tmp_path):
    """Against another run, and afterwards without naming it again, the page is the same."""
    explain(example.model, f"{example.data}/month=1", tmp_path / "run", values=True, scheduler="serial")
    against = written(tmp_path / "run", against=reported)
    assert re.findall(r'<section id="([^"]*)"', against)[:2] == ["changes", "inputs"]  # of which a value in a hundred is missing
    assert re.search(r'<p class="lede">The mean prediction is [^;]*; in run it was ', against)
    assert written(tmp_path / "run") == against


@pytest.mark.slow
def test_another_report_keeps_the_alarms_that_were_found(example, reported, tmp_path):
    """By groups and thresholds: against the same run nothing is compared again, against another one by the same."""
    run, other = tmp_path / "run", tmp_path / "other"
    explain(example.model, f"{example.data}/month=1", run, values=True, scheduler="serial")
    explain(example.model, f"{example.data}/month=2", other, values=True, scheduler="serial")
    drift(run, against=reported, by=["carrier"], thresholds={"psi": 0.5, "ndcg": 1.0}, scheduler="serial")
    found = (run / "after/drift.json").read_bytes()
    page = written(run)
    with patch("leafledger.pipeline.drift.drift.compare_runs") as compared:
        assert written(run, against=reported) == page
    assert not compared.called
    assert (run / "after/drift.json").read_bytes() == found
    report(run, against=other, scheduler="serial")
    before, now = json.loads(found), json.loads((run / "after/drift.json").read_bytes())
    assert now["reference"] == str(other)
    assert (now["by"], now["thresholds"]) == (before["by"], before["thresholds"])
    assert now["groups"]


def test_a_comparison_that_is_none_is_made_again(example, reported, tmp_path):
    copy, other = copied(reported, tmp_path), tmp_path / "other"
    explain(example.model, f"{example.data}/month=1", other, values=True, scheduler="serial")
    write_derived(str(copy), read_run(copy).manifest.sha256, {"after/drift.json": b"{"})
    assert "compared with other" in written(copy, against=other)
    assert json.loads((copy / "after/drift.json").read_bytes())["reference"] == str(other)


@pytest.mark.parametrize("found", [b"{", b"\xff", b"[" * 100_000, b"[]", b"null", b"{}"], ids=["text", "bytes", "deep", "list", "null", "empty"])
def test_what_changed_that_is_none_is_one_line(reported, tmp_path, found):
    copy = copied(reported, tmp_path)
    write_derived(str(copy), read_run(copy).manifest.sha256, {"after/drift.json": found})
    with pytest.raises(InvalidRun, match=r"after/drift.json: is not as leafledger writes it; compare the runs again$"):
        report(copy, scheduler="serial")


@pytest.mark.parametrize("ids", [["flight"], ["flight", "label"]])
@pytest.mark.slow
def test_with_labels_the_row_that_is_farthest_off_is_shown(example, tmp_path, ids, two_workers):
    """As the labels and the library's own predictions say; the same on Dask, and of a label that is an id already."""
    table = example.frame.assign(label=np.random.default_rng(1).normal(0, 10, len(example.frame)))
    table.loc[::7, "label"] = np.nan
    (tmp_path / "data").mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[rows].to_parquet(tmp_path / f"data/{part}.parquet", index=False)
    run = tmp_path / "run"
    explain(example.model, tmp_path / "data", run, method="r2", label="label", ids=ids, scheduler="serial")
    page = written(run)
    model = load_ensemble(example.model)
    residual = (table["label"] - attribute(model, table).margin[:, 0]).abs()
    worst = table.loc[residual.idxmax()]
    assert re.findall(r"<h3 id=[^>]*>([^<]*)", page.split('<section id="rows"')[1])[3] == "Largest residual"
    assert re.search(rf"Row flight = {worst['flight']}[^<]*, label {re.escape(write_number(worst['label']))}, residual [+−]", page)
    (run / "report/index.html").unlink()
    assert written(run, scheduler=two_workers) == page


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (pa.array(["a"], pa.string_view()), "a"),
        (pa.array([b"a"], pa.binary_view()), "b&#39;a&#39;"),
        (pa.array([1.5], pa.float16()), "1.5"),
        (pa.array([4_000_000], pa.int32()).cast(pa.date32()), "12921-08-18"),
        (pa.array([1], pa.timestamp("ns", "Mars/Base")), "1970-01-01 00:00:00.000000001Z"),
    ],
)
def test_a_row_is_drawn_whatever_its_id_is(example, tmp_path, ids, said):
    """Views, of which Arrow takes no rows, halves, and what Arrow can write but Python has no value for."""
    table = pa.Table.from_pandas(example.frame.head(1), preserve_index=False).append_column("id", ids)
    pq.write_table(table, tmp_path / "data.parquet")
    explain(example.model, tmp_path / "data.parquet", tmp_path / "run", ids=["id"], scheduler="serial")
    assert f"Row id = {said}: prediction " in written(tmp_path / "run")


@pytest.mark.slow
def test_a_run_in_an_object_store_has_its_page_there(example, bucket):
    explain(example.model, f"{example.data}/month=1", f"{bucket}/run", scheduler="serial")
    page = report(f"{bucket}/run", scheduler="serial")
    assert page.uri == f"{bucket}/run/report/index.html"
    assert len(storage.read(page.uri)) == page.size
    assert check_run(f"{bucket}/run").sound


def test_a_run_that_is_not_finished_is_one_line(reported, tmp_path):
    copy = copied(reported, tmp_path)
    (copy / "manifest.json").unlink()
    for run in (tmp_path, copy):
        with pytest.raises(InvalidRun, match="not a finished run"):
            report(run)
    assert not (copy / "report").exists()


@contextmanager
def replaced_after(name, example, run, removed=True, **settings):
    """Another run takes a run's place once a function was called; files of the one before may stay."""
    call = getattr(module, name)

    def call_and_replace(*given):
        found = call(*given)
        with nullcontext() if removed else patch("leafledger.pipeline.runs.explain.finish_replacement"):
            explain(example.model, f"{example.data}/month=2", run, if_changed="replace", scheduler="serial", **settings)
        return found

    explain(example.model, f"{example.data}/month=1", run, scheduler="serial", **settings)
    with patch.object(module, name, call_and_replace), pytest.raises(RunConflict, match="the run was replaced or removed meanwhile"):
        yield


@pytest.mark.parametrize("meanwhile", ["_choose", "write_report"])
def test_no_page_is_written_into_the_place_of_another_run(example, tmp_path, meanwhile):
    """One that takes the place before rows are counted, or before the page is written."""
    with replaced_after(meanwhile, example, tmp_path / "run"):
        report(tmp_path / "run", scheduler="serial")
    assert not (tmp_path / "run/report").exists()
    assert check_run(tmp_path / "run").sound


@pytest.mark.parametrize("compared", [False, True])
def test_what_is_gathered_is_of_one_run(example, reported, tmp_path, compared):
    """Another one that takes the place is not measured in its stead, nor compared where nothing is measured."""
    where = {"scheduler": "serial", "workers": None, "plain_tcp": False}
    meanwhile = "_read_changes" if compared else "read_summaries"
    with replaced_after(meanwhile, example, tmp_path / "run", removed=False, global_only=compared):
        gather(read_run(tmp_path / "run"), reported if compared else None, where)


def test_a_damaged_run_is_one_line(reported, tmp_path):
    copy = copied(reported, tmp_path)
    part = copy / "attributions/part-00001.parquet"
    group, damaged = pq.read_metadata(part).row_group(0), bytearray(part.read_bytes())
    offset = next(group.column(c).data_page_offset for c in range(group.num_columns) if group.column(c).path_in_schema == "phi_distance")
    damaged[offset + 60 : offset + 90] = bytes(each ^ 255 for each in damaged[offset + 60 : offset + 90])
    part.write_bytes(damaged)
    with pytest.raises(InvalidRun, match=r"part-00001.parquet"):
        report(copy, scheduler="serial")
    assert not (copy / "report").exists()
    part.unlink()
    with pytest.raises(InvalidRun, match=r"part-00001.parquet"):
        report(copy, scheduler="serial")


@pytest.mark.slow
def test_effects_stand_beside_attributions(reported, tmp_path):
    """Of the same model alone; what is damaged or not there is told in a line."""
    plan, run = read_run(reported).plan, copied(reported, tmp_path)
    out = tmp_path / "effects"
    effects(plan.model, plan.data, out, scheduler="serial")
    page = written(run, effects=out)
    first = page.index("How distance acts") if "How distance acts" in page else page.index(" acts</h3>")
    assert page.count("Effect of ") >= 2
    assert page.index("Effect of ", first) > first
    assert "Effect of " not in written(run)
    drawn = re.findall(">Effect of ([^<]+)</h3>", page)
    titled = written(run, effects=out, names={"features": {drawn[0]: {"title": "First of all"}}})
    assert re.findall(">Effect of ([^<]+)</h3>", titled) == ["First of all", *drawn[1:]]
    bare = tmp_path / "bare"
    explain(plan.model, plan.data, bare, scheduler="serial")  # without values, which attributions would be drawn by
    alone = written(bare, effects=out)
    assert " acts</h3>" not in alone
    assert {*drawn} <= {*re.findall(">Effect of ([^<]+)</h3>", alone)}
    with pytest.raises(NotFinished, match="holds no finished effects"):
        report(run, effects=tmp_path / "none", scheduler="serial")
    record = json.loads((out / "effects.json").read_text())
    (out / "effects.json").write_text(json.dumps(record | {"model_digest": "0" * 64}))
    with pytest.raises(UsageError, match="effects are of a model with SHA-256 000000000000, the run's had"):
        report(run, effects=out, scheduler="serial")
    for what, other in (("trees", [0, 2]), ("missing", -1.0)):
        (out / "effects.json").write_text(json.dumps(record | {what: other}))
        with pytest.raises(UsageError, match=rf"effects are of {what} {re.escape(str(other))}, the run is of {what} None; make them with the same$"):
            report(run, effects=out, scheduler="serial")
    (out / "effects.json").write_text(json.dumps(record | {"partition": [[drawn[0], ["another"]]]}))
    assert re.findall(">Effect of ([^<]+)</h3>", written(run, effects=out)) == drawn[1:]
    (out / "effects.json").write_text(json.dumps(record | {"objects": {}}))
    with pytest.raises(InvalidRun, match=r"curves\.parquet: is not the table that effects\.json lists"):
        report(run, effects=out, scheduler="serial")
