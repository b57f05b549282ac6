"""Commit of a run's parts to a Delta table: added in place, once, in one log entry.

The table is the folder above the runs', and a run lies in a folder date=2026-11-22 of it: so that the log names parts by paths below the table, which
all readers know, and those that take a partition's value from the path find it there. The log says of every run which manifest was committed last, in
the action ``txn`` that Delta has for this: whoever commits at the same time is refused by the log, looks again, and finds it done.
"""

import json
import time
from collections.abc import Collection, Mapping
from datetime import date as Date
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ..errors import UsageError
from .deltalake_table import open_table, options_for, place_of, reported
from .live import write_value
from .share import DATE, Removal, Share, check_all_there, check_alone, new_columns, refuse_lacking, within

ATTEMPTS = 10  # lost to others before a commit is given up
# Others clean a table's folder of all files that its log does not name: plans, manifests and summaries of the runs. Not for a hundred years.
KEPT = {"delta.deletedFileRetentionDuration": "interval 36500 days"}
WRITERS, READERS = {"appendOnly", "invariants", "timestampNtz"}, {"timestampNtz"}  # what a table may ask of who writes and reads it
OLDEST_FEATURES = 7  # version of writers from which on a table lists what it asks for; 2 asks for what is in WRITERS alone
NOTHING, WITHDRAWN = 0, "withdrawn"  # mark of a run that was withdrawn, and what the log says of it
MANIFEST, RUN = "leafledger", "leafledger run"  # which was committed, and of which run, in what the log says of an entry


def locate_delta(name: str, run: str, date: Date) -> str:
    """Find the table that a run belongs to."""
    root, folder, _ = f"{run}/".rpartition(f"/{DATE}={date}/")
    if name:
        raise UsageError(f"table is delta:{name}, expected delta alone: the table is the folder above {DATE}={date}")
    if not folder or not root:
        raise UsageError(f"{run}: lies in no folder {DATE}={date}, which a Delta table takes; use an output such as explained/{DATE}={{date}}")
    return root


def _exists(uri: str) -> bool:
    from deltalake import DeltaTable

    return DeltaTable.is_deltatable(uri, options_for(uri))


def check_delta(uri: str, names: Collection[str]) -> None:
    """Refuse a table that parts cannot be added to as they are, while nothing is explained yet."""
    with reported("read", uri):
        if not _exists(uri):
            return
    table = open_table(uri)
    _refuse_other(table, uri)
    refuse_lacking(_list_required(table), names, uri)


def _list_required(table: Any) -> list[str]:
    """Columns that may not be null."""
    return [field.name for field in table.schema().fields if not field.nullable]


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


def _refuse_removal(table: Any, uri: str, removed: Collection[str]) -> None:
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
    """None of the versions that led to the table as it is committed a run's manifest: it was restored to one from before."""
    history = {entry["version"]: entry for entry in table.history()}
    of_run = {version: entry.get(MANIFEST, WITHDRAWN) for version, entry in history.items() if entry.get(RUN, run) == run}
    made = {version for version, manifest in of_run.items() if manifest != WITHDRAWN and _mark(manifest) == mark}
    at: int | None = table.version()
    while made and at is not None and at in history and at not in made:
        at = _find_former(history, at)
    return bool(made) and at is not None and at not in made


def _find_mark(table: Any, uri: str, run: str) -> tuple[int, int]:
    """Which manifest of a run was committed last, and how many parts it had; none where that was undone."""
    mark, held = (table.transaction_version(name) or NOTHING for name in _names(uri, run))
    return (NOTHING, 0) if mark and _was_undone(table, run, mark) else (mark, held)


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


def _add(uri: str, share: Share) -> list[Any]:
    from deltalake.transaction import AddAction

    now, value = int(time.time() * 1000), {DATE: share.date.isoformat()}
    return [AddAction(part.uri.removeprefix(f"{uri}/"), part.size, value, now, True, json.dumps({"numRecords": part.n_rows})) for part in share.parts]


def _try(uri: str, share: Share) -> None:
    """One attempt, from the newest version."""
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import create_table_with_add_actions

    schema, mark = Schema.from_arrow(share.schema.append(pa.field(DATE, pa.date32()))), _mark(share.manifest)
    properties = _properties(uri, share.run, mark, len(share.parts), {MANIFEST: share.manifest, RUN: share.run})
    if not _exists(uri):
        if not share.stands():
            return
        create_table_with_add_actions(
            uri, schema, _add(uri, share), "error", [DATE], configuration=KEPT, storage_options=options_for(uri), commit_properties=properties
        )
        return
    table: DeltaTable = open_table(uri)
    _refuse_other(table, uri)
    committed, held = _find_mark(table, uri, share.run)
    if committed == mark or not share.stands():  # asked once the table is open: who takes its place from now on is noticed
        return
    live = _list_live(table, uri)
    old = within(share.run, live)
    check_all_there(held, len(old), share.run, uri)
    removed = sorted(old - {part.uri for part in share.parts})  # what is added anew takes its own place
    _refuse_removal(table, uri, removed)
    refuse_lacking(_list_required(table), share.schema.names, uri)
    missing = new_columns(_list_types(table.schema()), _list_types(schema), uri)
    if missing:
        table.alter.add_columns([field for field in schema.fields if field.name in missing])
        _try(uri, share)  # others may have committed before these
        return
    actions = [*_add(uri, share), *(live[each] for each in removed)]
    table.create_write_transaction(actions, "append", schema, [DATE], commit_properties=properties)


def commit_delta(uri: str, share: Share) -> None:
    """Let a table have a run's parts, in the place of those of an earlier run in the same folder; do nothing where it has them, or where another run
    has taken the run's place.
    """
    _repeat(uri, lambda: _try(uri, share))


def _repeat(uri: str, attempt: Any) -> None:
    """Try again where somebody else committed at the same time."""
    with reported("write", uri):
        from deltalake.exceptions import CommitFailedError, DeltaError

        for left in reversed(range(ATTEMPTS)):
            existed = _exists(uri)
            try:
                attempt()
                return
            except DeltaError as error:
                made = not existed and _exists(uri)  # by somebody else
                if not left or not (made or isinstance(error, CommitFailedError)):
                    raise


def holds_delta(uri: str, run: str, manifest: str) -> bool:
    """Tell whether a manifest is the last of a run that was committed to a table."""
    with reported("read", uri):
        return _exists(uri) and _find_mark(open_table(uri), uri, run)[0] == _mark(manifest)


def withdraw_delta(uri: str, leaving: Removal) -> None:
    """Take a run's parts out of a table, before they are removed; do nothing where it has none."""

    def attempt() -> None:
        if not _exists(uri):
            return
        table = open_table(uri)
        _refuse_other(table, uri)
        mark, held = _find_mark(table, uri, leaving.run)
        if leaving.manifest is not None and mark != _mark(leaving.manifest):
            return
        if leaving.wanted is not None and not leaving.wanted():
            return
        live = _list_live(table, uri)
        old = within(leaving.run, live)
        check_all_there(held, len(old), leaving.run, uri)
        if leaving.whole:
            check_alone(leaving.run, live, uri)
        if not held:
            return
        _refuse_removal(table, uri, old)
        actions = [live[each] for each in sorted(old)]
        properties = _properties(uri, leaving.run, NOTHING, 0, {MANIFEST: WITHDRAWN, RUN: leaving.run})
        table.create_write_transaction(actions, "append", table.schema(), [DATE], commit_properties=properties)

    _repeat(uri, attempt)
