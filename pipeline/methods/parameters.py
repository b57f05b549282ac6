"""Look-up of methods by name, and validation of their parameters and groups."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from leafledger.kernels.method.method import Method
from leafledger.kernels.method.notation import read_method
from leafledger.kernels.methods import METHODS
from leafledger.kernels.reductions.loss_shares import LOSS_SHARES
from leafledger.kernels.reductions.summary import list_grouped

from ..arguments.choices import LOSS, MARGIN
from ..arguments.readers import shorten
from ..dataset.columns.names import name_at
from ..dataset.columns.partition import Groups, Partition, read_groups
from ..display.nearest import did_you_mean
from ..errors import UsageError
from ..models.model import Feature

_NO_PARAMETER = re.compile(r"expected no parameter '(?P<name>\w+)', it takes (?P<known>\w+(, \w+)*)")
OTHERS = "*"  # in the place of a feature's name: all that are not named


def _suggest(error: ValueError) -> str:
    """Name the parameter that was meant, where a method in a text, or in another one, has none of that name."""
    found = _NO_PARAMETER.match(str(error))
    return "" if found is None else did_you_mean(found["name"], found["known"].split(", "))


def check_parameters(method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the parameters of a method, and fill in defaults.

    Parameters
    ----------
    given : mapping of str to Any
        Values by name: as text from a command line, or as Python values.

    Returns
    -------
    dict of str to Any
        Of all of the method's parameters, in its order.
    """
    known = {parameter.name: parameter for parameter in method.parameters}
    unknown = sorted(set(given) - set(known))
    if unknown:
        takes = ", ".join(known) or "none"
        raise UsageError(f"method {method.name!r} has no parameter {unknown[0]!r}, it takes {takes}{did_you_mean(unknown[0], known)}")
    values = {}
    for name, parameter in known.items():
        try:
            values[name] = parameter.read(given[name]) if name in given else parameter.default
        except ValueError as error:
            hint = _suggest(error)
            shown = "a function" if callable(given[name]) else shorten(given[name])
            raise UsageError(f"parameter {name!r} is {shown}, {error}{hint}") from None
    return values


def group_features(method: Method, partition: Partition | None, features: Sequence[Feature]) -> Groups:
    """List groups as `read_groups` does; without a partition every feature is one where a method takes groups in a sequence.

    Parameters
    ----------
    partition : mapping, str or path, optional
        As `read_groups` takes it.
    features : sequence of Feature
        Of the model, in its order.
    """
    alone = partition is None and any(parameter.of_groups for parameter in method.parameters)
    return read_groups({} if alone else partition, features)


def number_groups(method: Method, parameters: Mapping[str, Any], groups: Groups) -> dict[str, Any]:
    """Turn the names of groups in a method's parameters into numbers.

    Parameters
    ----------
    parameters : mapping of str to Any
        All of the method's, as `check_parameters` returns them.
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.

    Returns
    -------
    dict of str to Any
        As the method takes them.

    Raises
    ------
    UsageError
        A sequence of groups is missing or lacks one, names one twice, or something else.
    """
    number, group_of = {name: k for k, (name, _) in enumerate(groups)}, {feature: name for name, members in groups for feature in members}
    numbered = dict(parameters)
    for name in (parameter.name for parameter in method.parameters if parameter.of_groups and groups):
        listed = parameters[name]
        if not listed:
            raise UsageError(f"method {method.name!r} needs parameter {name!r}: every group, and every feature that no group names, in their order")
        for k, each in enumerate(listed):
            if each not in number and each in group_of:
                raise UsageError(f"parameter {name!r} names {each!r}, a feature of group {group_of[each]!r}, expected the group")
            if each not in number:
                raise UsageError(f"parameter {name!r} names {each!r}, which is no group, and no feature outside of one{did_you_mean(each, number)}")
            if each in listed[:k]:
                raise UsageError(f"parameter {name!r} names {each!r} twice, expected once")
        missing = [each for each in number if each not in listed]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise UsageError(f"parameter {name!r} lacks {missing[0]!r}{more}, expected every group, and every feature that no group names")
        numbered[name] = tuple(number[each] for each in listed)
    return numbered


def spread_by_feature(name: str, given: Mapping[Any, Any], features: Sequence[Feature], unneeded: Any) -> tuple[Any, ...]:
    """Give every feature the value that is its own by name or position, or that of "*", which is for all others.

    Parameters
    ----------
    name : str
        What they are, for messages.
    unneeded : Any
        What categorical features have, which need none.

    Raises
    ------
    UsageError
        One is of no feature, or of one twice; or a numeric feature has none.
    """
    places = {feature.name: j for j, feature in enumerate(features)}
    found = {name_at(key, places, name): value for key, value in given.items()}
    if len(found) < len(given):
        raise UsageError(f"{name} has a feature twice, by name and position, expected once: {shorten(list(given))}")
    for key in found:
        if key not in places and key != OTHERS:
            raise UsageError(f"{name} names {shorten(key)}, which is no feature of the model{did_you_mean(key, places)}")
    left = [feature.name for feature in features if feature.name not in found and not feature.categorical]
    if left and OTHERS not in found:
        raise UsageError(f"{name} has none for feature {left[0]!r}, nor for all others, {OTHERS!r}")
    return tuple(found.get(each.name, unneeded if each.categorical else found.get(OTHERS)) for each in features)


def place_features(method: Method, values: Mapping[str, Any], features: Sequence[Feature]) -> dict[str, Any]:
    """Put what parameters have by name of features into the order of features.

    Parameters
    ----------
    values : mapping of str to Any
        Of all of the method's parameters, as `check_parameters` returns them.

    Raises
    ------
    UsageError
        As of `spread_by_feature`.
    """
    by_name = {parameter.name: parameter.by_feature for parameter in method.parameters if parameter.by_feature is not None}
    return {
        name: spread_by_feature(f"parameter {name!r}", value, features, by_name[name]) if name in by_name and isinstance(value, Mapping) else value
        for name, value in values.items()
    }


def find_method(name: str) -> Method:
    """Find a method by its name.

    Raises
    ------
    UsageError
        It is unknown; the message lists those there are.
    """
    if name not in METHODS:
        raise UsageError(f"method {name!r} is unknown, expected one of {', '.join(METHODS)}{did_you_mean(name, METHODS)}")
    return METHODS[name]


def read_entry(text: str) -> tuple[Method, dict[str, Any]]:
    """Read a method with its parameters from a text, such as ``beta:4:1`` or ``semivalue(atoms=0:1,1:1)``.

    Returns
    -------
    Method
    dict of str to Any
        Of all of its parameters, with defaults.

    Raises
    ------
    UsageError
        It is unknown, or takes other parameters.
    """
    try:
        return read_method(text, METHODS)
    except ValueError as error:
        name = re.split(r"[:(]", text)[0]  # of a method that there is, something else is wrong
        raise UsageError(f"{shorten(text)}: {error}{_suggest(error) or did_you_mean(name, {*METHODS} - {name})}") from None


def labelled_methods() -> str:
    """Name the methods that take labels, for messages."""
    return " or ".join(repr(method.name) for method in METHODS.values() if method.labelled)


def check_by(method: Method, by: Sequence[str], space: str = MARGIN) -> None:
    """Refuse grouping of rows where the method has no summary by group, or the summary would have duplicate columns.

    Parameters
    ----------
    by : sequence of str
        Columns whose values make groups; may be empty.
    space : str
        Units of attributions: losses have summaries of their own.
    """
    grouped = (LOSS_SHARES,) if space == LOSS else list_grouped(method.summaries)
    if by and not grouped:
        raise UsageError(f"by is {', '.join(by)}, but method {method.name!r} has ranks, and no importances of groups of rows; leave it out")
    columns = {column for summary in grouped for column in summary.columns}
    taken = [name for name in by if name in columns]
    if taken:
        raise UsageError(f"by has {taken[0]!r}, as a column of the summary is called; rename it")
