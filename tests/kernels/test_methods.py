"""The table of methods: every family's, each by its own name, with parameters that take their own defaults."""

import pytest

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap import methods as prediction_gap
from leafledger.kernels.r2 import methods as r2
from leafledger.kernels.ranking import methods as ranking
from leafledger.kernels.semivalues import methods as semivalues


def test_every_family_is_in_the_table():
    """No name twice, for then one of them would be lost."""
    declared = [method for family in (semivalues, r2, ranking, prediction_gap) for method in family.METHODS]
    assert list(METHODS.values()) == declared
    assert [method.name for method in declared] == list(METHODS)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_method_says_what_it_is(method):
    """In one line, and what else is shown of it; names of parameters, scores and summaries are distinct."""
    assert method.name.isidentifier()
    assert method.meaning
    assert "\n" not in method.meaning
    for names in ([parameter.name for parameter in method.parameters], method.phi.scores, [summary.name for summary in method.summaries]):
        assert len(set(names)) == len(names)
    assert method.check is None or "{missed" in method.check.miss


@pytest.mark.parametrize(
    ("method", "parameter"), [(method, parameter) for method in METHODS.values() for parameter in method.parameters], ids=lambda each: each.name
)
def test_a_default_is_a_value(method, parameter):
    """What nobody gives is what a person may give, as it is and as a command line has it; an empty list is that nothing was given."""
    if parameter.default != ():
        assert parameter.read(parameter.default) == parameter.default
        assert parameter.read(str(parameter.default)) == parameter.default


def test_some_methods_share_out_margins_and_others_do_not():
    """Rankings have ranks, and R² shares out an error."""
    assert [name for name, method in METHODS.items() if not method.attributes] == ["r2", "curves", "gap", "gap_greedy"]
