"""Readers that know a folder of nights, and no manifest: they find every row once, whatever becomes of a night, once its command is done."""

import glob
import shutil
from collections import Counter

import duckdb
import pandas
import polars
import pyarrow.dataset
import pytest

from leafledger import check_run, list_runs, prune, read_run
from leafledger.pipeline.runs.records.manifest import read_manifest
from leafledger.pipeline.stores import commit, storage
from leafledger.pipeline.stores.open_store import open_filesystem
from tests.more import more
from tests.pipeline.runs.publish.killing import NEVER, WRITES, KilledError, kill_writes

# What begins so is none of the parts; as the documentation has it.
OTHERS = ["_", ".", "after", "attempt", "inputs", "manifest", "plan", "provenance", "rejected", "report", "summary"]
NIGHTS = ("2026-11-01", "2026-11-02")


def by_duckdb(folder):
    return duckdb.sql(f"SELECT flight FROM '{folder}/*/attributions/*.parquet'").fetchnumpy()["flight"].tolist()


def by_duckdb_at_any_depth(folder):
    return duckdb.sql(f"SELECT flight FROM '{folder}/**/attributions/*.parquet'").fetchnumpy()["flight"].tolist()


def by_polars(folder):
    return polars.scan_parquet(f"{folder}/*/attributions/*.parquet").select("flight").collect()["flight"].to_list()


def by_pandas(folder):
    nights = sorted(glob.glob(f"{folder}/*/attributions"))
    return pandas.concat([pandas.read_parquet(night) for night in nights])["flight"].tolist()


def by_pandas_at_once(folder):
    return pandas.read_parquet(folder, columns=["flight"], ignore_prefixes=OTHERS)["flight"].tolist()


def by_pyarrow(folder):
    filesystem, path = open_filesystem(folder)
    filesystem.invalidate_cache()
    data = pyarrow.dataset.dataset(path, filesystem=filesystem, format="parquet", ignore_prefixes=OTHERS)
    return data.to_table(columns=["flight"])["flight"].to_pylist()


def by_pyarrow_files(folder):
    filesystem, path = open_filesystem(folder)
    filesystem.invalidate_cache()
    files = filesystem.glob(f"{path}/*/attributions/*.parquet")
    return pyarrow.dataset.dataset(files, filesystem=filesystem, format="parquet").to_table(columns=["flight"])["flight"].to_pylist()


LOCAL = (by_duckdb, by_duckdb_at_any_depth, by_polars, by_pandas, by_pandas_at_once, by_pyarrow, by_pyarrow_files)
FAR = (by_pyarrow, by_pyarrow_files)


def flights(folder):
    """Every row of every night, as its manifest has it."""
    return Counter(flight for night in NIGHTS for flight in read_run(f"{folder}/{night}").attributions()["flight"].to_pylist())


@pytest.fixture(params=["folder", *more("bucket"), "memory"])
def nights(request, tmp_path, changing):
    """``(folder, run, begin, readers)``: what explains a night of two months, what puts the second one back as it was made before a file came
    late, and who reads them."""
    data, explained, late = changing
    for month in (3, 4):
        shutil.rmtree(data / f"month={month}")
    place = {"folder": str(tmp_path), "memory": "memory://readers"}.get(request.param) or request.getfixturevalue("bucket")
    folder, kept, remove = f"{place}/runs", f"{place}/kept", commit.remove
    filesystem, _ = open_filesystem(folder)

    def run(night, **arguments):
        return explained(f"{folder}/{night}", single_writer=request.param == "memory", **arguments)

    def begin():
        remove(f"{folder}/{NIGHTS[1]}")
        filesystem.copy(kept, f"{folder}/{NIGHTS[1]}", recursive=True)

    for night in NIGHTS:
        run(night)
    filesystem.copy(f"{folder}/{NIGHTS[1]}", kept, recursive=True)
    late()
    yield folder, run, begin, LOCAL if request.param == "folder" else FAR
    remove(place if request.param == "memory" else folder)


@pytest.mark.slow
def test_a_replaced_night_is_read_as_any_other(nights):
    """Before and after, by each of them; and after one more; its parts in the order of its rows."""
    folder, run, begin, readers = nights
    begin()
    found = [flights(folder)]
    assert all(Counter(read(folder)) == found[-1] for read in readers)
    for arguments in ({}, {"trees": 5}, {"item_rows": 200}):
        made = run(NIGHTS[1], if_changed="replace", **arguments)
        found.append(flights(folder))
        for read in readers:
            assert Counter(read(folder)) == found[-1], (read, arguments)
        assert made.place
        assert check_run(f"{folder}/{NIGHTS[1]}", deep=True).left == ()
        assert [(each.state, each.left) for each in list_runs(folder)] == [("finished", None)] * 2
        names = [entry["uri"] for entry in made.parts]
        assert names == sorted(names)
    assert found[0] != found[1]
    assert [each.name for each in prune(folder, keep="5d", date="2026-11-07").removed] == [NIGHTS[0]]
    assert Counter(readers[0](folder)) == Counter(read_run(f"{folder}/{NIGHTS[1]}").attributions()["flight"].to_pylist())


@pytest.mark.slow
def test_killed_at_every_step_every_row_is_there_once(nights, monkeypatch, one_in):
    """Whatever ends the command, readers find all rows of the run that the manifest names, at worst some twice, which `check` and `runs` say; then
    the same command puts it right."""
    folder, run, begin, readers = nights
    (left, steps), seen, out = kill_writes(monkeypatch), set(), f"{folder}/{NIGHTS[1]}"
    for n in range(0, 500, one_in(8) if folder.startswith("s3") else one_in(5)):
        left[0] = NEVER
        begin()
        left[0] = n
        try:
            run(NIGHTS[1], if_changed="replace")
        except KilledError:
            left[0] = NEVER
        else:
            break
        expected, found = flights(folder), Counter(readers[0](folder))
        assert expected <= found
        assert max(found.values()) <= len(NIGHTS) + 1
        (told,) = [each for each in list_runs(folder) if each.name == NIGHTS[1]]
        assert told.state == "finished"
        assert (told.left is not None) == (found != expected)
        assert found == expected or any("of another run, such as part-" in line for line in check_run(out).left)
        seen.add(found == expected)
        made = run(NIGHTS[1], if_changed="replace")
        assert read_manifest(out) == made
        assert check_run(out).left == ()
        for read in readers:
            assert Counter(read(folder)) == flights(folder), (n, read)
    assert {*steps} == {*WRITES}
    if one_in(8) == 1 or not folder.startswith("s3"):  # of every moment, not of one in a few
        assert seen == {True, False}


@pytest.mark.slow
def test_half_a_copy_is_made_anew(nights, monkeypatch):
    """Of a store that copies in place, and was interrupted; and what somebody else put there is not taken for a part."""
    folder, run, begin, readers = nights
    begin()
    left, steps = kill_writes(monkeypatch, "copy")
    for left[0] in (0, 1):  # before it, and after it
        with pytest.raises(KilledError):
            run(NIGHTS[1], if_changed="replace")
    assert steps == ["copy", "copy"]
    left[0] = NEVER
    parts, put = f"{folder}/{NIGHTS[1]}/attributions", commit.update
    (name,) = [each for each in storage.list_folder(parts).files if each.count("-") > 1]
    put(f"{parts}/{name}", lambda held: held[:100], single_writer=True)
    put(f"{parts}/_theirs.crc", lambda held: b"theirs", single_writer=True)
    made = run(NIGHTS[1], if_changed="replace")
    assert check_run(f"{folder}/{NIGHTS[1]}", deep=True).left == ()
    assert made.parts
    assert storage.read(f"{parts}/_theirs.crc") == b"theirs"
    for read in readers:
        assert Counter(read(folder)) == flights(folder)
