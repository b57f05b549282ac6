"""Files of reasons: TOML and JSON say the same, and what would not do for every row is refused in one line that says where."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafledger import explain
from leafledger.pipeline.errors import LeafledgerError, SchemaMismatch, UsageError
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.runs.columns.reasons import Band, Worded
from leafledger.pipeline.runs.columns.reasons_file import read_reasons

FEATURES = (Feature("late"), Feature("city", True, ("ny", "rome")), Feature("code", True), Feature("unused"))
USED = ("late", "city", "code")
DEFAULT = {"text": "{feature} is {value}"}
TOML = """
direction = "lowers"
most = 3
least = 0.05
never = ["code"]

[[reason]]
feature = "late"
code = "L1"
text = "{value:.0f} minutes late"
above = 0

[[reason]]
feature = "late"
text = "not late"

[[reason]]
feature = "city"
text = "from {value}"
in = ["ny"]

[default]
code = "X"
text = "{feature}"
"""


def read(given, players=None, groups=(), used=USED):
    """Reasons of FEATURES."""
    return read_reasons(given, players or [feature.name for feature in FEATURES], FEATURES, groups, used)


def test_toml_and_json_say_the_same(tmp_path):
    import tomllib

    (tmp_path / "r.toml").write_text(TOML)
    (tmp_path / "r.json").write_text(json.dumps(tomllib.loads(TOML)))
    found = read(tmp_path / "r.toml")
    assert (found.direction, found.most, found.least, found.never) == ("lowers", 3, 0.05, ("code",))
    assert found.default == Band("X", "{feature}")
    assert found.worded == (
        Worded("late", (Band("L1", "{value:.0f} minutes late", above=0.0), Band(None, "not late"))),
        Worded("city", (Band(None, "from {value}", one_of=("ny",)),)),
    )
    others = read(tmp_path / "r.json"), read(tomllib.loads(TOML))
    assert {(each.direction, each.most, each.least, each.never, each.default, each.worded) for each in others} == {
        (found.direction, found.most, found.least, found.never, found.default, found.worded)
    }
    assert len({found.digest, *(each.digest for each in others)}) == 3


def test_four_reasons_of_any_share_by_default():
    found = read({"direction": "raises", "default": DEFAULT})
    assert (found.most, found.least, found.never, found.worded) == (4, 0.0, (), ())


def test_what_no_split_asks_for_needs_no_words():
    file = {"direction": "raises", "reason": [{"feature": name, "text": "t"} for name in USED]}
    assert len(read(file).worded) == 3
    with pytest.raises(UsageError, match="'unused' has no words; add a reason for it, a default, or name it under never"):
        read(file, used=(*USED, "unused"))


def test_combinations_of_their_own_need_words():
    file = {"direction": "raises", "reason": [{"feature": name, "text": "t"} for name in USED]}
    with pytest.raises(UsageError, match="'city×code' has no words"):
        read(file, players=[*USED, "city×code"])


LATE = {"feature": "late", "text": "t"}


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ({}, "has no direction"),
        ({"direction": "up"}, "direction is 'up', expected 'raises' or 'lowers'"),
        ({"direction": "raises", "mots": 3}, "has 'mots', expected direction, most"),
        ({"direction": "raises", "most": 0}, "most is 0, expected a number of at least 1"),
        ({"direction": "raises", "most": True}, "most is True"),
        ({"direction": "raises", "least": 1.5}, "least is 1.5, expected a share from 0 to 1"),
        ({"direction": "raises", "never": ["lat"], "default": DEFAULT}, "never has 'lat', which has no attributions"),
        ({"direction": "raises", "never": [3]}, "never is"),
        ({"direction": "raises", "default": "t"}, "default: is 't', expected a table of code, text"),
        ({"direction": "raises", "default": {}}, "default: text is None, expected words"),
        ({"direction": "raises", "default": {"text": "t", "above": 1}}, "default: has 'above', expected code, text"),
        ({"direction": "raises", "default": {"text": "{value:.0f}"}}, "default, for 'city': text .* cannot be filled in"),
        ({"direction": "raises", "reason": {"late": "t"}}, "expected a list of tables"),
        ({"direction": "raises", "reason": ["late"]}, "reason 1: is 'late', expected a table of feature"),
        ({"direction": "raises", "reason": [{"text": "t"}]}, "reason 1: feature is None, expected a name"),
        ({"direction": "raises", "reason": [{"feature": ["late"], "text": "t"}]}, "reason 1: feature is"),
        ({"direction": "raises", "reason": [{"feature": "lat", "text": "t"}]}, "reason has 'lat', which has no attributions; expected a feature"),
        ({"direction": "raises", "reason": [LATE | {"abve": 1}]}, "reason 1: has 'abve'"),
        ({"direction": "raises", "reason": [LATE | {"above": "1"}]}, "above is '1', expected a number"),
        ({"direction": "raises", "reason": [LATE | {"above": float("nan")}]}, "above is nan"),
        ({"direction": "raises", "reason": [LATE | {"above": 1, "at_least": 1}]}, "two bounds on one side, above and at_least"),
        ({"direction": "raises", "reason": [LATE | {"below": 1, "at_most": 1}]}, "two bounds on one side, below and at_most"),
        ({"direction": "raises", "reason": [LATE | {"above": 1, "below": 1}]}, "no number is between its bounds"),
        ({"direction": "raises", "reason": [LATE | {"above": 1, "missing": True}]}, "has above, missing, which are bands of their own"),
        ({"direction": "raises", "reason": [LATE | {"above": 1, "in": [2]}]}, "has above, in, which are bands"),
        ({"direction": "raises", "reason": [LATE | {"missing": 1}]}, "missing is 1, expected true or false"),
        ({"direction": "raises", "reason": [LATE | {"in": []}]}, r"in is \[\], expected a list of values"),
        ({"direction": "raises", "reason": [LATE | {"in": [True]}]}, "in is"),
        ({"direction": "raises", "reason": [LATE | {"above": 10**400}]}, "above is 1000"),
        ({"direction": "raises", "reason": [LATE | {"in": [10**400]}]}, "in is 1000"),
        ({"direction": "raises", "reason": [LATE | {"text": "{value:5000000}"}]}, "more than 1000 characters for a value"),
        ({"direction": "raises", "reason": [LATE | {"text": " "}]}, "text is ' ', expected words"),
        ({"direction": "raises", "reason": [LATE | {"code": 7}]}, "code is 7, expected a text"),
        ({"direction": "raises", "reason": [LATE | {"text": "\ud800"}]}, "text is"),
        ({"direction": "raises", "reason": [LATE, LATE]}, "'late': two of its bands are of the same values"),
        ({"direction": "raises", "reason": [LATE | {"above": 1}, LATE | {"at_least": 3}]}, "two of its bands are of the same values"),
        ({"direction": "raises", "reason": [LATE | {"at_most": 1}, LATE | {"at_least": 1}]}, "two of its bands are of the same values"),
        ({"direction": "raises", "reason": [LATE | {"at_most": 1}, LATE | {"in": [1]}]}, "two of its bands are of the same values"),
        ({"direction": "raises", "reason": [LATE | {"missing": True}, LATE | {"missing": True}]}, "two of its bands"),
        ({"direction": "raises", "reason": [LATE | {"above": 1}]}, "'late': has no text for some values"),
        ({"direction": "raises", "reason": [LATE | {"above": 1}, LATE | {"below": 1}, LATE | {"missing": True}]}, "no text for some values"),
        ({"direction": "raises", "reason": [LATE | {"above": 1}, LATE | {"at_most": 1}]}, "no text for missing values"),
        ({"direction": "raises", "reason": [{"feature": "city", "text": "t", "in": ["ny", "rome"]}]}, "'city': has no text for some values"),
        ({"direction": "raises", "reason": [{"feature": "city", "text": "t", "above": 1}]}, "'city': is a feature of categories"),
        ({"direction": "raises", "reason": [{"feature": "city", "text": "t", "in": ["oslo"]}]}, "in has 'oslo', which is no category of the model"),
        ({"direction": "raises", "reason": [{"feature": "city", "text": "t", "in": [1]}]}, "a feature of 2 categories; write texts"),
        ({"direction": "raises", "reason": [{"feature": "code", "text": "t", "in": ["a"]}]}, "feature of codes of categories; write numbers"),
        ({"direction": "raises", "reason": [LATE | {"in": ["a"]}]}, "feature of numbers; write numbers"),
        ({"direction": "raises", "reason": [LATE | {"text": "{vlu}"}]}, r"text '\{vlu\}' cannot be filled in: expected \{feature\} or \{value\}"),
        ({"direction": "raises", "reason": [LATE | {"text": "{value"}]}, "cannot be filled in"),
        ({"direction": "raises", "reason": [LATE | {"text": "{value!r}"}]}, "cannot be filled in: expected"),
        ({"direction": "raises", "reason": [LATE | {"text": "{value.real}"}]}, "cannot be filled in: expected"),
        ({"direction": "raises", "reason": [LATE | {"text": "{value:{feature}}"}]}, "cannot be filled in: expected"),
        ({"direction": "raises", "reason": [LATE | {"text": "{value:d}"}]}, "cannot be filled in: Unknown format code 'd'"),
        ({"direction": "raises", "reason": [LATE | {"text": "{}"}]}, "cannot be filled in: expected"),
        ({"direction": "raises", "reason": [LATE | {"text": "{value}", "missing": True}]}, "there is no value to fill in"),
        ({"direction": "raises", "never": ["late"], "reason": [LATE]}, "'late' has words, but is never to be named"),
    ],
)  # fmt: skip
def test_what_would_not_do_is_refused_in_one_line(file, says):
    with pytest.raises(UsageError, match=says) as caught:
        read(file)
    assert "\n" not in str(caught.value)


def test_two_texts_of_one_category_overlap():
    """Where categories are numbers, 1 and 01 are the same."""
    features = (Feature("grade", True, (1, 2)),)
    file = {"direction": "raises", "default": DEFAULT, "reason": [{"feature": "grade", "in": [text], "text": "t"} for text in ("1", "01")]}
    with pytest.raises(UsageError, match="two of its bands are of the same values"):
        read_reasons(file, ["grade"], features, (), ["grade"])


def test_a_category_that_no_split_asks_for_may_be_one_that_training_saw():
    """It is said what to do, and not that the model has no such category."""
    features = (Feature("flag", True, ("yes",), partial=True),)
    file = {"direction": "raises", "default": DEFAULT, "reason": [{"feature": "flag", "in": ["no"], "text": "t"}]}
    with pytest.raises(UsageError, match=r"in has 'no', which no split asks for; write an entry without in for all others$"):
        read_reasons(file, ["flag"], features, (), ["flag"])


def test_groups_of_several_features_have_no_value():
    groups = (("g", ("late", "city")), ("code", ("code",)), ("unused", ("unused",)))
    players = [name for name, _ in groups]
    assert read({"direction": "raises", "default": {"text": "{feature}"}}, players, groups).worded == ()
    for file, says in (
        ({"direction": "raises", "default": DEFAULT}, "default, for 'g': .* there is no value to fill in"),
        ({"direction": "raises", "reason": [{"feature": "g", "text": "t", "above": 1}]}, "'g': is a group of several features"),
        ({"direction": "raises", "reason": [{"feature": "late", "text": "t"}]}, "expected a feature or group"),
    ):
        with pytest.raises(UsageError, match=says):
            read(file, players, groups)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"direction = ", "neither TOML nor JSON"),
        (b'direction = "raises"\ndirection = "lowers"', "neither TOML nor JSON"),
        (b'{"direction": "raises", "direction": "lowers"}', "'direction' stands twice"),
        (b"\xff\xfe", "neither TOML nor JSON"),
        (b"[" * 100_000, "neither TOML nor JSON"),
        (b'{"a":' * 100_000, "neither TOML nor JSON"),
        (b"", "has no direction"),
    ],
)
def test_damaged_files_are_one_line(text, says, tmp_path):
    (tmp_path / "r").write_bytes(text)
    with pytest.raises(UsageError, match=says) as caught:
        read(tmp_path / "r")
    assert str(tmp_path / "r") in str(caught.value)
    assert "\n" not in str(caught.value)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3), max_leaves=4
)
OF_FILE = ("direction", "most", "least", "never", "default", "reason")
OF_REASON = ("feature", "code", "text", "above", "in", "missing")


@settings(max_examples=300, deadline=None)
@given(ANYTHING, st.sampled_from([*OF_FILE, *OF_REASON, "entry"]))
@pytest.mark.slow
def test_anything_in_any_place_is_taken_or_refused_in_one_line(value, place):
    file = {"direction": "raises", "default": dict(DEFAULT), "reason": [dict(LATE)]}
    if place == "entry":
        file["reason"][0] = value
    else:
        (file if place in OF_FILE else file["reason"][0])[place] = value
    refused = ""
    try:
        read(file)
    except UsageError as error:
        refused = str(error)
    assert "\n" not in refused


def test_a_run_refuses_them_while_planning(example, tmp_path):
    """Nothing is written. A file that is not there, a method without attributions, summaries alone, a column of that name."""
    file = {"direction": "raises", "default": DEFAULT}
    for arguments, kind, says in (
        ({"reasons": tmp_path / "none.toml"}, LeafledgerError, "none.toml"),
        ({"reasons": file, "method": "curves"}, UsageError, "reasons are of attributions of the margin, of which method 'curves' has none"),
        ({"reasons": file, "global_only": True}, UsageError, "reasons are of rows, which are not published with global_only"),
        ({"reasons": {"direction": "raises"}}, UsageError, "has no words"),
    ):
        with pytest.raises(kind, match=says):
            explain(example.model, example.data, tmp_path / "run", scheduler="serial", **arguments)
    assert not Path(tmp_path / "run").exists()


def test_another_file_is_another_run(example, tmp_path):
    for text, says in (("a", None), ("a", None), ("b", "different in reasons")):
        arguments = {"reasons": {"direction": "raises", "default": {"text": text}}, "scheduler": "serial"}
        if says is None:
            explain(example.model, example.data, tmp_path / "run", **arguments)
        else:
            with pytest.raises(LeafledgerError, match=says):
                explain(example.model, example.data, tmp_path / "run", **arguments)


def test_columns_of_these_names_are_refused(example, tmp_path):
    import pyarrow.parquet as pq

    table = pq.read_table(example.data)
    pq.write_table(table.append_column("reasons", table["flight"]), tmp_path / "data.parquet")
    with pytest.raises(SchemaMismatch, match="'reasons'"):
        explain(
            example.model, tmp_path / "data.parquet", tmp_path / "run", ids="reasons", reasons={"direction": "raises", "default": DEFAULT},
            scheduler="serial",
        )  # fmt: skip
