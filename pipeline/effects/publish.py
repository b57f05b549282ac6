"""Published effects: tables, pictures, and last the record that lists them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import InvalidRun, NotFinished, RunConflict
from ..json_records import parse_text
from ..runs.publish.table_objects import create_table
from ..stores import commit, storage
from .feature_effects import FeatureEffects, tabulate_bands, tabulate_interactions, tabulate_local_effects
from .figure import draw_curve

RECORD = "effects.json"
FIGURES = "figures"
TABLES = tuple(f"{name}.parquet" for name in ("curves", "surfaces", "bands", "local_effects", "interactions"))
FORMAT = 1  # of the record


@dataclass(frozen=True, slots=True)
class Planned:
    """What there is to do for effects.

    Attributes
    ----------
    model_digest, background_digest : str
        SHA-256 of the model's file, and of the list of the background's files.
    n_files, n_items : int
        Files of the background, and pieces of work that each pass has.
    n_counted, n_summed : int
        Of these pieces, how many are done of the first pass and of the second: by an interrupted attempt, or all of the first by an earlier run.
    n_states : int
        Of all features together: in each of them every row is predicted.
    features : tuple of str
    pairs : tuple of (str, str)
    where : str
        The work is done, in words.
    counts : str
        URI of the folder where what is counted of the background is kept; empty where it was counted before, so that there is no first pass.
    """

    model_digest: str
    background_digest: str
    n_files: int
    n_items: int
    n_counted: int
    n_summed: int
    n_states: int
    features: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    where: str
    counts: str


@dataclass(frozen=True, slots=True)
class Published:
    """Published effects.

    Attributes
    ----------
    uri : str
        Of their folder.
    objects : tuple of str
        Names of tables and pictures below it.
    n_rows : int
        Of the background.
    notes : tuple of str
        What is flat, and which pairs never meet.
    again : bool
        The same effects were there already.
    planned : Planned or None
        What there is to do, where that alone was asked for.
    """

    uri: str
    objects: tuple[str, ...]
    n_rows: int
    notes: tuple[str, ...]
    again: bool = False
    planned: Planned | None = None


def _join(tables: Iterator[tuple[tuple[str, ...], pa.Table]], names: tuple[str, ...]) -> pa.Table | None:
    """Put tables of features, or of pairs, under each other, with their names first."""
    found = []
    for values, table in tables:
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            table = table.add_column(place, name, pa.array([value] * table.num_rows, pa.string()))
        found.append(table)
    return _without_nan(pa.concat_tables(found)) if found else None


def _without_nan(table: pa.Table) -> pa.Table:
    """Write null for what is no number, so that equal tables are equal."""
    for place, name in enumerate(table.column_names):
        if pa.types.is_floating(table.schema.types[place]):
            column = table.column(name)
            table = table.set_column(place, name, pc.if_else(pc.is_nan(column), None, column))
    return table


def _tabulate(found: FeatureEffects, quantiles: np.ndarray) -> dict[str, pa.Table]:
    """Make all tables, by name."""
    shown = found.partial_dependence
    names, pairs = [each.name for each in shown.axes], [name for name in shown.names if not isinstance(name, str)]
    made = {
        "curves": _join((((name,), shown.to_arrow(name)) for name in names), ("feature",)),
        "surfaces": _join(((pair, shown.to_arrow(pair)) for pair in pairs), ("feature_1", "feature_2")),
        "bands": _join((((name,), tabulate_bands(found, name, quantiles.tolist())) for name in names), ("feature",)),
        "local_effects": _join((((each.name,), tabulate_local_effects(found, each.name)) for each in shown.axes if each.ordered), ("feature",)),
        "interactions": _without_nan(tabulate_interactions(found)),
    }
    return {name: table for name, table in made.items() if table is not None}


def _draw(found: FeatureEffects) -> dict[str, str]:
    """Draw every feature, by the picture's name."""
    shown = found.partial_dependence
    return {
        f"{FIGURES}/feature-{place:05}.svg": draw_curve(axis, shown.curves[place], shown.shares[place], shown.outputs, shown.space)
        for place, axis in enumerate(shown.axes)
    }


def _create(uri: str, local: Path) -> None:
    if not commit.create(uri, local) and storage.read(uri) != local.read_bytes():
        raise _differs(uri)


def _differs(uri: str) -> RunConflict:
    return RunConflict(f"{uri}: exists already and differs from these effects; choose another output or remove it")


def publish(out: str, found: FeatureEffects, facts: Mapping[str, Any], quantiles: np.ndarray) -> Published:
    """Write tables and pictures, then the record with their sizes and digests."""
    written = {}
    with storage.scratch() as folder:
        local = folder / "object"
        for name, table in _tabulate(found, quantiles).items():
            if not create_table(storage.join(out, f"{name}.parquet"), table, local):
                raise _differs(storage.join(out, f"{name}.parquet"))
            written[f"{name}.parquet"] = {"size": local.stat().st_size, "sha256": storage.sha256(local)}
        for name, text in _draw(found).items():
            local.write_bytes(text.encode())
            _create(storage.join(out, name), local)
            written[name] = {"size": local.stat().st_size, "sha256": storage.sha256(local)}
        notes = found.partial_dependence.notes
        record = {"format_version": FORMAT, "leafledger": version("leafledger"), **facts, "notes": notes, "objects": written}
        local.write_bytes(f"{json.dumps(record, indent=1, sort_keys=True)}\n".encode())
        _create(storage.join(out, RECORD), local)
    return Published(out, tuple(written), facts["n_rows"], tuple(notes))


@dataclass(frozen=True, slots=True)
class Curves:
    """Published curves, for a report.

    Attributes
    ----------
    model_digest : str
        SHA-256 of the model's file.
    trees : list of int or None
        Of its iterations, the first and that behind the last; None for all.
    missing : float or None
        Number that stands for missing values besides null and NaN.
    partition : mapping of str to list of str
        Features of every group; empty where there are none.
    space : str
        What they are of.
    rows : mapping of (str, str) to list
        Rows of ``curves.parquet`` by output and feature.
    """

    model_digest: str
    trees: list[int] | None
    missing: float | None
    partition: Mapping[str, list[str]]
    space: str
    rows: Mapping[tuple[str, str], list[dict[str, Any]]]


def read_curves(folder: str) -> Curves:
    """Read the curves that are published in a folder, and verify their digest.

    Raises
    ------
    NotFinished
        There are none.
    InvalidRun
        They are damaged.
    """
    record, name = read_record(folder), "curves.parquet"
    if record is None:
        raise NotFinished(f"{folder}: holds no finished effects, expected a folder that leafledger effects wrote")
    uri, rows = storage.join(folder, name), dict[tuple[str, str], list[dict[str, Any]]]()
    with storage.scratch() as local:
        storage.download(uri, local / name)
        if storage.sha256(local / name) != record["objects"].get(name, {}).get("sha256"):
            raise InvalidRun(f"{uri}: is not the table that {RECORD} lists")
        for row in pq.read_table(local / name).to_pylist():
            rows.setdefault((row["output"], row["feature"]), []).append(row)
    groups = {name: [*members] for name, members in record.get("partition") or ()}
    return Curves(str(record.get("model_digest")), record.get("trees"), record.get("missing"), groups, str(record.get("space")), rows)


def read_record(out: str) -> dict[str, Any] | None:
    """Read the record of published effects; None where there is none."""
    uri = storage.join(out, RECORD)
    data = storage.read_if_exists(uri)
    if data is None:
        return None
    try:
        record = parse_text(data)
        if not isinstance(record, dict) or not isinstance(record.get("objects"), dict):
            raise ValueError("it lists no objects")
    except ValueError as error:
        raise InvalidRun(f"{uri}: is no record of effects: {' '.join(str(error).split())}") from error
    return record


def read_published(out: str, facts: Mapping[str, Any]) -> Published | None:
    """Read what is published there, if anything; refuse other effects than those of these facts."""
    record, asked = read_record(out), json.loads(json.dumps(facts))
    if record is None:
        return None
    other = [name for name in asked if record.get(name) != asked[name]]
    if other:
        raise RunConflict(f"{out}: holds other effects, which differ in {other[0]}; choose another output or remove it")
    return Published(out, tuple(record["objects"]), asked["n_rows"], tuple(record.get("notes", ())), True)
