"""What runs on a card, and what is said of the rest."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.cuda import card as module
from leafledger.kernels.cuda import decorator
from leafledger.kernels.cuda import tables as on_the_card
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.slices.buffers import make_buffers
from tests.kernels.cuda.card import EQUAL, on, on_card, tables, unwalked
from tests.kernels.cuda.small_card import Inside, SmallCard
from tests.kernels.marginal.against import counted
from tests.kernels.weighted.carrying import prepare_carried
from tests.trees import grown


def test_there_is_a_card():
    """The simulator's, or a real one."""
    assert module.has_card()


def test_what_compiles_kernels_cannot_be_imported(monkeypatch):
    """numba-cuda 0.30 asks NumPy 2.5 for a function that it does not have any more."""

    def fail(_):
        raise AttributeError("module 'numpy' has no attribute 'row_stack'")

    monkeypatch.setattr(module, "import_module", fail)
    with pytest.raises(ImportError, match="no attribute 'row_stack'"):
        module.has_card.__wrapped__()


def test_a_machine_without_a_card(monkeypatch):
    monkeypatch.setattr(decorator.cuda, "is_available", lambda: False)
    assert not module.has_card.__wrapped__()


@pytest.mark.parametrize(
    ("name", "given", "group"), [("two_step", {}, [0, 0, 1]), ("probabilistic", {"sizes": (1.0, 0.0, 0.0)}, None), ("r2", {}, None)]
)
def test_methods_of_processors(name, given, group):
    """Methods that are no semivalues, or not of single players, are named in the refusal."""
    prepared = tables(name, grown(np.random.default_rng(0), 1, 2, 3), None if group is None else np.array(group), **given)
    assert module.find_obstacle(METHODS[name], prepared) == f"method {name!r} runs on processors only"


def test_any_model_with_a_background():
    """What runs does not depend on the background's rows, so that it is known before they are counted."""
    assert {name for name, method in METHODS.items() if not module.find_obstacle(method)} == {
        "shapley", "banzhaf", "beta", "semivalue", "owen", "asymmetric",
    }  # fmt: skip


def test_more_features_than_a_record_can_name(monkeypatch):
    """A record has 22 bits for the feature."""
    monkeypatch.setattr(module, "MOST_FEATURES", 3)
    prepared = tables("shapley", grown(np.random.default_rng(0), 1, 3, 3))
    assert module.find_obstacle(METHODS["shapley"], prepared) == "the model's splits have 3 features, at most 2 are possible"


@pytest.mark.parametrize(("name", "given"), [("owen", {}), ("asymmetric", {"sequence": (1, 0, 2)})])
def test_values_within_groups_run_on_processors(name, given):
    """Members of a group are present with a probability of their own."""
    prepared = tables(name, grown(np.random.default_rng(0), 2, 4, 6), np.array([0, 0, 0, 1, 1, 2]), **given)
    assert "Owen values" in module.find_obstacle(METHODS[name], prepared)


@pytest.mark.again
@pytest.mark.parametrize("n_rooms", [1, 2, 9])
def test_threads_share_the_tables_and_wait_for_room(monkeypatch, n_rooms):
    """Slices on four threads have the bits of one after the other; as many are on the card at once as fit, and tables are sent once."""
    rng = np.random.default_rng(4)
    prepared = tables("shapley", grown(rng, 2, 4, 6))
    method, slices = on_card(METHODS["shapley"], prepared), [rng.normal(size=(3, 6)) for _ in range(8)]
    expected = [on(method, prepared, rows)[0] for rows in slices]
    buffers, (job,) = make_buffers(prepared, 3), on_the_card.lay_out(prepared.method, 16, prepared.players.size)
    small = SmallCard(monkeypatch, job.n_bytes + n_rooms * (buffers.phi.nbytes + buffers.bins.nbytes))
    inside, launch, one_at_a_time = Inside(min(n_rooms, 4)), on_the_card.launch, threading.Lock()

    def meet(*given):
        inside.meet()
        with one_at_a_time:  # all that the simulator can do
            launch(*given)

    monkeypatch.setattr(on_the_card, "launch", meet)
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(lambda rows: on(method, prepared, rows)[0], slices), expected, strict=True):
            assert_array_equal(found, wanted)
    assert (inside.most, inside.done) == (min(n_rooms, 4), 8)
    assert small.n_tables_sent == len(job.arrays)


def test_a_kernel_adds():
    """To what the buffers hold, as the processor's does."""
    prepared = tables("shapley", grown(np.random.default_rng(8), 1, 3, 4))
    buffers, method = make_buffers(prepared, 2)._replace(n_rows=2), on_card(METHODS["shapley"], prepared)
    method.kernel(buffers, prepared.method)
    once = buffers.phi.copy()
    method.kernel(buffers, prepared.method)
    assert np.abs(once).max() > 0
    assert_array_equal(buffers.phi, 2 * once)


@pytest.mark.parametrize("quantity", [None, Quantity("sigmoid", 1.0)], ids=["margins", "probabilities"])
@pytest.mark.slow
def test_standard_errors_and_quantities(quantity):
    """Every kernel call of a batch runs on the card: without each lot of the background, and of every weighted game."""
    rng = np.random.default_rng(6)
    ensemble, background, rows = grown(rng, 2, 3, 4), rng.normal(size=(41, 4)), rng.normal(size=(3, 4))
    if quantity is None:
        asked = ask_background(ensemble, METHODS["shapley"], n_rows=41, budget=1 << 40, errors=True)
        prepared = tables("shapley", ensemble, background=(asked, counted(asked, background)))
    else:
        prepared = prepare_carried("shapley", ensemble, background, quantity, errors=True)
    one, other = make_buffers(prepared, 3), make_buffers(prepared, 3)
    for buffers, method in ((one, METHODS["shapley"]), (other, on_card(unwalked(METHODS["shapley"]), prepared))):
        buffers.values[:, :3] = rows.T[prepared.bins.column]
        attribute_batch(method, prepared, buffers, 3)
    assert len(module.list_tables(prepared)) > len(one.without) == 20
    for name in ("phi", "without"):
        expected = getattr(one, name)[..., :3]
        assert np.abs(expected).max() > 0
        assert_allclose(getattr(other, name)[..., :3], expected, rtol=0, atol=EQUAL * np.abs(expected).max())
