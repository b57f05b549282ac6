"""Names of lakehouse tables in options, parsed without importing a table library."""

import re
from typing import Literal, get_args

Name = Literal["delta", "iceberg"]  # of a format
NAMES: tuple[Name, ...] = get_args(Name)
TABLE = re.compile(r"(\w+)(?::(.*))?", re.DOTALL)
EXPECTED = "delta, or iceberg:CATALOG.NAMESPACE.TABLE"


def names_table(text: str) -> bool:
    """Tell whether a text names a table of some format."""
    found = TABLE.fullmatch(text)
    return found is not None and found[1] in NAMES and found[2] != ""
