"""Summary states of a run, merged in a fixed tree as parts complete in any order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leafledger.kernels.reductions.merge_tree import MergeTree
from leafledger.kernels.reductions.summary import Summary, list_grouped
from leafledger.kernels.slices.labels import check_groups

from ...methods.reduction_states import pack_state, unpack_state
from ...methods.tables import refused
from ..records.plan import Plan


class MergedStates:
    """One merge tree for every summary.

    Parameters
    ----------
    summaries : sequence of Summary
        Of the run.
    """

    def __init__(self, summaries: Sequence[Summary]):
        self._trees = {summary.name: (summary.reduction, MergeTree(summary.reduction.merge_several)) for summary in summaries}

    def add(self, place: int, states: Mapping[str, str] | None, level: int = 0) -> dict[str, Any]:
        """Add the states of a part, or of several merged parts.

        Parameters
        ----------
        place : int
            Number of the part, or of the bundle among those of its level.
        states : mapping of str to str or None
            Packed, by the names of summaries; what else there is is passed over. None where nothing could be explained.
        level : int
            Of the bundle, see `MergeTree.add`.

        Returns
        -------
        dict of str to state
            Those that were added, unpacked.
        """
        found = {} if states is None else {name: unpack_state(reduction, states[name]) for name, (reduction, _) in self._trees.items()}
        for name, (_, tree) in self._trees.items():
            tree.add(place, found.get(name), level)
        return found

    def total(self) -> dict[str, Any]:
        """Merge all states; afterwards there are none.

        Returns
        -------
        dict of str to state or None
            By the names of summaries; None where there is no part.
        """
        return {name: tree.total() for name, (_, tree) in self._trees.items()}

    def pack(self) -> dict[str, str] | None:
        """Merge all states, and pack them.

        Returns
        -------
        dict of str to str or None
            As `add` takes it.
        """
        total = self.total()
        return None if None in total.values() else {name: pack_state(state) for name, state in total.items()}


def add_groups(plan: Plan, names: np.ndarray, states: Mapping[str, Any]) -> np.ndarray:
    """Add a part's groups of rows to the others, refusing too many as soon as they occur.

    Parameters
    ----------
    names : (groups,) str
        Of the other parts, ascending.
    states : mapping of str to state
        Of the parts, by the names of summaries; empty where there are none.

    Returns
    -------
    (groups,) str
        Of all of them, ascending.

    Raises
    ------
    UsageError
        There are more than are worth a table.
    """
    if not plan.by or not states:
        return names
    for summary in list_grouped(plan.summaries):
        names = np.union1d(names, states[summary.name].names)
    with refused():
        check_groups(tuple(column.name for column in plan.by), names.size, len(plan.written_outputs) * len(plan.players))
    return names
