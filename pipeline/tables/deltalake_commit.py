"""Commit of a run's parts to a Delta table: added in place, once, in one log entry.

The table is the folder above the runs', and a run lies in a folder date=2026-11-22 of it: so that the log names parts by paths below the table, which
all readers know, and those that take a partition's value from the path find it there. The log says of every run which manifest was committed last, in
the action ``txn`` that Delta has for this: whoever commits at the same time is refused by the log, looks again, and finds it done.
"""

import json
import re
import time
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date as Date
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ..errors import UsageError
from .deltalake_table import open_table, options_for, place_of, reported
from .lakehouse import Mark, TableVersion
from .live_files import write_value
from .shared_parts import DATE, Share, new_columns, refuse_lacking, within

# Others clean a table's folder of all files that its log does not name: plans, manifests and summaries of the runs. Not for a hundred years.
KEPT = {"delta.deletedFileRetentionDuration": "interval 36500 days"}
WRITERS, READERS = {"appendOnly", "invariants", "timestampNtz"}, {"timestampNtz"}  # what a table may ask of who writes and reads it
OLDEST_FEATURES = 7  # version of writers from which on a table lists what it asks for; 2 asks for what is in WRITERS alone
NOTHING, WITHDRAWN = 0, "withdrawn"  # mark of a run that was withdrawn, and what the log says of it
MANIFEST, RUN = "leafledger", "leafledger run"  # which was committed, and of which run, in what the log says of an entry


def _exists(uri: str) -> bool:
    from deltalake import DeltaTable

    return DeltaTable.is_deltatable(uri, options_for(uri))


def _refuse_other(table: Any, uri: str) -> None:
    partitions, protocol = table.metadata().partition_columns, table.protocol()
    if partitions != [DATE]:
        raise UsageError(f"{uri}: is a Delta table partitioned by {', '.join(partitions) or 'nothing'}, expected {DATE}")
    kind = _list_types(table.schema())[DATE]
    if kind != "date":
        raise UsageError(f"{uri}: is a Delta table partitioned by {DATE!r}, which is a {kind}, expected a date")
    asked = set(protocol.writer_features or ()) - WRITERS | set(protocol.reader_features or ()) - READERS
    if asked or 2 < protocol.min_writer_version < OLDEST_FEATURES:
        version = f"version {protocol.min_writer_version} of the protocol"
        raise UsageError(f"{uri}: asks for {', '.join(sorted(asked)) or version} of who writes it, which leafledger does not know")


def _refuse_removal(table: Any, uri: str, removed: Collection[Any]) -> None:
    """Said before columns are added for files that the log then would not take."""
    if removed and table.metadata().configuration.get("delta.appendOnly", "").lower() == "true":
        raise UsageError(f"{uri}: rows of this Delta table stay there for ever (delta.appendOnly), so a run in it cannot be replaced or removed")


def _names(uri: str, run: str) -> tuple[str, str]:
    """What the log calls a run: for its manifest, and for how many parts it had."""
    place = run.removeprefix(f"{uri}/")
    return f"leafledger {place}", f"leafledger parts of {place}"


def _mark(manifest: str) -> int:
    """A whole number that stands for a manifest, as large as Delta's can be."""
    return int(manifest[:15], 16) + 1


def _find_former(history: Mapping[int, Any], version: int) -> int | None:
    """Of which version another one was made: the one before, or that to which the table was restored; None where the log does not tell."""
    entry = history[version]
    if entry.get("operation") != "RESTORE":
        return version - 1
    target, time_of = ((entry.get("operationParameters") or {}).get(name) for name in ("version", "datetime"))
    if target is not None:
        return int(target)
    return None if time_of is None else max((each for each, said in history.items() if said["timestamp"] <= int(time_of)), default=None)


def _was_undone(table: Any, run: str, mark: int) -> bool:
    """The last of the versions that led to the table as it is and are of a run did not commit its manifest: it was restored to one from before."""
    history = {entry["version"]: entry for entry in table.history()}
    of_run = {version: entry[MANIFEST] for version, entry in history.items() if MANIFEST in entry and entry.get(RUN, run) == run}
    made = {version for version, manifest in of_run.items() if manifest != WITHDRAWN and _mark(manifest) == mark}
    telling = made | {version for version in of_run if RUN in history[version]}  # an entry without it may be another run's
    at: int | None = table.version()
    while made and at is not None and at in history and at not in telling:
        at = _find_former(history, at)
    return bool(made) and at is not None and at not in made


def _list_live(table: Any, uri: str) -> dict[str, Any]:
    """From files that count to what removes each from the log, into which the library writes paths as URIs have them."""
    from deltalake.transaction import RemoveAction

    now, found = int(time.time() * 1000), pa.table(table.get_add_actions()).select(["path", "size_bytes", "partition"]).to_pylist()
    return {
        place_of(entry["path"], uri): RemoveAction(
            unquote(entry["path"]), True, now, entry["size_bytes"], {DATE: write_value(entry["partition"][DATE])}
        )
        for entry in found
    }


def _list_types(schema: Any) -> dict[str, str]:
    """Types of columns in Delta's words, whatever may be null."""

    def bare(kind: Any) -> Any:
        if isinstance(kind, list):
            return [bare(each) for each in kind]
        return (
            {name: bare(each) for name, each in kind.items() if name not in ("nullable", "containsNull", "metadata")}
            if isinstance(kind, dict)
            else kind
        )

    found = {field["name"]: bare(field["type"]) for field in json.loads(schema.to_json())["fields"]}
    return {name: kind if isinstance(kind, str) else json.dumps(kind) for name, kind in found.items()}


def _properties(uri: str, run: str, mark: int, n_parts: int, said: Mapping[str, str]) -> Any:
    from deltalake.transaction import CommitProperties, Transaction

    names = _names(uri, run)
    return CommitProperties(custom_metadata=dict(said), app_transactions=[Transaction(names[0], mark), Transaction(names[1], n_parts)])


def _properties_of(uri: str, share: Share) -> Any:
    return _properties(uri, share.run, _mark(share.manifest), len(share.parts), {MANIFEST: share.manifest, RUN: share.run})


def _schema_of(share: Share) -> Any:
    from deltalake import Schema

    return Schema.from_arrow(share.schema.append(pa.field(DATE, pa.date32())))


def _add(uri: str, share: Share) -> list[Any]:
    from deltalake.transaction import AddAction

    now, value = int(time.time() * 1000), {DATE: share.date.isoformat()}
    return [AddAction(part.uri.removeprefix(f"{uri}/"), part.size, value, now, True, json.dumps({"numRecords": part.n_rows})) for part in share.parts]


@dataclass(frozen=True, slots=True)
class DeltaLakeTable:
    """The newest version of a table, see `LakehouseTable`."""

    uri: str
    table: Any  # None where there is none

    @staticmethod
    def locate(name: str, run: str, date: Date) -> str:
        """Find the table that a run belongs to."""
        root, folder, _ = f"{run}/".rpartition(f"/{DATE}={date}/")
        if name:
            raise UsageError(f"table is delta:{name}, expected delta alone: the table is the folder above {DATE}={date}")
        if not folder or not root:
            raise UsageError(f"{run}: lies in no folder {DATE}={date}, which a Delta table takes; use an output such as explained/{DATE}={{date}}")
        return root

    @staticmethod
    def reported(doing: str, uri: str) -> AbstractContextManager[None]:
        """Turn what the library raises into one line."""
        return reported(doing, uri)

    @classmethod
    def open(cls, uri: str) -> "DeltaLakeTable":
        """Open the newest version."""
        return cls(uri, open_table(uri) if _exists(uri) else None)

    @property
    def exists(self) -> bool:
        """There is a table."""
        return self.table is not None

    def refuse_new(self) -> None:
        """Refuse nothing: the folder is made with the table."""

    def refuse_other(self, removing: bool = False) -> None:  # noqa: ARG002 - of removing it asks the same
        """Refuse a table by other partitions, or one that asks for what is not known here."""
        _refuse_other(self.table, self.uri)

    def refuse_columns(self, names: Collection[str]) -> None:
        """Refuse parts that lack a column which may not be null."""
        refuse_lacking([field.name for field in self.table.schema().fields if not field.nullable], names, self.uri)

    def find_mark(self, run: str) -> Mark:
        """Find what was committed of a run last; nothing where that was undone."""
        mark, held = (self.table.transaction_version(name) or NOTHING for name in _names(self.uri, run))
        return Mark("", 0) if not mark or _was_undone(self.table, run, mark) else Mark(str(mark), held)

    def mark_of(self, manifest: str) -> str:
        """Write a manifest as marks have it."""
        return str(_mark(manifest))

    def list_files(self, run: str) -> tuple[Collection[str], Mapping[str, Any]]:
        """List all files that count; and of these the parts of a run, each with what removes it from the log."""
        live = _list_live(self.table, self.uri)
        return live, {each: live[each] for each in sorted(within(run, live))}

    def refuse_removal(self, old: Mapping[str, Any]) -> None:
        """Refuse a table of which rows stay for ever."""
        _refuse_removal(self.table, self.uri, old)

    def find_day(self, run: str) -> Date | None:
        """Find the date of a run in its path."""
        found = re.match(rf"{DATE}=(\d{{4}}-\d{{2}}-\d{{2}})/", f"{run.removeprefix(f'{self.uri}/')}/")
        return None if found is None else Date.fromisoformat(found[1])

    def list_older(self) -> list[TableVersion]:
        """List the versions of which the log still tells."""
        found = list[TableVersion]()
        for entry in sorted(self.table.history(), key=lambda entry: entry["version"]):
            if entry["version"] < self.table.version():
                paths = pa.table(open_table(self.uri, entry["version"]).get_add_actions())["path"].to_pylist()
                found.append(TableVersion(str(entry["version"]), frozenset(place_of(path, self.uri) for path in paths)))
        return found

    @staticmethod
    def say_expiry(uri: str) -> str:
        """Write the command in Python: a checkpoint, then whatever the log keeps no longer goes."""
        days = "t.alter.set_table_properties({'delta.logRetentionDuration': 'interval 0 days'})"
        return f"from deltalake import DeltaTable; t = DeltaTable({uri!r}); {days}; t.create_checkpoint(); t.cleanup_metadata()"

    def create(self, share: Share) -> None:
        """Make the table with a run's parts."""
        from deltalake.transaction import create_table_with_add_actions

        options, properties = options_for(self.uri), _properties_of(self.uri, share)
        added = _add(self.uri, share)
        create_table_with_add_actions(
            self.uri, _schema_of(share), added, "error", [DATE], configuration=KEPT, storage_options=options, commit_properties=properties
        )

    def add(self, share: Share, old: Mapping[str, Any]) -> bool:
        """Let the table have a run's parts in the place of old ones; False where it got columns for them alone, and may be another one by then."""
        schema, added = _schema_of(share), {part.uri for part in share.parts}
        removed = [action for each, action in old.items() if each not in added]  # what is added anew takes its own place
        _refuse_removal(self.table, self.uri, removed)
        self.refuse_columns(share.schema.names)
        missing = new_columns(_list_types(self.table.schema()), _list_types(schema), self.uri)
        if missing:
            self.table.alter.add_columns([field for field in schema.fields if field.name in missing])
            return False
        actions = [*_add(self.uri, share), *removed]
        self.table.create_write_transaction(actions, "append", schema, [DATE], commit_properties=_properties_of(self.uri, share))
        return True

    def remove(self, run: str, old: Mapping[str, Any]) -> None:
        """Take a run's parts out of the table."""
        _refuse_removal(self.table, self.uri, old)
        properties = _properties(self.uri, run, NOTHING, 0, {MANIFEST: WITHDRAWN, RUN: run})
        self.table.create_write_transaction([*old.values()], "append", self.table.schema(), [DATE], commit_properties=properties)

    def was_overtaken(self, error: Exception) -> bool:
        """Tell whether somebody else committed, or made the table, at the same time."""
        from deltalake.exceptions import CommitFailedError, DeltaError

        return isinstance(error, CommitFailedError) or (isinstance(error, DeltaError) and not self.exists and _exists(self.uri))
