"""The FinishedRun: access to parts, summaries and single rows of a published run."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from ..arguments.choices import MARGIN
from ..arguments.readers import read_number
from ..display.nearest import did_you_mean
from ..errors import InvalidRun, NoSuchRow, UsageError
from ..in_memory.explain.attributions import Attributions
from ..runs.lookup.row_lookup import FoundRows, as_plain, find_rows, has_views, keep_rows, read_condition
from ..runs.records.current_run import read_finished
from ..runs.records.folder import RunFolder, name_file
from ..runs.records.manifest import Manifest
from ..runs.records.plan import Plan
from ..runs.records.provenance import Provenance, read_provenance
from ..runs.records.small_table import read_small_table
from ..stores import storage
from ..stores.failures import published, reported
from ..stores.open_store import open_filesystem
from ..stores.uris import normalise
from .row_view import Shown
from .stored_rows import choose_types, label_rows, show_rows

MOST = 10  # rows shown


def read_values(plan: Plan, table: pa.Table) -> dict[str, Any]:
    """Select the features' values from rows of the parts."""
    values = {}
    for feature, name in zip(plan.features if plan.values else (), plan.value_columns, strict=True):
        column = table[name].cast(table[name].type.value_type) if pa.types.is_dictionary(table[name].type) else table[name]
        named = feature.categorical or feature.hashed
        if named and pa.types.is_integer(column.type):
            values[feature.name] = column.to_pandas(integer_object_nulls=True).to_numpy()  # keeps integers exact beside missing values
            continue
        number = pa.types.is_string(column.type) and not named
        values[feature.name] = (column.cast(pa.float64()) if number else column).to_numpy()
    return values


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What was published, to be read. Parts are trusted as the manifest lists them; `check_run` verifies them.

    Attributes
    ----------
    uri : str
        Of the run's folder.
    manifest : Manifest
    plan : Plan
    """

    uri: str
    manifest: Manifest
    plan: Plan

    def __repr__(self) -> str:
        return f"FinishedRun({self.uri}, {str(self.manifest).partition('(')[2]}"

    def provenance(self) -> Provenance | None:
        """Read how the run was made: when, on what machines, by what versions.

        Returns
        -------
        Provenance or None
            None where that was not kept.

        Raises
        ------
        InvalidRun
            There is something else in its place.
        StorageError
            The store does not answer.
        """
        return read_provenance(self.manifest.home(self.uri), self.manifest.sha256)

    def dataset(self) -> Any:
        """Open the parts, in their order. An id column that some paths carry, and other files hold, is of texts.

        Returns
        -------
        pyarrow.dataset.Dataset
            Of no rows where the run has summaries alone.

        Raises
        ------
        StorageError
            The store does not answer.
        """
        return self._open()

    def _open(self, of_views: bool = True) -> Any:
        from pyarrow import dataset as ds  # imports pandas, which takes longer than finding a row

        filesystem, _ = open_filesystem(self.uri)
        paths = [open_filesystem(RunFolder(self.uri).listed(entry))[1] for entry in self.manifest.parts]
        with published(), reported("read", self.uri):
            found = ds.dataset(paths, format="parquet", filesystem=filesystem)
            read = choose_types(self.plan, found.schema, of_views)
            return found if read.equals(found.schema) else ds.dataset(paths, read, "parquet", filesystem)

    def attributions(self, columns: Sequence[str] | None = None, where: Mapping[str, Any] | None = None) -> pa.Table:
        """Read the parts.

        Parameters
        ----------
        columns : sequence of str, optional
            By default all.
        where : mapping of str to Any, optional
            From columns to the value that rows have there, or its text; None where it is missing.

        Returns
        -------
        pa.Table
            Rows in the order of the data.

        Raises
        ------
        UsageError
            There is no such column, or a value is of another type than it has.
        StorageError
            The store does not answer.
        """
        found = self.dataset()
        there = found.schema.names if self.manifest.parts else self.plan.part_columns
        for name in (*(columns or ()), *(where or ())):
            if name not in there:
                ids = ", ".join(self.plan.ids) or "none"
                raise UsageError(f"{self.uri}: has no column {name!r:.80}; its id columns are {ids}{did_you_mean(name, there)}")
        if not self.manifest.parts:  # without rows the types are unknown
            return pa.table({name: pa.nulls(0) for name in columns or ()})
        if where:
            return self._read_where(found.schema, there if columns is None else list(columns), where)
        with published(), reported("read", self.uri):
            return found.to_table(columns=None if columns is None else list(columns))

    def _read_where(self, schema: pa.Schema, columns: Sequence[str], where: Mapping[str, Any]) -> pa.Table:
        """Read columns of some rows by the look-up: Arrow's own filter skips row groups of NaN by statistics, which do not count it."""
        conditions = [read_condition(self.uri, schema, name, value) for name, value in where.items()]
        needed = list(dict.fromkeys((*columns, *where)))
        empty = schema.empty_table().select(needed)
        plain = as_plain(empty)
        table = plain
        with suppress(NoSuchRow):
            table = find_rows(self.uri, self._parts, self.plan.ids, where, columns=needed).table.select(needed).cast(plain.schema)
        kept = keep_rows(table, conditions).select(columns)  # what several parts hold as other types is one type here
        return kept if has_views(schema) else kept.cast(empty.select(columns).schema)

    def summary(self, name: str) -> pa.Table:
        """Read a summary.

        Parameters
        ----------
        name : str
            As "importance".

        Returns
        -------
        pa.Table

        Raises
        ------
        UsageError
            The run has none of this name.
        InvalidRun
            It is damaged.
        StorageError
            The store does not answer.
        """
        entry = self.manifest.summary(f"{name}.parquet")
        if entry is None:
            listed = (name_file(each["uri"]) for each in self.manifest.summaries)
            names = [each.removesuffix(".parquet") for each in listed if each.endswith(".parquet")]
            raise UsageError(f"{self.uri}: has no summary {name!r:.80}, expected one of {', '.join(names)}{did_you_mean(name, names)}")
        uri = RunFolder(self.uri).listed(entry)
        with published(), storage.opened(uri) as file:
            return read_small_table(file, uri)

    def row(self, **where: Any) -> Attributions:
        """Read the attributions of some rows.

        Parameters
        ----------
        **where : Any
            From columns to the values that the row has there, or their texts, such as ``customer=4711``; None where it is missing.

        Returns
        -------
        Attributions
            Of all rows with these values, mostly one; labelled by the run's id columns, with the features' values where the run has them. Margins are
            NaN where the run has predictions in their place.

        Raises
        ------
        NoSuchRow
            There is none.
        UsageError
            There is no such column, nothing is asked for, or the run has not all attributions of a row.
        InvalidRun
            A part is damaged.
        StorageError
            A part is missing, or the store does not answer.
        """
        self._refuse_partial()
        return self._hold(self.find(where).table)

    def show(self, where: Mapping[str, Any], most: int = MOST, output: str | None = None) -> Shown:
        """Show rows as a person reads them, with all that the run has of them.

        Parameters
        ----------
        where : mapping of str to Any
            As of `row`.
        most : int
            Rows that are read, at least 1; all are counted.
        output : str, optional
            The only output to show; by default all, the one of the largest margin or prediction first.

        Returns
        -------
        Shown
            Prints as text, and in a notebook as tables.

        Raises
        ------
        NoSuchRow
            There is none.
        UsageError
            There is no such column or output, nothing is asked for, or the run has summaries alone.
        InvalidRun
            A part is damaged.
        StorageError
            A part is missing, or the store does not answer.
        """
        return self.describe(self.find(where, most), output)

    def find(self, where: Mapping[str, Any], most: int | None = None) -> FoundRows:
        """Find rows, and read all columns that the run has of them.

        Parameters
        ----------
        where : mapping of str to Any
            As of `row`.
        most : int, optional
            Rows that are read; all are counted.

        Returns
        -------
        FoundRows
            With the rows as a table.

        Raises
        ------
        LeafledgerError
            As of `show`.
        """
        if self.plan.global_only:
            raise UsageError(f"{self.uri}: has no rows")
        if not where:
            raise UsageError(f"{self.uri}: which row? Give columns and their values, such as {(*self.plan.ids, 'id')[0]}=…")
        return find_rows(self.uri, self._parts, self.plan.ids, where, most if most is None else read_number("most", most, 1))

    @property
    def _parts(self) -> list[tuple[int, str]]:
        return [(entry["part"], entry["uri"]) for entry in self.manifest.parts]

    def describe(self, found: FoundRows, output: str | None = None) -> Shown:
        """Show rows that were found.

        Parameters
        ----------
        found : FoundRows
        output : str, optional
            As of `show`.

        Returns
        -------
        Shown

        Raises
        ------
        UsageError
            There is no such output.
        InvalidRun
            A part is damaged.
        """
        return show_rows(self.uri, self.manifest, self.plan, found, output)

    def sample(self, n: int, seed: int = 0) -> Attributions:
        """Read the attributions of rows drawn by chance, as for a picture.

        Parameters
        ----------
        n : int
            How many, at least 1; all where there are no more.
        seed : int
            The same rows for the same number.

        Returns
        -------
        Attributions
            In the order of the data, labelled by the run's id columns.

        Raises
        ------
        UsageError
            ``n`` is no such number, or the run has no rows, or not all attributions of one.
        InvalidRun
            The parts have fewer rows than the manifest says, or other columns than the plan.
        StorageError
            The store does not answer.
        """
        self._refuse_partial()
        n, n_rows = read_number("n", n, 1), self.manifest.n_rows
        if not n_rows:
            raise UsageError(f"{self.uri}: has no rows")
        drawn = np.sort(np.random.default_rng(read_number("seed", seed, 0)).choice(n_rows, min(n, n_rows), replace=False))
        with reported("read", self.uri):
            try:
                taken = self._open(of_views=False).take(pa.array(drawn, pa.int64()))
            except pa.ArrowIndexError as error:
                raise InvalidRun(f"{self.uri}: its parts have fewer rows than the {n_rows} of the manifest") from error
            return self._hold(taken)

    def _refuse_partial(self) -> None:
        if not self.plan.wide or self.plan.global_only:
            raise UsageError(f"{self.uri}: has {'no rows' if self.plan.global_only else 'the largest attributions of a row alone'}")

    def _hold(self, table: pa.Table) -> Attributions:
        """Convert rows of the parts to attributions in memory, up to rounding."""
        import pandas as pd

        plan, n = self.plan, table.num_rows
        totals, phi, _ = plan.columns
        outputs, players = plan.written_outputs, plan.players
        for name in (*totals, *phi, *plan.base_columns, *plan.chosen, *plan.ids, *plan.error_columns, *plan.value_columns):
            if name not in table.schema.names:
                raise InvalidRun(f"{self.uri}: its parts have no column {name!r:.80}, which the plan has")

        def read(names: Sequence[str], *shape: int) -> np.ndarray:
            columns = [table[name].to_numpy().astype(np.float64) for name in names]
            return np.stack(columns, axis=1).reshape(n, *shape) if columns else np.zeros((n, *shape))

        total, output = read(totals, len(outputs)), np.array(table[plan.chosen[0]].to_pylist(), object) if plan.chosen else None
        base = read(plan.base_columns, len(outputs)) if plan.base_columns else np.array(self.manifest.base)
        if output is not None:
            base = base[[plan.outputs.index(name) for name in output]][:, None]
        labels = label_rows(table.select(list(plan.ids)))
        return Attributions(
            phi=read(phi, len(outputs), len(players)),
            base=base,
            margin=total if plan.space == MARGIN else np.full_like(total, np.nan),
            prediction=total,
            players=players,
            method=plan.method,
            groups=plan.groups,
            outputs=outputs,
            output=output,
            errors=read(plan.error_columns, len(outputs), len(players)) if plan.error_columns else None,
            space=plan.space,
            by_row=plan.quantity is not None,
            features=tuple(feature.name for feature in plan.features),
            rows=pd.DataFrame(read_values(plan, table), index=labels),
            parameters=dict(plan.parameters),
        )


def read_run(uri: str | PathLike) -> FinishedRun:
    """Open a finished run.

    Parameters
    ----------
    uri : str or path
        Of the run's folder.

    Returns
    -------
    FinishedRun

    Raises
    ------
    NotFinished
        There is no manifest: the run is not finished, or not there.
    InvalidRun
        It is damaged.
    StorageError
        The store does not answer.
    """
    run = normalise(str(uri))
    return FinishedRun(run, *read_finished(run))
