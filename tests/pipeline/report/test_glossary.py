"""The glossary explains the words of the statistics that a page shows."""

import pytest

from leafledger.pipeline.finished.names import Names
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
