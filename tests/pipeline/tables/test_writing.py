"""Names of tables that parts are committed to."""

from datetime import date

import pytest

from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.tables.names import NAMES
from leafledger.pipeline.tables.writing import FORMATS, TablePlace, find_place

DAY = date(2026, 11, 22)


def test_every_format_has_a_name():
    """And no name is of none."""
    assert set(FORMATS) == set(NAMES)


@pytest.mark.parametrize(
    ("table", "run", "place"),
    [
        ("delta", "/runs/date=2026-11-22", TablePlace("delta", "/runs")),
        ("delta", "s3://nightly/runs/date=2026-11-22/prices", TablePlace("delta", "s3://nightly/runs")),
        ("delta", "/date=2026-11-22/runs/date=2026-11-22", TablePlace("delta", "/date=2026-11-22/runs")),
        ("iceberg:nights.prod.explained", "/anywhere", TablePlace("iceberg", "iceberg:nights.prod.explained")),
        ("iceberg:nights.a.b.c", "/anywhere", TablePlace("iceberg", "iceberg:nights.a.b.c")),
    ],
)
def test_places(table, run, place):
    """A Delta table is the folder above the night's; one of Iceberg has its name alone."""
    assert find_place(table, run, DAY) == place


@pytest.mark.parametrize(
    ("table", "run", "said"),
    [
        ("delta", "/runs/2026-11-22", "lies in no folder date=2026-11-22, which a Delta table takes; use an output such as explained/date={date}"),
        ("delta", "/runs/date=2026-11-21", "lies in no folder date=2026-11-22"),
        ("delta", "/runs/mydate=2026-11-22", "lies in no folder"),
        ("delta:s3://there", "/runs/date=2026-11-22", "table is delta:s3://there, expected delta alone"),
        ("iceberg", "/runs", "table is iceberg:, expected iceberg:CATALOG.NAMESPACE.TABLE"),
        ("iceberg:a.b", "/runs", "table is iceberg:a.b, expected"),
        ("iceberg:a..b.c", "/runs", "expected iceberg:CATALOG.NAMESPACE.TABLE"),
    ],
)
def test_places_that_are_refused(table, run, said):
    """In one line."""
    with pytest.raises(UsageError) as refused:
        find_place(table, run, DAY)
    assert said in str(refused.value)
