"""Attributions of rows in memory, on all cores of this machine."""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.batch import attribute_batch
from kernels.buffers import Buffers, Prepared, make_buffers
from kernels.method import BackgroundQuery, BackgroundStatistics, Method
from kernels.prepare import measure_background, merge_statistics
from kernels.summaries import INTERACTIONS, Subject

from ..dataset import schema
from ..dataset.labels import COUNT, check_values, lay_out
from ..dataset.partition import Groups, Partition, read_groups
from ..errors import SchemaMismatch, UsageError
from ..models import load_ensemble
from ..models.model import Feature, Model
from ..runs.item import check_rows, fill_values
from ..runs.job import MODEL, check_parameters, count_cores, find_method, labelled_methods, table_budget
from ..runs.plan import max_slice_rows
from ..runs.prepare import ask_model, pair_names, player_names, prepare_model, weigh_model
from ..runs.summaries import read_totals, tabulate

SLICE_ROWS = 1 << 13
NUMBERS = tuple("biuf")  # kinds of NumPy's types
Targets = tuple[np.ndarray, np.ndarray]  # labels and weights, (n,) float64 each


@dataclass(frozen=True, slots=True)
class Attributions:
    """What each player, a feature or a group of them, contributed to each row's margin; with labels, took off its squared error.

    phi : (n, outputs, players) float64, margin units; base : (outputs,) float64, margin with every feature absent; margin : (n, outputs)
    float64, raw score. Where the method is additive, ``phi.sum(axis=2) + base`` is ``margin``. players : their names. interactions : (n, outputs,
    pairs) float64, and pairs : names of the two players of each, where they were asked for; two players that are no pair do not interact. r2 : how
    R^2 is shared, with labels; then phi is NaN where a label is missing. path : (n, outputs, steps) float64, what method "ranker" made larger,
    at each of its steps.
    """

    phi: np.ndarray
    base: np.ndarray
    margin: np.ndarray
    players: tuple[str, ...]
    interactions: np.ndarray | None = None
    pairs: tuple[tuple[str, str], ...] | None = None
    path: np.ndarray | None = None
    summaries: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def totals(self) -> dict[str, Any]:
        """What summaries say once of all rows, by their names: of ``r2`` R^2 itself, its standard error and the remainder."""
        return read_totals(self.summaries)


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
    """The used columns of rows in Arrow, and how to read all: a data frame's hold categories, a matrix's, in the model's order, their codes."""
    names = [model.features[column].name for column in used]
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2 or rows.shape[1] != len(model.features):
            raise SchemaMismatch(f"rows have shape {rows.shape}, the model was trained on {len(model.features)} features")
        coded = tuple(Feature(feature.name, feature.categorical) for feature in model.features)
        return coded, _record_batch([pa.array(rows[:, column].astype(np.float64)) for column in used], names, len(rows))
    features, rows = _narrow(model.features, rows, used)
    try:
        table = pa.table(rows)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise SchemaMismatch(f"rows are a {type(rows).__name__} that Arrow cannot read: {' '.join(str(error).split())}") from error
    schema.check_columns(features, (), table.schema, (), "rows")
    columns = [table.column(name).combine_chunks() for name in names]
    return model.features, _record_batch(columns, names, table.num_rows)


def _record_batch(columns: list[pa.Array], names: list[str], n_rows: int) -> pa.RecordBatch:
    """Columns as a batch, which has its rows even where it has no columns."""
    if not columns:
        columns, names = [pa.nulls(n_rows)], [""]
    return pa.record_batch(columns, names=names)


def _attribute_slice(
    features, method: Method, prepared: Prepared, batch: pa.RecordBatch, first: int, out: Attributions, targets: Targets | None
) -> Buffers:
    """Fill the rows from ``first`` on; what they were worked on in."""
    n = batch.num_rows
    buffers = make_buffers(prepared, n)
    fill_values(features, prepared, batch, buffers)
    if targets is not None:
        buffers = buffers._replace(labels=lay_out(*(values[first : first + n] for values in targets)))
    attribute_batch(method, prepared, buffers)
    check_rows(method, prepared, buffers, n, "", first)
    out.phi[first : first + n, :, prepared.players] = buffers.phi[:, :, :n].transpose(2, 0, 1)
    if targets is not None:
        out.phi[first : first + n][buffers.labels.missing[:n]] = np.nan
    out.margin[first : first + n] = buffers.margin[:, :n].T
    if out.interactions is not None:
        out.interactions[first : first + n] = buffers.pairs[:, :, :n].transpose(2, 0, 1)
    if out.path is not None:
        out.path[first : first + n] = buffers.path[:, :, :n].transpose(2, 0, 1)
    return buffers


def _count(query: BackgroundQuery, features, batch: pa.RecordBatch) -> BackgroundStatistics:
    """Rows of a background counted, a slice at a time."""
    columns = query.bins.column.tolist()

    def work(first):
        part = batch.slice(first, SLICE_ROWS)
        values = [schema.column_values(features[column], part.column(i)) for i, column in enumerate(columns)]
        return measure_background(query, np.array(values, np.float64).reshape(len(columns), part.num_rows))

    with ThreadPoolExecutor(count_cores()) as threads:
        return merge_statistics(list(threads.map(work, range(0, batch.num_rows, SLICE_ROWS))))


def _prepare(model: Model, method: Method, parameters, groups: Groups, interactions: bool, background: Any) -> Prepared:
    """The tables of the game that the background chooses."""
    if background is None:
        return prepare_model(model, method, parameters, groups, interactions)
    if isinstance(background, str):
        if background != MODEL:
            raise UsageError(f"background is {background!r}, expected rows or {MODEL!r}")
        query = ask_model(model, method, groups, None, table_budget(), interactions)
        counted: BackgroundStatistics = weigh_model(model, method, groups, query)
    else:
        features, batch = as_batch(model, background, np.unique(model.ensemble.feature[model.ensemble.feature >= 0]).tolist())
        if not batch.num_rows:
            raise UsageError("the background has no rows, expected at least one")
        query = ask_model(model, method, groups, batch.num_rows, table_budget(), interactions)
        counted = _count(query, features, batch)
    return prepare_model(model, method, parameters, groups, interactions, (query, counted))


def _read_targets(method: Method, labels: Any, weights: Any, n_rows: int) -> Targets | None:
    """Labels and weights of the rows, for a method that takes them."""
    if not method.labelled:
        if labels is not None or weights is not None:
            raise UsageError(f"method {method.name!r} takes no labels and weights; method {labelled_methods()} does")
        return None
    if labels is None:
        raise UsageError(f"method {method.name!r} needs labels")
    found = []
    for name, given in (("labels", labels), ("row weights", np.ones(n_rows) if weights is None else weights)):
        try:
            found.append(np.asarray(given, np.float64))
        except (TypeError, ValueError):
            raise UsageError(f"{name} are no numbers") from None
        if found[-1].shape != (n_rows,):
            raise UsageError(f"{name} have shape {found[-1].shape}, expected one number for each of {n_rows} rows")
    label, weight = found
    check_values(label, weight, COUNT, "rows", 0, ("the label", "the weight"))
    return label, weight


def attribute(
    ensemble: Model | Any,
    rows: Any,
    method: str = "shapley",
    *,
    partition: Partition | None = None,
    interactions: bool = False,
    background: Any = None,
    labels: Any = None,
    row_weights: Any = None,
    **parameters: Any,
) -> Attributions:
    """Attribute every row's margin to the features, or to groups of them.

    Parameters
    ----------
    ensemble : a loaded model, or whatever ``load_ensemble`` takes
    rows : data frame or Arrow table with the features by name (categories as values), or an (n, features) matrix in the model's order (categories
        as codes); NaN or null where missing
    method : one of ``METHODS``
    partition : groups of features, group -> features, or the path or URI of such an object in JSON; a feature that it does not name is a group of
        its own. Values are the groups', with method "owen" the features' within their groups
    interactions : also those of every two players, by the method's game value
    background : rows, like ``rows``, whose values absent features take, averaged over all of them (the marginal game), or "model" for those behind
        the model's own leaf weights, where its trees are symmetric; None averages over a tree's own covers (the path-dependent game). With methods
        "gap" and "gap_greedy" rows that perturbations are measured on
    labels, row_weights : of every row what the model predicts, NaN where it is missing, and by default 1, how much the row counts; for method "r2"
    **parameters : the method's own

    Returns
    -------
    Attributions
    """
    model = load_ensemble(ensemble)
    chosen = find_method(method)
    groups = read_groups(partition, model.features)
    players = player_names(chosen, groups, model.features)
    prepared = _prepare(model, chosen, check_parameters(chosen, parameters), groups, bool(interactions), background)
    features, batch = as_batch(model, rows, prepared.bins.column.tolist())
    n, outputs, n_pairs, n_steps = batch.num_rows, prepared.base.size, len(prepared.pairs.players), int(prepared.n_steps[0])
    out = Attributions(
        phi=np.zeros((n, outputs, len(players))),
        base=prepared.base,
        margin=np.zeros((n, outputs)),
        players=players,
        interactions=np.zeros((n, outputs, n_pairs)) if interactions else None,
        pairs=pair_names(prepared, players) if interactions else None,
        path=np.zeros((n, outputs, n_steps)) if n_steps else None,
    )
    summaries = chosen.summaries + ((INTERACTIONS,) if interactions else ())
    targets = _read_targets(chosen, labels, row_weights, n)
    slice_rows = min(SLICE_ROWS, max_slice_rows(outputs * (prepared.players.size + n_pairs + n_steps)))

    def work(first):
        buffers = _attribute_slice(features, chosen, prepared, batch.slice(first, slice_rows), first, out, targets)
        return [summary.update(summary.init(buffers), buffers, min(slice_rows, n - first)) for summary in summaries]

    with ThreadPoolExecutor(count_cores()) as threads:
        states = list(threads.map(work, range(0, n, slice_rows)))
    subject = Subject(model.outputs, players, prepared.players.astype(np.int64), prepared.pairs.players, n_steps)
    for k, summary in enumerate(summaries):
        out.summaries.update(tabulate(summary, (state[k] for state in states), subject))
    return out
