"""Matching of feature names with columns, where libraries alter or omit names; and features by position."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from numbers import Integral
from typing import Any

from ...display.text import list_some
from ...errors import SchemaMismatch, UsageError
from ...models.model import Feature, Model


def spell(
    features: Sequence[Feature], columns: Iterable[str], where: str, apart: Iterable[str] = (), asked: Iterable[str] = ()
) -> tuple[tuple[str, ...], bool]:
    """Rename features as the columns: LightGBM replaces spaces by underscores, and models of plain matrices have no names.

    Parameters
    ----------
    columns : iterable of str
        Names of all columns of the data, in their order.
    where : str
        What the columns are of, for the message.
    apart : iterable of str
        Columns that are no features where features go by position, wherever they stand: those that the path carries, and an index.
    asked : iterable of str
        Columns that are asked for besides, such as ids and labels: no features either, if they stand behind them.

    Returns
    -------
    names : tuple of str
        Features are called as their columns; as in the model where there is none.
    by_position : bool
        Whether columns are theirs by position alone.

    Raises
    ------
    SchemaMismatch
        Two columns may be a feature's; or the model has no names, and columns do not match its features by position either.
    """
    names = [*columns]
    if any(feature.named for feature in features):
        return _by_name(features, names, where), False
    return _without_names([feature.name for feature in features], names, where, {*apart}, {*asked})


def call(model: Model, names: Sequence[str], by_position: bool) -> Model:
    """Rename a model's features as the columns; features without names get names.

    Parameters
    ----------
    by_position : bool
        As `spell` returns both.
    """
    nameless = not any(feature.named for feature in model.features)
    features = (replace(each, name=name, named=each.named or nameless) for each, name in zip(model.features, names, strict=True))
    return replace(model, features=tuple(features), by_position=model.by_position or by_position)


def _by_name(features: Sequence[Feature], columns: Sequence[str], where: str) -> tuple[str, ...]:
    written: dict[str, list[str]] = {}  # names in LightGBM's spelling
    for name in sorted({*columns}):
        written.setdefault(name.replace(" ", "_"), []).append(name)
    names = []
    for feature in features:
        found = written.get(feature.name, []) if feature.underscored else []
        if len(found) > 1:
            raise SchemaMismatch(
                f"{where}: columns {found[0]!r} and {found[1]!r} may both be the model's {feature.name!r}, expected one of them: LightGBM writes "
                "underscores for spaces"
            )
        names.append(found[0] if found else feature.name)
    return tuple(names)


def _without_names(made_up: Sequence[str], columns: Sequence[str], where: str, apart: set[str], asked: set[str]) -> tuple[tuple[str, ...], bool]:
    """Match by the library's generated names if all exist, else by position, as the libraries do."""
    n, there, standing = len(made_up), {*columns}, [name for name in columns if name not in apart]
    in_order = [name for name in standing if name not in asked]
    if there.issuperset(made_up):
        moved = [(name, other) for name, other in zip(made_up, in_order, strict=False) if name != other] if len(in_order) == n else []
        if moved:
            raise SchemaMismatch(
                f"{where}: column {moved[0][1]!r} stands where the model, which has no names, takes {moved[0][0]!r}: position and name differ, "
                "expected them to agree"
            )
        return tuple(made_up), False
    known, lacking = there.intersection(made_up) - apart - asked, [name for name in made_up if name not in there]
    if known:
        raise SchemaMismatch(
            f"{where}: has column {min(known)!r} but not {lacking[0]!r}: the model has no names, expected {n} columns in its order, either all or "
            f"none of them called {list_some(made_up)}"
        )
    if len(in_order) != n:
        raise SchemaMismatch(
            f"{where}: the model has no names for its {n} features; besides ids, labels and what the path carries the data have {len(in_order)} "
            f"columns ({list_some(in_order)}), expected {n} in the model's order, or columns called {list_some(made_up)}"
        )
    if standing[:n] != in_order:  # a model trained on all columns would take the label, which is last, for a feature
        early = next(name for name in standing if name in asked)
        raise SchemaMismatch(
            f"{where}: column {early!r} stands before columns that go by position, since the model has no names, and may be one of its {n} features "
            f"itself: expected it behind them, or columns called {list_some(made_up)}"
        )
    return tuple(in_order), True


def say_positions(model: Model) -> str:
    """Report that features were matched by position.

    Parameters
    ----------
    model : Model
        As `call` returns it.

    Returns
    -------
    str
        Empty where they were matched by name.
    """
    return f"by position, since the model has no names: {list_some([feature.name for feature in model.features])}" if model.by_position else ""


def name_at(given: Any, places: Mapping[str, int], where: str) -> Any:
    """Return the name at a position.

    Parameters
    ----------
    given : Any
        A position, from 0; or something else.
    places : mapping of str to int
        Positions of all names, in their order.
    where : str
        Who names it, for the message.

    Returns
    -------
    Any
        A name; what is no position is returned as it is.

    Raises
    ------
    UsageError
        There is no such position, or something else has this number for a name.
    """
    if not isinstance(given, Integral) or isinstance(given, bool):
        return given
    number = int(given)
    if not 0 <= number < len(places):
        raise UsageError(f"{where} names position {number}, expected 0 to {len(places) - 1}")
    name = next(islice(places, number, None))
    if places.get(str(number), number) != number:
        raise UsageError(f"{where} names {number}, which may be {name!r} at this position or the one called '{number}'; give its name as text")
    return name
