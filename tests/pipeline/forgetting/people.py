"""Nights of a few hundred people, some of whom are to be forgotten, and what of them is left in any object."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leafledger import check_run, drift, explain, read_latest, read_manifest, read_run, report
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.stores.open_store import open_filesystem

PERSON, NUMBER = "person-00123", 4_000_000_123
N_PEOPLE = 500


def write_people(example, folder, n_files=3):
    """Write the example's rows as rows of people, each several times: by a text, and by a number."""
    frame = example.frame.drop(columns="month").assign(
        month=example.frame["month"].astype("float64"),
        customer=[f"person-{i % N_PEOPLE:05d}" for i in range(len(example.frame))],
        account=[4_000_000_000 + i % N_PEOPLE for i in range(len(example.frame))],
    )
    folder.mkdir(parents=True, exist_ok=True)
    size = len(frame) // n_files
    for k in range(n_files):
        rows = pa.Table.from_pandas(frame[k * size : (k + 1) * size], preserve_index=False)
        at = rows.schema.get_field_index("customer")
        names = rows["customer"].dictionary_encode() if k == 0 else rows["customer"]
        pq.write_table(
            rows.set_column(at, "customer", names.cast(pa.dictionary(pa.int32(), pa.string()))), folder / f"{k}.parquet", row_group_size=300
        )
    return folder


def objects(place):
    """Every object below a place, by its name, with its bytes."""
    filesystem, path = open_filesystem(str(place))
    return {name.removeprefix(f"{path}/"): filesystem.cat_file(name) for name in filesystem.find(path)}


def uncompressed(data):
    """The bytes of a Parquet object as they are without compression or encoding: of all its columns, footer and statistics."""
    table, sink = pq.read_table(pa.BufferReader(data)), pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none")  # with the dictionaries that are there
    return sink.getvalue().to_pybytes() + b" ".join((pq.read_metadata(pa.BufferReader(data)).metadata or {}).values())


def holders(place, *texts):
    """Names of the objects below a place whose bytes, or whose rows' bytes, have one of some texts or whole numbers of eight bytes."""
    needles = [text.encode() if isinstance(text, str) else int(text).to_bytes(8, "little") for text in texts]
    needles += [str(text).encode() for text in texts if not isinstance(text, str)]
    found = set()
    for name, data in objects(place).items():
        every = data + (uncompressed(data) if data[:4] == b"PAR1" else b"")
        found |= {name for needle in needles if needle in every}
    return sorted(found)


def plain(table):
    """Rows without dictionaries, whose order says nothing."""
    columns = [column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column for column in table.columns]
    return pa.table(columns, table.column_names).combine_chunks()


def read_parts(run):
    """All rows of a run's parts as a reader of the folder finds them."""
    parts = [data for name, data in sorted(objects(f"{run}/attributions").items()) if name.endswith(".parquet")]
    return plain(pa.concat_tables([pq.read_table(pa.BufferReader(data)) for data in parts]))


def without(table, **where):
    """Rows that have other values."""
    ((name, value),) = where.items()
    return table.filter(pc.invert(pc.equal(table[name], value))).combine_chunks()


DAYS = ("2026-11-01", "2026-11-02")


OPTIONS = {"ids": ["customer", "account"], "values": True, "top": 2, "columns": "both", "item_rows": "file", "scheduler": "serial"}


def make_nights(example, people, root, **more):
    """Two nights with reports, what drifted between them, a page of the person, and a pointer to the latest."""
    for day in DAYS:
        explain(example.model, people, f"{root}/date={day}", date=day, latest=f"{root}/latest.json", **(OPTIONS | more))
        report(f"{root}/date={day}")
    drift(f"{root}/date={DAYS[1]}", against=f"{root}/date={DAYS[0]}")
    assert main(["show", f"{root}/date={DAYS[0]}", "--where", f"customer={PERSON}", "--html", f"{root}/pages/{PERSON[:6]}.html"]) == 0
    return root


def copy_nights(nights, root):
    """A copy of nights that were made in a folder, whose pointer names the copy."""
    filesystem, path = open_filesystem(root)
    filesystem.put(str(nights), path, recursive=True)
    filesystem.pipe_file(f"{path}/latest.json", Path(nights, "latest.json").read_bytes().replace(str(nights).encode(), root.encode()))
    return root


def assert_forgotten(root, before):
    """Nothing holds the person by any of the ids; all other rows are as they were, in their order; every run is sound and says what it lacks."""
    assert holders(root, PERSON, NUMBER) == []
    today = datetime.now(UTC).date().isoformat()
    for day in DAYS:
        run = f"{root}/date={day}"
        assert read_parts(run).equals(without(before, customer=PERSON))
        assert plain(read_run(run).attributions()).equals(read_parts(run))
        assert {entry.day for entry in read_manifest(run).forgotten} == {today}
        found = check_run(run, all_rows=True)
        assert (found.sound, found.left, found.n_rows, found.n_forgotten, found.n_again) == (True, (), 2994, 6, 2994)
    latest = read_latest(f"{root}/latest.json")
    assert (latest.manifest, latest.n_rows, latest.share) == (read_manifest(latest.run).sha256, 2994, 1.0)
