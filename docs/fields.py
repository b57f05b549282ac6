"""Fields of records and columns of tables as the code names them: each with its type, and with what the comment beside it says."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from docs.benchmarked import as_table

ROOT = Path(__file__).parents[1]
UNWRITTEN = "UNWRITTEN"  # marks a field of a record that its file does not have
ARROW = re.compile(r"pa\.(\w+)\(")
ARRAYS = {"<i4": "int32", "<i8": "int64", "<u4": "uint32", "u1": "uint8", "<f8": "float64"}
PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
WORDS = ("Precision", "Device", "Space", "LinkName", "Literal")  # types of which each value is a word
COLUMNS = {"str": "string", "int": "int64", "float": "double", "bool": "bool"}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record, or a column of a table."""

    name: str
    kind: str  # its type, empty where the code does not say it in one word
    meaning: str
    default: str = ""  # as the code writes it


def _comment(lines: list[str], first: int, last: int) -> str:
    """The comment behind a field, or those on lines of their own before it; lines count from 1."""
    behind = [line.partition("  # ")[2] for line in lines[first - 1 : last]]
    before = list(takewhile(lambda line: line.strip().startswith("# "), reversed(lines[: first - 1])))
    return " ".join(filter(None, behind)) or " ".join(line.strip()[2:] for line in reversed(before))


def _annotated(node: ast.AnnAssign, columns: bool) -> str:
    name, _, null = ast.unparse(node.annotation).partition(" | ")
    if columns:
        return COLUMNS[name]
    kind = PLAIN.get(name) or ("string" if name.startswith(WORDS) else "array" if name.startswith("tuple") else "object")
    return f"{kind} or null" if null and kind != "object" else kind


def _entries(value: ast.expr, constants: dict[str, ast.expr]) -> Iterator[tuple[str, str, ast.expr]]:
    """Names and types of a schema's columns, ``pa.field("rows", pa.int64())``, or of a dictionary's entries, ``"value": ("<f8", 2)``."""
    if isinstance(value, ast.Dict):
        for key, each in zip(value.keys, value.values, strict=True):
            yield ast.literal_eval(key or each), ARRAYS[ast.literal_eval(each)[0]], each
    for each in getattr(value.args[0], "elts", []) if isinstance(value, ast.Call) else []:
        words = [word for word in ARROW.findall(ast.unparse(each)) if word not in ("field", "list_")]
        kind = ("list of " if "list_" in ast.unparse(each) else "") + words[0].replace("float64", "double")
        named = constants["NUMBERS"] if isinstance(each, ast.Starred) else each.args[0]  # columns of one kind
        some = ast.literal_eval(named)
        yield from ((name, kind, each) for name in ([some] if isinstance(some, str) else some))


def read_fields(module: str, name: str, columns: bool = False) -> Iterator[Field]:
    """Read the fields of a class, the columns of a schema or the entries of a dictionary from the code of a module.

    Parameters
    ----------
    module : str
        Path below the repository.
    name : str
        Of the class, or of the constant.
    columns : bool
        Types are those of columns, not of JSON.
    """
    text = (ROOT / module).read_text()
    lines, body = text.splitlines(), ast.parse(text).body
    constants = {ast.unparse(node.targets[0]): node.value for node in body if isinstance(node, ast.Assign)}
    if name in constants:
        for found, kind, node in _entries(constants[name], constants):
            yield Field(found, kind, _comment(lines, node.lineno, node.end_lineno or node.lineno))
        return
    record = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == name)
    for each in record.body:
        if isinstance(each, ast.AnnAssign) and UNWRITTEN not in ast.unparse(each):
            meaning = _comment(lines, each.lineno, each.end_lineno or each.lineno)
            yield Field(ast.unparse(each.target), _annotated(each, columns), meaning, ast.unparse(each.value) if each.value else "")


def fields(module: str, name: str, shown: str = "") -> str:
    """The fields of a record as a table; with ``columns`` those of a table, with ``defaults`` what they are where nothing is said."""
    found = read_fields(module, name, shown == "columns")
    second = "default" if shown == "defaults" else "type"
    rows = (
        (f"`{each.name}`", each.default.replace("()", "none").replace("None", "none") if second == "default" else each.kind, each.meaning)
        for each in found
    )
    return as_table(("column" if shown == "columns" else "field", second, "meaning"), rows)
