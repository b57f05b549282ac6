"""Options: one list for the command, Python and Prefect, and one reader for each, whatever it is given."""

import inspect
from dataclasses import fields
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from leafledger import explain
from leafledger.kernels import set_indices
from leafledger.pipeline.arguments.choices import INDICES
from leafledger.pipeline.command.terminal.flags import GROUPS, Flags
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import READERS, Options

NAMES = [field.name for field in fields(Options)]
FRAME = pd.DataFrame({"x": [1.0, 2.0]})
WRONG = (FRAME, FRAME.to_numpy(), pa.table(FRAME), object(), 1.5, b"x", [1], {1: 2}, len)


def test_indices_are_those_of_the_kernels():
    """Which options are read without, so that help comes at once."""
    assert tuple(set_indices.INDICES) == INDICES


def flow():
    """Prefect's, imported where it is asked for, which takes seconds."""
    from leafledger.flows.explain import explain as flow

    return flow.fn


@pytest.mark.parametrize("find", [lambda: explain, lambda: Flags, pytest.param(flow, marks=pytest.mark.slow)], ids=["function", "flags", "flow"])
def test_everybody_takes_the_same_options(find):
    """Python's function, the command's flags and Prefect's flow have the names and defaults of Options, in its order."""
    function = find()
    taken = {name: given.default for name, given in inspect.signature(function).parameters.items() if name in NAMES}
    defaults = {field.name: field.default for field in fields(Options)}
    assert taken == defaults
    if function is not Flags:
        assert list(taken) == NAMES


def test_every_option_is_read_documented_and_in_one_group():
    """None lacks a reader, a place in the help, or a sentence in the docstring of ``explain``."""
    assert sorted(READERS) == sorted(NAMES)
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(NAMES)
    lines = [line.strip() for line in inspect.getdoc(explain).splitlines()]
    documented = {name.strip() for line in lines if " : " in line for name in line.split(" : ")[0].split(",")}
    assert documented == set(inspect.signature(explain).parameters)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"ids": "flight"}, ("flight",)),
        ({"ids": ["flight", "name"]}, ("flight", "name")),
        ({"ids": pd.Index(["flight", "name"])}, ("flight", "name")),
        ({"by": None}, ()),
        ({"latest": Path("/there/latest.json")}, "/there/latest.json"),
        ({"date": "2026-11-20"}, date(2026, 11, 20)),
        ({"date": datetime(2026, 11, 20, 3)}, date(2026, 11, 20)),
        ({"interactions": np.int64(3)}, 3),
        ({"interactions": "3"}, 3),
        ({"interactions": "all"}, "all"),
        ({"parameters": None}, {}),
        ({"parameters": ("p=0.3", "atoms=a=b")}, {"p": "0.3", "atoms": "a=b"}),
        ({"workers": np.int32(2)}, 2),
        ({"missing": -999}, -999.0),
        ({"missing": np.float32(0.5)}, 0.5),
        ({"wait": 600}, 600.0),
    ],
)
def test_what_is_given_is_read(given, read):
    """One name is a name, not its letters; paths, NumPy's numbers and dates as text are taken for what they are."""
    (name,) = given
    assert getattr(Options(**given), name) == read


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_a_wrong_type_is_told_in_one_line(name, wrong):
    """Whatever is given in the place of an option: its name, what it is, in a short line, and what was expected."""
    if name in ("partition", "reasons") and isinstance(wrong, dict):
        return  # a mapping may be one of groups or reasons, which are read when the model's features are known
    if name in ("missing", "wait") and isinstance(wrong, float):
        wrong = np.inf  # which is no value that stands for a missing one, and no time that anybody waits
    with pytest.raises(UsageError, match=f"^{name} is .*, expected ") as error:
        Options(**{name: wrong})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("name", ["model", "data", "out"])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_places_are_paths(name, wrong):
    """A data frame given as data is called one, and whoever has rows in memory is told who takes them."""
    given = {"model": "model.json", "data": "data", "out": "out"} | {name: wrong}
    with pytest.raises(UsageError, match=f"^{name} is .*, expected a path or URI") as error:
        make_job(*given.values(), Options())
    assert "\n" not in str(error.value)
    if isinstance(wrong, pd.DataFrame):
        assert str(error.value) == f"{name} is a DataFrame, expected a path or URI; attribute explains rows in memory"
