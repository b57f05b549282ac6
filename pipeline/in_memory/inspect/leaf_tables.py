"""Leaf tables of symmetric trees: attributions at every leaf, against the model's own leaf weights or rows of a background.

A row's attributions are the sums over trees at the leaves that it reaches (Filom et al. 2024, Algorithm 3.12).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.marginal.background import check_weights
from leafledger.kernels.marginal.leaves import Probes, find_leaves, number_leaves, probe, reach_leaves
from leafledger.kernels.method.method import BackgroundQuery, BackgroundStatistics, Method
from leafledger.kernels.prepare import ask_background, measure_background, prepare, weigh_leaves
from leafledger.kernels.semivalues.methods import METHODS
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.kernels.trees.binning import BinTables, padded
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.kernels.trees.forest import Forest, make_forest
from leafledger.kernels.trees.margin import add_margins, prepare_margin
from leafledger.kernels.trees.paths import empty_coalition
from leafledger.kernels.trees.statistics import NO_STATISTICS

from ...arguments.choices import MODEL
from ...arguments.readers import read_flag, read_parameters, read_partition, read_text, shorten
from ...cluster.resources import table_budget
from ...dataset.columns.partition import Partition, read_groups
from ...dataset.columns.players import Players, combination_names, number_players
from ...dataset.columns.row_places import RowPlaces
from ...errors import UnsupportedModel, UsageError
from ...methods.parameters import check_parameters, number_groups
from ...methods.slice_step import check_rows
from ...methods.tables import check_groups, check_method, player_names, refuse_statistics, refused
from ...models import load_ensemble
from ...models.model import Model
from ...models.selection import keep_trees
from ...stores import commit, storage
from ...stores.uris import normalise
from ..rows.arrow_batches import as_batch
from ..rows.given_rows import BACKGROUND, bin_batch, refuse_unknown, spell_features

SCHEMA = pa.schema(
    [
        ("tree", pa.int32()),
        ("leaf", pa.int32()),
        ("output", pa.string()),
        ("feature", pa.string()),
        ("phi", pa.float64()),
        ("value", pa.float64()),
        ("weight", pa.float64()),
    ]
)
KEY = b"leafledger"  # metadata key
GROUP_ROWS = 1 << 17  # rows of a file's row group
OnTree = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A model and a method. Statistics are plain numbers here: leaves determine their comparisons without look-ups."""

    model: Model
    method: Method
    parameters: dict[str, Any]
    players: Players
    names: tuple[str, ...]
    forest: Forest
    probes: Probes
    number: np.ndarray  # (nodes,) int64, numbers of leaves
    seen: Probes | None  # rows of the background, ``(used, n)``; None for the model's own leaf weights
    base: np.ndarray  # (outputs,) float64, margin units


@contextmanager
def _symmetric() -> Iterator[None]:
    """Name the tree that is not symmetric, or has no weights."""
    try:
        yield
    except InvalidParameters as error:
        raise UnsupportedModel(f"look-up tables are there for symmetric trees with leaf weights: {error}") from None


def _read_background(model: Model, bins: BinTables, background: Any, allow_unseen: bool) -> Probes:
    """Read the rows of a background."""
    refuse_statistics(model, "a background of leaf tables")
    known = spell_features(model, background, where=BACKGROUND)
    features, batch = as_batch(known, background, bins.read.tolist(), BACKGROUND)
    if not batch.num_rows:
        raise UsageError("the background has no rows, expected at least one")
    refuse_unknown(features, bins, batch, BACKGROUND, allow_unseen)
    return Probes(*(each[:, : batch.num_rows] for each in bin_batch(features, bins, batch)))


def _mean_margin(forest: Forest, seen: Probes) -> np.ndarray:
    """Return the mean margin of a background, ``(outputs,) float64``."""
    n = seen.bins.shape[1]
    bins = np.zeros((seen.bins.shape[0], padded(n)), seen.bins.dtype)
    bins[:, :n] = seen.bins
    margin = np.zeros((forest.ensemble.base.size, bins.shape[1]))
    add_margins(bins, prepare_margin(forest.ensemble, forest.splits, forest.trace, forest.comparisons), margin)
    return margin[:, :n].mean(axis=1)


def _ask(
    model: Any, method: str, parameters: Mapping[str, Any] | None, partition: Partition | None, background: Any = MODEL, allow_unseen: bool = False
) -> _Asked:
    loaded, known, name = load_ensemble(model), {each.name: each for each in METHODS}, read_text("method", method)
    if name not in known:
        raise UsageError(f"method is {shorten(name)}, look-up tables of leaves are there for {', '.join(known)}: others are no sums over trees")
    chosen = known[name]
    groups = read_groups(None if partition is None else read_partition("partition", partition), loaded.features)
    check_method(loaded, chosen)
    check_groups(chosen, groups)
    names = player_names(chosen, groups, loaded.features, combination_names(loaded, groups))
    players = number_players(loaded, groups)
    bins, forest = make_forest(loaded.ensemble._replace(statistics=NO_STATISTICS), players.numbers)
    with _symmetric():
        check_weights(forest)
    given, seen = number_groups(chosen, check_parameters(chosen, read_parameters("parameters", parameters)), groups), None
    if not isinstance(background, str):
        seen = _read_background(loaded, bins, background, read_flag("allow_unseen", allow_unseen))
    elif background != MODEL:
        raise UsageError(f"background is {background!r}, expected rows or {MODEL!r}")
    base = empty_coalition(forest.stored, forest.trace) if seen is None else _mean_margin(forest, seen)
    return _Asked(loaded, chosen, given, players, names, forest, probe(bins), number_leaves(forest), seen, base)


def _weigh(asked: _Asked, number: int, tree: TreeEnsemble) -> tuple[tuple[BackgroundQuery, BackgroundStatistics], np.ndarray]:
    """Return what is known of the background on one tree, and the weight of every node that is a leaf."""
    numbers, seen = asked.players.numbers, asked.seen
    n_rows = None if seen is None else seen.bins.shape[1]
    query = ask_background(tree, asked.method, numbers, n_rows=n_rows, budget=table_budget())
    if seen is None:
        return (query, weigh_leaves(tree, asked.method, numbers, query)), asked.forest.stored.cover
    statistics = measure_background(query, seen.values[np.searchsorted(asked.forest.column, query.bins.column)])
    return (query, statistics), np.bincount(find_leaves(asked.forest, seen.bins, number), minlength=asked.forest.stored.feature.size)


def _tabulate(asked: _Asked, number: int) -> pa.RecordBatch:
    """Tabulate one tree."""
    stored, numbers = asked.forest.stored, asked.players.numbers
    with _symmetric():
        reached = reach_leaves(asked.forest, asked.probes, number)
    tree, n = keep_trees(stored, np.array([number])), reached.leaf.size
    with refused():
        background, weight = _weigh(asked, number, tree)
        prepared = prepare(tree, asked.method, asked.parameters, numbers, background=background, shared=asked.players.combinations)
    buffers = make_buffers(prepared, n)
    buffers.values[:, :n] = reached.values[np.searchsorted(asked.forest.column, prepared.bins.column)]
    attribute_batch(asked.method, prepared, buffers)
    check_rows(asked.method.check_of(asked.parameters), prepared, buffers, n, RowPlaces.one(f"tree {number}", 0))
    outputs = stored.output[number] + np.arange(stored.value.shape[1])
    shape = (n, outputs.size, prepared.players.size)

    def column(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values, shape).reshape(-1)

    return pa.record_batch(
        [
            pa.array(np.full(prod(shape), number, np.int32)),
            pa.array(column(asked.number[reached.leaf][:, None, None]).astype(np.int32)),
            pa.array(asked.model.outputs, pa.string()).take(pa.array(column(outputs[:, None]))),
            pa.array(asked.names, pa.string()).take(pa.array(column(prepared.players))),
            pa.array(buffers.phi[outputs][:, :, :n].transpose(2, 0, 1).reshape(-1)),
            pa.array(column(stored.value[reached.leaf][:, :, None])),
            pa.array(column(weight[reached.leaf][:, None, None].astype(np.float64))),
        ],
        schema=SCHEMA,
    )


def _each_tree(asked: _Asked, progress: OnTree | None) -> Iterator[pa.RecordBatch]:
    """Yield the tables of all trees with splits; others contribute nothing."""
    roots = asked.forest.stored.root
    for number, root in enumerate(roots.tolist()):
        if asked.forest.stored.feature[root] >= 0:
            yield _tabulate(asked, number)
        if progress is not None:
            progress(number + 1, roots.size)


def _metadata(asked: _Asked) -> dict[bytes, str]:
    """Return what readers need beside the tables."""
    said = {
        "library": asked.model.library,
        "model": asked.model.digest,
        "method": asked.method.name,
        "parameters": asked.parameters,
        "base": asked.base.tolist(),
    }
    return {KEY: json.dumps(said, default=repr)}


def leaf_tables(
    model: Model | str | PathLike | Any,
    method: str = "shapley",
    *,
    parameters: Mapping[str, Any] | None = None,
    partition: Partition | None = None,
    background: Any = MODEL,
    allow_unseen: bool = False,
    progress: OnTree | None = None,
) -> pa.Table:
    """Tabulate what features have at every leaf of a model's symmetric trees.

    Adding up the rows of the leaves that a row of data reaches gives its attributions. Shapley values of a leaf add up to its value minus the mean of
    the tree's values, each leaf by its weight.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    method : str
        One whose values are sums over trees: "shapley", "banzhaf", "beta", "semivalue", "probabilistic", "owen", "two_step" or "asymmetric".
    parameters : mapping, optional
        Parameters of the method by name, such as ``{"p": 0.3}``.
    partition : mapping, str or path, optional
        Groups of features, as `attribute` takes them.
    background : data frame, Arrow table, array or "model"
        As `attribute` takes it: "model", the default, for the model's own leaf weights, or rows. With rows the tables are those of new data, such as
        after drift, of the same trees (Filom et al. 2024, Remark 3.13); weights are then numbers of these rows.
    allow_unseen : bool
        Take a background of which the model knows hardly any category of some feature; by default it is refused.
    progress : callable, optional
        Told after each tree how many are done, and how many there are.

    Returns
    -------
    pyarrow.Table
        A row for every tree, leaf that rows can reach, output and feature that the tree asks for: ``tree`` and ``leaf``, numbers from 0, ``output``,
        ``feature``, ``phi`` in margin units, the leaf's own ``value`` and its ``weight``. Leaves are numbered from the left to the right, which in a
        symmetric tree is the binary number of a row's way down, 1 for right, the root's bit first: CatBoost's own number of the leaf. The metadata
        ``leafledger`` has the model's digest, the method and the base values.

    Raises
    ------
    UnsupportedModel
        A tree is not symmetric, or its leaves have no weights.
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    asked = _ask(model, method, parameters, partition, background, allow_unseen)
    return pa.Table.from_batches(_each_tree(asked, progress), SCHEMA).replace_schema_metadata(_metadata(asked))


def save_leaf_tables(model: Model | str | PathLike | Any, uri: str | PathLike, progress: OnTree | None = None) -> int:
    """Write the table that `leaf_tables` makes of Shapley values to a Parquet object, tree by tree.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    uri : str or path
        Of the object; one that is there already must hold the same bytes.
    progress : callable, optional
        As `leaf_tables` takes it.

    Returns
    -------
    int
        Rows.

    Raises
    ------
    UnsupportedModel
        A tree is not symmetric, or its leaves have no weights.
    RunConflict
        There is another file.
    """
    place, asked, n_rows = normalise(str(uri)), _ask(model, "shapley", None, None), 0
    with storage.scratch() as folder:
        local, held = folder / "tables", list[pa.RecordBatch]()
        with pq.ParquetWriter(local, SCHEMA.with_metadata(_metadata(asked)), compression="zstd", write_page_checksum=True) as writer:
            for batch in _each_tree(asked, progress):
                held.append(batch)
                n_rows += batch.num_rows
                if sum(each.num_rows for each in held) >= GROUP_ROWS:
                    writer.write_table(pa.Table.from_batches(held, SCHEMA))
                    held.clear()
            writer.write_table(pa.Table.from_batches(held, SCHEMA))
        commit.create_once(place, local)
    return n_rows
