"""Readable names are read or refused, and rows, tables and totals are shown by them."""

from pathlib import Path

import pytest

from leafledger import read_run, report
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.finished.names import Name, Names, read_names_file
from tests.pipeline.running import contents

GIVEN = {
    "rows": {"one": "flight", "many": "flights"},
    "prediction": {"title": "arrival delay", "unit": "min"},
    "features": {"delay": {"title": "departure delay", "unit": "min", "description": "How late it left."}, "gate": {"title": "gate"}},
}


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    from leafledger import explain

    out = tmp_path_factory.mktemp("named") / "run"
    explain(example.model, example.data, out, ids=["flight"], values=True, interactions=2, scheduler="serial")
    return read_run(out)


def test_names_are_those_of_the_run_s_features(run):
    """Those of other features are passed over, so that one file serves several models."""
    names = read_names_file(GIVEN, run.plan)
    assert names == Names({"delay": Name("departure delay", "min", "How late it left.")}, Name("arrival delay", "min"), "flight", "flights")
    assert (names.title("delay"), names.title("distance"), names.unit("delay"), names.unit("distance")) == ("departure delay", "distance", "min", "")
    assert (names.count(1), names.count(1234)) == ("1 flight", "1,234 flights")
    assert read_names_file(None, run.plan) == Names()


def test_what_is_said_of_the_prediction_is_of_predictions(run):
    """Not of raw scores, nor of losses or probabilities."""
    from dataclasses import replace

    for plan in (replace(run.plan, predicts=False), replace(run.plan, space="loss"), replace(run.plan, space="probability")):
        assert read_names_file(GIVEN, plan).prediction == Name()
    assert read_names_file(GIVEN, replace(run.plan, space="response")).prediction == Name("arrival delay", "min")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"feature": {}}, r"names: has 'feature', expected prediction, rows, features; did you mean 'features'\?"),
        ({"features": []}, r"names: features is \[\], expected a table of features"),
        ({"features": {"delay": "late"}}, r"names: 'delay': is 'late', expected a table of title, unit, description"),
        ({"features": {"delay": {"titles": "x"}}}, r"names: 'delay': has 'titles', expected title, unit, description; did you mean 'title'\?"),
        ({"features": {"delay": {"title": " "}}}, r"names: 'delay': title is ' ', expected words"),
        ({"features": {"delays": {"title": "x"}}}, r"names: names 'delays' and no feature of the run, whose features are "),
        ({"features": {"delay": {"title": "distance"}}}, r"names: '\w+' and '\w+' are both called 'distance', expected a title of its own for each"),
        ({"rows": "flights"}, r"names: rows is 'flights', expected one = "),
    ],
)
def test_what_is_no_name_is_refused_in_one_line(run, given, said):
    with pytest.raises(UsageError, match=f"^{said}"):
        read_names_file(given, run.plan)


def test_rows_are_shown_with_titles_and_units(run):
    """In text and HTML; JSON and the record itself have the run's own names."""
    shown = run.show({"flight": 1234})
    called = shown.called(read_names_file(GIVEN, run.plan))
    value = next(step.shown for step in shown.rows[0].outputs[0].steps if step.player == "delay")
    for text in (called.text(), called._repr_html_()):
        assert f"departure delay = {value} min" in text
        assert "arrival delay, min" in text
    assert "delay = " in shown.text()
    assert "departure" not in shown.text()


def test_the_commands_take_a_file_of_names(run, tmp_path, capsys):
    (tmp_path / "names.toml").write_text('rows = { one = "flight", many = "flights" }\n[features.delay]\ntitle = "departure delay"\n')
    assert main(["show", run.uri, "--where", "flight=1234", "--names", str(tmp_path / "names.toml")]) == 0
    assert "departure delay = " in capsys.readouterr().out
    assert main(["report", run.uri, "--names", str(tmp_path / "names.toml"), "--quiet"]) == 0
    page = contents(Path(run.uri))["report/index.html"].decode()
    assert all(said in page for said in ("3,000 flights", "How departure delay acts"))
    with pytest.raises(UsageError, match="names"):
        report(run.uri, names={"rows": 3}, scheduler="serial")
