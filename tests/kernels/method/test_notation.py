"""A method written as text: its name, and its parameters in their order or by name."""

import pytest

from leafledger.kernels.method.notation import read_method, split_methods
from leafledger.kernels.methods import METHODS


def test_values_follow_the_name_in_the_order_of_parameters():
    """What is left out has its default."""
    assert read_method("beta:4", METHODS) == (METHODS["beta"], {"alpha": 4.0, "beta": 1.0})
    assert read_method("beta:4:2", METHODS)[1] == {"alpha": 4.0, "beta": 2.0}
    assert read_method("ranker:3:0.5:ascent", METHODS)[1] == {"steps": 3, "rate": 0.5, "optimizer": "ascent"}


def test_parameters_are_named_in_parentheses():
    """In any order; a list goes on to the next name, and a method may stand in a method."""
    assert read_method("beta(beta=2)", METHODS) == read_method("beta:1:2", METHODS)
    assert read_method(" beta ( beta = 2 , alpha = 4 ) ", METHODS) == read_method("beta:4:2", METHODS)
    assert read_method("shapley()", METHODS) == read_method("shapley", METHODS)
    given = read_method("semivalue(atoms=0:1, 0.5:2,density=0:1,0.5:3,1:1)", METHODS)[1]
    assert given == {"atoms": ((0.0, 1.0), (0.5, 2.0)), "density": ((0.0, 1.0), (0.5, 3.0), (1.0, 1.0))}
    assert read_method("probabilistic(sizes=0.25,0.75)", METHODS)[1]["sizes"] == (0.25, 0.75)
    assert read_method("curves(ranking=semivalue(atoms=0:1,1:1))", METHODS)[1] == {"ranking": "semivalue(atoms=0:1,1:1)"}
    assert read_method("gap(ranking=beta:4:1,scale=0.5,2)", METHODS)[1]["scale"] == (0.5, 2.0)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_can_be_written(name):
    """With each of its parameters by name, as its default writes it."""
    method = METHODS[name]
    written = {parameter.name: parameter.default for parameter in method.parameters if parameter.default != ()}
    text = f"{name}({','.join(f'{key}={value}' for key, value in written.items())})"
    assert read_method(text, METHODS)[1] == {parameter.name: parameter.default for parameter in method.parameters}


def test_lists_are_split_between_methods():
    """At commas outside of parentheses."""
    assert split_methods("shapley,owen(across=banzhaf:0.5,within=beta(alpha=2,beta=3)),run:/a,b") == [
        "shapley",
        "owen(across=banzhaf:0.5,within=beta(alpha=2,beta=3))",
        "run:/a",
        "b",
    ]
    assert split_methods("") == [""]
    assert split_methods("run:/a),b") == ["run:/a)", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lime", "expected one of shapley, banzhaf"),
        ("shapley:1", "expected at most 0 parameters: shapley"),
        ("beta:1:2:3", "expected at most 2 parameters: beta:alpha:beta"),
        ("banzhaf:2", "expected a number between 0 and 1 for 'p'"),
        ("banzhaf:many", "expected a number for 'p'"),
        ("semivalue:0:1:1:1", r"expected at most 2 parameters: semivalue:atoms:density, or by name semivalue\(atoms=…,density=…\)"),
        ("banzhaf(0.5)", r"expected parameters by name: banzhaf\(p=…\)"),
        ("banzhaf(p=0.5", r"expected a closing parenthesis: banzhaf\(p=…\)"),
        ("banzhaf(p=0.5,p=0.25)", "expected 'p' once"),
        ("banzhaf(q=0.5)", "expected no parameter 'q', it takes p"),
        ("shapley(q=0.5)", "expected no parameter 'q', it takes none"),
        ("banzhaf(p=0.5,0.5)", "expected a number for 'p'"),
        ("lime(p=1)", "expected one of shapley, banzhaf"),
        ("curves(ranking=owen)", "expected one of shapley, banzhaf, beta, semivalue, probabilistic, ranker for 'ranking'"),
    ],
)
def test_what_it_does_not_take_is_refused(text, expected):
    """With what was expected."""
    with pytest.raises(ValueError, match=expected):
        read_method(text, METHODS)
