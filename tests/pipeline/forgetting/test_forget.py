"""One person forgotten: no object of the runs, tables, reports and pages holds the id, all others' rows are as they were, and the runs are sound."""

import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from leafledger import check_run, drift, explain, forget, list_runs, read_manifest, read_run, report
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import NotThere, UsageError
from leafledger.pipeline.forgetting import exchange as exchange_
from leafledger.pipeline.forgetting import forget as forget_
from leafledger.pipeline.forgetting.exchange import find_leaving
from leafledger.pipeline.forgetting.search import Sought
from leafledger.pipeline.runs.publish import replacement
from tests.more import more
from tests.pipeline.forgetting.people import (
    DAYS,
    NUMBER,
    OPTIONS,
    PERSON,
    assert_forgotten,
    copy_nights,
    holders,
    objects,
    plain,
    read_parts,
    without,
    write_people,
)
from tests.pipeline.runs.publish.killing import NEVER, WRITES, KilledError, kill_writes


@pytest.mark.slow
def test_nothing_holds_the_person(runs):
    """Searched byte by byte, Parquet decoded, by a search that is none of the command's; parts, page and all that was made of a run held them."""
    before, summaries = read_parts(runs / "date=2026-11-01"), pq.read_table(runs / "date=2026-11-01/summary/importance.parquet")
    there = holders(runs, PERSON, NUMBER)
    assert {name.split("/")[-2] for name in there} >= {"attributions", "pages"}
    found = forget(runs, {"customer": PERSON})
    assert found.proved
    assert (found.n_runs, found.n_rows, found.holding, found.untouched) == (2, 12, (), ())
    assert [(run.name, run.n_rows, run.n_parts, run.of_parts) for run in found.runs] == [(f"date={day}", 6, 3, 3) for day in DAYS]
    assert found.runs[1].removed == ("after/distributions.parquet", "after/drift.json", "after/drift.parquet", "report/index.html")
    assert (found.pages, found.pointers) == ((f"{runs}/pages/person.html",), (f"{runs}/latest.json",))
    assert found.n_objects == len([data for data in objects(runs).values() if data]) + 1  # the page, which is gone by now
    assert_forgotten(runs, before)
    assert pq.read_table(runs / "date=2026-11-01/summary/importance.parquet").equals(summaries)
    assert [(run.state, run.n_rows, run.n_forgotten, run.left) for run in list_runs(runs)] == [("finished", 2994, 6, None)] * 2
    again = forget(runs, {"customer": PERSON})
    assert (again.proved, again.n_rows, again.runs) == (True, 0, ())


@pytest.mark.slow
def test_by_a_number_and_by_its_text(runs):
    """A column of integers; what another column says of the same person goes with the rows."""
    before = read_parts(runs / "date=2026-11-01")
    assert forget(runs, {"account": str(NUMBER)}).proved
    assert_forgotten(runs, before)


def test_a_dry_run_changes_nothing_and_says_what_holds_what(runs):
    before = objects(runs)
    found = forget(runs, {"customer": PERSON}, dry_run=True)
    assert (found.proved, found.n_rows, found.pages, found.pointers) == (False, 12, (f"{runs}/pages/person.html",), ())
    assert {each.uri.removeprefix(f"{runs}/"): each.what for each in found.holding} == {
        f"date={day}/attributions/part-0000{k}.parquet": "2 rows" for day in DAYS for k in range(3)
    }
    assert objects(runs) == before


@pytest.mark.slow
def test_rows_keep_their_places(runs, capsys):
    """Rows behind one that is gone are still told with their own row of the data, and explained again they agree; a second person goes as well."""
    assert forget(runs, {"customer": PERSON}).proved
    assert forget(runs, {"customer": "person-00001"}).proved
    run = read_run(runs / "date=2026-11-01")
    for row in (0, 2, 122, 124, 499, 625, 999):
        stored = pq.read_table(run.plan.data + "/1.parquet", columns=["customer", "distance"]).slice(row, 1).to_pylist()[0]
        shown = run.show({"customer": stored["customer"]}, most=10)
        places = [(each.file.rpartition("/")[2], each.file_row) for each in shown.rows]
        assert ("1.parquet", row) in places
        assert shown.rows[places.index(("1.parquet", row))].values["distance"] == stored["distance"]
    assert main(["show", str(runs / "date=2026-11-01"), "--where", "customer=person-00499", "--verify", "--top", "1"]) == 0
    assert "verified: 6 rows explained again agree" in capsys.readouterr().out
    report_of = check_run(runs / "date=2026-11-01", deep=True)
    assert (report_of.sound, report_of.n_forgotten, report_of.n_again) == (True, 12, 3 * 64 - 3)


@pytest.mark.slow
def test_another_night_takes_over_whole_parts_alone(example, people, runs, tmp_path):
    """Where a file changes, parts that lack rows are made again from the data; those of a night that lacks none are taken over as ever."""
    data = tmp_path / "data"
    shutil.copytree(people, data)
    out = tmp_path / "night"
    explain(example.model, data, out, **OPTIONS)
    assert forget(out, {"customer": "person-00001"}).proved
    table = pq.read_table(data / "2.parquet")
    pq.write_table(table.slice(1), data / "2.parquet")
    made = explain(example.model, data, out, if_changed="replace", **OPTIONS)
    explain(example.model, data, tmp_path / "fresh", **OPTIONS)
    assert (made.n_rows, made.forgotten) == (2999, ())
    assert read_parts(out).equals(read_parts(tmp_path / "fresh"))
    assert check_run(out, all_rows=True).sound


def test_the_same_command_finds_the_run_finished(example, people, runs):
    """Of unchanged data: nobody is explained again without being asked."""
    run = runs / "date=2026-11-01"
    assert forget(run, {"customer": PERSON}).proved
    before = objects(run)
    assert explain(example.model, people, str(run), date=DAYS[0], **OPTIONS) == read_manifest(str(run))
    assert objects(run) == before


@pytest.mark.slow
def test_drift_and_reports_of_what_is_left(runs):
    """Both are made anew, and name nobody."""
    assert forget(runs, {"customer": PERSON}).proved
    assert drift(runs / "date=2026-11-02", against=runs / "date=2026-11-01").alarms == ()
    report(runs / "date=2026-11-02")
    assert "rows forgotten" in (runs / "date=2026-11-02/report/index.html").read_text()
    assert holders(runs, PERSON, NUMBER) == []


@pytest.mark.slow
def test_an_empty_part_stays(example, tmp_path):
    """All of whose rows were the person's."""
    data, out = write_people(example, tmp_path / "data"), tmp_path / "run"
    table = pq.read_table(data / "1.parquet")
    column, names = table.schema.get_field_index("customer"), pa.array(["nobody else"] * len(table)).dictionary_encode()
    pq.write_table(table.set_column(column, "customer", names), data / "1.parquet")
    explain(example.model, data, out, **OPTIONS)
    assert forget(out, {"customer": "nobody else"}).proved
    found = check_run(out, all_rows=True)
    assert (found.sound, found.n_rows, found.n_forgotten) == (True, 2000, 1000)
    assert read_run(out).attributions(["account"]).num_rows == 2000
    assert len(read_run(out).sample(50)) == 50
    report(out)


@pytest.mark.slow
def test_whatever_ends_it_the_same_command_finishes(runs, tmp_path, monkeypatch, one_in):
    """Before and after every write: the run by its manifest has all of the person's rows or none, and after the next attempt nothing holds them."""
    before, (left, steps), seen = read_parts(runs / "date=2026-11-01"), kill_writes(monkeypatch), []
    monkeypatch.setattr(replacement, "AT_ONCE", 1)
    shutil.rmtree(runs / "date=2026-11-02")
    for moment in range(0, 400, one_in(5)):
        shutil.rmtree(tmp_path / "again", ignore_errors=True)
        shutil.copytree(runs, tmp_path / "again")
        run, left[0] = tmp_path / "again" / "date=2026-11-01", moment
        try:
            forget(tmp_path / "again", {"customer": PERSON})
        except KilledError:
            left[0] = NEVER
        else:
            break
        rows = plain(read_run(run).attributions())
        seen.append(rows.equals(without(before, customer=PERSON)))
        assert seen[-1] or rows.equals(before)
        assert forget(tmp_path / "again", {"customer": PERSON}).proved
        assert holders(tmp_path / "again", PERSON, NUMBER) == []
        assert read_parts(run).equals(without(before, customer=PERSON))
        assert (check_run(run, deep=True).sound, check_run(run).left) == (True, ())
    assert seen == sorted(seen)  # never back
    assert {True, False} == {*seen}
    assert {*steps} == {*WRITES}


@pytest.mark.slow
@pytest.mark.parametrize("place", ["folder", *more("bucket")])
def test_killed_again_and_again(nights, runs, place, request, monkeypatch, one_in):
    """One attempt after the other on the same runs, in a folder and in a bucket, each a little longer: in the end it is as if nothing had been."""
    root = str(runs) if place == "folder" else copy_nights(nights, f"{request.getfixturevalue('bucket')}/runs")
    before, (left, steps) = read_parts(f"{root}/date=2026-11-01"), kill_writes(monkeypatch)
    for moment in range(0, 300, one_in(29) if place == "bucket" else one_in(4)):
        left[0] = moment
        try:
            found = forget(root, {"account": NUMBER})
        except KilledError:
            left[0] = NEVER
            assert all(check_run(f"{root}/date={day}").sound for day in DAYS)
        else:
            break
    assert {*steps} == {*WRITES} or (one_in(29) > 1 and place == "bucket")
    assert found.proved
    assert_forgotten(root, before)


@pytest.mark.slow
def test_what_cannot_be_searched_is_named(example, people, runs, tmp_path):
    """Unfinished, unreadable, without the id, grouped by it, or with the id in the data's paths: nothing is proved, and all others are done."""
    shutil.copytree(runs / "date=2026-11-01", runs / "a")
    (runs / "a" / "manifest.json").unlink()
    shutil.copytree(runs / "date=2026-11-01", runs / "b")
    (runs / "b" / "manifest.json").write_text("{}")
    (tmp_path / "hive" / f"customer={PERSON}").mkdir(parents=True)
    table = pq.read_table(people / "1.parquet")
    pq.write_table(table.drop_columns("customer"), tmp_path / "hive" / f"customer={PERSON}" / "data.parquet")
    plain_run = {"scheduler": "serial", "ids": ["customer"]}
    explain(example.model, people, runs / "c", scheduler="serial")
    explain(example.model, people, runs / "d", by=["customer"], **plain_run)
    explain(example.model, tmp_path / "hive", runs / "e", **plain_run)
    explain(example.model, people, runs / "f", global_only=True, scheduler="serial")
    found = forget(runs, {"customer": PERSON})
    again = "make the run again without these rows, with --if-changed replace"
    assert {each.name: each.why for each in found.untouched} == {
        "a": "unfinished",
        "b": f"damaged: {runs}/b/manifest.json: not a manifest: its plan does not say what it lacks: KeyError 'players'",
        "c": "has no id column 'customer', its id columns are none",
        "d": f"its summaries have groups by 'customer', of which one may be this; {again}",
        "e": f"the path of {tmp_path}/hive/customer={PERSON}/data.parquet names it, and so does the plan; {again}",
    }
    assert (found.proved, found.n_runs, found.n_rows) == (False, 3, 12)
    assert {each.uri.removeprefix(f"{runs}/").split("/")[0] for each in found.holding} == {"a", "b", "d", "e"}
    assert f"{runs}/e/plan.json" in {each.uri for each in found.holding}
    assert any(each.uri.startswith(f"{runs}/d/summary/") for each in found.holding)


def test_pages_and_copies_elsewhere(runs, tmp_path):
    """Pages of the person's rows go there too; a copy of a part is named, and stays."""
    shutil.copytree(runs / "pages", tmp_path / "mail")
    (tmp_path / "mail" / "other.html").write_text(f"<!DOCTYPE html>\n<p>about {PERSON}</p>")
    shutil.copy(runs / "date=2026-11-01/attributions/part-00000.parquet", tmp_path / "mail" / "copy.parquet")
    found = forget(runs, {"customer": PERSON}, pages=[str(tmp_path / "mail")])
    assert (found.proved, found.pages) == (False, (f"{runs}/pages/person.html", f"{tmp_path}/mail/person.html"))
    assert {each.uri.rpartition("/")[2]: each.what for each in found.holding} == {"copy.parquet": "2 rows", "other.html": "names it"}
    assert sorted(path.name for path in (tmp_path / "mail").iterdir()) == ["copy.parquet", "other.html"]


@pytest.mark.parametrize("where", [{}, {"customer": "a", "account": 1}, {"customer": None}, {"customer": ""}, {1: 2}, "customer", None])
def test_a_question_about_nobody_is_refused(runs, where):
    with pytest.raises(UsageError, match=r"^where is "):
        forget(runs, where)


def test_a_folder_without_runs_proves_nothing(tmp_path):
    """As one whose name was mistyped."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"empty: no runs there, expected a folder of runs$"):
        forget(tmp_path / "empty", {"customer": PERSON})


@pytest.mark.slow
def test_a_run_that_is_replaced_meanwhile_is_named(runs, monkeypatch):
    """What is asked for again is then done."""
    found = exchange_.exchange

    def late(leaving, day):
        if leaving.run.endswith(DAYS[0]):
            found(find_leaving(leaving.run, Sought("customer", "person-00001")), day)
        return found(leaving, day)

    with monkeypatch.context() as patched:
        patched.setattr(forget_, "exchange", late)
        first = forget(runs, {"customer": PERSON})
    assert [each.name for each in first.runs] == [f"date={DAYS[1]}"]
    assert [each.name for each in first.untouched] == [f"date={DAYS[0]}"]
    assert first.untouched[0].why.endswith("manifest.json: another run took this place meanwhile; run the same again")
    assert not first.proved
    assert forget(runs, {"customer": PERSON}).proved
    assert check_run(runs / f"date={DAYS[0]}", deep=True).n_forgotten == 12


def test_another_command_beside_it_is_told(runs, monkeypatch, capsys):
    """A part that goes while it is read, as where two forget at once: the run is named, with what to do; given again it is done."""

    def exchange(leaving, day):
        raise NotThere(f"{leaving.run}/attributions/part-00002.parquet: cannot read: no such file or object")

    with monkeypatch.context() as patched:
        patched.setattr(forget_, "exchange", exchange)
        found = forget(runs, {"customer": PERSON})
    says = "another command changes the run, or it is damaged, which check tells: give the same command again"
    assert [each.why.partition("; ")[2] for each in found.untouched] == [says] * 2
    assert not found.proved
    assert forget(runs, {"customer": PERSON}).proved


def test_a_value_of_another_type(runs):
    """Is no row's: the run says so, and nothing is proved."""
    found = forget(runs, {"account": "x"})
    assert [each.why for each in found.untouched] == ["column 'account' is int64, got 'x'"] * 2
    assert not found.proved


def test_a_number_as_pandas_has_it_is_looked_for_as_objects_have_it(example, people, tmp_path):
    """4000000123.0 is the account 4000000123 in pages too, and in what is kept of a run that had it."""
    explain(example.model, people, tmp_path / "runs" / "run", **OPTIONS)
    assert main(["show", f"{tmp_path}/runs/run", "--where", f"account={NUMBER}", "--html", f"{tmp_path}/runs/sent.html"]) == 0
    without = tmp_path / "without"
    shutil.copytree(people, without)
    for path in without.glob("*.parquet"):
        rows = pq.read_table(path)
        pq.write_table(rows.filter(pc.not_equal(rows["account"], NUMBER)), path)
    explain(example.model, without, tmp_path / "runs" / "run", if_changed="replace", keep_replaced=True, **OPTIONS)
    found = forget(tmp_path / "runs", {"account": float(NUMBER)})
    assert (found.proved, found.value, len(found.kept), found.pages) == (True, str(NUMBER), 1, (f"{tmp_path}/runs/sent.html",))
    assert not (tmp_path / "runs" / "sent.html").exists()


def test_a_folder_of_pages_that_is_not_there_is_refused(runs, tmp_path):
    """Nothing is searched there, so nothing would be proved; and nothing is changed."""
    before = objects(runs)
    with pytest.raises(NotThere, match="nowhere"):
        forget(runs, {"customer": PERSON}, pages=[str(tmp_path / "nowhere")])
    assert objects(runs) == before


@pytest.mark.slow
def test_a_value_is_found_as_columns_write_it_too(runs):
    """`0` before a number is no part of it: pages have the number."""
    before = read_parts(runs / "date=2026-11-01")
    found = forget(runs, {"account": f"0{NUMBER}"})
    assert found.proved
    assert found.pages == (f"{runs}/pages/person.html",)
    assert_forgotten(runs, before)


def test_a_replacement_says_that_forgotten_rows_come_back(example, people, runs, caplog):
    """Where the data still have the person."""
    run = f"{runs}/date={DAYS[0]}"
    assert forget(runs, {"customer": PERSON}).proved
    explain(example.model, people, run, date=DAYS[0], trees=3, if_changed="replace", **OPTIONS)
    said = f"{run}: 6 rows that had been forgotten in the run it replaces are explained again where the data still have them"
    assert said in caplog.messages
    assert read_manifest(run).n_rows == 3000


def test_places_that_are_none_are_refused(runs):
    """Nothing would be searched, or put right, there."""
    before = objects(runs)
    with pytest.raises(NotThere, match=r"none\.json: cannot read"):
        forget(runs, {"customer": PERSON}, latest=[f"{runs}/none.json"])
    with pytest.raises(UsageError, match="pages is 'sent', expected a list of places"):
        forget(runs, {"customer": PERSON}, pages="sent")
    assert objects(runs) == before
