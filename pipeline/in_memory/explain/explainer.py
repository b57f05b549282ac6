"""The Explainer: a model and a method prepared once for many calls."""

import logging
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from os import PathLike
from typing import Any, cast
from weakref import ref

import pyarrow as pa

from leafledger.kernels.jit.decorator import digest_sources
from leafledger.kernels.jit.notices import when_compiling
from leafledger.kernels.slices.buffers import Prepared

from ...arguments.choices import CPU, MARGIN, SHARED, Device, Space
from ...arguments.readers import read_names, read_place
from ...dataset.columns.partition import Partition
from ...display.text import count
from ...errors import UsageError
from ...methods.parameters import find_method
from ...models import load_ensemble
from ...models.model import Model
from ...models.row_output import choose_among, read_row_output
from ...stores.table_arrays import broadcast_tables, open_tables, pack_tables, unpack_tables
from ...stores.uris import normalise
from ..rows.arrow_batches import read_rows
from ..rows.dask_frames import explain_partitions, is_dask
from ..rows.given_rows import Header, as_rows, read_header, refuse_values
from ..rows.labels import read_targets
from .attributions import Attributions
from .encoded import Encoder, follow
from .question import Names, Question, ask
from .slices import Scratch, attribute_rows


def say_compiling() -> None:
    """Log once per process that a kernel is compiled that is not cached; ``logging.getLogger("leafledger")`` silences it."""
    when_compiling(_say)


def _say() -> None:
    logging.getLogger("leafledger").warning(
        "Leafledger compiles kernels that this machine has not needed before: this call takes longer, up to a minute; later ones of its kind do not "
        "('leafledger warm' compiles ahead)"
    )


AGAIN = 20  # calls with the same model, one after the other, from which on it is said how to make them faster
FEW = 1000  # rows of such a call: more take longer than reading the model
_latest: list[Any] = [None, 0, False]  # the model of the latest call, how often it came in a row, and whether this was said


def say_prepare(model: Any, n_rows: int) -> None:
    """Log once per process that `prepare` reads a model once, where it is read again at every call with a few rows."""
    held = _latest[0]
    same = held() is model if isinstance(held, ref) else isinstance(model, str | PathLike) and held == str(model)
    try:
        _latest[0] = str(model) if isinstance(model, str | PathLike) else ref(model)
    except TypeError:  # one that cannot be followed without being kept
        _latest[0] = None
    _latest[1] = _latest[1] + 1 if same and n_rows <= FEW else 1
    if _latest[1] >= AGAIN and not _latest[2]:
        _latest[2] = True
        logging.getLogger("leafledger").warning(
            "attribute reads the model anew at every call, %s times now: explainer = leafledger.prepare(model), once, and explainer(rows) are faster",
            AGAIN,
        )


HEADERS = 100  # kinds of rows whose columns are cached


class Explainer:
    """A model's tables for a method: ``explainer(rows)`` attributes rows, as often as it is called, from any number of threads at once.

    `prepare` makes them. The attributions of a call have the bits that `attribute` gives.

    A pickle holds the tables, unless they were written to a folder; then it holds the folder's name, and whoever unpickles it maps them from there.
    """

    def __init__(self, question: Question, prepared: Prepared, tables: str | None = None, encoder: Encoder | None = None) -> None:
        self._question, self._prepared, self._tables, self._encoder = question, prepared, tables, encoder
        self._scratch, self._names = Scratch(), dict[Header | None, Names]()

    def __call__(self, rows: Any, *, label: Any = None, weight: Any = None) -> Attributions:
        """Attribute every row; of a Dask DataFrame a Dask DataFrame is returned, as `Attributions.to_frame` lays it out."""
        if is_dask(rows):
            return cast("Attributions", explain_partitions(self._explain_frame, rows, label, weight))  # editors complete the usual case
        return self._explain(rows, label, weight, None)

    def to_batch(self, rows: Any, ids: Any = (), *, label: Any = None, weight: Any = None) -> Any:
        """Attribute the rows of a batch of Arrow, on the thread that asks: for engines that hand over batches and have their own workers.

        Parameters
        ----------
        rows : pa.RecordBatch or pa.Table
        ids : str or sequence of str
            Columns of the rows that come first.
        label : array or str, optional
        weight : array or str, optional
            As in a call.

        Returns
        -------
        pa.RecordBatch or pa.Table
            As the rows are, with the columns of `Attributions.to_arrow`.

        Raises
        ------
        LeafledgerError
            One line: what was got, what was expected, where.
        """
        if not isinstance(rows, pa.RecordBatch | pa.Table):
            raise UsageError(f"rows are a {type(rows).__name__}, expected a batch or table of Arrow")
        made = self._explain(rows, label, weight, 1).to_arrow(read_names("ids", ids))
        if isinstance(rows, pa.Table):
            return made
        return pa.record_batch([column.combine_chunks() for column in made.columns], schema=made.schema)

    def _explain(self, rows: Any, label: Any, weight: Any, n_threads: int | None) -> Attributions:
        say_compiling()
        encoder, given = self._encoder, rows
        if encoder is not None:
            encoded = encoder.encode(rows, label, weight)
            rows, given, label, weight = encoded.rows, encoded.given, encoded.label, encoded.weight
        refuse_values(self._question.model.features, rows)
        rows, prepared = as_rows(rows), self._prepared
        names = self._find_names(read_header(rows, label, weight))
        read = read_rows(names.model, rows, prepared.bins)
        targets = read_targets(find_method(self._question.method), self._question.quantity, label, weight, rows, read[0])
        found = attribute_rows(self._question, prepared, names, rows, read, targets, self._scratch, n_threads)
        return found if encoder is None else encoder.show(found, given)

    def _explain_frame(self, rows: Any, label: str | None, weight: str | None) -> Any:
        return self._explain(rows, label, weight, 1).to_frame()

    def _find_names(self, header: Header | None) -> Names:
        """Return the names for rows with these columns, cached."""
        found = self._names.get(header)
        if found is None:
            found = self._question.name_players(header)
            if len(self._names) >= HEADERS:
                self._names = {}
            self._names[header] = found
        return found

    def __reduce__(self) -> Any:
        tables = pack_tables(self._prepared) if self._tables is None else self._tables
        return _restore, (digest_sources(), self._question, tables, self._encoder)

    def __repr__(self) -> str:
        asked = self._question
        outputs = count(len(asked.model.outputs) if asked.row_output is None else 1, "output")
        n_features = len(asked.model.features if self._encoder is None else self._encoder.used)
        counts = count(asked.n_trees, "tree"), f"method {asked.method}", count(n_features, "feature"), outputs
        space = "" if asked.space == MARGIN else f", space {asked.space}"
        return f"Explainer({asked.model.library}, {', '.join(counts)}, {asked.game}{space})"


def _restore(sources: str, question: Question, tables: Any, encoder: Encoder | None) -> Explainer:
    """Restore a pickled explainer; tables of other versions are refused, since kernels follow their indices unchecked."""
    if sources != digest_sources():
        raise UsageError("the explainer was pickled by another version of leafledger, expected this one; prepare it again")
    find_method(question.method)
    if isinstance(tables, str):
        return Explainer(question, open_tables(tables), tables, encoder)
    return Explainer(question, unpack_tables(*tables), encoder=encoder)


def prepare(
    model: Model | Any,
    method: str = "shapley",
    *,
    parameters: Mapping[str, Any] | None = None,
    partition: Partition | None = None,
    interactions: int | str | None = None,
    order: int | None = None,
    index: str | None = None,
    combinations: str = SHARED,
    background: Any = None,
    background_errors: bool = False,
    allow_unseen: bool = False,
    output: str | int | None = None,
    space: Space = MARGIN,
    tables: str | PathLike | None = None,
    device: Device = CPU,
) -> Explainer:
    """Make everything that does not depend on the rows, once, for rows that come again and again.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes. Or a fitted Pipeline of scikit-learn, as `attribute` takes it: pickles hold its steps.
    method : str
        One of `METHODS`.
    parameters : mapping, optional
        Parameters of the method by name, such as ``{"p": 0.3}``.
    partition : mapping, str or path, optional
        Groups of features, as `attribute` takes them: by name or position. No rows are there yet: where the model has no names, features are named as
        the background's columns are, or by position.
    interactions : int or "all", optional
        Also the interactions of every two features or groups: of how many pairs of a row and output, the largest by magnitude, or of all.
    order : int, optional
    index : str, optional
        Interactions of sets of up to so many features or groups, and by which index, as `attribute` takes them.
    combinations : "shared" or "own"
        What several features do together through one number: shared equally among them, or players of their own.
    background : data frame, Arrow table, array or "model", optional
        Rows whose values absent features take, or "model" for those behind the model's own leaf weights. By default the path-dependent game.
    background_errors : bool
        Also estimate standard errors, of the background as a sample.
    allow_unseen : bool
        Take rows, and a background, of which the model knows hardly any category of some feature; by default they are refused.
    output : str or int, optional
        The only output to explain, by its name or position; or "predicted", or "other", drawn by the rows' numbers in a call.
    space : "margin", "probability", "response" or "loss"
        What to attribute, as `attribute` takes it.
    tables : str or path, optional
        Folder, as a path or URI, where the tables are written, each kind once. Pickles then name the folder and are small; processes of one machine
        share the memory. By default pickles hold the tables.
    device : "cpu", "cuda" or "auto"
        Where attributions are computed, as `attribute` takes it.

    Returns
    -------
    Explainer
        ``explainer(rows)`` is ``attribute(model, rows, …)`` with the same arguments.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    say_compiling()
    encoder = follow(model, method, parameters, partition)
    if encoder is not None:
        encoder = replace(encoder, steps=deepcopy(encoder.steps))  # which the Pipeline fits anew in place, while tables stay
        model, partition, background = encoder.last, None, encoder.encode_background(background)
    row_output = read_row_output(output)
    loaded = choose_among(row_output, load_ensemble(model, output=None if row_output is not None else output))
    folder = None if tables is None else normalise(read_place("tables", tables))
    question, prepared = ask(
        loaded,
        row_output,
        method,
        parameters,
        partition,
        interactions,
        combinations,
        background,
        background_errors,
        allow_unseen,
        space,
        device,
        order=order,
        index=index,
        players=None if encoder is None else encoder.players,
    )
    if folder is None:
        return Explainer(question, prepared, encoder=encoder)
    uri = broadcast_tables(prepared, folder)
    return Explainer(question, open_tables(uri), uri, encoder)
