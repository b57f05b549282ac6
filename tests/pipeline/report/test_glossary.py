"""The glossary explains the words of the statistics that a page shows."""

import pytest

from leafledger.pipeline.finished.names import Name, Names
from leafledger.pipeline.report.glossary import write_glossary
from leafledger.pipeline.report.vocabulary import Vocabulary

WORDS = Vocabulary(Names(row="flight", rows="flights"), "margin", "prediction", "min")


@pytest.mark.parametrize(("additive", "compared"), [(True, True), (False, False)])
def test_words_are_explained_where_they_are_used(additive, compared):
    terms = dict(write_glossary(WORDS, additive, compared).terms)
    assert {"attribution", "importance"} <= set(terms)
    assert ("base value" in terms) == additive
    assert ({"PSI", "Wasserstein", "corrected p", "alarm"} <= set(terms)) == compared
    assert "the prediction of one flight" in terms["attribution"]
    assert "prediction" not in terms


def test_what_is_predicted_is_explained_where_a_person_says_it():
    """Not of losses, which are something else."""
    names = Names(prediction=Name("arrival delay", "min", "How late it lands."))
    terms = dict(write_glossary(Vocabulary(names, "margin", "arrival delay", "min"), True, False).terms)
    assert terms["arrival delay"] == "How late it lands. In min."
    assert "loss" not in dict(write_glossary(Vocabulary(names, "loss", "loss", "min²"), True, False).terms)
