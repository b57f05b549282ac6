"""What is taken over from the run whose place is taken: parts of the same rows made in the same way, and nothing else."""

import shutil
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from leafledger import explain, read_run
from leafledger.kernels.trees.binning import BATCH
from leafledger.pipeline.runs.execute import executor, interrupted, reuse
from leafledger.pipeline.runs.execute import make_part as part
from leafledger.pipeline.runs.execute import write_part as write_part_
from leafledger.pipeline.runs.plan.existing_run import ExistingRun
from leafledger.pipeline.stores import commit
from leafledger.pipeline.stores.traffic import find_moved
from tests.pipeline.running import planned


@pytest.fixture
def night(example, tmp_path, monkeypatch):
    """``(data, run, done)``: a copy of the data, what explains it, and the files whose rows were explained since the list was last cleared."""
    data, done, write_part = tmp_path / "data", [], write_part_.write_part
    shutil.copytree(example.data, data)

    def counted(plan, made_by, item, *rest):
        done.append(item.uri.split("/")[-2])
        return write_part(plan, made_by, item, *rest)

    monkeypatch.setattr(part, "write_part", counted)

    def run(out, **arguments):
        done.clear()
        made = explain(example.model, data, out, **({"scheduler": "serial", "if_changed": "replace"} | arguments))
        return read_run(out).attributions(), made

    return data, run, done


def shorten(path):
    pq.write_table(pq.read_table(path).slice(10), path)


@pytest.mark.slow
def test_only_what_changed_is_explained_again(night, tmp_path):
    """A file with other rows, one that came late, and all that it moves to other numbers; one that is gone."""
    data, run, done = night
    run(tmp_path / "run")
    everything = set(done)
    shorten(data / "month=2" / "data.parquet")
    found, _ = run(tmp_path / "run")
    assert set(done) == {"month=2"}
    assert found.equals(run(tmp_path / "fresh-2")[0])
    (data / "month=0").mkdir()
    shutil.copy(data / "month=3" / "data.parquet", data / "month=0")
    found, made = run(tmp_path / "run")
    assert set(done) == {"month=0"}
    fresh = run(tmp_path / "fresh-0")
    assert set(done) == everything | {"month=0"}
    assert found.equals(fresh[0])
    assert [entry["sha256"] for entry in made.parts] == [entry["sha256"] for entry in fresh[1].parts]
    shutil.rmtree(data / "month=0")
    found, _ = run(tmp_path / "run")
    assert not done
    assert found.equals(read_run(tmp_path / "fresh-2").attributions())


def test_parts_stay_where_they_are_or_are_copied_by_the_store(night, tmp_path, monkeypatch):
    """Of the same number and rows they are not written again, nor are others read and written by this process: the store gives them another name."""
    data, run, _ = night
    run(tmp_path / "run")
    names = [f"attributions/part-{number:05d}.parquet" for number in range(4)]
    files = {name: (tmp_path / "run" / name).stat() for name in names}
    shorten(data / "month=2" / "data.parquet")
    created = []
    monkeypatch.setattr(commit, "create", lambda uri, local, create=commit.create: created.append(uri) or create(uri, local))
    _, made = run(tmp_path / "run")
    changed = [entry["uri"] for entry in made.parts if entry["uri"] not in names]
    assert [entry["uri"] for entry in made.parts if entry["uri"] in names] == [names[0], names[2], names[3]]
    assert len([uri for uri in created if ".parquet" in uri and "/parts/" in uri]) == len(changed) == 1
    for name in (names[0], names[2], names[3]):
        assert (tmp_path / "run" / name).stat().st_mtime_ns == files[name].st_mtime_ns
        assert (tmp_path / "run" / name).stat().st_ino == files[name].st_ino
    created.clear()
    shutil.rmtree(data / "month=1")  # all others get numbers of their own, and their names with them
    _, made = run(tmp_path / "run")
    assert not [uri for uri in created if "/parts/" in uri]
    assert [entry["uri"].count("-") for entry in made.parts] == [3, 3, 3]
    assert (tmp_path / "run" / made.parts[2]["uri"]).stat().st_ino == files[names[3]].st_ino


def test_parts_that_stay_kill_nobody(night, tmp_path, monkeypatch):
    """After a process died, what is tried alone are items that it may have been at: of a part that stays, none was to be made."""
    data, run, _ = night
    run(tmp_path / "run")
    for month in (2, 4):
        shorten(data / f"month={month}" / "data.parquet")
    suspected = []

    def find_suspects(place, items, find=interrupted.find_suspects):
        suspected.append([item.part for item in items])
        return find(place, items)

    monkeypatch.setattr(executor, "find_suspects", find_suspects)
    run(tmp_path / "run")
    assert suspected == [[1, 3]]


@pytest.mark.parametrize("other", [{"method": "banzhaf"}, {"precision": "float64"}, {"ids": ["flight"]}, {"top": 2}, {"trees": 5}])
def test_nothing_is_taken_over_from_another_recipe(night, tmp_path, other):
    """Another method, column or part of the model makes other parts of the same rows."""
    _, run, done = night
    run(tmp_path / "run")
    everything = list(done)
    found, _ = run(tmp_path / "run", **other)
    assert done == everything
    assert found.equals(run(tmp_path / "fresh", **other)[0])


def test_a_damaged_part_is_made_again(night, tmp_path):
    """Or one that is missing: it is not taken over, and the run goes on."""
    data, run, done = night
    _, made = run(tmp_path / "run")
    uris = [tmp_path / "run" / entry["uri"] for entry in made.parts]
    sound = uris[0].read_bytes()
    at = pq.read_metadata(uris[0]).row_group(0).column(0).data_page_offset + 20
    uris[0].write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
    uris[1].unlink()
    shorten(data / "month=3" / "data.parquet")
    found, made = run(tmp_path / "run")
    assert len(done) == 2 + sum("month=3" in str(path) for path in done[2:]) >= 3
    assert found.equals(run(tmp_path / "fresh")[0])


def test_nothing_is_taken_over_where_no_place_is_taken(example):
    """Nor from a run made by another recipe; of one made by the same, every part of the same rows, by its own number there."""
    plan = planned(example, example.data)[0]
    last = replace(plan, items=tuple(replace(item, part=k) for k, item in enumerate(plan.items[2:])))
    assert reuse.find_earlier(None, plan) == {}
    assert reuse.find_earlier(ExistingRun("there", replace(plan, slice_rows=BATCH), None), plan) == {}
    found = reuse.find_earlier(ExistingRun("there", last, None), plan)
    assert found == {item.part: (f"there/attributions/part-{k:05d}.parquet", last.items[k]) for k, item in enumerate(plan.items[2:])}
    assert found


def test_what_is_read_to_take_parts_over_is_counted(night, example, tmp_path):
    """Metrics say all bytes that this process read, also of parts that were not made."""
    data, run, _ = night
    run(tmp_path / "run")
    shorten(data / "month=3" / "data.parquet")
    before, file = find_moved().read, tmp_path / "run.prom"
    explain(example.model, data, tmp_path / "run", scheduler="serial", if_changed="replace", metrics_file=file)
    read = find_moved().read - before
    (told,) = (line.split()[-1] for line in file.read_text().splitlines() if line.startswith("leafledger_run_read_bytes"))
    assert float(told) == read
