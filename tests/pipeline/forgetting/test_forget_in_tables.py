"""A person forgotten in tables of all nights: their new parts alone, files of others, and tables that keep everything."""

from datetime import datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from leafledger import forget
from tests.pipeline.forgetting.people import (
    DAYS,
    NUMBER,
    PERSON,
    assert_forgotten,
    make_nights,
    objects,
    read_parts,
    without,
)
from tests.pipeline.runs.publish.killing import NEVER, KilledError, kill_writes


@pytest.fixture
def tabled(example, people, tmp_path, kind):
    """Nights in a table, and the table as other programs see it."""
    there = kind(tmp_path / "runs")
    return make_nights(example, people, tmp_path / "runs", table=kind.table), there


@pytest.mark.slow
def test_tables_have_the_new_parts_alone(tabled):
    """Polars reads everybody else of every night once; older versions name files that nobody can read, and after the command that is told none do."""
    root, there = tabled
    before = read_parts(root / "date=2026-11-01")
    found = forget(root, {"customer": PERSON})
    assert (found.proved, found.n_rows) == (True, 12)
    assert_forgotten(root, before)
    rows = there.by_polars()
    assert sorted(rows["account"].to_pylist()) == sorted(2 * without(before, customer=PERSON)["account"].to_pylist())
    assert not {str(NUMBER), PERSON} & {*map(str, rows["customer"].to_pylist()), *map(str, rows["account"].to_pylist())}
    assert sum(there.list_live().values()) == 2 * 2994
    (older,) = found.older
    assert (older.table, older.gone, older.holding) == (there.uri, 6, ())
    assert len(older.versions) == 3
    exec(older.expire)
    assert forget(root, {"customer": PERSON}).older == ()
    assert sum(there.list_live().values()) == 2 * 2994
    assert forget(root, {"customer": "person-00001"}).proved
    assert sum(there.list_live().values()) == 2 * 2988


@pytest.mark.slow
def test_a_table_is_finished_by_the_next_attempt(tabled, monkeypatch, one_in):
    """Killed before and after every write, the log's among them."""
    root, there = tabled
    before, (left, _) = read_parts(root / "date=2026-11-01"), kill_writes(monkeypatch)

    def killing(function):
        def step(*given, **named):
            if left[0] % 2:
                raise KilledError
            return function(*given, **named)

        return step

    for owner, name in there.log:
        monkeypatch.setattr(owner, name, killing(getattr(owner, name)))
    for moment in range(0, 300, one_in(3)):  # an odd stride: at odd moments it ends at the log
        left[0] = moment
        try:
            forget(root, {"customer": PERSON})
        except KilledError:
            left[0] = NEVER
        else:
            break
    left[0] = NEVER
    assert forget(root, {"customer": PERSON}).proved
    assert_forgotten(root, before)
    assert sum(there.list_live().values()) == 2 * 2994


@pytest.mark.slow
def test_files_of_others_in_a_table_are_named(example, people, tmp_path):
    """Rows that somebody appended to the table in a night of their own are searched with its current version, and are theirs to remove; in an older
    version as well."""
    root = make_nights(example, people, tmp_path / "runs", table="delta")
    theirs = pa.table({"customer": pa.array([PERSON, "somebody"]), "date": pa.array([datetime(2026, 10, 1).date()] * 2)})
    write_deltalake(root, theirs, mode="append", schema_mode="merge", partition_by=["date"])
    found = forget(root, {"customer": PERSON})
    assert (found.proved, found.n_rows) == (False, 12)
    log, left = found.holding
    assert (log.uri, log.what) == (f"{root}/_delta_log/00000000000000000002.json", "names it")  # the least and the largest value of their column
    assert (left.uri.startswith(f"{root}/date=2026-10-01/"), left.what) == (True, "1 row")
    DeltaTable(root).delete("date = '2026-10-01'")
    found = forget(root, {"customer": PERSON})
    assert left in found.holding  # it lies below the folder, whatever the log says of it
    assert found.older[0].holding == (left,)


@pytest.mark.slow
def test_a_table_that_keeps_everything_refuses_before_anything_is_changed(example, people, tmp_path):
    """Of Delta's appendOnly; and where others have rewritten the run's rows."""
    root = make_nights(example, people, tmp_path / "runs", table="delta")
    DeltaTable(root).alter.set_table_properties({"delta.appendOnly": "true"})
    before = objects(root)
    found = forget(root, {"customer": PERSON})
    assert [each.name for each in found.untouched] == [f"date={day}" for day in DAYS]
    why = "rows of this Delta table stay there for ever (delta.appendOnly), so a run in it cannot be replaced or removed"
    assert {each.why for each in found.untouched} == {f"{root}: {why}"}
    assert (found.proved, found.runs, len(found.holding)) == (False, (), 6)
    after = objects(root)
    pages = {name for name in before if name.startswith("pages/")}
    assert {name: data for name, data in before.items() if name not in pages} == after
    DeltaTable(root).alter.set_table_properties({"delta.appendOnly": "false"})
    DeltaTable(root).optimize.compact()
    assert [each.why.partition(", so that")[0] for each in forget(root, {"customer": PERSON}).untouched] == [
        f"{root}: 3 files of a run in {root}/date={day} were committed, 0 count now: others have rewritten, removed or added some" for day in DAYS
    ]
