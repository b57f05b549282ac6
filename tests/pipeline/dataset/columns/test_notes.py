"""What a person should know of columns is said in a line each, and a warning names the line of the program that called."""

from dataclasses import replace
from types import FunctionType

import numpy as np
import pytest

from leafledger.pipeline.dataset.columns.notes import note_columns, say_missing, warn_positions, warn_user
from leafledger.pipeline.models.model import Feature
from tests.hypercubes import full_tree
from tests.pipeline.running import as_model


def model_of(*features, **more):
    return replace(as_model(full_tree(np.arange(4.0), [0, 1])), features=features, **more)


def test_each_thing_is_a_line():
    """Positions, codes and missing values; nothing of a model that is as its columns say."""
    plain = model_of(Feature("a"), Feature("b"))
    assert note_columns(plain) == ()
    assert say_missing(plain) == ""
    unusual = model_of(Feature("a", missing=-999.0), Feature("b", categorical=True, perhaps_codes=True), by_position=True)
    assert note_columns(unusual) == (
        "features by position, since the model has no names: a, b",
        "columns hold codes of categories, not values, since the model has no list of them: b",
        "missing values are -999, besides null and NaN",
    )
    assert note_columns(model_of(Feature("a", missing=0.5))) == ("missing values are 0.5, besides null and NaN",)


def test_a_warning_is_of_the_program_s_line():
    """Not of the package's own, through which it came."""
    inner = FunctionType((lambda: warn_user("look")).__code__, {"__name__": "leafledger.pipeline.x", "warn_user": warn_user})
    for call in (warn_user.__call__, lambda line: inner()):
        with pytest.warns(UserWarning, match="^look$") as caught:
            call("look")
        assert [warning.filename for warning in caught] == [__file__]


def test_only_names_by_position_are_warned_of(recwarn):
    """Columns that are numbered in their order say nothing else than their positions do."""
    for names, said in (("ab", 1), ("01", 1), ("10", 2)):
        warn_positions(model_of(*map(Feature, names), by_position=True), "rows")
        assert len(recwarn) == said, names
    warn_positions(model_of(Feature("a"), Feature("b")), "rows")
    assert len(recwarn) == 2
    assert {str(warning.message).partition(":")[0] for warning in recwarn} == {"rows"}
