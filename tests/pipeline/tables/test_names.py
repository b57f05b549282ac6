"""Names of tables, as the option takes them."""

from leafledger.pipeline.tables.names import names_table


def test_names():
    """A format, and what it takes."""
    assert [name for name in ("delta", "iceberg:a.b.c", "delta:", "hudi", "", "Delta", "iceberg") if names_table(name)] == [
        "delta",
        "iceberg:a.b.c",
        "iceberg",
    ]
