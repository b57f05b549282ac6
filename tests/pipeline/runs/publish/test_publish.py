"""What is published: parts against the plan, summaries, and last of all the manifest, which lists every object with its size and digest."""

import dataclasses
import hashlib

import pyarrow.parquet as pq
import pytest

from leafledger import check_run
from leafledger.pipeline.dataset.files.listing import Rejected
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.publish.publish import publish
from leafledger.pipeline.runs.records.folder import MANIFEST
from leafledger.pipeline.runs.records.manifest import read_manifest
from leafledger.pipeline.runs.stages import aggregate_run, map_run
from leafledger.pipeline.stores import commit, storage
from tests.pipeline.running import contents, ready


@pytest.fixture
def mapped(example, tmp_path):
    """A run whose parts are made: the arguments of ``publish``, by name."""
    run, tables = ready(example, tmp_path / "run", ids=["flight"])
    explained = map_run(run, tables)
    return {
        "run": run.job.out,
        "place": "",
        "plan": run.plan,
        "library": "lightgbm",
        "prepared": tables.prepared,
        "parts": explained.parts,
        "rejected": (),
        "summaries": aggregate_run(run, tables, explained),
    }


def objects(run):
    return [name for name in contents(run) if not name.startswith("attributions/")]


def test_the_manifest_is_the_last_object(mapped, monkeypatch):
    """Killed at any step before, the run has none; each of the next attempts goes on from there, and what is there in the end is the same."""
    create, left = commit.create, [0]

    class KilledError(BaseException):
        pass

    def create_some(uri, local):
        if not left[0]:
            raise KilledError
        left[0] -= 1
        return create(uri, local)

    with monkeypatch.context() as patch:
        patch.setattr(commit, "create", create_some)
        for n in range(5):  # two objects of each summary, and the manifest
            left[0] = n
            with pytest.raises(KilledError):
                publish(**mapped)
            assert read_manifest(mapped["run"]) is None
            assert len([name for name in objects(mapped["run"]) if name.startswith("summary/")]) == min(n, 4)
        assert not [name for name in objects(mapped["run"]) if name.startswith("_tables")]  # gone before the manifest
    made = publish(**mapped)
    assert sorted(objects(mapped["run"])) == [
        MANIFEST,
        "plan.json",
        *(f"summary/{name}.{kind}" for name in ("importance", "inputs") for kind in ("json", "parquet")),
    ]
    assert publish(**mapped) == made == read_manifest(mapped["run"])


def test_the_manifest_lists_every_object_with_its_size_and_digest(mapped):
    """And counts the rows; parts stand in order, in whatever order they were done."""
    made = publish(**mapped | {"parts": mapped["parts"][::-1]})
    found = contents(mapped["run"])
    listed = {entry["uri"]: (entry["size"], entry["sha256"]) for entry in (*made.parts, *made.summaries)}
    others = {MANIFEST, "plan.json"}
    assert listed == {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in found.items() if name not in others}
    assert made.plan == hashlib.sha256(found["plan.json"]).hexdigest()
    assert [entry["part"] for entry in made.parts] == [0, 1, 2, 3]
    assert made.n_rows == 3000
    assert repr(made) == "Manifest(3,000 rows, 4 parts, 1 output, method shapley)"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda parts: parts[1:], r"part 0 has no rows, the plan says \d+$"),
        (lambda parts: (dataclasses.replace(parts[0], n_rows=1), *parts[1:]), r"part 0 has 1 rows, the plan says \d+$"),
        (lambda parts: (*parts, parts[0]), "got 5 parts, the plan has 4$"),
        (lambda parts: (*parts, dataclasses.replace(parts[0], part=9)), "got 5 parts, the plan has 4$"),
    ],
)
def test_parts_that_are_not_the_plan_s_are_refused(mapped, change, says):
    """Nothing is lost, doubled or added."""
    with pytest.raises(InvalidRun, match=says):
        publish(**mapped | {"parts": change(mapped["parts"])})
    assert read_manifest(mapped["run"]) is None


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        ("attributions/part-00003.parquet", lambda path: path.unlink(), "was removed while the run was made; run the same again$"),
        ("attributions/part-00003.parquet", lambda path: path.write_bytes(b"PAR1"), r"has 4 bytes, expected the [\d,]+ that were written$"),
        ("plan.json", lambda path: path.unlink(), "was removed while the run was made; run the same again$"),
    ],
)
def test_what_is_not_there_any_more_is_not_published(mapped, name, damage, says):
    """Plan and parts are looked at once more before the manifest says that they are there."""
    damage(storage.local_path(mapped["run"]).joinpath(name))
    with pytest.raises(InvalidRun, match=f"{name}: {says}"):
        publish(**mapped)
    assert read_manifest(mapped["run"]) is None


def test_what_was_rejected_stands_in_for_its_part(mapped):
    """With the rows that it was of; a file without a footer has none that are known."""
    first = mapped["plan"].items[0]
    rejected = (
        Rejected(None, "f.parquet", (), None, "not a Parquet file"),
        Rejected(first.part, first.uri, first.row_groups, first.n_rows, "damaged"),
    )
    made = publish(**mapped | {"parts": mapped["parts"][1:], "rejected": rejected})
    assert (made.n_rows, made.n_rejected) == (3000 - first.n_rows, first.n_rows)
    assert read_manifest(mapped["run"]).rejected == rejected
    assert repr(made).endswith("method shapley, 2 rejected)")


def test_another_summary_in_its_place_is_refused(mapped):
    """A run never writes over what is there."""
    publish(**mapped)
    storage.local_path(mapped["run"]).joinpath("manifest.json").unlink()
    table = mapped["summaries"]["importance"]
    said = r"summary/importance\.parquet: exists already and differs from what this run computed; remove it, and run the same again$"
    with pytest.raises(InvalidRun, match=said):
        publish(**mapped | {"summaries": {"importance": table.slice(1)}})
    assert read_manifest(mapped["run"]) is None


def test_a_summary_that_another_pyarrow_wrote_is_found(mapped, monkeypatch):
    """An attempt that ended after its summaries is finished after an upgrade; the manifest lists the object that is there."""
    run, create = storage.local_path(mapped["run"]), commit.create

    def killed(uri, local):
        if uri.endswith(MANIFEST):
            raise KeyboardInterrupt
        return create(uri, local)

    with monkeypatch.context() as patch:
        patch.setattr(commit, "create", killed)
        with pytest.raises(KeyboardInterrupt):
            publish(**mapped)
    path = run / "summary" / "importance.parquet"
    written, used = path.read_bytes(), pq.read_metadata(path).created_by.encode()
    path.write_bytes(written.replace(used, used.replace(b"version 2", b"version 1")))
    assert path.read_bytes() != written
    assert pq.read_table(path).equals(mapped["summaries"]["importance"], check_metadata=True)
    made = publish(**mapped)
    assert made.summary("importance.parquet")["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert check_run(run).sound
