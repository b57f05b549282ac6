"""The Attributions record of rows in memory, with tables, waterfalls and conversions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, get_args, overload

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS

from ...arguments.choices import MARGIN, Sign, Space
from ...arguments.readers import read_choice, read_flag, read_names, read_number, refuse, shorten
from ...dataset.columns.partition import Groups
from ...display.nearest import did_you_mean
from ...display.text import COLUMNS, as_html, list_some
from ...display.text import count as count_nouns
from ...display.waterfall import Step, Waterfall, plain, shorten_steps
from ...errors import UsageError
from ...extras import needing
from ...methods.output_space import TOTALS
from ...methods.summary_tables import read_totals
from ...models.selection import find_output
from .arrow_table import as_table
from .frames import as_frame, lay_out_matrix, list_largest, name_levels

SIGNS: tuple[str, ...] = get_args(Sign)
NUMBERS = "biuf"  # kinds of numeric dtypes
ROUNDED = 1e-6  # relative to the summands, which runs store in single precision


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

    ``found[100:200]``, ``found[mask]`` and ``found[7]`` are attributions of some of the rows, without summaries, which are of all. ``found["delay"]``
    are one player's attributions, (n,), or (n, outputs) where there are several.
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

    def __len__(self) -> int:
        """Rows."""
        return len(self.phi)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """To NumPy they are ``phi``, and no sequence of single rows."""
        return np.array(self.phi, dtype, copy=copy)

    @overload
    def __getitem__(self, some: str) -> np.ndarray: ...

    @overload
    def __getitem__(self, some: Any) -> "Attributions": ...

    def __getitem__(self, some: Any) -> Any:
        if isinstance(some, str):
            phi = self.phi[:, :, self._find_player(some, self.players)]
            return phi[:, 0] if len(self.outputs) == 1 else phi
        try:
            picked = np.atleast_1d(np.arange(len(self))[some])
        except IndexError as error:
            if isinstance(some, Integral):  # where iterating ends
                raise
            known = f"positions of {count_nouns(len(self), 'row')}, a slice, a mask of them, or the name of a feature"
            raise refuse("what is asked for", some, known) from error

        def take(values: Any) -> Any:
            return None if values is None else values[picked]

        arrays = ("phi", "margin", "prediction", "interactions", "path", "output", "errors")
        changes = {name: take(getattr(self, name)) for name in arrays}
        changes |= {"base": take(self.base)} if self.base.ndim == 2 else {}
        return replace(self, **changes, summaries={}, places=picked if self.places is None else self.places[picked])

    @property
    def names(self) -> tuple[str, ...]:
        """Features or groups: the players without the scores that a ranking method writes behind them."""
        return self.players[: len(self.players) - len(METHODS[self.method].phi.scores)]

    @property
    def index(self) -> Any:
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

        self._find_player(player, (*self.names, *self.features))
        members = dict(self.groups).get(player, (player,)) if METHODS[self.method].phi.of_groups else (player,)
        feature = members[0] if len(members) == 1 else ""
        if feature not in self.features or self.rows is None or (isinstance(self.rows, pd.DataFrame) and feature not in self.rows):
            return None
        found = self.rows[:, self.features.index(feature)] if isinstance(self.rows, np.ndarray) else np.asarray(self.rows[feature])
        return found if self.places is None else found[self.places]

    def to_frame(self, interactions: bool = False) -> Any:
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
        values, sets = self._find_interactions("to_frame")
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
        values, pairs = self._find_interactions("interaction_matrix")
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
            Columns of the rows that come first.

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

    def top(self, k: int, sign: Sign = "both") -> Any:
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
        read_choice("sign", sign, SIGNS)
        self._refuse_ranks("top")
        return list_largest(self.phi[:, :, : len(names)], self.index, self.outputs, names, [self.values(name) for name in names], k, sign)

    def waterfall(self, row: int = 0, output: str | int | None = None, top: int = 10) -> Waterfall:
        """Show how one row gets from the base value to what the model says.

        Parameters
        ----------
        row : int
            Its position.
        output : str or int, optional
            Which one, by its name or position; by default the only one.
        top : int
            How many players to show, at least 1; the others are added up.

        Returns
        -------
        Waterfall
            Prints as text, and in a notebook as a table.

        Raises
        ------
        UsageError
            There is no such row or output, or attributions do not add up to a margin or prediction.
        """
        self._refuse_ranks("waterfall")
        top, number = read_number("top", top, 1), self._find_output(output)
        if not isinstance(row, Integral) or isinstance(row, bool) or not -len(self) <= row < len(self):
            raise UsageError(f"row is {row!r:.40}, expected a position of {len(self):,} rows")
        one = self[row]
        phi, base, total = one.phi[0, number, : len(self.names)], float(one.base.reshape(-1)[number]), float(one.prediction[0, number])
        if not abs(phi.sum() + base - total) <= ROUNDED * (np.abs(phi).sum() + abs(base) + abs(total)):
            raise UsageError(f"a waterfall adds up to {TOTALS[self.space]} - base value, but what method {self.method!r} finds does not")
        players = [
            Step(name, None if held is None else plain(held[0]), float(each))
            for name, held, each in zip(self.names, map(one.values, self.names), phi, strict=True)
        ]
        named = f", output {self.outputs[number]}" if len(self.outputs) > 1 else ""
        label = one.index[0]
        shown = ", ".join(str(plain(part)) for part in (label if isinstance(label, tuple) else (label,)))
        return Waterfall(f"row {shown}{named}", base, shorten_steps(players, top), total, TOTALS[self.space])

    def to_shap(self, output: str | int | None = None) -> Any:
        """Turn attributions into what the plots of shap draw.

        Parameters
        ----------
        output : str or int, optional
            Only this one, by its name or position; by default all.

        Returns
        -------
        shap.Explanation
            Of shape (n, players), or (n, players, outputs) where there are several.

        Raises
        ------
        UsageError
            shap is not installed, there is no such output, or the method ranks instead.
        """
        self._refuse_ranks("to_shap")
        with needing("to_shap", "shap"):
            from shap import Explanation
        several = output is None and len(self.outputs) > 1
        wanted = slice(None) if several else self._find_output(output)
        given = [self.values(name) for name in self.names]
        data = np.full((len(self), len(self.names)), np.nan, object)
        for j, held in enumerate(given):
            if held is not None:
                data[:, j] = held
        numbers = all(held is None or held.dtype.kind in NUMBERS for held in given)
        return Explanation(
            values=self.phi[:, :, : len(self.names)].transpose(0, 2, 1)[:, :, wanted],
            base_values=np.broadcast_to(self.base, (len(self), len(self.outputs)))[:, wanted],
            data=data.astype(float) if numbers else data,
            feature_names=list(self.names),
            output_names=list(self.outputs) if several else None,
        )

    def _find_interactions(self, what: str) -> tuple[np.ndarray, tuple[tuple[str, ...], ...]]:
        if self.interactions is None or self.sets is None:
            raise UsageError(f"{what} needs interactions, and none were asked for; give interactions='all'")
        return self.interactions, self.sets

    def _find_player(self, name: Any, names: Sequence[str]) -> int:
        if name not in names:
            kind = "group" if self.groups and METHODS[self.method].phi.of_groups else "feature"
            raise UsageError(f"there is no {kind} {shorten(name)}, expected one of {list_some(self.names)}{did_you_mean(name, names)}")
        return names.index(name)

    def _find_output(self, output: str | int | None) -> int:
        if output is None and len(self.outputs) == 1:
            return 0
        if not isinstance(output, str | Integral) or isinstance(output, bool):
            raise UsageError(f"output is {output!r:.80}, expected one of {', '.join(self.outputs)}, or a position")
        return find_output(self.outputs, output if isinstance(output, str) else int(output))

    def _refuse_ranks(self, what: str) -> None:
        if METHODS[self.method].phi.ranks:
            raise UsageError(f"{what} is of attributions, but method {self.method!r} ranks features")

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
        """The first rows of the first output: attributions to the first players, and what they and the base value add up to."""
        more = ("…",) if len(self.players) > COLUMNS else ()
        rows = ((i, *self.phi[i, 0, :COLUMNS].tolist(), *more, float(self.prediction[i, 0])) for i in range(len(self.phi)))
        title, head = f"{self}{', first output' * (self.phi.shape[1] > 1)}", ("row", *self.players[:COLUMNS], *more, TOTALS[self.space])
        return as_html(title, head, rows)
