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
from ..display.nearest import did_you_mean
from ..errors import UsageError


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
            raise UsageError(f"parameter {name!r} is {shorten(given[name])}, {error}") from None
    return values


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
        raise UsageError(f"{shorten(text)}: {error}{did_you_mean(name, {*METHODS} - {name})}") from None


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
