"""Methods with their parameters as text: ``beta:4:1``, or by name, ``semivalue(atoms=0.25:1,0.75:1)``."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .method import Method
from .parameters import Parameter

_NAMED = re.compile(r"\s*(\w+)\s*=(.*)", re.DOTALL)


def split_methods(text: str) -> list[str]:
    """Split a list at the commas outside of parentheses.

    Parameters
    ----------
    text : str
        such as ``shapley,semivalue(atoms=0:1,1:1)``

    Returns
    -------
    list of str
        in the order of the text; one of them where there is no such comma
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _write_call(method: Method) -> str:
    """Write a method with the names of its parameters."""
    return f"{method.name}({','.join(f'{parameter.name}=…' for parameter in method.parameters)})"


def _read_named(method: Method, text: str) -> Iterator[tuple[Parameter, str]]:
    """Read parameters by name; a part without a name belongs to the value before it, as in ``atoms=0:1,1:1``."""
    known, found = {parameter.name: parameter for parameter in method.parameters}, dict[str, str]()
    for part in split_methods(text) if text.strip() else ():
        named = _NAMED.fullmatch(part)
        if named is None and not found:
            raise ValueError(f"expected parameters by name: {_write_call(method)}")
        if named is None:
            last = next(reversed(found))
            found[last] = f"{found[last]},{part.strip()}"
            continue
        name, value = named.groups()
        if name in found or name not in known:
            raise ValueError(f"expected {name!r} once" if name in found else f"expected no parameter {name!r}, it takes {', '.join(known) or 'none'}")
        found[name] = value.strip()
    return ((known[name], value) for name, value in found.items())


def read_method(text: str, methods: Mapping[str, Method]) -> tuple[Method, dict[str, Any]]:
    """Parse a method with its parameters, in order after colons, ``beta:4:1``, or by name in parentheses, ``beta(alpha=4,beta=1)``.

    Parameters
    ----------
    methods : mapping
        from names to the methods that are allowed

    Returns
    -------
    method : Method
    given : dict
        from the name of each of its parameters to its value; the default where the text has none

    Raises
    ------
    ValueError
        a name that is none of ``methods``, more values than the method has parameters, unknown ones, or values that it does not take
    """
    opened, closed = text.find("("), text.rstrip().endswith(")")
    by_name = opened >= 0 and ":" not in text[:opened]
    name, *values = (text[:opened].strip(),) if by_name else text.split(":")
    if name not in methods:
        raise ValueError(f"expected one of {', '.join(methods)}")
    found = methods[name]
    if by_name and not closed:
        raise ValueError(f"expected a closing parenthesis: {_write_call(found)}")
    known = found.parameters
    if len(values) > len(known):
        in_order = ":".join((name, *(parameter.name for parameter in known)))
        raise ValueError(f"expected at most {len(known)} parameters: {in_order}, or by name {_write_call(found)}")
    read = _read_named(found, text.rstrip()[opened + 1 : -1]) if by_name else zip(known, values, strict=False)
    given = {parameter.name: parameter.default for parameter in known}
    for parameter, value in read:
        try:
            given[parameter.name] = parameter.read(value)
        except ValueError as error:
            raise ValueError(f"{error} for {parameter.name!r}") from None
    return found, given


def choose_method(name: str, methods: Mapping[str, Method], meaning: str) -> Parameter:
    """Declare a parameter whose value is another method.

    Parameters
    ----------
    name : str
        of the parameter
    methods : mapping
        from names to the methods that it may be; the first one by default
    meaning : str
        for people

    Returns
    -------
    Parameter
        of str, a text that ``read_method`` reads
    """

    def read(given: Any) -> str:
        if not isinstance(given, str):
            raise ValueError(f"expected one of {', '.join(methods)}")
        read_method(given, methods)
        return given

    return Parameter(name, next(iter(methods)), read, meaning)
