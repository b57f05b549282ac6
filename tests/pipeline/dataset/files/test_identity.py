"""A file is known again whatever was done to its name, and another one of its size and time is not taken for it."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import explain
from leafledger.pipeline.dataset.files.identity import has_footer, identify, is_still
from leafledger.pipeline.dataset.files.listing import list_data
from leafledger.pipeline.dataset.files.row_groups import columns_of
from leafledger.pipeline.errors import InvalidData, RunConflict
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.model import load_model
from leafledger.pipeline.runs.plan.planned_run import plan_run
from leafledger.pipeline.stores import storage
from tests.pipeline.conftest import make_frame

N_ROWS = 40_000  # of 8 bytes each: more than is digested of a file whose footer says enough
VALUES = np.random.default_rng(3).normal(size=N_ROWS)


def write(path, values, **options):
    """A file whose size does not depend on its values, and whose time stays the same."""
    pq.write_table(pa.table({"x": values}), path, compression="none", use_dictionary=False, **options)
    os.utime(path, ns=(10**18, 10**18))


def identity_of(path, columns=("x",), **changes):
    found = replace(storage.stat(str(path)), **changes)
    with storage.opened(str(path)) as file:
        metadata = pq.read_metadata(path)
        return identify(found, file, metadata, columns_of(metadata, columns))


def changed(row, value):
    values = VALUES.copy()
    values[row] = value
    return values


@pytest.mark.parametrize(
    ("other", "options"),
    [
        (changed(17, 99.0), {}),  # a footer that differs in a largest value
        (np.sort(VALUES), {}),  # the same footer, other bytes almost everywhere
        (changed(N_ROWS // 2 + 7, 0.125), {"write_statistics": False}),  # the same footer but for nothing, which does not say enough
    ],
    ids=["other extremes", "other order", "no statistics"],
)
def test_another_file_of_the_same_size_and_time_is_another_one(tmp_path, other, options):
    """By its footer or by its bytes, though a copy may keep the time."""
    path = tmp_path / "f.parquet"
    write(path, VALUES, **options)
    was, stat = identity_of(path), path.stat()
    write(path, other, **options)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    assert identity_of(path) != was
    write(path, VALUES, **options)
    assert identity_of(path) == was


def test_a_file_stays_the_same_under_another_inode(tmp_path):
    """A backup makes hard links, somebody changes permissions, a disk is restored: the rows are the same, and so is the file."""
    path = tmp_path / "f.parquet"
    write(path, VALUES)
    was = identity_of(path)
    os.link(path, tmp_path / "backup")
    path.chmod(0o640)
    assert identity_of(path) == was
    shutil.copy2(path, tmp_path / "restored")
    (tmp_path / "restored").replace(path)
    assert identity_of(path) == was
    path.touch()
    assert identity_of(path) != was


def test_a_time_of_zero_is_a_time(tmp_path):
    """Not one that is missing, in whose place the time of changes to the name would stand."""
    path = tmp_path / "f.parquet"
    write(path, VALUES)
    os.utime(path, ns=(0, 0))
    was = identity_of(path)
    path.chmod(0o600)
    assert identity_of(path) == was


def test_bytes_are_read_where_nothing_else_tells(tmp_path):
    """A store that shows neither a mark nor a time: every byte counts. One that makes its mark of the bytes: none has to."""
    path = tmp_path / "f.parquet"
    write(path, VALUES)
    was, proven = identity_of(path, etag=""), identity_of(path, proven=True)
    write(path, changed(N_ROWS // 2 + 7, 0.125))  # in none of the blocks that are looked at, and no extreme
    assert identity_of(path, etag="") != was
    assert identity_of(path, proven=True) == proven


def test_a_bucket_vouches_for_its_bytes(bucket, tmp_path):
    """Its ETag alone changes with them; a folder's times do not."""
    write(tmp_path / "f.parquet", VALUES)
    data = (tmp_path / "f.parquet").read_bytes()
    import s3fs

    s3fs.S3FileSystem().pipe_file(f"{bucket}/f.parquet", data)
    assert storage.stat(f"{bucket}/f.parquet").proven
    assert not storage.stat(str(tmp_path / "f.parquet")).proven


def test_a_run_is_told_apart(example, tmp_path):
    """An unchanged rerun is finished; data or a background replaced by others of the same size and time are not what was explained."""
    paths = {name: tmp_path / name / "f.parquet" for name in ("data", "background")}
    frame = make_frame().head(500)

    def put(name, other):
        path = paths[name]
        path.parent.mkdir(exist_ok=True)
        table = pa.Table.from_pandas(frame.assign(distance=np.arange(500.0) + other), preserve_index=False)
        pq.write_table(table, path, compression="none", use_dictionary=False)
        os.utime(path, ns=(10**18, 10**18))

    def run():
        job = make_job(example.model, paths["data"], tmp_path / "run", Options(background=paths["background"], scheduler="serial"))
        return plan_run(job, load_model(job))

    put("data", 0)
    put("background", 0)
    explain(example.model, paths["data"], tmp_path / "run", background=paths["background"], scheduler="serial")
    paths["data"].chmod(0o640)
    assert run().finished is not None
    size = paths["data"].stat().st_size
    for name, says in (("data", "different in input files"), ("background", "different in the background's files")):
        put(name, 7)
        assert paths[name].stat().st_size == size
        with pytest.raises(RunConflict, match=says):
            run()
        put(name, 0)
    assert run().finished is not None


def test_a_footer_is_known_again(example, tmp_path):
    """A worker that reads a file looks whether it is the one that was planned, by its mark and by its footer."""
    path = tmp_path / "f.parquet"
    write(path, VALUES)
    was = identity_of(path)
    assert is_still(was, storage.stat(str(path)))
    write(path, changed(0, 1e6))
    assert is_still(was, storage.stat(str(path)))
    with path.open("rb") as file:
        assert not has_footer(was, file)
    assert not is_still(was, None)


def test_rows_of_another_file_are_not_explained(example, tmp_path):
    """A file that is replaced between plan and read, in the same size and with the same time."""
    from leafledger.pipeline.dataset.files.listing import make_items
    from leafledger.pipeline.dataset.files.rows import read_slices

    path, frame = tmp_path / "f.parquet", make_frame().head(100)
    for other in (0.0, 1.0):
        table = pa.Table.from_pandas(frame.assign(distance=np.arange(100.0) + other), preserve_index=False)
        pq.write_table(table, path, compression="none", use_dictionary=False)
        os.utime(path, ns=(10**18, 10**18))
        if not other:
            (item,) = make_items(list_data(str(path), load_ensemble(example.model)), 1000)
    with pytest.raises(InvalidData, match=r"f\.parquet: changed since the run was planned"):
        list(read_slices(item, ["distance"], 64))


@pytest.mark.parametrize("row", [1, -2], ids=["first", "last"])
def test_the_ends_of_a_large_file_are_looked_at(tmp_path, row):
    """Whatever lies between the blocks that are read: one value there that is no extreme makes another file."""
    path, values = tmp_path / "f.parquet", np.linspace(-1, 1, 4 * N_ROWS)
    write(path, values)
    was = identity_of(path)
    values[row] /= 2
    write(path, values)
    assert identity_of(path) != was
