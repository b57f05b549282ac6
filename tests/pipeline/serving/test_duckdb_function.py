"""Attributions as a function of DuckDB: the bits of ``attribute``, whatever the batches, and refusals before any query; Polars's batches alike."""

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
import xgboost

import leafledger
from leafledger import attribute, prepare
from leafledger.pipeline.errors import SchemaMismatch, UsageError

N_ROWS = 5000  # more than two of DuckDB's vectors of 2,048
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame({"a": RNG.normal(size=N_ROWS), "b": RNG.integers(0, 9, N_ROWS), "c": pd.Categorical(RNG.choice(["x", "y", "z"], N_ROWS))})
FRAME.loc[::7, "a"] = np.nan
TABLE = pa.Table.from_pandas(FRAME.astype({"c": object}).assign(id=range(N_ROWS)), preserve_index=False)


@pytest.fixture(scope="module")
def model():
    """Of numbers, integers and categories."""
    target = FRAME.a.fillna(3) + FRAME.b * (FRAME.c == "y")
    return xgboost.XGBRegressor(n_estimators=5, max_depth=4, enable_categorical=True, n_jobs=1).fit(FRAME, target)


@pytest.fixture
def connection():
    """A database with the rows as a table."""
    with duckdb.connect() as opened:
        opened.register("given", TABLE)
        opened.execute("CREATE TABLE flights AS FROM given")
        yield opened


@pytest.mark.slow
def test_a_query_gives_the_bits_of_attribute(model, connection):
    """Against a background that is a query; rows without a struct have no attributions."""
    leafledger.duckdb.register(connection, "why", model, "flights", background=connection.sql("FROM flights WHERE id < 50"))
    found = connection.sql("SELECT id, unnest(why(flights)) FROM flights ORDER BY id").to_arrow_table()
    expected = attribute(model, TABLE, background=FRAME[:50]).to_arrow("id")
    assert found.equals(expected)
    some = connection.sql("SELECT why(CASE WHEN id % 2 = 0 THEN flights END).phi_a FROM flights ORDER BY id").fetchall()
    assert [phi for (phi,) in some] == [phi if i % 2 == 0 else None for i, phi in enumerate(expected.column("phi_a").to_pylist())]
    assert connection.sql("SELECT why(flights) FROM flights WHERE false").fetchall() == []


@pytest.mark.slow
def test_other_arguments_are_taken_and_so_is_an_explainer(model, connection):
    """A query in the place of a table; Banzhaf values with interactions, whose columns are lists."""
    leafledger.duckdb.register(connection, "pairs", model, connection.sql("SELECT c, b, a FROM flights"), "banzhaf", interactions=2)
    found = connection.sql("SELECT unnest(pairs(few)) FROM (SELECT c, b, a FROM flights LIMIT 10) AS few").to_arrow_table()
    expected = attribute(model, TABLE.slice(0, 10), "banzhaf", interactions=2).to_arrow()
    assert found.to_pylist() == expected.to_pylist()
    leafledger.duckdb.register(connection, "again", prepare(model, "banzhaf"), "flights")
    assert connection.sql("SELECT sum(again(flights).margin) FROM flights").fetchone()[0] == pytest.approx(attribute(model, TABLE).margin.sum())


REFUSED = {
    "a column is missing": (SchemaMismatch, {"like": "SELECT a, c FROM flights"}, "rows: column 'b' missing, got a, c$"),
    "of texts": (
        SchemaMismatch,
        {"like": "SELECT a::VARCHAR AS a, b, c FROM flights"},
        "rows: column 'a' is string, the model was trained on numbers$",
    ),
    "drawn": (UsageError, {"output": "other"}, "is drawn by a row's number, which rows of DuckDB do not have"),
    "a method": (UsageError, {"method": "shaply"}, "shaply"),
    "prepared": (UsageError, {"prepared": True, "method": "banzhaf"}, "the explainer was prepared before, expected no other arguments$"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_fit_is_refused_before_any_query(model, connection, kind):
    """In one line, and no function is there then."""
    error, given, line = REFUSED[kind]
    given = dict(given)
    like = connection.sql(given.pop("like")) if "like" in given else "flights"
    asked = prepare(model) if given.pop("prepared", False) else model
    with pytest.raises(error, match=line):
        leafledger.duckdb.register(connection, "why", asked, like, **given)
    with pytest.raises(duckdb.CatalogException):
        connection.sql("SELECT why(flights) FROM flights")
    with pytest.raises(UsageError, match="connection is a module, expected one of DuckDB"):
        leafledger.duckdb.register(duckdb, "why", model, "flights")


@pytest.mark.slow
def test_polars_maps_batches_through_an_explainer(model):
    """As docs/serving.md says it, lazily; the bits of ``attribute``."""
    explainer = prepare(model)

    def explain(frame):
        return polars.from_arrow(explainer.to_batch(frame.to_arrow(), ids="id"))

    lazy = polars.from_arrow(TABLE).lazy()
    found = lazy.map_batches(explain, schema=explain(lazy.head(0).collect()).schema).filter(polars.col("phi_a") > 0).collect()
    expected = attribute(model, TABLE).to_arrow("id")
    assert found.to_arrow().equals(expected.filter(pa.compute.greater(expected.column("phi_a"), 0)))
