"""The nearest name of a misspelt one, and every message that asks for it, in whole lines."""

import pandas as pd
import pytest

import leafledger
from leafledger.pipeline.command import cli
from leafledger.pipeline.display.nearest import did_you_mean
from tests.pipeline.conftest import FEATURES

METHODS = ", ".join(leafledger.METHODS)


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("shaply", ["banzhaf", "shapley", "beta"], "; did you mean 'shapley'?"),
        ("bmi", ["age", "BMI", "sex"], "; did you mean 'BMI'?"),
        ("distnace", ["distance", "instance"], "; did you mean 'distance'?"),
        ("Straße", ["STRASSE"], "; did you mean 'STRASSE'?"),
        ("x17", ["y23", "delay"], ""),
        ("", ["a"], ""),
        ("a", [], ""),
        (3, ["3"], ""),
        ("3", [3], ""),
        ("x" * 101, ["x" * 102], ""),
    ],
)
def test_the_nearest_name(name, known, expected):
    """Letters may differ, and the case; what is no text, or far from all, has none."""
    assert did_you_mean(name, known) == expected


def _frame(example):
    return example.frame[FEATURES][:3]


CALLS = {
    "method": (
        lambda example: leafledger.attribute(example.model, _frame(example), "shaply"),
        f"method 'shaply' is unknown, expected one of {METHODS}; did you mean 'shapley'?",
    ),
    "parameter": (
        lambda example: leafledger.attribute(example.model, _frame(example), "beta", parameters={"alfa": 2}),
        "method 'beta' has no parameter 'alfa', it takes alpha, beta; did you mean 'alpha'?",
    ),
    "parameter in a text": (
        lambda example: leafledger.prediction_gap(example.model, _frame(example), ranking="semivalue(atom=0:1)"),
        "'semivalue(atom=0:1)': expected no parameter 'atom', it takes atoms, density; did you mean 'atoms'?",
    ),
    "parameter of a method in another": (
        lambda example: leafledger.attribute(example.model, _frame(example), "gap", parameters={"ranking": "semivalue(atom=0:1)"}),
        "parameter 'ranking' is 'semivalue(atom=0:1)', expected no parameter 'atom', it takes atoms, density; did you mean 'atoms'?",
    ),
    "word": (
        lambda example: leafledger.attribute(example.model, _frame(example), space="margins"),
        "space is 'margins', expected 'margin' or 'probability' or 'response' or 'loss'; did you mean 'margin'?",
    ),
    "column": (
        lambda example: leafledger.attribute(example.model, _frame(example).rename(columns={"delay": "Delay"})),
        "rows: column 'delay' missing, got distance, Delay, carrier, month; did you mean 'Delay'?",
    ),
    "group": (
        lambda example: leafledger.attribute(example.model, _frame(example), partition={"when": ["mounth"]}),
        "partition: group 'when' names 'mounth', which is no feature of the model; did you mean 'month'?",
    ),
    "label": (
        lambda example: leafledger.attribute(example.model, _frame(example).assign(late=1.0), "r2", label="lates"),
        "label is 'lates', which is no column of the rows; did you mean 'late'?",
    ),
    "id": (
        lambda example: leafledger.attribute(example.model, _frame(example)).to_arrow("mont"),
        "ids have 'mont', which is no column of the rows; did you mean 'month'?",
    ),
    "noise": (
        lambda example: leafledger.prediction_gap(example.model, _frame(example), noise="normale"),
        (
            "noise is 'normale', expected one of normal, uniform, laplace, empirical, one with a scale as laplace:0.5, values with probabilities as "
            "-1:0.5,1:0.5, or one by feature; did you mean 'normal'?"
        ),
    ),
    "ranking": (
        lambda example: leafledger.prediction_gap(example.model, _frame(example), ranking=["dely"]),
        "ranking names 'dely', which is no feature or group of the model; did you mean 'delay'?",
    ),
    "coalition": (
        lambda example: leafledger.coalition_values(example.model, _frame(example), [["dely"]]),
        "coalitions name 'dely', which is no feature or group of the model; did you mean 'delay'?",
    ),
    "scheduler": (
        lambda example: leafledger.explain(example.model, example.data, "nowhere", scheduler="seriel"),
        "seriel: is another host without TLS; use tls://…, or plain_tcp if the network is your own; did you mean 'serial'?",
    ),
    "output": (
        lambda example: leafledger.load_ensemble(example.model, outputs=["late"], output="lat"),
        "output is 'lat', expected one of late, or a position; did you mean 'late'?",
    ),
    "inspected method": (
        lambda example: leafledger.inspect_model(example.model, methods=["banzaf"]),
        f"there is no method 'banzaf', expected some of {METHODS}; did you mean 'banzhaf'?",
    ),
}


@pytest.mark.parametrize("asked", CALLS)
def test_python_asks_for_the_nearest_name(example, asked):
    """In the error's whole line."""
    call, line = CALLS[asked]
    with pytest.raises(leafledger.LeafledgerError) as refusal:
        call(example)
    assert str(refusal.value) == line


def test_a_run_asks_for_the_nearest_name(example, tmp_path):
    """Of its columns, summaries and outputs."""
    leafledger.explain(example.model, example.data, tmp_path / "run", ids="flight", scheduler="serial")
    run, uri = leafledger.read_run(tmp_path / "run"), f"{tmp_path}/run"
    for call, line in (
        (lambda: run.attributions(columns=["phi_dely"]), f"{uri}: has no column 'phi_dely'; its id columns are flight; did you mean 'phi_delay'?"),
        (lambda: run.find({"fligth": 1}), f"{uri}: has no column 'fligth'; its id columns are flight; did you mean 'flight'?"),
        (lambda: run.summary("importances"), f"{uri}: has no summary 'importances', expected one of importance, inputs; did you mean 'importance'?"),
    ):
        with pytest.raises(leafledger.UsageError) as refusal:
            call()
        assert str(refusal.value) == line
    (untouched,) = leafledger.forget(tmp_path / "run", {"fligth": 1}, dry_run=True).untouched
    assert untouched.why == "has no id column 'fligth', its id columns are flight; did you mean 'flight'?"
    leafledger.explain(example.model, example.data, tmp_path / "other", ids="flight", scheduler="serial")
    with pytest.raises(leafledger.UsageError, match=r"expected an id or a value that it wrote: flight; did you mean 'flight'\?$"):
        leafledger.drift(tmp_path / "run", against=tmp_path / "other", by="fligth")


def test_options_are_asked_for(example, tmp_path, monkeypatch, capsys):
    """Flags, variables, and the tables and options of a file of settings; words of a list."""
    settings = tmp_path / "nights.toml"
    command = ["explain", str(example.model), str(example.data), "--out", str(tmp_path / "run"), "--quiet"]

    def said(*arguments):
        assert cli.main([*arguments]) == 2
        return capsys.readouterr().err

    assert said(*command, "--methd", "beta") == "leafledger: Unknown option: --methd. Did you mean --method?\n"
    settings.write_text('[explain]\nmethd = "beta"\n')
    assert said(*command, "--config", str(settings)) == (
        f"leafledger: {settings}: [explain] has 'methd', which is no option of the command, see leafledger explain --help; did you mean 'method'?\n"
    )
    settings.write_text('[explane]\nmethod = "beta"\n')
    assert said(*command, "--config", str(settings)).endswith("; did you mean 'explain'?\n")
    monkeypatch.setenv("LEAFLEDGER_EXPLAIN_METHD", "beta")
    assert said(*command) == (
        "leafledger: environment variable LEAFLEDGER_EXPLAIN_METHD: expected an option, see leafledger explain --help; "
        "did you mean 'LEAFLEDGER_EXPLAIN_METHOD'?\n"
    )


def test_a_column_that_is_another_feature_is_not_asked_for(example):
    """The nearest of those that the model does not ask for by themselves."""
    frame = _frame(example).drop(columns="month").assign(months=1)
    model = leafledger.load_ensemble(example.model)
    with pytest.raises(leafledger.SchemaMismatch) as refusal:
        leafledger.attribute(model, frame.rename(columns={"distance": "delay2"}))
    assert str(refusal.value) == "rows: columns 'distance', 'month' missing, got delay2, delay, carrier, months"
    with pytest.raises(leafledger.SchemaMismatch) as refusal:
        leafledger.attribute(model, frame)
    assert str(refusal.value) == "rows: column 'month' missing, got distance, delay, carrier, months; did you mean 'months'?"


def test_a_column_of_numbers_has_no_nearest_name(example):
    """Nothing is asked where nothing is near."""
    with pytest.raises(leafledger.SchemaMismatch) as refusal:
        leafledger.attribute(example.model, pd.DataFrame(_frame(example).to_numpy(), columns=list("abcd")))
    assert str(refusal.value) == "rows: columns 'distance', 'delay', 'carrier', 'month' missing, got a, b, c, d"
