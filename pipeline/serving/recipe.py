"""An explainer as a folder: the model's file, the background, tables, and a recipe in JSON; nothing in it is a pickle."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.jit.decorator import digest_sources
from leafledger.kernels.slices.buffers import Prepared

from ..arguments.choices import CPU, MODEL, Space
from ..arguments.readers import read_names, read_number, shorten
from ..dataset.columns.partition import Partition
from ..display.text import list_some
from ..errors import InvalidModel, InvalidRun, OtherVersion, UnsupportedModel, UsageError
from ..in_memory.explain.attributions import Attributions
from ..in_memory.explain.explainer import Explainer, prepare
from ..in_memory.explain.question import Question, ask
from ..in_memory.rows.given_rows import BACKGROUND, as_rows, spell_features
from ..json_records import EMPTY, as_text, read_record
from ..models import load_ensemble, parse_model, serialise
from ..models.model import Model
from ..models.portable_format import write_trees
from ..models.row_output import OTHER, choose_among, read_row_output
from ..runs.columns.reasons import Reasons
from ..runs.columns.reasons_file import load_settings
from ..stores.failures import reported
from ..stores.table_arrays import broadcast_tables, load_numpy, open_tables
from .told_reasons import check_told, tell

FORMAT = 1
DEFAULT = "shapley"  # the method that is meant where none is named
RECIPE, FILE, TABLES = "recipe.json", "model", "tables"
ROWS, MATRIX = "background.parquet", "background.npy"
TOLD = (pa.string(), pa.float64(), pa.string())  # feature, attribution and value
ASKED = {  # arguments of `prepare` that a recipe keeps, and their defaults
    "parameters": None,
    "partition": None,
    "interactions": None,
    "order": None,
    "index": None,
    "combinations": "shared",
    "background_errors": False,
    "allow_unseen": False,
    "output": None,
    "space": "margin",
}


class Asked(TypedDict, total=False):
    """Arguments of `prepare` besides the method and the background, for editors."""

    parameters: Mapping[str, Any] | None
    partition: Partition | None
    interactions: int | str | None
    order: int | None
    index: str | None
    combinations: str
    background_errors: bool
    allow_unseen: bool
    output: str | int | None
    space: Space


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an explainer is made of the files beside it."""

    format_version: int
    leafledger: str  # version that wrote it
    kernels: str  # digest of its kernels' sources: tables are only theirs
    model: str  # SHA-256 of the model's file
    library: str
    digest: str  # SHA-256 of the model as it was given
    method: str
    asked: dict[str, Any]  # arguments of `prepare` that are not the defaults
    game: str
    tables: str  # their digest
    background: Literal["background.parquet", "background.npy", "model"] | None = field(default=None, metadata={EMPTY: True})  # its file, or word
    background_digest: str | None = field(default=None, metadata={EMPTY: True})
    ids: tuple[str, ...] = field(default=(), metadata={EMPTY: True})  # columns that are passed on
    top: int | None = field(default=None, metadata={EMPTY: True})  # how many of the largest attributions are the answer; None for all
    reasons: dict[str, Any] | None = field(default=None, metadata={EMPTY: True})  # what the reasons file says, where these are the answer


@dataclass(frozen=True, slots=True)
class Served:
    """An explainer, and how it answers."""

    recipe: Recipe
    question: Question
    prepared: Prepared
    explainer: Explainer
    told: Reasons | None


def _digest(path: Path) -> str:
    with reported("read", str(path)), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_model(given: Any, loaded: Model, path: Path) -> None:
    """Write a model's file in our own format, or in its library's where ours has no place for it."""
    try:
        path.write_bytes(write_trees(loaded))
    except UnsupportedModel:
        data = serialise(given)
        read = parse_model(data, "the model's file", loaded.missing)
        if (read.features, read.outputs, read.objective) != (loaded.features, loaded.outputs, loaded.objective):
            raise UnsupportedModel(
                "the model's own file does not say all that the object does; save it as its library does, and give the path"
            ) from None
        path.write_bytes(data)


def _write_background(given: Any, loaded: Model, folder: Path) -> str | None:
    """Write the model's columns of a background; return the name of the file, or what stands for it."""
    if given is None or (isinstance(given, str) and given == MODEL):
        return given
    rows = as_rows(given, BACKGROUND)
    if isinstance(rows, np.ndarray):
        np.save(folder / MATRIX, np.asarray(rows, np.float64) if rows.dtype == object else rows, allow_pickle=False)
        return MATRIX
    try:
        table = pa.Table.from_pandas(rows, preserve_index=False) if hasattr(rows, "iloc") else pa.table(rows)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise UsageError(f"{BACKGROUND} are {shorten(given)} that Arrow cannot hold: {' '.join(str(error).split())}") from error
    asked = {feature.name for feature in spell_features(loaded, rows, where=BACKGROUND).features}
    pq.write_table(table.select([name for name in table.column_names if name in asked]), folder / ROWS)
    return ROWS


def _read_background(recipe: Recipe, folder: Path) -> Any:
    if recipe.background == ROWS:
        return pq.read_table(folder / ROWS)
    return load_numpy(folder / MATRIX, allow_pickle=False) if recipe.background == MATRIX else recipe.background


def _make(recipe: Recipe, folder: Path, made: tuple[Prepared, str] | None = None) -> tuple[Question, Prepared]:
    """Ask what the recipe says."""
    asked = ASKED | recipe.asked
    row_output = read_row_output(asked["output"])
    loaded = choose_among(row_output, load_ensemble(folder / FILE, output=None if row_output is not None else asked["output"]))
    return ask(
        loaded,
        row_output,
        recipe.method,
        asked["parameters"],
        asked["partition"],
        asked["interactions"],
        asked["combinations"],
        _read_background(recipe, folder),
        asked["background_errors"],
        asked["allow_unseen"],
        asked["space"],
        CPU,
        order=asked["order"],
        index=asked["index"],
        made=made,
    )


def refuse_drawn(output: Any, whose: str) -> None:
    """Refuse an output that is drawn by a row's number, which would depend on how others cut rows into batches."""
    if isinstance(output, str) and output.partition(":")[0] == OTHER:
        raise UsageError(f"output {output!r} is drawn by a row's number, which {whose} do not have; expected a name, a position or 'predicted'")


def prepare_once(model: Any, kind: str, background: Any, asked: Mapping[str, Any], whose: str) -> Explainer:
    """Prepare an explainer, unless the model is one already, which takes no other arguments."""
    if isinstance(model, Explainer):
        if asked or background is not None or kind != DEFAULT:
            raise UsageError("the explainer was prepared before, expected no other arguments")
        return model
    refuse_drawn(asked.get("output"), whose)
    return prepare(model, kind, background=background, **asked)


def _as_json(asked: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(asked.keys() - ASKED.keys())
    if unknown:
        raise UsageError(f"{unknown[0]} is no argument here, expected one of {', '.join(ASKED)}")
    kept = {name: value for name, value in asked.items() if value != ASKED[name]}
    refuse_drawn(kept.get("output"), "served rows")
    for name, value in kept.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise UsageError(f"{name} is {shorten(value)}, expected what JSON can hold: names, numbers, lists and dicts of them") from None
    return kept


def write_explainer(
    folder: Path, model: Any, method: str, background: Any, ids: Any, top: int | None, reasons: Any, asked: Mapping[str, Any]
) -> Served:
    """Write an explainer into an empty local folder, and open it; ``asked`` are other arguments of `prepare`."""
    if top is not None and reasons is not None:
        raise UsageError("top and reasons are two answers, expected one of them")
    kept, loaded = _as_json(asked), load_ensemble(model)
    if isinstance(kept.get("partition"), str | PathLike):
        kept["partition"] = json.loads(Path(kept["partition"]).read_text("utf-8"))
    _write_model(model, loaded, folder / FILE)
    name = _write_background(background, loaded, folder)
    recipe = Recipe(
        format_version=FORMAT,
        leafledger=version("leafledger"),
        kernels=digest_sources(),
        model=_digest(folder / FILE),
        library=loaded.library,
        digest=loaded.digest,
        method=method,
        asked=kept,
        game="",
        tables="",
        background=cast("Any", name),
        background_digest=_digest(folder / name) if name in (ROWS, MATRIX) else None,
        ids=read_names("ids", ids),
        top=None if top is None else read_number("top", top, 1),
        reasons=None if reasons is None else load_settings(reasons, "reasons")[0],
    )
    question, prepared = _make(recipe, folder)
    tables = broadcast_tables(prepared, str(folder / TABLES)).rpartition("/")[2]
    recipe = replace(recipe, game=question.game, tables=tables)
    (folder / RECIPE).write_text(as_text(recipe))
    return open_explainer(folder)


def open_explainer(folder: Path) -> Served:
    """Open an explainer: its tables are mapped where this version of Leafledger wrote them, and made again elsewhere."""
    path = folder / RECIPE
    try:
        recipe = read_record(Recipe, path.read_bytes())
    except FileNotFoundError as error:
        raise InvalidModel(f"{folder}: has no {RECIPE}, expected an explainer that leafledger.mlflow logged") from error
    except ValueError as error:
        raise InvalidModel(f"{path}: {error}") from error
    if recipe.format_version != FORMAT:
        raise OtherVersion(f"{path}: format {recipe.format_version}, made by leafledger {recipe.leafledger}, expected {FORMAT}; log it again")
    for name, digest in ((FILE, recipe.model), (recipe.background, recipe.background_digest)):
        if digest is not None and name is not None and (found := _digest(folder / name)) != digest:
            raise InvalidModel(f"{folder / name}: was changed after the explainer was logged: its SHA-256 is {found[:16]}…, expected {digest[:16]}…")
    ours = (recipe.leafledger, recipe.kernels) == (version("leafledger"), digest_sources())
    uri = str(folder / TABLES / Path(recipe.tables).name) if ours else None
    try:
        question, prepared = _make(recipe, folder, None if uri is None else (open_tables(uri), recipe.game))
    except InvalidRun as error:
        raise InvalidModel(f"{uri}: were changed after the explainer was logged") from error
    told = None if recipe.reasons is None else check_told(recipe.reasons, question, prepared)
    return Served(recipe, question, prepared, Explainer(question, prepared, uri), told)


def answer(served: Served, rows: Any) -> pa.Table:
    """Explain rows as a recipe says, a row for every row: in a run's columns, or with the largest attributions, or reasons, in columns."""
    given = rows.reset_index(drop=True) if hasattr(rows, "reset_index") else rows
    found, recipe = served.explainer(given), served.recipe
    whole = found.to_arrow(recipe.ids)
    if served.told is not None:
        table = pa.Table.from_pandas(given, preserve_index=False) if hasattr(given, "iloc") else given
        columns = tell(found, served.told, served.question, served.prepared, table)
    elif recipe.top is not None:
        columns = list_top(found, recipe.top)
    else:
        return whole
    n_first = len(recipe.ids) + (found.output is not None) + 1  # ids, the row's output, and the total
    return pa.table(dict(zip(whole.column_names[:n_first], whole.columns, strict=False)) | columns)


def list_top(found: Attributions, k: int) -> dict[str, pa.Array]:
    """Lay the largest attributions out, a row for every row; null where fewer are not 0."""
    if len(found.outputs) > 1:
        raise UsageError(f"top is of one output, but the model has {list_some(found.outputs)}; give output, such as output='predicted'")
    columns, most = dict[str, pa.Array](), min(k, len(found.names))
    largest = found.top(most)
    for rank in range(1, most + 1):
        of_rank = largest[largest["rank"] == rank]
        told = [*zip(of_rank["feature"], of_rank["phi"], (None if value is None else str(value) for value in of_rank["value"]), strict=True)]
        places = np.full(len(found), len(told))
        places[of_rank.index] = np.arange(len(told))
        for name, values, kind in zip(("feature", "phi", "value"), zip(*told, strict=True) if told else ((), (), ()), TOLD, strict=True):
            columns[f"{name}_{rank}"] = pa.array([*values, None], kind).take(pa.array(places))
    return columns
