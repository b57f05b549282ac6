"""Input that another program changes while a run reads it: what was read belongs to one state of each file, or is rejected."""

import io

import pyarrow.parquet as pq
import pytest
import s3fs

from leafledger import check_run, explain
from leafledger.pipeline.errors import StorageError
from tests.faults.proxy import Rule, before
from tests.faults.verdict import ID, contents
from tests.more import more


def explained(runner, out, data):
    """What a run says of every row, by its id, and how many pieces it rejected."""
    manifest = explain(runner.model, data, out, ids=[ID], scheduler="serial")
    check_run(out)
    parts = [pq.read_table(io.BytesIO(each)) for name, each in sorted(contents(out).items()) if name.startswith("attributions/")]
    return {row[ID]: tuple(row.values()) for part in parts for row in part.to_pylist()}, len(manifest.rejected)


@pytest.mark.parametrize("what", ["overwritten", *more("deleted", "added")])
@pytest.mark.parametrize("skip", [0, 1], ids=["planned", "read"])
def test_input_that_changes_between_two_requests_is_not_mixed(runner, example, proxy, bucket, what, skip):
    """A file that is overwritten or deleted while the run is planned ends it in a line; later it is rejected; one that is added is not of this run.
    All other rows are what they would be."""
    s3, data = s3fs.S3FileSystem(), f"{bucket}/data"
    s3.put(f"{runner.data}/", f"{data}/", recursive=True)
    sound = explained(runner, f"{bucket}/sound", data)[0]
    changed = io.BytesIO()
    example.frame.assign(distance=-1.0).head(700).to_parquet(changed)
    name = f"{data}/month={11 if what == 'added' else 2}/data.parquet"
    fault = before(lambda: s3.rm_file(name) if what == "deleted" else s3.pipe_file(name, changed.getvalue()))
    fault.__name__ = f"input {what}"
    rule = Rule("GET .*/data/month.*2/data.parquet", fault, skip=skip)
    with proxy.broken(rule):
        if what != "added" and not skip:
            with pytest.raises(StorageError, match=r"^[^\n]*data.parquet: cannot read: [^\n]*$"):
                explained(runner, f"{bucket}/run", data)
            return
        found, rejected = explained(runner, f"{bucket}/run", data)
    assert rule.made
    assert rejected == (what != "added")
    assert len(found) == len(sound) if what == "added" else 2000 < len(found) < len(sound)
    assert found.items() <= sound.items()
