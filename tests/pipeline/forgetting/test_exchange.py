"""A run without some rows in the place of the same run with them: what is written, under which names, and who else may be at work."""

import hashlib
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from leafledger import check_run, explain, list_runs, read_manifest
from leafledger.pipeline.errors import InvalidRun, RunConflict, UsageError
from leafledger.pipeline.forgetting.exchange import exchange, find_leaving
from leafledger.pipeline.forgetting.search import Sought
from leafledger.pipeline.runs.publish import same_run
from leafledger.pipeline.runs.publish.settle import settle
from leafledger.pipeline.runs.records.folder import PLACES
from tests.pipeline.forgetting.people import PERSON, holders, objects, read_parts, without, write_people

DAY = "2026-11-30"
OPTIONS = {"ids": ["customer"], "item_rows": "file", "scheduler": "serial"}
SOUGHT, OTHER = Sought("customer", PERSON), Sought("customer", "person-00001")


@pytest.fixture(scope="module")
def people(example, tmp_path_factory):
    """The last two of four files have no row of the person; that of the third is in its dictionary all the same."""
    folder = write_people(example, tmp_path_factory.mktemp("people") / "data")
    third = pq.read_table(folder / "2.parquet").slice(200, 250)
    pq.write_table(third, folder / "2.parquet")
    at, names = third.schema.get_field_index("customer"), third["customer"].cast("string").dictionary_encode()
    pq.write_table(third.set_column(at, "customer", names), folder / "3.parquet")
    return folder


@pytest.fixture(scope="module")
def made(example, people, tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "run"
    explain(example.model, people, out, **OPTIONS)
    return out


@pytest.fixture
def run(made, tmp_path):
    return str(shutil.copytree(made, tmp_path / "run"))


def test_parts_without_such_rows_stay_as_they_are(run):
    """By name and bytes; the others have new names, which say nothing of the person; the manifest says where the rows stood, and no more."""
    before, rows = read_manifest(run), read_parts(run)
    leaving = find_leaving(run, SOUGHT)
    assert (leaving.n_rows, leaving.rows) == (4, {0: (123, 623), 1: (123, 623), 2: ()})
    manifest = exchange(leaving, DAY)
    settle(run, manifest)
    assert manifest == read_manifest(run)
    assert manifest.parts[3] == before.parts[3]
    assert [(entry.day, entry.part, entry.rows) for entry in manifest.forgotten] == [(DAY, 0, (123, 623)), (DAY, 1, (123, 623)), (DAY, 2, ())]
    assert (manifest.n_rows, manifest.n_forgotten, manifest.n_explained, manifest.share) == (before.n_rows - 4, 4, before.n_rows, 1.0)
    tag = manifest.place.removeprefix(f"{PLACES}/")
    assert tag == f"{hashlib.sha256(f'{before.sha256} 0:123,623 1:123,623 2:'.encode()).hexdigest()[:16]}-{before.sha256[:16]}"
    assert sorted(name for name in objects(run) if name.startswith("attributions/")) == [
        f"attributions/part-00000-{tag}.parquet",
        f"attributions/part-00001-{tag}.parquet",
        f"attributions/part-00002-{tag}.parquet",
        "attributions/part-00003.parquet",
    ]
    assert read_parts(run).equals(without(rows, customer=PERSON))
    assert holders(run, PERSON) == []


def test_an_exchange_that_was_given_up_leaves_the_run_as_it_was(run, monkeypatch):
    """Until somebody else is forgotten, or the run is replaced: then it goes without a trace."""
    before = read_parts(run)
    with monkeypatch.context() as patched:
        patched.setattr(same_run, "take_place", lambda *given, **named: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            exchange(find_leaving(run, SOUGHT), DAY)
    assert (check_run(run).sound, check_run(run).left, list_runs(run)[0].state) == (True, (), "finished")
    assert read_parts(run).equals(before)
    settle(run, exchange(find_leaving(run, OTHER), DAY))
    assert len({name.split("/")[1] for name in objects(run) if name.startswith(PLACES)}) == 1
    assert read_parts(run).equals(without(before, customer="person-00001"))


def test_a_place_in_which_other_bytes_lie_is_made_anew(run, monkeypatch):
    """As another version of Arrow would have written them."""
    with monkeypatch.context() as patched:
        patched.setattr(same_run, "take_place", lambda *given, **named: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            exchange(find_leaving(run, SOUGHT), DAY)
    (part, *_) = sorted(name for name in objects(run) if name.endswith("part-00000.parquet.own"))
    Path(f"{run}/{part}").write_bytes(b"PAR1")
    settle(run, exchange(find_leaving(run, SOUGHT), DAY))
    assert check_run(run, deep=True).sound


def test_two_at_once(run):
    """Of the same question both are answered; of two questions the second is told that the run is another by now, and nothing of it stays."""
    first, second, third = find_leaving(run, SOUGHT), find_leaving(run, SOUGHT), find_leaving(run, OTHER)
    manifest = exchange(first, DAY)
    assert exchange(second, DAY) == manifest
    with pytest.raises(RunConflict, match=r"manifest\.json: another run took this place meanwhile; run the same again$"):
        exchange(third, DAY)
    settle(run, manifest)
    assert (check_run(run, deep=True).sound, check_run(run).left) == (True, ())
    settle(run, exchange(find_leaving(run, OTHER), DAY))
    assert holders(run, PERSON, "person-00001") == []
    assert len({name.split("/")[1] for name in objects(run) if name.startswith(PLACES)}) == 1


def test_a_damaged_part_is_not_written_anew(run):
    """It would pass for a sound one."""
    path = Path(f"{run}/attributions/part-00001.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x5A
    leaving = find_leaving(run, SOUGHT)
    path.write_bytes(data)
    with pytest.raises(InvalidRun, match=r"part-00001\.parquet: is not what the manifest lists; check the run$"):
        exchange(leaving, DAY)


def test_a_manifest_that_forgets_otherwise_is_refused(run):
    """Rows of parts that it does not list, rows that no part had, one row twice, or counts that do not add up."""
    settle(run, exchange(find_leaving(run, SOUGHT), DAY))
    manifest = Path(f"{run}/manifest.json")
    text = manifest.read_text()
    changes = {
        '"part": 1,\n   "rows"': '"part": 7,\n   "rows"',
        "    623\n   ]": "    623000\n   ]",
        "123,\n    623\n": "123,\n    123\n",
        "    123,\n": "",
    }
    for old, new in changes.items():
        assert old in text
        manifest.write_text(text.replace(old, new))
        with pytest.raises(InvalidRun):
            check_run(run)


def test_what_a_run_cannot_be_asked(example, people, run, tmp_path):
    with pytest.raises(UsageError, match=r"run: has no id column 'account', its id columns are customer$"):
        find_leaving(run, Sought("account", 1))
    explain(example.model, people, tmp_path / "sums", global_only=True, scheduler="serial")
    assert find_leaving(str(tmp_path / "sums"), SOUGHT).rows == {}
    assert find_leaving(run, Sought("customer", "nobody")).rows == {}
