"""Partitions of the features: read and refused in one line, and the values of groups, and within groups, by their definitions."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger import attribute
from leafledger.pipeline.dataset.columns.partition import read_groups
from leafledger.pipeline.errors import StorageError, UsageError
from leafledger.pipeline.models.model import Feature
from tests import naive
from tests.pipeline.running import as_model
from tests.strategies import batches, forests

FEATURES = [Feature(name) for name in ("wind", "rain", "delay", "hour", "day")]


@st.composite
def partitions(draw, model):
    """Groups of some of a model's features, and every feature's group, in the order of their first features."""
    number = [draw(st.integers(0, len(model.features) - 1)) for _ in model.features]
    given = {}
    for feature, g in zip(model.features, number, strict=True):
        given.setdefault(f"g{g}", []).append(feature.name)
    for group, members in list(given.items()):
        if len(members) == 1 and draw(st.booleans()):
            del given[group]
    ordered = list(dict.fromkeys(number))
    return dict(draw(st.permutations(list(given.items())))), [ordered.index(g) for g in number]


def test_groups_are_in_the_order_of_their_first_feature():
    """However a partition is written, it is the same; a feature it does not name is a group of its own."""
    expected = (("weather", ("wind", "hour")), ("rain", ("rain",)), ("late", ("delay", "day")))
    for partition in (
        {"late": ["day", "delay"], "weather": ["hour", "wind"]},
        {"weather": ("wind", "hour"), "late": ["delay", "day"], "rain": {"rain"}},
    ):
        assert read_groups(partition, FEATURES) == expected
    assert read_groups(None, FEATURES) == ()
    assert read_groups({}, FEATURES) == tuple((feature.name, (feature.name,)) for feature in FEATURES)
    assert read_groups({"wind": ["rain", "wind"]}, FEATURES)[0] == ("wind", ("wind", "rain"))


@pytest.mark.slow
def test_a_partition_is_read_from_a_bucket(bucket, tmp_path):
    """As from a path."""
    import s3fs

    local = tmp_path / "groups.json"
    local.write_text(json.dumps({"weather": ["rain", "wind"]}))
    s3fs.S3FileSystem().put(str(local), f"{bucket}/groups.json")
    assert read_groups(f"{bucket}/groups.json", FEATURES) == read_groups(local, FEATURES) == read_groups(str(local), FEATURES)
    with pytest.raises(StorageError, match=r"nowhere\.json: cannot read: no such file or object"):
        read_groups(f"{bucket}/nowhere.json", FEATURES)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON: "),
        ("\x00", "not JSON: "),
        ("[" * 100_000, "not JSON: "),
        ('["wind"]', "is a list, expected an object: group -> list of feature names"),
        ("3", "is a int, expected an object"),
        ('{"weather": "wind"}', "group 'weather' is not a list of feature names"),
        ('{"weather": [1.0]}', "group 'weather' is not a list of feature names or positions"),
        ('{"weather": [5]}', "group 'weather' names position 5, expected 0 to 4"),
        ('{"weather": [true]}', "group 'weather' names True, which is no feature"),
        ('{"weather": {"wind": 1}}', "group 'weather' is not a list of feature names"),
        ('{"weather": null}', "group 'weather' is not a list of feature names"),
        ('{"weather": []}', "group 'weather' has no features, expected at least one"),
        ('{"weather": ["snow"]}', "group 'weather' names 'snow', which is no feature of the model"),
        ('{"weather": ["wind", "wind"]}', "feature 'wind' stands in group 'weather' twice, expected once"),
        ('{"a": ["wind"], "b": ["rain", "wind"]}', "feature 'wind' stands in group 'b' and in group 'a', expected once"),
        ('{"a": ["wind"], "a": ["rain"]}', "group 'a' stands twice"),
        ('{"b": ["hour"], "a": ["wind"], "a": ["rain"]}', "group 'a' stands twice"),
        ('{"weather": ["wind", []]}', "group 'weather' is not a list of feature names or positions"),
        ('{"wind": ["rain"]}', "group 'wind' is named as a feature outside of it; choose another name"),
        ('{"wind": ["rain"], "b": ["wind"]}', "group 'wind' is named as a feature outside of it; choose another name"),
    ],
)
def test_partitions_that_are_none_are_refused(tmp_path, text, says):
    """One line with the file and the name."""
    (tmp_path / "groups.json").write_text(text)
    with pytest.raises(UsageError) as refusal:
        read_groups(tmp_path / "groups.json", FEATURES)
    assert str(refusal.value).startswith(f"{tmp_path / 'groups.json'}: ")
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_partition_that_was_handed_over_is_called_so():
    """In Python the place is the argument."""
    with pytest.raises(UsageError, match="partition: group 'weather' names 'snow'"):
        read_groups({"weather": ["snow"]}, FEATURES)


@settings(max_examples=25)
@given(data=st.data(), ensemble=forests())
@pytest.mark.slow
def test_a_group_has_the_value_of_the_quotient_game(data, ensemble):
    """Shapley and probabilistic values of groups that join as one player are those of the definition; so are names and base."""
    model = as_model(ensemble)
    partition, group = data.draw(partitions(model))
    rows, n = data.draw(batches(ensemble, max_rows=2, of_data=True)), max(group) + 1
    sizes = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), float)
    sizes = (sizes / max(sizes.sum(), 1)).tolist()
    weighted = naive.size_weight(sizes) if any(sizes) else naive.shapley_weight
    method, given_sizes = ("probabilistic", {"sizes": sizes}) if any(sizes) else ("shapley", {})
    found = attribute(model, rows, method, partition=partition, parameters=given_sizes)
    shapley = attribute(model, rows, partition=partition)
    assert found.phi.shape == (len(rows), ensemble.base.size, n)
    firsts = [model.features[group.index(g)].name for g in range(n)]
    group_of = {feature: name for name, members in partition.items() for feature in members}
    assert found.players == tuple(group_of.get(first, first) for first in firsts)
    for i, row in enumerate(rows):
        assert_allclose(found.phi[i], naive.quotient_semivalue(ensemble, row, group, n, weighted), rtol=1e-9, atol=1e-9)
        assert_allclose(shapley.phi[i], naive.quotient_semivalue(ensemble, row, group, n, naive.shapley_weight), rtol=1e-9, atol=1e-9)


@settings(max_examples=25)
@given(data=st.data(), ensemble=forests())
@pytest.mark.slow
def test_owen_values_are_those_of_the_definition(data, ensemble):
    """A value per feature, which add up to the groups' Shapley values."""
    model = as_model(ensemble)
    partition, group = data.draw(partitions(model))
    rows = data.draw(batches(ensemble, max_rows=2, of_data=True))
    found, groups = attribute(model, rows, "owen", partition=partition), attribute(model, rows, partition=partition)
    assert found.players == tuple(feature.name for feature in model.features)
    for i, row in enumerate(rows):
        assert_allclose(found.phi[i], naive.owen(ensemble, row, group), rtol=1e-9, atol=1e-9)
    sums = np.stack([found.phi[:, :, np.array(group) == g].sum(axis=2) for g in range(max(group) + 1)], axis=2)
    assert_allclose(sums, groups.phi, rtol=1e-9, atol=1e-9)


def test_owen_values_need_a_partition(example):
    """One line."""
    with pytest.raises(UsageError, match="method 'owen' needs a partition of the features"):
        attribute(example.model, example.frame, "owen")


def test_a_name_that_cannot_be_written_is_refused():
    """JSON may hold half a character, which no file of results can."""
    with pytest.raises(UsageError, match=r"^partition: group '\\ud800' has half a character in its name, which cannot be written$"):
        read_groups({"\ud800": ["wind"]}, FEATURES)


def test_spaces_stand_for_underscores_where_a_library_writes_these():
    """Before the columns of the data are known; a feature of another library has its one name."""
    features = (Feature("long_name", underscored=True), Feature("b"), Feature("other_name"))
    assert read_groups({"both": ["long name", "b"]}, features) == (("both", ("long_name", "b")), ("other_name", ("other_name",)))
    with pytest.raises(UsageError, match="group 'both' names 'other name', which is no feature of the model"):
        read_groups({"both": ["other name"]}, features)
    with pytest.raises(UsageError, match="feature 'long_name' stands in group 'both' twice"):
        read_groups({"both": ["long name", "long_name"]}, features)
