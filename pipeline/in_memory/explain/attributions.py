"""The Attributions record of rows in memory, with tables, waterfalls and conversions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, get_args, overload

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS

from ...arguments.choices import MARGIN, Sign, Space
from ...arguments.readers import read_choice, read_flag, read_names, read_number
from ...dataset.columns.partition import Groups
from ...display.text import count as count_nouns
from ...display.waterfall import Waterfall
from ...errors import UsageError
from ...methods.summary_tables import read_totals
from ..pictures.plots import Plots
from .arrow_table import as_table
from .frames import as_frame, as_polars, lay_out_matrix, list_largest, name_levels, show_rows
from .importances import list_importance
from .one_row import trace_row
from .picked import HINTS, find_interactions, find_player, pick, refuse_ranks
from .saved import save_attributions
from .shap_explanation import as_explanation

if TYPE_CHECKING:  # what editors complete: none of these is imported before it is needed
    import pandas as pd
    import polars
    import shap


@dataclass(frozen=True, slots=True)
class Attributions:
    """What each feature, or group of features, contributed to each row's margin or prediction; with labels, took off its squared error.

    Attributes
    ----------
    phi : (n, outputs, players) float64
        In the units of the space, NaN where a label is missing. Where a method is additive, ``phi.sum(axis=2) + base`` is ``prediction``.
    base : (outputs,) float64, or (n, 1)
        Prediction with every feature absent; of every row where each has an output, or a loss, of its own.
    margin : (n, outputs) float64
        Raw scores.
    prediction : (n, outputs) float64
        In the units of the space: the margin, or a loss, NaN where a label is missing.
    players : tuple of str
        Features or groups, and after them what a ranking method measures.
    method : str
        Which values phi are.
    groups : tuple
        The partition, if any: every group with its features.
    interactions : (n, outputs, pairs) float64, or None
        Where they were asked for, of pairs or, with an order, of ``sets``. Players that are no pair or set do not interact.
    pairs, sets : tuple, or None
        Names of the two players of every pair, and None with an order; of every pair, or set of any size.
    n_kept : int
        How many interactions of a row and output there are at most that are not 0.
    path : (n, outputs, steps) float64, or None
        What method "ranker" made larger, at each of its steps; of method "curves" the points of both curves.
    summaries : mapping of str to pyarrow.Table
        Those that a run publishes, over these rows; laid out when they are first looked at.
    outputs : tuple of str
        What the outputs are called.
    output : (n,) str, or None
        Which of the model's outputs a row was explained for, where each has one of its own.
    errors : (n, outputs, players) float64, or None
        Standard errors of the attributions, in their units, where they were asked for: of the background as a sample.
    space : str
        What attributions are of: "margin", "probability", "response" or "loss".
    by_row : bool
        Whether background row by background row; otherwise along the line from the mean margin.
    features : tuple of str
        Of the model, in its order.
    rows : data frame, Arrow table, array, or None
        Those that were explained, as they were given, and perhaps others.
    places : (n,) int64, or None
        Which of ``rows`` each row is; None where it is all of them.
    parameters : dict of str to Any
        Of the method, all of them; those that were left open as they were chosen.
    of_classes : bool
        Whether outputs are the classes of one label, so that a row's largest margin is that of the predicted one.

    ``found[100:200]``, ``found[mask]`` and ``found[7]`` are attributions of some of the rows, without summaries, which are of all. ``found["delay"]``
    are one player's attributions, (n,), or (n, outputs) where there are several, and ``found["delay", "carrier"]`` the interactions of both.
    """

    phi: np.ndarray
    base: np.ndarray
    margin: np.ndarray
    prediction: np.ndarray
    players: tuple[str, ...]
    method: str
    groups: Groups = ()
    interactions: np.ndarray | None = None
    pairs: tuple[tuple[str, str], ...] | None = None
    n_kept: int = 0
    path: np.ndarray | None = None
    summaries: Mapping[str, pa.Table] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    output: np.ndarray | None = None
    errors: np.ndarray | None = None
    space: Space = MARGIN
    by_row: bool = False
    features: tuple[str, ...] = ()
    rows: Any = None
    places: np.ndarray | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    sets: tuple[tuple[str, ...], ...] | None = None
    of_classes: bool = False

    def __len__(self) -> int:
        """Rows."""
        return len(self.phi)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """To NumPy they are ``phi``, and no sequence of single rows."""
        return np.array(self.phi, dtype, copy=copy)

    @overload
    def __getitem__(self, some: str | tuple[str, ...]) -> np.ndarray: ...

    @overload
    def __getitem__(self, some: Any) -> "Attributions": ...

    def __getitem__(self, some: Any) -> Any:
        return pick(self, some)

    if not TYPE_CHECKING:  # or a misspelt name would pass for one of any type

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"attributions have no {name!r}{HINTS.get(name, '')}")

    @property
    def names(self) -> tuple[str, ...]:
        """Features or groups: the players without the scores that a ranking method writes behind them."""
        return self.players[: len(self.players) - len(METHODS[self.method].phi.scores)]

    @property
    def index(self) -> "pd.Index":
        """Labels of the rows, a pandas Index: that of a pandas frame, else their numbers in what was given."""
        import pandas as pd

        if isinstance(self.rows, pd.DataFrame):
            return self.rows.index if self.places is None else self.rows.index[self.places]
        return pd.RangeIndex(len(self)) if self.places is None else pd.Index(self.places)

    def values(self, player: str) -> np.ndarray | None:
        """Take a feature's values in the rows.

        Parameters
        ----------
        player : str
            One of ``names``.

        Returns
        -------
        (n,) array or None
            As they were given, a category by its value; None of a group of several features, of a combination, and where there are none, as in a run.

        Raises
        ------
        UsageError
            There is no such player.
        """
        import pandas as pd

        find_player(self, player, (*self.names, *self.features))
        members = dict(self.groups).get(player, (player,)) if METHODS[self.method].phi.of_groups else (player,)
        feature = members[0] if len(members) == 1 else ""
        if feature not in self.features or self.rows is None or (isinstance(self.rows, pd.DataFrame) and feature not in self.rows):
            return None
        found = self.rows[:, self.features.index(feature)] if isinstance(self.rows, np.ndarray) else np.asarray(self.rows[feature])
        return found if self.places is None else found[self.places]

    def to_frame(self, interactions: bool = False) -> "pd.DataFrame":
        """Turn attributions, or interactions, into a data frame.

        Parameters
        ----------
        interactions : bool
            Whether interactions are meant.

        Returns
        -------
        pandas.DataFrame
            A row for every row, with its index, and a column for every player; of several outputs, columns have two levels, output and player.
            Of interactions a column for every pair or set, with the levels "first", "second" and so on, "" behind a smaller set.

        Raises
        ------
        UsageError
            Interactions were not asked for.
        """
        if not read_flag("interactions", interactions):
            return as_frame(self.phi, self.index, self.outputs, {None: self.players})
        values, sets = find_interactions(self, "to_frame")
        return as_frame(values, self.index, self.outputs, name_levels(sets))

    def interaction_matrix(self, halves: bool = True) -> np.ndarray:
        """Lay out the interactions of pairs as symmetric matrices.

        Parameters
        ----------
        halves : bool
            Whether to write them as shap and XGBoost do: each entry is half of an interaction, and the diagonal what is left of a player's
            attribution, so that a line adds up to it. Otherwise an entry is the interaction itself, and the diagonal is 0.

        Returns
        -------
        (n, outputs, players, players) float64

        Raises
        ------
        UsageError
            Interactions were not asked for, or are of sets; or with halves not all of them, of which something is left.
        """
        values, pairs = find_interactions(self, "interaction_matrix")
        if self.pairs is None:
            raise UsageError("interaction_matrix is of pairs, but interactions are of sets of players; leave out the order")
        if read_flag("halves", halves) and self.n_kept < len(pairs):
            raise UsageError(
                f"the diagonal is what all {len(pairs)} interactions leave of attributions, but the {self.n_kept} largest of a row were kept; give "
                "interactions='all', or halves=False"
            )
        number = {name: player for player, name in enumerate(self.players)}
        places = np.array([[number[name] for name in pair] for pair in pairs], np.int64).reshape(-1, 2)
        return lay_out_matrix(values, places, self.phi, halves)

    def to_arrow(self, ids: str | Sequence[str] = ()) -> pa.Table:
        """Turn attributions into a table of Arrow, whose columns are called as those of a run's parts: ``margin``, ``phi_<feature>``, …

        Parameters
        ----------
        ids : str or sequence of str
            Columns of the rows, or of their index, that come first.

        Returns
        -------
        pyarrow.Table
            A row for every row. Numbers are float64, ranks int32; attributions are null where a label is missing.

        Raises
        ------
        UsageError
            The rows have no such column.
        SchemaMismatch
            Two columns would have the same name.
        """
        return as_table(self, read_names("ids", ids))

    def to_polars(self, ids: str | Sequence[str] = ()) -> "polars.DataFrame":
        """Turn attributions into a data frame of Polars.

        Parameters
        ----------
        ids : str or sequence of str
            Columns of the rows, or of their index, that come first.

        Returns
        -------
        polars.DataFrame
            With the columns of `to_arrow`.

        Raises
        ------
        UsageError
            Polars is not installed, or the rows have no such column.
        SchemaMismatch
            Two columns would have the same name.
        """
        return as_polars(self.to_arrow(ids))

    def importance(self) -> "pd.DataFrame":
        """Rank features, or groups, by how much they move predictions over all rows.

        Returns
        -------
        pandas.DataFrame
            The most important first: ``feature``, ``output`` where there are several, ``mean_abs``, ``standard_error`` of it, of the rows as a
            sample, ``background_error`` where it was asked for, ``share``, ``mean``, ``std``, ``min`` and ``max``. Of rows that were picked, or read
            from a run, each counts once. Of losses ``mean`` comes first, and the error is of it; of method "r2" there are shares and their errors.

        Raises
        ------
        UsageError
            The method ranks instead, or takes labels, and these are some of the rows.
        """
        return list_importance(self)

    def save(self, path: str | PathLike) -> None:
        """Save all of this in one Parquet file, which `load_attributions` reads.

        Parameters
        ----------
        path : str or path
            Or a URI, that ends in ".parquet". A file that is there is not replaced, unless it holds the same.

        Raises
        ------
        UsageError
            A column of the rows is none that Arrow can hold, or the path ends in something else.
        RunConflict
            There is another file.
        StorageError
            The store does not answer, or cannot be written.
        """
        save_attributions(self, path)

    def top(self, k: int, sign: Sign = "both") -> "pd.DataFrame":
        """Find the largest attributions of every row.

        Parameters
        ----------
        k : int
            How many of each row and output, at least 1; fewer where fewer are not 0.
        sign : "both", "raises" or "lowers"
            Of which to take them: the largest by magnitude, those above 0, or those below.

        Returns
        -------
        pandas.DataFrame
            Columns output, rank, feature, phi and value, the row's index beside them; the largest first, of equal ones the first feature.

        Raises
        ------
        UsageError
            ``k`` is no number from 1 on, ``sign`` none of these, or the method ranks instead.
        """
        k, names = read_number("k", k, 1), self.names
        read_choice("sign", sign, get_args(Sign))
        refuse_ranks(self, "top")
        return list_largest(self.phi[:, :, : len(names)], self.index, self.outputs, names, [self.values(name) for name in names], k, sign)

    def waterfall(self, row: int | str = 0, output: str | int | None = None, top: int = 10) -> Waterfall:
        """Show how one row gets from the base value to what the model says.

        Parameters
        ----------
        row : int or label
            Its position, or its label where that is no number.
        output : str or int, optional
            Which one, by its name or position; by default the only one, or the class that is predicted for the row.
        top : int
            How many players to show, at least 1; the others are added up.

        Returns
        -------
        Waterfall
            Prints as text, and in a notebook as a table.

        Raises
        ------
        UsageError
            There is no such row or output, several outputs are no classes of one label, or attributions do not add up to a margin or prediction.
        """
        return trace_row(self, row, output, read_number("top", top, 1))

    def to_shap(self, output: str | int | None = None) -> "shap.Explanation":
        """Turn attributions into what the plots of shap draw.

        Parameters
        ----------
        output : str or int, optional
            Only this one, by its name or position; by default all.

        Returns
        -------
        shap.Explanation
            Of shape (n, players), or (n, players, outputs) where there are several. A category that is missing is called "missing".

        Raises
        ------
        UsageError
            shap is not installed, there is no such output, or the method ranks instead.
        """
        return as_explanation(self, output)

    @property
    def plot(self) -> Plots:
        """What can be drawn, as ``found.plot.beeswarm()``."""
        return Plots(self)

    @property
    def totals(self) -> dict[str, Any]:
        """What summaries say once of all rows, by their names: of ``r2`` R^2 itself, its standard error and the remainder."""
        return read_totals(self.summaries)

    def __repr__(self) -> str:
        (n, outputs, _), kind = self.phi.shape, METHODS[self.method].phi
        noun = "group" if self.groups and kind.of_groups else "feature"
        counts = count_nouns(n, "row"), count_nouns(outputs, "output"), count_nouns(len(self.players) - len(kind.scores), noun)
        return f"Attributions({', '.join(counts)}, method {self.method}{'' if self.space == MARGIN else f', space {self.space}'})"

    def _repr_html_(self) -> str:
        """Show the first rows: attributions to the first players with their values, and what they and the base value add up to."""
        return show_rows(self)
