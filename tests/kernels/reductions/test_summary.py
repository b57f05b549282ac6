"""Tables of summaries: whose values they hold, and how large a part of all each is."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.reductions.summary import IMPORTANCE, IMPORTANCE_BY, INTERACTIONS, SET_INTERACTIONS, Subject, list_grouped
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.kernels.slices.labels import no_labels
from tests.hypercubes import full_tree

SUBJECT = Subject(("a", "b"), ("x", "y", "z"), np.array([2, 0]), np.array([[0, 2]], np.int32), 4)
TREE = full_tree([0.0, 1.0, 2.0, 4.0], [0, 1])
RNG = np.random.default_rng(3)


def summarised(summary, values):
    reduction = summary.reduction
    (found,) = summary.tabulate(reduction.update(reduction.init(*values.shape[:2]), values, values.shape[2]), SUBJECT).values()
    return found.columns


def test_importance_has_a_row_per_output_and_player():
    """Values stand at their players, the others have none; shares of an output add up to one."""
    phi = RNG.normal(size=(2, 2, 50))
    found = summarised(IMPORTANCE, phi)
    assert tuple(found) == IMPORTANCE.columns
    assert (found["output"], found["feature"]) == (["a"] * 3 + ["b"] * 3, ["x", "y", "z"] * 2)
    size = np.abs(phi).mean(axis=2)
    expected = np.array([[size[k, 1], 0.0, size[k, 0]] for k in range(2)])
    assert_allclose(found["mean_abs"], expected.reshape(-1), rtol=1e-12)
    assert_allclose(found["share"], (expected / expected.sum(axis=1, keepdims=True)).reshape(-1), rtol=1e-12)
    assert_array_equal(found["rank"].reshape(2, 3), np.argsort(np.argsort(-expected, axis=1), axis=1) + 1)


def test_interactions_have_the_same_moments_and_no_share():
    """A row per pair, by the names of both players."""
    values = RNG.normal(size=(2, 1, 50))
    found = summarised(INTERACTIONS, values)
    assert tuple(found) == INTERACTIONS.columns
    assert (found["first"], found["second"]) == (["x"] * 2, ["z"] * 2)
    assert_allclose(found["mean"], values.mean(axis=2).reshape(-1), rtol=1e-12)
    assert "share" not in found


def test_interactions_of_sets_have_a_list_of_names():
    """A row per set, of any size, without the fillers of smaller ones."""
    subject = replace(SUBJECT, pairs=np.array([[0, -1], [0, 2]], np.int32))
    values = RNG.normal(size=(2, 2, 50))
    state = SET_INTERACTIONS.reduction.update(SET_INTERACTIONS.reduction.init(2, 2), values, 50)
    (found,) = SET_INTERACTIONS.tabulate(state, subject).values()
    assert tuple(found.columns) == SET_INTERACTIONS.columns
    assert found.columns["features"] == [["x"], ["x", "z"]] * 2
    assert_allclose(found.columns["mean"], values.mean(axis=2).reshape(-1), rtol=1e-12)


def test_a_path_is_summarised_step_by_step():
    """What the ranker makes larger has moments at each of its steps, and steps have no ranks."""
    objective, path = METHODS["ranker"].summaries[1], RNG.normal(size=(2, 4, 50))
    found = summarised(objective, path)
    assert tuple(found) == objective.columns == ("output", "step", "mean", "std", "min", "max")
    assert found["step"] == [1, 2, 3, 4] * 2
    for name in ("mean", "std", "min", "max"):
        assert_allclose(found[name].reshape(2, 4), getattr(np, name)(path, axis=2), rtol=1e-12)


def test_shares_do_not_depend_on_the_unit():
    """Whether the margin is in minutes or in millions of years."""
    phi = RNG.normal(size=(2, 2, 50))
    assert_allclose(summarised(IMPORTANCE, phi * 1e-12)["share"], summarised(IMPORTANCE, phi)["share"], rtol=1e-12)


def test_importance_of_groups_is_that_of_their_rows():
    """Groups in the order of their values, none last; each has the table that its rows alone have, and how many they are."""
    phi, groups = RNG.normal(size=(2, 2, 50)), np.array(["[10]", "[9]", "[null]"])[RNG.integers(0, 3, 50)]
    names, group = np.unique(groups, return_inverse=True)
    labels = no_labels(50)._replace(group=group.astype(np.int64), names=names)
    reduction = IMPORTANCE_BY.reduction
    state = reduction.update(reduction.init(2, 2), phi, 50, labels)
    found = IMPORTANCE_BY.tabulate(state, replace(SUBJECT, by=("k",)))["importance_by"].columns
    assert tuple(found) == ("k", *IMPORTANCE_BY.columns)
    assert found["k"] == [9] * 6 + [10] * 6 + [None] * 6
    for g, name in enumerate(("[9]", "[10]", "[null]")):
        alone, some = summarised(IMPORTANCE, phi[:, :, groups == name]), slice(6 * g, 6 * g + 6)
        assert found["rows"][some].tolist() == [(groups == name).sum()] * 6
        for column in IMPORTANCE.columns:
            assert list(found[column][some]) == list(alone[column])


def test_no_rows_have_no_groups(monkeypatch):
    """A table without rows has all of its columns; and more groups than are worth a table have none."""
    subject = replace(SUBJECT, by=("k",))
    found = IMPORTANCE_BY.tabulate(IMPORTANCE_BY.reduction.init(2, 2), subject)["importance_by"].columns
    assert {len(column) for column in found.values()} == {0}
    state = IMPORTANCE_BY.reduction.update(IMPORTANCE_BY.reduction.init(2, 2), np.ones((2, 2, 3)), 3, no_labels(3))
    monkeypatch.setattr("leafledger.kernels.slices.labels.MOST_VALUES", 5)
    with pytest.raises(InvalidParameters, match=r"^'k' make 1 groups of 6 values each, expected at most 5 values in all$"):
        IMPORTANCE_BY.tabulate(state, subject)


def test_a_model_without_pairs_has_a_table_without_rows():
    """All of its columns are there and empty."""
    subject = replace(SUBJECT, pairs=np.zeros((0, 2), np.int32))
    (found,) = INTERACTIONS.tabulate(INTERACTIONS.reduction.init(2, 0), subject).values()
    assert tuple(found.columns) == INTERACTIONS.columns
    assert {len(column) for column in found.columns.values()} == {0}


def test_a_share_of_nothing_is_nothing():
    """Where every attribution is 0 no feature has a share."""
    assert (summarised(IMPORTANCE, np.zeros((2, 2, 5)))["share"] == 0).all()


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.slow
def test_a_summary_reads_what_its_method_writes(method):
    """From a batch of rows to tables with the columns that the summary names, one value of a row's batch per label."""
    parameters = {parameter.name: parameter.default for parameter in method.parameters} | {
        "atoms": ((0.5, 1.0),),
        "sizes": (0.5, 0.5),
        "sequence": (0,),
    }
    parameters = {name: value for name, value in parameters.items() if any(parameter.name == name for parameter in method.parameters)}
    groups = None if method.phi.of_groups else np.zeros(2, np.int32)
    prepared = prepare(TREE, method, parameters, groups)
    buffers = make_buffers(prepared, 3)
    buffers.values[:, :3] = RNG.integers(0, 2, (3, 2)).T[prepared.bins.column]
    buffers = buffers._replace(labels=buffers.labels._replace(names=np.array(["[]"])))  # one group, of no columns
    attribute_batch(method, prepared, buffers)
    players = (*(f"player {j}" for j in range(2)), *method.phi.scores)
    subject = Subject(("y",), players, prepared.players, prepared.pairs.players, int(prepared.n_steps[0]))
    for summary in dict.fromkeys((*method.summaries, *list_grouped(method.summaries))):
        state = summary.update(summary.init(buffers), buffers, 3)
        tables = summary.tabulate(state, subject)
        assert next(iter(tables)) == summary.name
        for table in tables.values():
            assert set(table.columns) | set(table.totals or {}) <= set(summary.columns)
            assert len({len(column) for column in table.columns.values()}) == 1
            assert {shown.column for shown in summary.display} <= set(table.columns)
