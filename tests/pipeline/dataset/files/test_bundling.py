"""Small files in one part: where parts begin follows from the files nearby, so that a change costs its part and the ones beside it, and no others."""

import hashlib
from itertools import accumulate, pairwise

import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from leafledger import check_run, explain
from leafledger.pipeline.dataset.files.bundling import bundle_small, find_boundaries
from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.runs.plan import planner
from tests.pipeline.conftest import SMALL, write_small
from tests.pipeline.running import attributions

LEAST, MOST = 100, 250


def make(files):
    """Items of whole files, of names and rows."""
    return [WorkItem(k, f"data/{name}", "e", (0,), 0, n, 0, ()) for k, (name, n) in enumerate(files)]


def names_of(items):
    """Which files go together."""
    return [tuple((piece.uri, piece.n_rows) for piece in item.pieces) for item in items]


@st.composite
def listings(draw, least=1, most=60):
    """Files of different names, in order, of so many rows each."""
    names = sorted(draw(st.sets(st.integers(0, 9999), min_size=1, max_size=80)))
    return [(f"part-{name:04}.parquet", draw(st.integers(least, most))) for name in names]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=30), st.integers(1, 40))
def test_boundaries_are_the_smallest_within_a_distance(files, least):
    """By the definition, file by file: of all that begin within so many rows before and after; of equal ones the first."""
    numbers, starts = [number for number, _ in files], [0, *accumulate(n for _, n in files)]
    expected = [
        k
        for k in range(len(files))
        if all((numbers[k], k) < (numbers[j], j) for j in range(len(files)) if j != k and abs(starts[j] - starts[k]) < least)
    ]
    assert find_boundaries(numbers, starts, least) == expected


@given(listings())
def test_parts_have_enough_rows_and_not_too_many(files):
    """Every file once, in order; enough rows where there are so many at all, and no more than may be."""
    made = make(files)
    found = bundle_small(made, LEAST, MOST)
    assert [piece for names in names_of(found) for piece in names] == [(item.uri, item.n_rows) for item in made]
    assert [item.part for item in found] == list(range(len(found)))
    assert [item.n_rows for item in found] == [sum(n for _, n in names) for names in names_of(found)]
    assert all(item.n_rows <= MOST for item in found)
    assert all(item.n_rows >= LEAST for item in found) or sum(n for _, n in files) < LEAST


@given(listings(), st.data())
def test_a_change_costs_its_part_and_its_neighbours(files, data):
    """A file that comes late, goes, or has other rows, or is another one of as many: all parts that end far before it, or begin far after, stay."""
    at = data.draw(st.integers(0, len(files) - 1))
    kind = data.draw(st.sampled_from(["late", "gone", "longer"]))
    name, n = files[at]
    changed = {
        "late": [*files[: at + 1], (f"{name}.late", data.draw(st.integers(1, 60))), *files[at + 1 :]],
        "gone": [*files[:at], *files[at + 1 :]],
        "longer": [*files[:at], (name, n + data.draw(st.integers(1, 9))), *files[at + 1 :]],
    }[kind]
    before, after = (set(names_of(bundle_small(make(some), LEAST, MOST))) for some in (files, changed))
    starts = dict(zip((f"data/{name}" for name, _ in files), accumulate((n for _, n in files), initial=0), strict=False))
    lost = sorted((starts[names[0][0]], starts[names[-1][0]] + names[-1][1]) for names in before - after)
    place = starts[f"data/{name}"]
    # A boundary follows from files within LEAST rows, and so do the cuts of what lies between two boundaries that are far apart.
    whole = [starts[names[0][0]] for names in names_of(bundle_small(make(files), LEAST, 1 << 40))] + [1 << 40]
    near = [(first, end) for first, end in pairwise(whole) if first - LEAST <= place + n and place <= end + LEAST]
    assert all(near[0][0] <= first and end <= near[-1][1] for first, end in lost)
    assert len(near) <= 5


def test_files_with_enough_rows_are_parts_of_their_own():
    """What is between them goes together, and what is cut stays apart; another partition begins another part."""
    cut = [WorkItem(0, "data/b", "e", (k,), 0, 20, 20 * k, ()) for k in range(2)]
    other = WorkItem(0, "data/day=1/a", "e", (0,), 0, 5, 0, (("day", "1"),))
    items = [*make([("a", LEAST)]), *cut, *make([("c", 5), ("d", 6), ("e", LEAST), ("f", 7)]), other]
    assert [[uri for uri, _ in names] for names in names_of(bundle_small(items, LEAST, MOST))] == [
        ["data/a"],
        ["data/b"],
        ["data/b"],
        ["data/c", "data/d"],
        ["data/e"],
        ["data/f"],
        ["data/day=1/a"],
    ]


def test_where_parts_begin_does_not_depend_on_the_place():
    """Names within the folder count, so that a copy elsewhere has the same parts; numbers are BLAKE2's of rows and name."""
    files = [(f"{k}.parquet", 9) for k in range(60)]
    elsewhere = [WorkItem(k, f"s3://lake/x/{name}", "f", (0,), 0, n, 0, ()) for k, (name, n) in enumerate(files)]
    here = bundle_small(make(files), LEAST, MOST)
    assert [item.n_rows for item in bundle_small(elsewhere, LEAST, MOST)] == [item.n_rows for item in here]
    numbers = [int.from_bytes(hashlib.blake2b(f"{n} {name}".encode(), digest_size=8).digest()) for name, n in files]
    starts = {item.uri for item in here}
    smallest = min(range(12, 48), key=numbers.__getitem__)
    assert f"data/{files[smallest][0]}" in starts


def test_small_files_go_together_unless_asked_otherwise(example, tmp_path, monkeypatch):
    """With the same rows in the same order; "file" makes a part of each."""
    monkeypatch.setattr(planner, "LEAST_ROWS", max(SMALL) + 1)
    data = write_small(example.frame, tmp_path / "data")
    runs = {}
    for name, item_rows in {"bundled": None, "apart": "file"}.items():
        runs[name] = explain(example.model, data, tmp_path / name, ids=["flight"], scheduler="serial", item_rows=item_rows)
    n_files = len(list(data.rglob("*.parquet")))
    assert len(runs["apart"].parts) == n_files
    assert 2 <= len(runs["bundled"].parts) < n_files / 2
    assert min(entry["n_rows"] for entry in runs["bundled"].parts) > max(SMALL)
    assert attributions(tmp_path / "bundled").equals(attributions(tmp_path / "apart"))
    assert check_run(tmp_path / "bundled", deep=True, all_rows=True).n_again == runs["bundled"].n_rows


def test_a_late_file_costs_its_own_part(example, tmp_path, monkeypatch):
    """When the night is replaced: the parts of other files are taken over."""
    monkeypatch.setattr(planner, "LEAST_ROWS", 40)
    data, table = tmp_path / "data", None
    write_small(example.frame, data)
    for path in sorted(data.rglob("*.parquet")):
        table = pq.read_table(path, partitioning=None)
        pq.write_table(table, path)
    explain(example.model, data, tmp_path / "run", ids=["flight"], scheduler="serial")
    pq.write_table(table.slice(0, 3), data / "month=2" / "99.parquet")
    made = []

    def progress(work):
        return lambda part: made.append(part) if work.doing == "explaining" else None

    manifest = explain(example.model, data, tmp_path / "run", ids=["flight"], scheduler="serial", if_changed="replace", progress=progress)
    again = [part for part in made if part.seconds]
    assert 1 <= len(again) <= 2 < len(manifest.parts)
