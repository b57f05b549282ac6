"""A table of all nights as other programs see it: Delta Lake's in the folder of runs, Iceberg's in a catalog."""

from datetime import date
from importlib.util import find_spec
from pathlib import Path

import deltalake.transaction
import duckdb
import polars
import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from leafledger import read_run
from leafledger.pipeline.tables.deltalake_table import options_for


class Delta:
    """The table of a folder of runs, as other programs see it."""

    table, log = "delta", ((deltalake.transaction, "create_table_with_add_actions"), (DeltaTable, "create_write_transaction"))

    def __init__(self, root):
        self.root = str(root)
        self.uri = self.root

    def open(self):
        options = options_for(self.root)
        return DeltaTable(self.root, storage_options=options) if DeltaTable.is_deltatable(self.root, options) else None

    def by_duckdb(self):
        """All rows, as DuckDB reads them."""
        return ask_duckdb(f"SELECT * FROM delta_scan('{self.root}')", "delta")

    def by_polars(self):
        """All rows, as Polars reads them."""
        return polars.read_delta(self.root).to_arrow()

    def list_live(self):
        """Paths and rows of the files that count; nothing where there is no table."""
        table = self.open()
        actions = {} if table is None else pa.table(table.get_add_actions()).select(["path", "num_records"]).to_pydict()
        return {f"{self.root}/{path}": n_rows for path, n_rows in zip(*actions.values(), strict=True)} if actions else {}

    def count_commits(self):
        """Entries of the log."""
        return self.open().version() + 1


class Iceberg:
    """The same in a catalog."""

    table, log = "iceberg:nights.prod.explained", ((SqlCatalog, "commit_table"),)

    def __init__(self, root):
        self.root, self.uri = str(root), self.table
        self.catalog = load_catalog("nights")
        self.catalog.create_namespace_if_not_exists("prod")

    def open(self):
        return self.catalog.load_table("prod.explained") if self.catalog.table_exists("prod.explained") else None

    def by_duckdb(self):
        """All rows, as DuckDB reads them."""
        return ask_duckdb(f"SELECT * FROM iceberg_scan('{self.open().metadata_location}')", "avro", "iceberg")

    def by_polars(self):
        """All rows, as Polars reads them."""
        return polars.scan_iceberg(self.open()).collect().to_arrow()

    def list_live(self):
        """Paths and rows of the files that count; nothing where there is no table."""
        table = self.open()
        files = [] if table is None else [task.file for task in table.scan().plan_files()]
        return {
            file.file_path.removeprefix("file://"): file.record_count
            for file in files
            if file.file_path.startswith((self.root, f"file://{self.root}"))
        }

    def count_commits(self):
        """Snapshots."""
        return len(self.open().snapshots())


def ask_duckdb(query, *extensions):
    """What DuckDB answers, with extensions that are installed as packages, for else it downloads them."""
    with duckdb.connect() as connection:
        for name in extensions:
            (found,) = Path(find_spec(f"duckdb_extension_{name}").origin).parent.rglob("*.duckdb_extension")
            connection.execute(f"LOAD '{found}'")
        return connection.execute(query).to_arrow_table()


KINDS = {"delta": Delta, "iceberg": Iceberg}


def plain(table):
    """Rows in one order, in types that all readers have."""
    names = sorted(table.column_names)
    kinds = {"string": pa.string(), "large_string": pa.string(), "string_view": pa.string()}
    fields = [pa.field(name, kinds.get(str(table.schema.field(name).type), table.schema.field(name).type)) for name in names]
    return table.select(names).cast(pa.schema(fields)).sort_by([("date", "ascending"), ("flight", "ascending")]).combine_chunks()


def expected(*nights):
    """Rows of runs with their dates, read as the runs' own files."""
    tables = [read_run(run).attributions() for run in nights]
    dates = [date.fromisoformat(str(run).rpartition("date=")[2][:10]) for run in nights]
    return plain(
        pa.concat_tables([table.append_column("date", pa.repeat(pa.scalar(day), len(table))) for table, day in zip(tables, dates, strict=True)])
    )
