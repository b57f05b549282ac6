"""Parts of a model: some of its iterations, one of its outputs, or renamed outputs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble

from ..arguments.iterations import Iterations
from ..display.nearest import did_you_mean
from ..display.text import is_whole
from ..errors import UnsupportedModel, UsageError
from .model import Model
from .objectives import Margin


def keep_trees(ensemble: TreeEnsemble, trees: np.ndarray) -> TreeEnsemble:
    """Keep some trees, and only their nodes.

    Parameters
    ----------
    trees : (kept,) int
        Their numbers, ascending.

    Returns
    -------
    TreeEnsemble
        With the same columns, outputs and base values.
    """
    level, found = ensemble.root[trees], [np.zeros(0, np.int64)]
    while level.size:
        found.append(level)
        inner = level[ensemble.feature[level] >= 0]
        level = np.concatenate((ensemble.left[inner], ensemble.right[inner]))
    nodes = np.sort(np.concatenate(found))
    number = np.full(ensemble.feature.size, -1, np.int32)
    number[nodes] = np.arange(nodes.size)
    left, right = (np.where(side[nodes] < 0, -1, number[side[nodes]]) for side in (ensemble.left, ensemble.right))
    return ensemble._replace(
        feature=ensemble.feature[nodes],
        threshold=ensemble.threshold[nodes],
        missing_left=ensemble.missing_left[nodes],
        category_set=ensemble.category_set[nodes],
        left=left,
        right=right,
        value=ensemble.value[nodes],
        cover=ensemble.cover[nodes],
        root=number[ensemble.root[trees]],
        output=ensemble.output[trees],
        iteration=ensemble.iteration[trees] if ensemble.iteration.size else ensemble.iteration,
    )


def keep_iterations(model: Model, iterations: Iterations) -> Model:
    """Keep some boosting iterations, as the library counts them.

    Parameters
    ----------
    iterations : (int, int)
        The first, and that behind the last.

    Returns
    -------
    Model
        Its margins are the library's own of these iterations: of CatBoost the base value belongs to the first one, of others to all.

    Raises
    ------
    UsageError
        The model has no such iterations.
    UnsupportedModel
        Its trees are averaged, so that a part of them is another model.
    """
    ensemble, (start, stop) = model.ensemble, iterations
    if not ensemble.root.size:
        raise UsageError(f"trees is {start}:{stop}, but the model has none")
    if not ensemble.iteration.size:
        raise UnsupportedModel(f"a {model.library} model whose trees are averaged has no iterations")
    n = int(ensemble.iteration[-1]) + 1
    if not 0 <= start < stop <= n:
        raise UsageError(f"trees is {start}:{stop}, expected some of the model's iterations 0:{n}")
    kept = keep_trees(ensemble, np.flatnonzero((ensemble.iteration >= start) & (ensemble.iteration < stop)))
    base = np.zeros_like(kept.base) if start and ensemble.base_is_first else kept.base
    return replace(model, ensemble=kept._replace(base=base, iteration=kept.iteration - start))


def keep_output(model: Model, output: int) -> Model:
    """Keep one output.

    Parameters
    ----------
    output : int
        Its position.
    """
    ensemble, objective = model.ensemble, model.objective
    if len(model.outputs) > 1 and objective.margin is Margin.CLASSES:
        objective = replace(objective, margin=Margin.ALONE)
    elif len(model.outputs) > 1 and objective.margin is Margin.CLASS:  # a binary label of its own
        objective = replace(objective, classes=(f"not {model.outputs[output]}", model.outputs[output]))
    if ensemble.value.shape[1] > 1:
        kept = ensemble._replace(value=np.ascontiguousarray(ensemble.value[:, output : output + 1]))
    else:
        kept = keep_trees(ensemble, np.flatnonzero(ensemble.output == output))
    alone = kept._replace(base=ensemble.base[output : output + 1], output=np.zeros_like(kept.output))
    return replace(model, ensemble=alone, outputs=(model.outputs[output],), objective=objective, only_output=output)


def name_outputs(model: Model, names: Sequence[str]) -> Model:
    """Rename the outputs."""
    if not names:
        return model
    if len(names) != len(model.outputs):
        raise UsageError(f"outputs are {', '.join(names)}, expected names for {len(model.outputs)} of them")
    if len(set(names)) < len(names) or not all(map(is_whole, names)):
        raise UsageError(f"outputs are {names!a}, expected different names without half characters")
    return replace(model, outputs=tuple(names), objective=replace(model.objective, classes=()))


def find_output(outputs: Sequence[str], asked: str | int) -> int:
    """Find an output by name or position.

    Parameters
    ----------
    outputs : sequence of str
        Names of all.
    asked : str or int
        A text is a name before it is a position.

    Returns
    -------
    int
        Its position.

    Raises
    ------
    UsageError
        There is no such output, or a number is the position of one and the name of another.
    """
    name = str(asked)
    position = int(name) if name.isdecimal() and int(name) < len(outputs) else None
    named = outputs.index(name) if name in outputs else position
    if named is None:
        raise UsageError(f"output is {asked!r:.80}, expected one of {', '.join(outputs)}, or a position{did_you_mean(asked, outputs)}")
    if not isinstance(asked, str) and position not in (None, named):
        raise UsageError(f"output is {asked}, which may be {outputs[int(name)]!r} at this position or the one called {name!r}; give its name as text")
    return named


def select(model: Model, trees: Iterations | None = None, outputs: Sequence[str] = (), output: str | int | None = None) -> Model:
    """Keep a part of a model."""
    part = name_outputs(model if trees is None else keep_iterations(model, trees), outputs)
    return part if output is None else keep_output(part, find_output(part.outputs, output))
