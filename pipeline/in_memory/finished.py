"""A finished run as Python holds it: its parts as one data set, its summaries, and rows of it as attributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ..errors import InvalidRun, UsageError
from ..runs.arguments import read_number
from ..runs.options import MARGIN
from ..runs.plan import Plan
from ..runs.planned import read_plan
from ..runs.publish import SUMMARY, Manifest, read_manifest
from ..stores import storage
from ..stores.filesystem import open_filesystem, reported
from ..stores.places import normalise
from .attributions import Attributions


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

    def dataset(self) -> Any:
        """Open the parts, in their order.

        Returns
        -------
        pyarrow.dataset.Dataset
            Of no rows where the run has summaries alone.

        Raises
        ------
        StorageError
            The store does not answer.
        """
        filesystem, _ = open_filesystem(self.uri)
        paths = [open_filesystem(storage.join(self.uri, entry["uri"]))[1] for entry in self.manifest.parts]
        with reported("read", self.uri):
            return ds.dataset(paths, format="parquet", filesystem=filesystem)

    def attributions(self, columns: Sequence[str] | None = None, where: Mapping[str, Any] | None = None) -> pa.Table:
        """Read the parts.

        Parameters
        ----------
        columns : sequence of str, optional
            By default all.
        where : mapping of str to Any, optional
            From columns to the value that rows have there.

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
        for name in (*(columns or ()), *(where or ())):
            if name not in found.schema.names:
                raise UsageError(f"{self.uri}: has no column {name!r:.80}; its id columns are {', '.join(self.plan.ids) or 'none'}")
        chosen = None
        for name, value in (where or {}).items():
            kind = found.schema.field(name).type
            try:
                wanted = pc.field(name) == pa.scalar(value, kind.value_type if pa.types.is_dictionary(kind) else kind)
            except (pa.ArrowException, TypeError, OverflowError) as error:
                raise UsageError(f"{self.uri}: column {name!r} is {kind}, got {value!r:.80}") from error
            chosen = wanted if chosen is None else chosen & wanted
        with reported("read", self.uri):
            return found.to_table(columns=None if columns is None else list(columns), filter=chosen)

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
        StorageError
            The store does not answer.
        """
        listed = [entry["uri"] for entry in self.manifest.summaries if entry["uri"].endswith(".parquet")]
        uri = f"{SUMMARY}/{name}.parquet"
        if uri not in listed:
            names = ", ".join(each.removeprefix(f"{SUMMARY}/").removesuffix(".parquet") for each in listed)
            raise UsageError(f"{self.uri}: has no summary {name!r:.80}, expected one of {names}")
        with storage.opened(storage.join(self.uri, uri)) as file:
            return pq.read_table(file)

    def row(self, **where: Any) -> Attributions:
        """Read the attributions of some rows.

        Parameters
        ----------
        **where : Any
            From columns to the values that the row has there, such as ``customer=4711``.

        Returns
        -------
        Attributions
            Of all rows with these values, mostly one; labelled by the run's id columns. Margins are NaN where the run has predictions in their place.

        Raises
        ------
        UsageError
            There is no such row or column, nothing is asked for, or the run has not all attributions of a row.
        StorageError
            The store does not answer.
        """
        self._refuse_partial()
        if not where:
            raise UsageError(f"{self.uri}: which row? Give columns and their values, such as {(*self.plan.ids, 'id')[0]}=…")
        found = self.attributions(where=where)
        if not found.num_rows:
            raise UsageError(f"{self.uri}: no such row: {', '.join(f'{name}={value!r:.80}' for name, value in where.items())}")
        return self._hold(found)

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
            ``n`` is no such number, or the run has not all attributions of a row.
        StorageError
            The store does not answer.
        """
        self._refuse_partial()
        n, n_rows = read_number("n", n, 1), self.manifest.n_rows
        drawn = np.sort(np.random.default_rng(read_number("seed", seed, 0)).choice(n_rows, min(n, n_rows), replace=False))
        with reported("read", self.uri):
            return self._hold(self.dataset().take(pa.array(drawn, pa.int64())))

    def _refuse_partial(self) -> None:
        if not self.plan.wide or self.plan.global_only:
            raise UsageError(f"{self.uri}: has {'no rows' if self.plan.global_only else 'the largest attributions of a row alone'}")

    def _hold(self, table: pa.Table) -> Attributions:
        """Rows of the parts as they were in memory, but for their rounding."""
        import pandas as pd

        plan, n = self.plan, table.num_rows
        totals, phi, _ = plan.columns
        outputs, players = plan.written_outputs, plan.players

        def read(names: Sequence[str], *shape: int) -> np.ndarray:
            columns = [table[name].to_numpy().astype(np.float64) for name in names]
            return np.stack(columns, axis=1).reshape(n, *shape) if columns else np.zeros((n, *shape))

        total, base = read(totals, len(outputs)), np.array(self.manifest.base)
        output = np.array(table[plan.chosen[0]].to_pylist(), object) if plan.chosen else None
        ids = table.select(list(plan.ids)).to_pandas()
        labels = pd.RangeIndex(n) if ids.empty else pd.MultiIndex.from_frame(ids) if len(plan.ids) > 1 else pd.Index(ids[plan.ids[0]])
        return Attributions(
            phi=read(phi, len(outputs), len(players)),
            base=base if output is None else base[[plan.outputs.index(name) for name in output]][:, None],
            margin=total if plan.space == MARGIN else np.full_like(total, np.nan),
            prediction=total,
            players=players,
            method=plan.method,
            groups=plan.groups,
            outputs=outputs,
            output=output,
            errors=read(plan.error_columns, len(outputs), len(players)) if plan.error_columns else None,
            space=plan.space,
            features=tuple(feature.name for feature in plan.features),
            rows=pd.DataFrame(index=labels),
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
    InvalidRun
        There is no manifest: the run is not finished, or not there; or it is damaged.
    StorageError
        The store does not answer.
    """
    run = normalise(str(uri))
    manifest = read_manifest(run)
    if manifest is None:
        raise InvalidRun(f"{run}: no manifest.json there: not a finished run")
    return FinishedRun(run, manifest, read_plan(run, manifest.plan))
