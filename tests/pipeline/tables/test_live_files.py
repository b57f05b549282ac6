"""What a log says of files: values as paths have them, and columns by their numbers."""

from datetime import date, datetime
from decimal import Decimal

import pytest

from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.tables.live_files import Columns, list_once, write_value


def test_values_that_are_written_in_one_way():
    """As in folders of a Hive data set."""
    given = [None, "a b", "", True, False, 7, -7, date(2026, 1, 2)]
    assert [write_value(value) for value in given] == [None, "a b", "", "true", "false", "7", "-7", "2026-01-02"]


@pytest.mark.parametrize("value", [1.5, Decimal("1.50"), datetime(2026, 1, 2), b"x"])
def test_values_that_several_texts_stand_for(value):
    """1.5 and 1.50 are the same number."""
    with pytest.raises(ValueError, match=r"^is a .*, expected a text, a whole number, a boolean or a date$"):
        write_value(value)


COLUMNS = Columns({"miles": 1, "delay": 2, "city": 3}, {"distance": 1, "delay": 2})


@pytest.mark.parametrize(
    ("name", "number", "said"),
    [
        ("miles", 1, None),
        ("delay", None, None),  # by its name, as the table says
        ("extra", 9, None),  # not the table's, and nobody asks for it
        ("extra", None, None),
        ("distance", 1, "is called 'miles' in the table by now"),
        ("distance", None, "is called 'miles' in the table by now"),
        ("delay", 9, "is another column than the table's of that name"),
        ("city", None, "is another column than the table's of that name"),  # of which the table does not say that names count
        ("delay", 3, "is called 'city' in the table by now"),
    ],
)
def test_a_column_is_what_its_number_says(name, number, said):
    """Whatever it is called."""
    assert COLUMNS.find_other(name, number) == said


def test_every_file_once_in_the_order_of_names():
    """Whatever the order of the log; the same file with other values is the same file."""
    assert list(list_once([("t/b", ()), ("t/a", (("k", "1"),))], "t").items()) == [("t/a", (("k", "1"),)), ("t/b", ())]
    with pytest.raises(UsageError, match=r"^t: names a twice, expected every file once; explain a copy of its rows$"):
        list_once([("t/a", ()), ("t/b", ()), ("t/a", (("k", "1"),))], "t")
