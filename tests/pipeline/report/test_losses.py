"""The page of a loss run says which features helped and which hurt, and what made predictions worse since another run."""

import json
import re
from types import SimpleNamespace

import pandas as pd
import pytest

from leafledger import drift, explain, report
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.pipeline.finished.names import Name, Names
from leafledger.pipeline.report.figures.bars import draw_losses
from leafledger.pipeline.report.losses import write_losses
from leafledger.pipeline.report.vocabulary import make_vocabulary
from tests.pipeline.drift.loss_nights import FEATURES, explain_losses, make_inputs, read_labelled
from tests.pipeline.report.reading import read_section


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Both runs, the first one first, and their rows that have a label."""
    folder = tmp_path_factory.mktemp("losses")
    make_inputs(folder)
    runs = [explain_losses(folder, name, folder / f"run-{name}", values=True) for name in ("before", "now")]
    return runs, [read_labelled(folder, name, run) for name, run in zip(("before", "now"), runs, strict=True)]


def test_the_page_has_the_parts_of_the_loss(nights):
    """Means of the parts' columns over the rows that have a label, with their standard errors, what hurt most first."""
    (before, _), rows = nights
    report(before, scheduler="serial")
    said, means = read_section(before, "worse"), rows[0][[f"phi_{name}" for name in FEATURES]].mean().sort_values(ascending=False)
    assert said.startswith("What made the predictions worse A row’s loss is ")
    cells = said.partition("feature mean part standard error ")[2].replace("−", "-").split()
    assert len(cells) == 3 * len(FEATURES)
    for k, (name, mean) in enumerate(means.items()):
        error = rows[0][name].std() / len(rows[0]) ** 0.5
        first, *numbers = cells[3 * k : 3 * k + 3]
        assert first == name.removeprefix("phi_")
        assert list(map(float, numbers)) == pytest.approx([mean, error], rel=1e-2)


def test_the_page_says_what_made_predictions_worse(nights):
    """Against another run: the sentence, the changes from mean to mean, and no rise of the loss among the rows that moved."""
    (before, now), rows = nights
    (sentence,) = drift(now, against=before, scheduler="serial").worse
    report(now, against=before, scheduler="serial")
    said = read_section(now, "worse")
    assert f"Compared with run-before, {sentence}." in said
    (numbers,) = re.findall(r"mean before ([0-9.]+) c \+([0-9.]+) .* base value −([0-9.]+) mean now ([0-9.]+)", said.rpartition("feature change ")[2])
    changes = [rows[1][name].mean() - rows[0][name].mean() for name in ("phi_c", "base")]
    assert list(map(float, numbers)) == pytest.approx([rows[0].loss.mean(), changes[0], -changes[1], rows[1].loss.mean()], rel=1e-3)
    changed = read_section(now, "changes")
    assert "Why the mean" not in changed
    assert sentence in changed
    assert "mean loss of" not in changed.partition("How different each column is")[2]
    assert [shift["kind"] for shift in json.loads((now / "after/drift.json").read_text())["shifts"]][:2] == ["loss", "mean loss"]


def test_a_loss_has_the_features_names_and_not_the_prediction_s(nights):
    """The sentence and the figures call features as people do; a log loss of a delay in minutes is neither a delay nor in minutes."""
    (before, now), _ = nights
    names = {"prediction": {"title": "arrival delay", "unit": "min"}, "features": {"c": {"title": "wind at dawn"}}}
    report(now, against=before, scheduler="serial", names=names)
    worse, page = read_section(now, "worse"), (now / "report/index.html").read_text()
    assert ") by wind at dawn" in worse
    assert " by c" not in worse
    assert ") by wind at dawn" in read_section(now, "changes")
    assert not re.search(r"mean arrival delay|[0-9] min\b", page)


def test_a_squared_error_is_in_squares_of_the_prediction_s_unit():
    """Where that is a word; other losses have no unit."""
    plan = SimpleNamespace(space="loss", total="loss")
    for loss, unit, written in (("squared", "min", "min²"), ("squared", "km/h", ""), ("log", "min", "")):
        plan.quantity = Quantity(loss)
        words = make_vocabulary(plan, Names(prediction=Name("arrival delay", unit)))
        assert (words.total, words.unit) == ("loss", written)


def test_other_runs_have_no_such_section(example, tmp_path):
    """Neither those of margins, nor those without any label."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    report(tmp_path / "run", scheduler="serial")
    assert 'id="worse"' not in (tmp_path / "run/report/index.html").read_text()
    assert write_losses({"loss": [{"feature": "a", "mean": None, "standard_error": None, "rank": 1}]}, None) is None


def test_few_features_are_drawn_of_many():
    """Those whose parts are largest, in the order of their parts; what has none is left out."""
    rows = pd.DataFrame({"feature": list("abcd"), "mean": [-3.0, 1.0, 2.0, 0.0], "standard_error": [0.5, 0.1, None, 0.0], "rank": [1, 3, 2, 4]})
    figure = draw_losses(rows.astype(object).where(rows.notna(), None).to_dict("records"), 2)
    assert [track.label for track in figure.drawing.tracks] == ["c", "a"]
    assert [track.marks[0].kind for track in figure.drawing.tracks] == ["up", "down"]
    assert [len(track.lines) for track in figure.drawing.tracks] == [0, 1]
    assert "The first 2 of 3 features." in figure.description
