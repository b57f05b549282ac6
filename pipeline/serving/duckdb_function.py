"""Attributions as a function of DuckDB, from rows of a table to structs."""

from typing import Any, Unpack

import pyarrow as pa

from ..arguments.readers import read_text, shorten
from ..errors import UsageError
from .recipe import Asked, prepare_once


def register(connection: Any, name: str, model: Any, like: Any, method: str = "shapley", *, background: Any = None, **asked: Unpack[Asked]) -> None:
    """Register a function of DuckDB that attributes rows: ``SELECT id, unnest(why(flights)) FROM flights``, where ``why`` is the name.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where the function is then known.
    name : str
        Of the function.
    model : Model, Explainer, str, path or model object
        As `leafledger.prepare` takes it; or what that returned, without other arguments.
    like : str or duckdb.DuckDBPyRelation
        A table, by its name, or a query: the function takes rows with its columns, in any order of rows, and more of them that are not asked for.
    method : str
        One of `METHODS`.
    background : data frame, Arrow table, array, duckdb.DuckDBPyRelation or "model", optional
        As `leafledger.prepare` takes it, or a query.
    **asked : Asked
        Other arguments of `leafledger.prepare`.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. Names and types of columns are checked here, before any query.
    """
    try:
        import duckdb
    except ImportError as error:
        raise UsageError(f"leafledger.duckdb needs duckdb, which cannot be imported: {error}; pip install duckdb") from error
    if type(connection) is not duckdb.DuckDBPyConnection:
        raise UsageError(f"connection is {shorten(connection)}, expected one of DuckDB")
    opened: Any = connection
    rows = like if isinstance(like, duckdb.DuckDBPyRelation) else opened.table(read_text("like", like))
    given = background.to_arrow_table() if isinstance(background, duckdb.DuckDBPyRelation) else background
    explainer = prepare_once(model, method, given, asked, "rows of DuckDB")
    empty = explainer.to_batch(rows.limit(0).to_arrow_table())
    told = opened.from_arrow(empty)

    def work(structs: Any) -> pa.Array:
        column = structs.combine_chunks() if isinstance(structs, pa.ChunkedArray) else structs
        return explainer.to_batch(pa.RecordBatch.from_struct_array(column)).to_struct_array()

    taken, returned = (opened.struct_type(dict(zip(each.columns, each.types, strict=True))) for each in (rows, told))
    opened.create_function(read_text("name", name), work, [taken], returned, type="arrow")
