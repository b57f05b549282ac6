"""Attribution of rows batch by batch, on all cores, or on the calling thread for few rows."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from leafledger.kernels.method.jackknife import BACKGROUND_ERRORS, LOSS_ERRORS, find_errors
from leafledger.kernels.reductions.input_counts import INPUTS
from leafledger.kernels.reductions.loss_shares import LOSS_SHARES
from leafledger.kernels.reductions.reduction import merge_all
from leafledger.kernels.reductions.summary import Subject, Summary
from leafledger.kernels.slices.buffers import BASE, Buffers, Prepared, make_buffers
from leafledger.kernels.slices.row_outputs import take_outputs
from leafledger.kernels.trees.binning import padded

from ...arguments.choices import MARGIN
from ...cluster.card import method_on
from ...cluster.threads import do_all
from ...dataset.columns.labels import lay_out
from ...dataset.columns.row_places import RowPlaces
from ...dataset.columns.values import read_features
from ...display.notebook_bar import NotebookBar
from ...display.text import count
from ...methods.interaction_lists import count_kept, find_summary, keep_largest, refuse_large
from ...methods.output_space import find_base
from ...methods.parameters import find_method
from ...methods.slice_step import SliceStep
from ...methods.summary_tables import tabulate
from ...methods.tables import set_names
from ...methods.unseen_categories import ENOUGH, refuse_unseen
from ...methods.worker_memory import max_slice_rows
from ...models.model import Feature
from ...models.objectives import Margin
from ..rows.arrow_batches import Fill
from ..rows.labels import Targets
from .attributions import Attributions
from .question import SLICE_ROWS, Names, Question

KEPT_ROWS = 1 << 10  # rows of buffers that a thread keeps for its next call


class Scratch(threading.local):
    """Buffers of small batches, one set per thread."""

    buffers: Buffers | None = None

    def take(self, prepared: Prepared, n_rows: int) -> Buffers:
        """Return buffers for a batch.

        Parameters
        ----------
        prepared : Prepared
            The same at every call.

        Returns
        -------
        Buffers
            For ``padded(n_rows)`` rows; what they hold does not count.
        """
        if n_rows > KEPT_ROWS:
            return make_buffers(prepared, n_rows)
        if self.buffers is None or self.buffers.values.shape[1] != padded(n_rows):
            self.buffers = make_buffers(prepared, n_rows)
        return self.buffers


def _tabulate(summary: Summary, states: Iterable[Any], subject: Subject) -> dict[str, pa.Table]:
    """Tabulate a summary of batches in row order."""
    return tabulate(summary, merge_all(summary.reduction, states, len(subject.outputs), subject.place.size), subject)


class Summaries(Mapping[str, pa.Table]):
    """Summary tables by name, made on first access."""

    def __init__(self, summaries: tuple[Summary, ...], states: list[list[Any]], subject: Subject) -> None:
        self._made: dict[str, pa.Table] | None = None
        self._of = summaries, states, subject

    def _tables(self) -> dict[str, pa.Table]:
        if self._made is None:
            (summaries, states, subject), made = self._of, dict[str, pa.Table]()
            for k, summary in enumerate(summaries):
                made |= _tabulate(summary, (state[k] for state in states), subject)
            self._made = made
        return self._made

    def __getitem__(self, name: str) -> pa.Table:
        return self._tables()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables())

    def __len__(self) -> int:
        return len(self._tables())

    def __repr__(self) -> str:
        return f"Summaries({', '.join(self)})"

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def _keep(out: Attributions, prepared: Prepared, buffers: Buffers, margin: np.ndarray, first: int, n: int) -> None:
    """Write the results of n rows, from number ``first``, in the space of the buffers."""
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


def _as_coded(feature: Feature) -> Feature:
    """As a matrix holds it, where that has codes in the place of categories."""
    coded = feature.categories is not None and not feature.by_value
    return replace(feature, categories=tuple(range(len(feature.categories or ())))) if coded else feature


def attribute_rows(
    question: Question,
    prepared: Prepared,
    names: Names,
    rows: Any,
    read: tuple[int, Fill],
    targets: Targets | None,
    scratch: Scratch,
    n_threads: int | None,
) -> Attributions:
    """Attribute rows by the request's tables, on ``n_threads`` threads, or one for each core."""
    (n, fill), method, row_output = read, find_method(question.method), question.row_output
    n_pairs, n_steps, n_lots = len(prepared.pairs.players), int(prepared.n_steps[0]), len(prepared.without.tables)
    on_device, check = method_on(question.device, method, prepared), method.check_of(question.parameters)
    model, step = names.model, SliceStep(on_device, check, question.link, row_output, prepared)
    loss = question.quantity is not None and question.quantity.labelled
    named = model.outputs if row_output is None else (row_output.which,)
    outputs, classes = len(named), np.array(model.outputs)
    margin, base = np.zeros((n, outputs)), find_base(question.link, prepared)
    named_sets = set_names(prepared, names.players)
    if question.sets is not None:
        refuse_large(n, outputs, n_pairs)
    out = Attributions(
        phi=np.zeros((n, outputs, len(names.players))),
        base=base if row_output is None and not loss else np.zeros((n, 1)),
        margin=margin,
        prediction=margin if question.space == MARGIN else np.zeros((n, outputs)),
        players=names.players,
        method=method.name,
        groups=names.groups,
        interactions=None if question.keep is None else np.zeros((n, outputs, n_pairs)),
        sets=None if question.keep is None else named_sets,
        pairs=None if question.keep is None or question.sets is not None else cast("tuple[tuple[str, str], ...]", named_sets),
        n_kept=0 if question.keep is None else count_kept(n_pairs, question.keep),
        path=np.zeros((n, outputs, n_steps)) if n_steps else None,
        outputs=named,
        output=None if row_output is None else np.zeros(n, classes.dtype),
        errors=np.zeros((n, outputs, len(names.players))) if n_lots else None,
        space=question.space,
        by_row=question.quantity is not None,
        features=names.features,
        rows=rows,
        parameters=dict(question.parameters),
        of_classes=outputs > 1 and model.objective.margin is Margin.CLASSES,
    )
    own, of_errors = ((LOSS_SHARES,), LOSS_ERRORS) if loss else (method.summaries, BACKGROUND_ERRORS)
    summaries = (*own, *((find_summary(question.sets, loss),) if question.keep else ()), *((of_errors,) if n_lots else ()), INPUTS)
    at_once = n_pairs * (1 + bool(prepared.weighted.tables))
    slice_rows = min(SLICE_ROWS, max_slice_rows(prepared.base.size * (prepared.players.size * (1 + 2 * n_lots) + at_once + n_steps)))

    def work(first: int) -> list[Any]:
        size = min(slice_rows, n - first)
        buffers = scratch.take(prepared, size)
        fill(first, size, buffers.values)
        if targets is not None:
            buffers = buffers._replace(labels=lay_out(*(values[first : first + size] for values in targets)))
        found = step.explain(buffers, size, RowPlaces.one("", first))
        margin = found.margin
        if loss:
            out.base[first : first + size, 0] = found.kept.ends[0, BASE, :size]
        if found.output is not None and out.output is not None:
            chosen = found.output[:size]
            out.output[first : first + size], out.base[first : first + size, 0] = classes[chosen], base[chosen]
            margin = take_outputs(margin, found.output)
        _keep(out, prepared, found.kept, margin, first, size)
        return [summary.update(summary.init(found.kept), found.kept, size) for summary in summaries]

    slices = range(0, n, slice_rows)
    with NotebookBar(len(slices), f"attributing {count(n, 'row')}") as bar:
        states = do_all(work, slices, n_threads, bar)
    inputs = read_features(model.features, prepared.bins)
    used, untold = tuple(feature.name for feature in inputs), frozenset(feature.name for feature in inputs if not feature.tells_seen)
    subject = Subject(named, names.players, prepared.players.astype(np.int64), prepared.pairs.players, n_steps, inputs=used, untold=untold)
    if n >= ENOUGH and prepared.bins.n_codes.any():  # too few rows are never refused
        tables = _tabulate(INPUTS, (state[-1] for state in states), subject)
        told = tuple(map(_as_coded, inputs)) if isinstance(rows, np.ndarray) else inputs
        refuse_unseen(tables, question.allow_unseen, told, lambda name: () if (held := out.values(name)) is None else held[:SLICE_ROWS])
    if out.interactions is not None:
        keep_largest(out.interactions, count_kept(n_pairs, question.keep))
        if targets is not None:
            out.interactions[np.isnan(targets[0])] = np.nan
    return replace(out, summaries=Summaries(summaries, states, subject))
