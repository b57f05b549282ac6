"""The classes of a CatBoost model as its file has them, and what its outputs are called."""

from dataclasses import dataclass
from typing import Any

from ...errors import InvalidModel
from ..formats.json_fields import list_of

THRESHOLD = "binclass_probability_threshold"


@dataclass(frozen=True, slots=True)
class Classes:
    """What a file says of classes. Training may see fewer than it was told of, and there are outputs for these alone."""

    names: tuple[str, ...] = ()  # of all that it was told of; none where they are called by their numbers
    seen: tuple[int, ...] = ()  # numbers of those that it saw, in the order of outputs; none in a file that does not say


def read_classes(parameters: Any, where: str) -> Classes:
    """Read what a file says of classes."""
    if parameters is None:
        return Classes()
    if not isinstance(parameters, dict):
        raise InvalidModel(f"{where}: class_params is {repr(parameters)[:40]}, expected an object")
    seen = list_of(parameters, "class_to_label", where)
    if not all(type(number) is int and number >= 0 for number in seen) or len(set(seen)) != len(seen):
        raise InvalidModel(f"{where}: class_to_label is {repr(seen)[:40]}, expected different numbers of classes")
    return Classes(tuple(map(str, list_of(parameters, "class_names", where))), tuple(seen))


def read_threshold(text: str | None, where: str) -> float | None:
    """Read from which probability on a model predicts the second of two classes."""
    try:
        found = 0.5 if text is None else float(text)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found <= 1:
        raise InvalidModel(f"{where}: {THRESHOLD} is {repr(text)[:40]}, expected a number from 0 to 1")
    return None if found == 0.5 else found


def name_both(classes: Classes, n_outputs: int) -> tuple[str, ...]:
    """Name the two classes that a single output is of."""
    if n_outputs > 1 or not 1 <= len(classes.names) <= 2:
        return ()
    first, *second = classes.names  # of a label that was the same on every row, CatBoost names that alone
    return first, *(second or (f"not {first}",))


def name_outputs(classes: Classes, n_outputs: int, where: str) -> tuple[str, ...]:
    """Name the outputs of a model: as the classes where there is one for each, by their numbers where the file says nothing of classes."""
    names, seen = classes.names, classes.seen
    if n_outputs == 1 or not (names or seen):  # a single output is of two classes, or of none
        return tuple(str(k) for k in range(n_outputs))
    if len(seen or names) != n_outputs:
        raise InvalidModel(f"{where}: {len(seen or names)} classes, expected one for each of {n_outputs} outputs")
    if not seen:
        return names
    if names and max(seen) >= len(names):
        raise InvalidModel(f"{where}: class_to_label has {max(seen)}, expected 0..{len(names) - 1}")
    return tuple(names[number] if names else str(number) for number in seen)
