"""Which table a run is committed to, by its options."""

import pytest

from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.job.table_option import choose_table
from leafledger.pipeline.tables.writing import TablePlace


def test_the_table_of_a_run():
    """None by default; else by the folder that the date was filled into."""
    options = Options(table="delta", date="2026-11-22")
    job = make_job("model.json", "/data", "/runs/date={date}", options)
    assert choose_table(job.options, job.out) == TablePlace("delta", "/runs")
    assert choose_table(Options(), "/runs") is None
    monthly = Options(table="iceberg:nights.prod.m_{date:%Y%m}", date="2026-11-22")
    job = make_job("model.json", "/data", "/runs/{date}", monthly)
    assert choose_table(job.options, job.out) == TablePlace("iceberg", "iceberg:nights.prod.m_202611")
    with pytest.raises(UsageError, match=r"of_\{day\}: only \{date\}, a day around it"):
        make_job("model.json", "/data", "/runs/{date}", Options(table="iceberg:nights.prod.of_{day}", date="2026-11-22"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "table is delta: it is partitioned by date, but no date was given; give --date YYYY-MM-DD, today or yesterday"),
        ({"date": "2026-11-22", "global_only": True}, "table is delta: it is one of rows, but with global_only no rows are written"),
        ({"date": "2026-11-21"}, "/runs/date=2026-11-22: lies in no folder date=2026-11-21"),
    ],
)
def test_what_a_table_takes(given, said):
    """Refused where a job is made, before anything is looked at."""
    with pytest.raises(UsageError, match=f"^{said}"):
        make_job("model.json", "/data", "/runs/date=2026-11-22", Options(table="delta", **given))
