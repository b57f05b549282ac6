"""Plans: from footers alone, the same from the same input, and readable again."""

import json

import pytest

from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.models.catboost.cityhash import HashedCategory
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.runs.records import plan
from leafledger.pipeline.runs.records.plan_file import from_json
from tests.pipeline.running import planned


def test_a_plan_reads_back_as_it_was(example):
    """JSON and back is the same record, hashed categories and partitions included, and has the same digest."""
    made, _ = planned(example, example.data, ids=["flight"])
    hashed = Feature("c", True, (HashedCategory(7), HashedCategory(2**32 - 1)))
    features = hashed, Feature("d", True, ("a", "b")), Feature("e", True, (1, 2.5)), Feature("f", perhaps_codes=True)
    for same in (made, plan.dataclasses.replace(made, features=features)):
        assert from_json(plan.to_json(same), "plan.json") == same
    again, _ = planned(example, example.data, ids=["flight"])
    assert plan.digest(again) == plan.digest(made)
    assert again == made
    assert [item.partition for item in made.items] == [(("month", month),) for month in ("1", "2", "3", "4")]


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [
        ({"method": "semivalue", "parameters": {"density": "0:0,0.5:2,1:0"}}, {"atoms": (), "density": ((0.0, 0.0), (0.5, 2.0), (1.0, 0.0))}),
        ({"method": "semivalue", "parameters": {"atoms": [[0.1, 1], (0.3, 1e-300)]}}, {"atoms": ((0.1, 1.0), (0.3, 1e-300)), "density": ()}),
        ({"method": "probabilistic", "parameters": {"sizes": [0, 0.1, 1 / 3, 17 / 30]}}, {"sizes": (0.0, 0.1, 1 / 3, 17 / 30), "weights": ()}),
        (
            {"method": "owen", "partition": {"b": ["month", "delay"], "a": ["carrier"]}, "parameters": {"across": "beta:4:1"}},
            {"across": "beta:4:1", "within": "shapley"},
        ),
        ({"interactions": "7", "partition": {"b": ["month", "delay"]}}, {}),
        ({"interactions": "all"}, {}),
    ],
)
def test_parameters_and_partitions_read_back_as_they_were(example, arguments, parameters):
    """Numbers, lists of numbers, points, groups and interactions come back from JSON equal, with the same digest."""
    made, _ = planned(example, example.data, **arguments)
    assert dict(made.parameters) == parameters
    read = from_json(plan.to_json(made), "plan.json")
    assert read == made
    assert hash(read) == hash(made)
    assert plan.to_json(read) == plan.to_json(made)


def test_a_plan_of_another_version_is_refused(example):
    """What it lacks is named, and what to do."""
    fields = json.loads(plan.to_json(planned(example, example.data)[0]))
    del fields["groups"]
    with pytest.raises(InvalidRun, match=r"^run/plan\.json: not a plan of this version: it has no 'groups'; choose another output or remove it$"):
        from_json(json.dumps(fields), "run/plan.json")
