"""Classes of a CatBoost model, and the names of its outputs."""

from dataclasses import dataclass
from typing import Any

from ...errors import InvalidModel
from ..formats.json_fields import list_of

THRESHOLD = "binclass_probability_threshold"


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes in a file. Training may see fewer than it was given, and has outputs for these alone."""

    names: tuple[str, ...] = ()  # all that training was given; empty if they are numbered
    seen: tuple[int, ...] = ()  # numbers of the classes in training, in the order of outputs; empty if unknown


def read_classes(parameters: Any, where: str) -> Classes:
    """Read the classes of a file."""
    if parameters is None:
        return Classes()
    if not isinstance(parameters, dict):
        raise InvalidModel(f"{where}: class_params is {repr(parameters)[:40]}, expected an object")
    seen = list_of(parameters, "class_to_label", where)
    if not all(type(number) is int and number >= 0 for number in seen) or len(set(seen)) != len(seen):
        raise InvalidModel(f"{where}: class_to_label is {repr(seen)[:40]}, expected different numbers of classes")
    return Classes(tuple(map(str, list_of(parameters, "class_names", where))), tuple(seen))


def read_threshold(text: str | None, where: str) -> float | None:
    """Read the probability threshold of the second of two classes."""
    try:
        found = 0.5 if text is None else float(text)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found <= 1:
        raise InvalidModel(f"{where}: {THRESHOLD} is {repr(text)[:40]}, expected a number from 0 to 1")
    return None if found == 0.5 else found


def name_both(classes: Classes, n_outputs: int) -> tuple[str, ...]:
    """Name the two classes of a single output."""
    if n_outputs > 1 or not 1 <= len(classes.names) <= 2:
        return ()
    first, *second = classes.names  # for a constant label, CatBoost names only one class
    return first, *(second or (f"not {first}",))


def name_outputs(classes: Classes, n_outputs: int, where: str) -> tuple[str, ...]:
    """Name the outputs by classes if there is one for each, or by number if the file has no classes."""
    names, seen = classes.names, classes.seen
    if n_outputs == 1 or not (names or seen):  # a single output has two classes, or none
        return tuple(str(k) for k in range(n_outputs))
    if len(seen or names) != n_outputs:
        raise InvalidModel(f"{where}: {len(seen or names)} classes, expected one for each of {n_outputs} outputs")
    if not seen:
        return names
    if names and max(seen) >= len(names):
        raise InvalidModel(f"{where}: class_to_label has {max(seen)}, expected 0..{len(names) - 1}")
    return tuple(names[number] if names else str(number) for number in seen)
