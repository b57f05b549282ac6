"""Parts of attributions: some of their rows, one player's, those of a pair or set, one output; and who asks for what there is not."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.row_outputs import find_predicted

from ...arguments.readers import refuse, shorten
from ...display.nearest import did_you_mean
from ...display.text import count, list_some
from ...errors import UsageError
from ...models.selection import find_output

HINTS = {  # what others call it, and what it is called here
    **dict.fromkeys(("base_values", "expected_value"), "; the base value is found.base"),
    **dict.fromkeys(("shap_values", "attributions"), "; they are found.phi, and of one feature found['feature']"),
    **dict.fromkeys(("data", "display_data"), "; values of a feature are found.values('feature'), all rows found.rows"),
    **dict.fromkeys(("feature_names", "columns"), "; features are found.names"),
    "shape": "; that of numbers is found.phi.shape: rows, outputs, features",
}
OF_ROWS = ("phi", "margin", "prediction", "interactions", "path", "output", "errors")


def pick(found: Any, some: Any) -> Any:
    """Pick the attributions of some rows of Attributions, or the numbers of one player or of a pair or set."""
    if isinstance(some, str):
        return _without_single(found, found.phi[:, :, find_player(found, some, found.players)])
    if isinstance(some, tuple) and some and all(isinstance(name, str) for name in some):
        number = _find_set(found, some)
        acting = found.interactions[:, :, number] if number is not None else np.zeros(found.phi.shape[:2])
        return _without_single(found, acting)
    known = f"positions of {count(len(found), 'row')}, a slice, a mask of them, or the name of a feature"
    try:
        picked = np.atleast_1d(np.arange(len(found))[some])
    except (IndexError, TypeError, ValueError) as error:
        if isinstance(some, Integral):  # where iterating ends
            raise
        raise refuse("what is asked for", some, known) from error
    if picked.ndim > 1:
        raise refuse("what is asked for", some, known)
    arrays = (*OF_ROWS, "base") if found.base.ndim == 2 else OF_ROWS
    changes = {name: held[picked] for name in arrays if (held := getattr(found, name)) is not None}
    return replace(found, **changes, summaries={}, places=picked if found.places is None else found.places[picked])


def _without_single(found: Any, values: np.ndarray) -> np.ndarray:
    return values[:, 0] if len(found.outputs) == 1 else values


def _find_set(found: Any, members: tuple[str, ...]) -> int | None:
    """Return the number of a pair or set, in any order of its members; None of one that never meets, where all that do were asked for."""
    for name in members:
        find_player(found, name, found.players)
    _, sets = find_interactions(found, f"the interaction of {' and '.join(members)}")
    number = next((number for number, known in enumerate(sets) if len(known) == len(members) and {*known} == {*members}), None)
    sizes = {2} if found.pairs is not None else {*map(len, sets)}  # that were asked for
    never = len({*members}) == len(members) and len(members) in sizes and found.n_kept >= len(sets)
    if number is None and not never:
        raise UsageError(f"there are no interactions of {' and '.join(members)}, which never act together, or were not asked for")
    return number


def find_interactions(found: Any, what: str) -> tuple[np.ndarray, tuple[tuple[str, ...], ...]]:
    """Return interactions and their sets."""
    if found.interactions is None or found.sets is None:
        raise UsageError(f"{what} needs interactions, and none were asked for; give interactions='all'")
    return found.interactions, found.sets


def find_player(found: Any, name: Any, names: Sequence[str]) -> int:
    """Return the position of a player among names."""
    if name not in names:
        kind = "group" if found.groups and METHODS[found.method].phi.of_groups else "feature"
        meant = f"; it is an output: found.to_frame()[{name!r}]" if len(found.outputs) > 1 and name in found.outputs else did_you_mean(name, names)
        raise UsageError(f"there is no {kind} {shorten(name)}, expected one of {list_some(found.names)}{meant}")
    return names.index(name)


def find_position(found: Any, output: str | int | None) -> int:
    """Return the position of an output; None means the only one."""
    if output is None and len(found.outputs) == 1:
        return 0
    if not isinstance(output, str | Integral) or isinstance(output, bool):
        raise UsageError(f"output is {output!r:.80}, expected one of {', '.join(found.outputs)}, or a position")
    return find_output(found.outputs, output if isinstance(output, str) else int(output))


def predicted_outputs(found: Any) -> np.ndarray | None:
    """Return the position of every row's predicted class, ``(n,)``, or None where several outputs are no classes of one label."""
    if len(found.outputs) == 1:
        return np.zeros(len(found), np.int64)
    return find_predicted(np.ascontiguousarray(found.margin.T)) if found.of_classes else None


def refuse_ranks(found: Any, what: str) -> None:
    """Refuse a method whose numbers are places in a ranking."""
    if METHODS[found.method].phi.ranks:
        raise UsageError(f"{what} is of attributions, but method {found.method!r} ranks features")
