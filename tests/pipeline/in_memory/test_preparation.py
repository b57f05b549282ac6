"""What is asked is checked before rows are there, and holds names alone, not the trees."""

import pickle

from leafledger import load_ensemble
from pipeline.in_memory.preparation import ask
from pipeline.in_memory.rows import read_header
from tests.pipeline.conftest import FEATURES


def put(model, partition=None):
    return ask(model, None, "shapley", None, partition, None, "shared", None, False, False, "margin")


def test_a_question_is_small(example):
    """However large the trees are."""
    model = load_ensemble(example.model)
    question, _ = put(model)
    assert question.model.features == model.features
    assert question.n_trees == model.ensemble.root.size
    assert question.model.ensemble.feature.size == 0
    assert len(pickle.dumps(question)) < len(pickle.dumps(model)) / 3


def test_players_are_called_as_the_columns(example):
    """Groups by their names, features by those of the rows."""
    question, _ = put(load_ensemble(example.model), {"when": ["month", 1]})
    names = question.name_players(read_header(example.frame))
    assert names.players == ("distance", "when", "carrier")
    assert names.groups == (("distance", ("distance",)), ("when", ("delay", "month")), ("carrier", ("carrier",)))
    assert names.features == tuple(FEATURES)
    assert question.name_players(None) == names
