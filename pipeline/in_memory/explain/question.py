"""The Question: a validated request for attributions, with its tables, independent of the rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.method.method import BackgroundQuery, BackgroundStatistics, Method
from leafledger.kernels.method.open_parameters import find_open
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.set_indices import Sets
from leafledger.kernels.slices.buffers import Buffers, Prepared, make_buffers
from leafledger.kernels.slices.links import Link
from leafledger.kernels.trees.binning import read_columns

from ...arguments.choices import COMBINATIONS, DEVICES, MODEL, OWN, Device, Space
from ...arguments.readers import read_choice, read_flag, read_interactions, read_parameters, read_partition, read_space, read_text, shorten
from ...cluster.card import choose_device, fit_device
from ...cluster.resources import table_budget
from ...cluster.threads import do_all
from ...dataset.columns.partition import Groups, Partition
from ...dataset.columns.players import join_names, number_players
from ...dataset.columns.values import read_features
from ...display.text import count
from ...errors import SchemaMismatch, UsageError
from ...methods.background_counts import BackgroundCounts, count_in_turn, measure_rows, merge_counts
from ...methods.interaction_lists import check_order, choose_sets
from ...methods.open_parameters import tune
from ...methods.output_space import choose_space
from ...methods.parameters import check_parameters, find_method, group_features, number_groups, place_features
from ...methods.tables import ask_model, player_names, prepare_model, weigh_model
from ...methods.unseen_categories import refuse_counted
from ...models.model import Feature, Model
from ...models.row_output import RowOutput
from ..rows.arrow_batches import as_batch
from ..rows.given_rows import BACKGROUND, Header, fill_columns, spell_features, spell_header

SLICE_ROWS = 1 << 13
PlacedGroups = tuple[tuple[str | None, tuple[int, ...]], ...]  # groups by positions of features; the name is None for a single feature's


@dataclass(frozen=True, slots=True)
class Names:
    """Names of features, players and groups for rows with certain columns."""

    model: Model  # without trees
    features: tuple[str, ...]
    players: tuple[str, ...]
    groups: Groups


@dataclass(frozen=True, slots=True)
class Question:
    """A complete and validated request, without its tables."""

    model: Model  # names only, without trees
    n_trees: int
    method: str
    parameters: Mapping[str, Any]
    groups: PlacedGroups
    combinations: tuple[tuple[int, ...], ...]  # members of combinations that are players
    keep: int | str | None  # interactions kept of a row
    sets: Sets | None  # that these are of; None for pairs
    row_output: RowOutput | None
    space: Space
    link: Link | None
    quantity: Quantity | None
    allow_unseen: bool
    game: str  # in words
    in_order: tuple[str, ...] | None  # columns of the background, if features are matched by position
    device: Device

    def name_players(self, header: Header | None) -> Names:
        """Name everything as the columns of rows."""
        model = self.model if header is None else spell_header(self.model, header)
        names = tuple(feature.name for feature in model.features)
        if model.by_position and self.in_order not in (None, names):
            raise SchemaMismatch(
                f"rows: columns are {', '.join(names)}, those of the background {', '.join(self.in_order or ())}: the model has no names, expected "
                "the same columns in the same order"
            )
        groups = tuple((names[places[0]] if group is None else group, tuple(names[place] for place in places)) for group, places in self.groups)
        called = [group for group, _ in groups]
        if len({*called}) < len(called):
            doubled = next(group for group in called if called.count(group) > 1)
            raise UsageError(f"partition: group {doubled!r} is named as a feature outside of it; choose another name")
        combined = join_names(called or names, self.combinations)
        return Names(model, names, player_names(find_method(self.method), groups, model.features, combined), groups)


def _without_trees(model: Model) -> Model:
    """Return a model without trees, for holders of its tables."""
    ensemble = model.ensemble
    nothing: dict[str, Any] = {name: values[:0] for name, values in ensemble._asdict().items() if isinstance(values, np.ndarray)}
    return replace(model, ensemble=type(ensemble)(**nothing, single_precision=ensemble.single_precision))


def _place_groups(groups: Groups, features: tuple[Feature, ...]) -> PlacedGroups:
    """Return groups by positions of their features."""
    places = {feature.name: j for j, feature in enumerate(features)}
    return tuple((None if (group,) == members else group, tuple(places[name] for name in members)) for group, members in groups)


def _count(query: BackgroundQuery, features: Sequence[Feature], batch: pa.RecordBatch, allow_unseen: bool) -> BackgroundCounts:
    """Count background rows, batch by batch."""

    def work(first: int) -> BackgroundCounts:
        part = batch.slice(first, SLICE_ROWS)
        values = np.zeros((query.bins.column.size, part.num_rows))
        fill_columns(features, query.bins, part, values)
        return measure_rows(query, values, first)

    counted = merge_counts(*do_all(work, range(0, batch.num_rows, SLICE_ROWS)))
    if not allow_unseen:
        some = batch.slice(0, SLICE_ROWS)
        refuse_counted(counted.seen, read_features(features, query.bins), BACKGROUND, lambda name: some.column(name).to_pylist())
    return counted


def prepare_game(
    model: Model,
    known: Model,
    method: Method,
    parameters: Mapping[str, Any],
    groups: Groups,
    interactions: bool,
    own: bool,
    background: Any,
    errors: bool,
    allow_unseen: bool,
    sets: Sets | None = None,
    quantity: Quantity | None = None,
) -> tuple[Prepared, str]:
    """Make the tables of the game that the background implies, with column names ``known``; return also the game in words."""
    if errors and (background is None or isinstance(background, str)):
        raise UsageError("background_errors are of a background of rows as a sample, but none was given")
    if background is None:
        return prepare_model(model, method, parameters, groups, interactions, own, sets=sets), "path-dependent game"
    if isinstance(background, str):
        if background != MODEL:
            raise UsageError(f"background is {background!r}, expected rows or {MODEL!r}; explain reads them from a data set")
        query = ask_model(model, method, groups, None, table_budget(), interactions, sets=sets)
        game = "background of the model's leaf weights"
        counted: BackgroundStatistics = weigh_model(model, method, groups, query)
    else:
        features, batch = as_batch(known, background, read_columns(model.ensemble).tolist(), BACKGROUND)
        if not batch.num_rows:
            raise UsageError("the background has no rows, expected at least one")
        query = ask_model(model, method, groups, batch.num_rows, table_budget(), interactions, errors, sets, quantity)
        counted = count_in_turn(query, lambda asked: _count(asked, features, batch, allow_unseen)).statistics
        game = f"background of {count(batch.num_rows, 'row')}"
    return prepare_model(model, method, parameters, groups, interactions, own, (query, counted), sets), game


def _close(
    model: Model,
    known: Model,
    method: Method,
    parameters: Mapping[str, Any],
    groups: Groups,
    own: bool,
    background: Any,
    rows: Any,
    allow_unseen: bool,
) -> dict[str, Any]:
    """Return parameters with open ones tuned on the first rows."""
    tuning = method.tuning
    if rows is None and tuning and find_open(method, parameters):
        raise UsageError(f"{tuning.name} is left open, which rows choose, and there are none yet; give a number")

    def prepare(tried: Method, some: Mapping[str, Any]) -> Prepared:
        return prepare_game(model, known, tried, some, groups, False, own, background, False, allow_unseen)[0]

    def read(tables: Prepared, n_rows: int) -> tuple[Buffers, int]:
        features, batch = as_batch(model, rows, tables.bins.read.tolist())
        first = batch.slice(0, n_rows)
        buffers = make_buffers(tables, n_rows)
        fill_columns(features, tables.bins, first, buffers.values)
        return buffers, first.num_rows

    return tune(method, parameters, prepare, read)


def ask(
    model: Model,
    row_output: RowOutput | None,
    method: str,
    parameters: Mapping[str, Any] | None,
    partition: Partition | None,
    interactions: int | str | None,
    combinations: str,
    background: Any,
    background_errors: bool,
    allow_unseen: bool,
    space: Space,
    device: Device,
    rows: Any = None,
    order: int | None = None,
    index: str | None = None,
    made: tuple[Prepared, str] | None = None,
    players: Mapping[str, Sequence[int]] | None = None,
) -> tuple[Question, Prepared]:
    """Validate a request, and make its tables, unless they, and the game in words, were ``made`` for the same request before.

    ``players`` stand in the place of a partition: groups of features by position, whose names may be those of features outside of them.
    """
    if hasattr(method, "__len__") and not isinstance(method, str):
        raise UsageError(f"method is {shorten(method)}, expected a name; rows to compare with are background=")
    chosen = find_method(read_text("method", method))
    given = check_parameters(chosen, read_parameters("parameters", parameters))
    keep = None if interactions is None else read_interactions("interactions", interactions)
    sets = choose_sets(chosen, keep, order, index)
    known = model if background is None or isinstance(background, str) else spell_features(model, background, where=BACKGROUND)
    placed = known.by_position and not model.by_position
    named = known if placed else model
    if players is None:
        groups = group_features(chosen, None if partition is None else read_partition("partition", partition), named.features)
        placed_groups = _place_groups(groups, named.features)
    else:
        ordered = sorted((tuple(places), name) for name, places in players.items())
        groups = tuple((name, tuple(named.features[place].name for place in places)) for places, name in ordered)
        placed_groups = tuple((name, places) for places, name in ordered)
    number_groups(chosen, given, groups)  # refuses others, before a background is counted
    own = read_choice("combinations", combinations, COMBINATIONS) == OWN
    check_order(sets, named, groups, own)
    read_space("space", space)
    given = place_features(chosen, given, named.features)
    link, quantity = choose_space(space, model, chosen, given, keep is not None, background)
    taken = read_flag("allow_unseen", allow_unseen)
    errors = read_flag("background_errors", background_errors)
    given = _close(named, known, chosen, given, groups, own, background, rows, taken)
    prepared, game = made or prepare_game(named, known, chosen, given, groups, keep is not None, own, background, errors, taken, sets, quantity)
    read_choice("device", device, DEVICES)
    found = fit_device(device, choose_device(device, True, background is not None), chosen, prepared)
    question = Question(
        model=_without_trees(model),
        n_trees=model.ensemble.root.size,
        method=chosen.name,
        parameters=given,
        groups=placed_groups,
        combinations=tuple(number_players(named, groups).combinations.values()) if own else (),
        keep=keep,
        sets=sets,
        row_output=row_output,
        space=space,
        link=link,
        quantity=quantity,
        allow_unseen=taken,
        game=game,
        in_order=tuple(feature.name for feature in known.features) if placed else None,
        device=found,
    )
    return question, prepared
