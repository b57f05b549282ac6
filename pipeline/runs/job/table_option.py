"""Options of the lakehouse table that runs are committed to."""

from ...arguments.dates import MISSING, fill_date
from ...errors import UsageError
from ...tables.writing import TablePlace, find_place
from .options import Options


def choose_table(options: Options, out: str) -> TablePlace | None:
    """Return the table that a run is committed to.

    Returns
    -------
    Place or None
        None where none was asked for.

    Raises
    ------
    UsageError
        There is no date, or what is to be filled in is none, there are no rows, or the run lies elsewhere than such a table takes it.
    """
    if options.table is None:
        return None
    if options.date is None:
        raise UsageError(f"table is {options.table}: it is partitioned by date, but {MISSING}")
    if options.global_only:
        raise UsageError(f"table is {options.table}: it is one of rows, but with global_only no rows are written; leave out one or the other")
    return find_place(fill_date(options.table, options.date), out, options.date)
