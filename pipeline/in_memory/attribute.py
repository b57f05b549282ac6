"""Attributions of rows in memory, on all cores of this machine."""

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.batch import attribute_batch
from kernels.buffers import Buffers, Prepared, make_buffers
from kernels.inputs import INPUTS
from kernels.lots import BACKGROUND_ERRORS, find_errors
from kernels.method import BackgroundQuery, BackgroundStatistics, Method
from kernels.prepare import measure_background, merge_statistics
from kernels.row_outputs import keep_outputs, take_outputs
from kernels.summaries import INTERACTIONS, Subject
from kernels.trees.binning import read_columns

from ..dataset import schema
from ..dataset.labels import COUNT, check_values, lay_out
from ..dataset.partition import Groups, Partition, read_groups
from ..dataset.players import combination_names
from ..dataset.values import read_features
from ..errors import SchemaMismatch, UsageError
from ..models import load_ensemble
from ..models.model import Feature, Model
from ..models.row_output import choose_among, read_row_output
from ..runs.arguments import read_choice, read_flag, read_interactions, read_parameters, read_partition, read_text, refuse
from ..runs.inputs import refuse_unseen
from ..runs.interactions import count_kept, keep_largest
from ..runs.item import check_rows, enter_space
from ..runs.job import MODEL, check_parameters, count_cores, find_method, labelled_methods, table_budget
from ..runs.options import COMBINATIONS, MARGIN, OWN, SHARED, SPACES, Space
from ..runs.plan import max_slice_rows
from ..runs.prepare import ask_model, pair_names, player_names, prepare_model, weigh_model
from ..runs.space import choose_link, find_base
from ..runs.summaries import tabulate
from ..runs.tuning import tune
from .attributions import Attributions
from .rows import as_rows, code_categories, fill_columns, spell_features

SLICE_ROWS = 1 << 13
NUMBERS = tuple("biuf")  # kinds of NumPy's types
Targets = tuple[np.ndarray, np.ndarray]  # labels and weights, (n,) float64 each


def _narrow(features: tuple[Feature, ...], rows: Any, used: Sequence[int]) -> tuple[tuple[Feature, ...], Any]:
    """A pandas frame without what no split asks for, unless its type has to be looked at, since Arrow converts a frame column by column.

    Other rows, and frames that will be refused, are left as they are.
    """
    pandas = sys.modules.get("pandas")  # not imported for rows that are none of its frames
    if pandas is None or not isinstance(rows, pandas.DataFrame) or not rows.columns.is_unique:
        return features, rows
    kinds = {name: dtype.kind for name, dtype in rows.dtypes.items() if isinstance(dtype, np.dtype)}
    asked = set(used)
    left = tuple(feature for j, feature in enumerate(features) if j in asked or feature.categorical or kinds.get(feature.name, "") not in NUMBERS)
    names = [feature.name for feature in left]
    return (left, rows[names]) if rows.columns.isin(names).sum() == len(names) else (features, rows)


def as_batch(model: Model, rows: Any, used: Sequence[int]) -> tuple[tuple[Feature, ...], pa.RecordBatch]:
    """Take the used columns of rows into Arrow.

    Parameters
    ----------
    model : Model
    rows : data frame, Arrow table, array, or pandas Series
        Columns by name, categories as values; a Series is one row of such a frame; or an (n, features) matrix in the model's order, categories as
        codes. NaN or null where missing.
    used : sequence of int
        Positions of the features that some split asks for.

    Returns
    -------
    features : tuple of Feature
        How to read the columns, by position: of a data frame as the model has them, of a matrix, and of categories of several types, without
        categories.
    batch : pa.RecordBatch
        The used columns, in the order of ``used``; one column of nulls where none is used, so that rows are counted.

    Raises
    ------
    SchemaMismatch
        Rows are of another shape, hold no numbers, are nothing that Arrow can read, or lack a feature or have it with a type that does not fit.
    """
    names = [model.features[column].name for column in used]
    rows = as_rows(rows)
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2 or rows.shape[1] != len(model.features):
            raise SchemaMismatch(f"rows have shape {rows.shape}, the model was trained on {len(model.features)} features")
        looked_up = next((model.features[column].name for column in used if model.features[column].hashed), None)
        if looked_up is not None:
            raise SchemaMismatch(f"rows are an array of numbers, but feature {looked_up!r} is looked up by its categories; give a data frame")
        coded = tuple(replace(feature, categories=None) for feature in model.features)
        columns = [pa.array(rows[:, column].astype(np.float64)) for column in used]
        return coded, _record_batch(columns, names, len(rows))
    known, rows = code_categories(model.features, rows)
    schema.check_categories((known[column] for column in used), "rows")
    features, rows = _narrow(known, rows, used)
    try:
        table = pa.table(rows)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise SchemaMismatch(f"rows are a {type(rows).__name__} that Arrow cannot read: {' '.join(str(error).split())}") from error
    schema.check_columns(features, (), table.schema, (), "rows")
    columns = [table.column(name).combine_chunks() for name in names]
    return known, _record_batch(columns, names, table.num_rows)


def _record_batch(columns: list[pa.Array], names: list[str], n_rows: int) -> pa.RecordBatch:
    """Columns as a batch, which has its rows even where it has no columns."""
    if not columns:
        columns, names = [pa.nulls(n_rows)], [""]
    return pa.record_batch(columns, names=names)


def _attribute_slice(
    features: Sequence[Feature], method: Method, prepared: Prepared, batch: pa.RecordBatch, first: int, targets: Targets | None
) -> Buffers:
    """Work on rows, the first of which is number ``first``."""
    n = batch.num_rows
    buffers = make_buffers(prepared, n)
    fill_columns(features, prepared.bins, batch, buffers.values)
    if targets is not None:
        buffers = buffers._replace(labels=lay_out(*(values[first : first + n] for values in targets)))
    attribute_batch(method, prepared, buffers)
    return buffers


def _fill(out: Attributions, prepared: Prepared, buffers: Buffers, margin: np.ndarray, first: int, n: int) -> None:
    """Write what was found of n rows, from number ``first`` on, in the space that buffers are in."""
    some = slice(first, first + n)
    out.phi[some, :, prepared.players] = buffers.phi[:, :, :n].transpose(2, 0, 1)
    out.phi[some][buffers.labels.missing[:n]] = np.nan
    out.margin[some], out.prediction[some] = margin[:, :n].T, buffers.margin[:, :n].T
    if out.interactions is not None:
        out.interactions[some] = buffers.pairs[:, :, :n].transpose(2, 0, 1)
    if out.errors is not None:
        out.errors[some, :, prepared.players] = find_errors(buffers)[:, :, :n].transpose(2, 0, 1)
    if out.path is not None:
        out.path[some] = buffers.path[:, :, :n].transpose(2, 0, 1)


def _count(query: BackgroundQuery, features: Sequence[Feature], batch: pa.RecordBatch) -> BackgroundStatistics:
    """Rows of a background counted, a slice at a time."""

    def work(first: int) -> BackgroundStatistics:
        part = batch.slice(first, SLICE_ROWS)
        values = np.zeros((query.bins.column.size, part.num_rows))
        fill_columns(features, query.bins, part, values)
        return measure_background(query, values, first)

    with ThreadPoolExecutor(count_cores()) as threads:
        return merge_statistics(list(threads.map(work, range(0, batch.num_rows, SLICE_ROWS))))


def _prepare(
    model: Model, method: Method, parameters: Mapping[str, Any], groups: Groups, interactions: bool, own: bool, background: Any, errors: bool
) -> Prepared:
    """The tables of the game that the background chooses."""
    if errors and (background is None or isinstance(background, str)):
        raise UsageError("background_errors are of a background of rows as a sample, but none was given")
    if background is None:
        return prepare_model(model, method, parameters, groups, interactions, own)
    if isinstance(background, str):
        if background != MODEL:
            raise UsageError(f"background is {background!r}, expected rows or {MODEL!r}; explain reads them from a data set")
        query = ask_model(model, method, groups, None, table_budget(), interactions)
        counted: BackgroundStatistics = weigh_model(model, method, groups, query)
    else:
        features, batch = as_batch(spell_features(model, background), background, read_columns(model.ensemble).tolist())
        if not batch.num_rows:
            raise UsageError("the background has no rows, expected at least one")
        query = ask_model(model, method, groups, batch.num_rows, table_budget(), interactions, errors)
        counted = _count(query, features, batch)
    return prepare_model(model, method, parameters, groups, interactions, own, (query, counted))


def _read_column(name: str, given: Any, rows: Any, n_rows: int) -> np.ndarray:
    """A number for every row, ``(n,) float64``: as given, or those of the column of the rows that is called so; NaN where missing."""
    if isinstance(given, str):
        rows = as_rows(rows)
        arrow = isinstance(rows, pa.Table | pa.RecordBatch)
        there = rows.schema.names if arrow else rows if isinstance(rows, Mapping) else getattr(rows, "columns", ())
        if given not in there:
            raise UsageError(f"{name} is {given!r}, which is no column of the rows")
        return schema.column_values(Feature(given), pa.table({given: rows[given]}).column(0).combine_chunks())
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise refuse(name, given, "numbers, or the name of a column") from None
    if found.shape != (n_rows,):
        raise UsageError(f"{name} has shape {found.shape}, expected one number for each of {n_rows} rows")
    return found


def _read_targets(method: Method, label: Any, weight: Any, rows: Any, n_rows: int) -> Targets | None:
    """Labels and weights of the rows, for a method that takes them."""
    if not method.labelled:
        if label is not None or weight is not None:
            raise UsageError(f"method {method.name!r} takes no labels and weights; method {labelled_methods()} does")
        return None
    if label is None:
        raise UsageError(f"method {method.name!r} needs labels")
    labels, weights = _read_column("label", label, rows, n_rows), np.ones(n_rows)
    if weight is not None:
        weights = _read_column("weight", weight, rows, n_rows)
    check_values(labels, weights, COUNT, "rows", 0, ("the label", "the weight"))
    return labels, weights


def attribute(
    model: Model | Any,
    rows: Any,
    method: str = "shapley",
    *,
    parameters: Mapping[str, Any] | None = None,
    partition: Partition | None = None,
    interactions: int | str | None = None,
    combinations: str = SHARED,
    background: Any = None,
    background_errors: bool = False,
    label: Any = None,
    weight: Any = None,
    allow_unseen: bool = False,
    output: str | int | None = None,
    space: Space = MARGIN,
) -> Attributions:
    """Attribute every row's margin, or prediction, to the features, or to groups of them.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        Features by name, or in their order where the model has no names, categories as values; or an (n, features) matrix, categories as codes. NaN
        or null where missing.
    method : str
        One of `METHODS`.
    parameters : mapping, optional
        Parameters of the method by name, such as ``{"p": 0.3}``.
    partition : mapping, str or path, optional
        Groups of features, group -> features by name or position, or a JSON file of such an object; others are groups of their own. Values are the
        groups', with methods "owen" and "two_step" the features' within their groups.
    interactions : int or "all", optional
        Also the interactions of every two features or groups: of how many pairs of a row and output, the largest by magnitude, or of all; those of
        the other pairs are 0.
    combinations : "shared" or "own"
        What several features do together through one number, as CatBoost's target statistics of combinations: shared equally among them, or players
        of their own, called as ``city×job``.
    background : data frame, Arrow table, array or "model", optional
        Rows, like `rows`, whose values absent features take, averaged over all of them (the marginal game), or "model" for those behind the model's
        own leaf weights, where its trees are symmetric. By default features are averaged over the trees' own covers (the path-dependent game).
        Methods "gap" and "gap_greedy" measure perturbations on them.
    background_errors : bool
        How sure are values, if the background is a sample of the rows that it stands for? Also estimate standard errors, which takes about twenty
        times as long.
    label : array or str, optional
        What the model predicts, (n,) numbers, NaN where it is missing, or the name of a column of the rows; for method "r2".
    weight : array or str, optional
        How much each row counts, (n,) numbers of at least 0, or the name of a column of the rows; by default 1.
    allow_unseen : bool
        Take rows of which the model knows hardly any category of some feature; by default they are refused.
    output : str or int, optional
        The only output to explain, by its name or position; by default all. Or "predicted", the class of every row's largest margin, or "other",
        another one, drawn with the seed behind a colon, as in "other:7".
    space : "margin", "probability" or "response"
        What to attribute: margins, classes' probabilities, or predictions in the label's units, along the straight line of margins from base value to
        row.

    Returns
    -------
    Attributions

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    row_output = read_row_output(output)
    part = choose_among(row_output, load_ensemble(model, output=None if row_output is not None else output))
    loaded, chosen = spell_features(part, rows, label, weight), find_method(read_text("method", method))
    given = check_parameters(chosen, read_parameters("parameters", parameters))
    keep = None if interactions is None else read_interactions("interactions", interactions)
    groups = read_groups(None if partition is None else read_partition("partition", partition), loaded.features)
    own = read_choice("combinations", combinations, COMBINATIONS) == OWN
    read_choice("space", space, SPACES)
    link = choose_link(space, loaded, chosen, given, keep is not None)
    players = player_names(chosen, groups, loaded.features, combination_names(loaded, groups) if own else ())

    def read(tables: Prepared, n_rows: int) -> tuple[Buffers, int]:
        features, batch = as_batch(loaded, rows, tables.bins.read.tolist())
        first = batch.slice(0, n_rows)
        buffers = make_buffers(tables, n_rows)
        fill_columns(features, tables.bins, first, buffers.values)
        return buffers, first.num_rows

    given = tune(chosen, given, lambda tried, some: _prepare(loaded, tried, some, groups, False, own, background, False), read)
    prepared = _prepare(loaded, chosen, given, groups, keep is not None, own, background, read_flag("background_errors", background_errors))
    features, batch = as_batch(loaded, rows, prepared.bins.read.tolist())
    n, n_pairs, n_steps, n_lots = batch.num_rows, len(prepared.pairs.players), int(prepared.n_steps[0]), len(prepared.without.tables)
    named = loaded.outputs if row_output is None else (row_output.which,)
    outputs, classes = len(named), np.array(loaded.outputs)
    margin, base = np.zeros((n, outputs)), find_base(link, prepared)
    out = Attributions(
        phi=np.zeros((n, outputs, len(players))),
        base=base if row_output is None else np.zeros((n, 1)),
        margin=margin,
        prediction=margin if link is None else np.zeros((n, outputs)),
        players=players,
        method=chosen.name,
        groups=groups,
        interactions=None if keep is None else np.zeros((n, outputs, n_pairs)),
        pairs=None if keep is None else pair_names(prepared, players),
        path=np.zeros((n, outputs, n_steps)) if n_steps else None,
        outputs=named,
        output=None if row_output is None else np.zeros(n, classes.dtype),
        errors=np.zeros((n, outputs, len(players))) if n_lots else None,
        space=space,
        features=tuple(feature.name for feature in loaded.features),
        rows=as_rows(rows),
        parameters=given,
    )
    summaries = (*chosen.summaries, *((INTERACTIONS,) if keep else ()), *((BACKGROUND_ERRORS,) if n_lots else ()), INPUTS)
    used = tuple(feature.name for feature in read_features(loaded.features, prepared.bins))
    targets = _read_targets(chosen, label, weight, rows, n)
    slice_rows = min(SLICE_ROWS, max_slice_rows(prepared.base.size * (prepared.players.size * (1 + 2 * n_lots) + n_pairs + n_steps)))

    def work(first: int) -> list[Any]:
        buffers, size = _attribute_slice(features, chosen, prepared, batch.slice(first, slice_rows), first, targets), min(slice_rows, n - first)
        check_rows(chosen.check_of(given), prepared, buffers, size, "", first)
        margin = buffers.margin
        buffers, _ = enter_space(link, prepared, buffers, size, "", first)
        if row_output is not None and out.output is not None:
            found = row_output.choose(margin, first)
            out.output[first : first + size], out.base[first : first + size, 0] = classes[found[:size]], base[found[:size]]
            buffers, margin = keep_outputs(buffers, found), take_outputs(margin, found)
        _fill(out, prepared, buffers, margin, first, size)
        return [summary.update(summary.init(buffers), buffers, size) for summary in summaries]

    with ThreadPoolExecutor(count_cores()) as threads:
        states = list(threads.map(work, range(0, n, slice_rows)))
    subject = Subject(named, players, prepared.players.astype(np.int64), prepared.pairs.players, n_steps, inputs=used)
    for k, summary in enumerate(summaries):
        out.summaries.update(tabulate(summary, (state[k] for state in states), subject))
    refuse_unseen(out.summaries, read_flag("allow_unseen", allow_unseen))
    if out.interactions is not None:
        keep_largest(out.interactions, count_kept(n_pairs, keep))
    return out
