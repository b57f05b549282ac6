"""Rows in memory and runs on a card: the processor's numbers within rounding, or one line that says why not."""

import re
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute, check_run, explain, prepare
from leafledger.kernels.cuda import memory, tables
from leafledger.pipeline.arguments.choices import DEVICES
from leafledger.pipeline.cluster import card
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.in_memory.explain import slices
from leafledger.pipeline.runs.records.manifest import read_manifest
from tests.kernels.cuda.small_card import SmallCard

NAMES = ["wind", "rain", "sun"]
EQUAL = 1e-12  # of the largest attribution


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a few threads, which are Python's in the simulator; its integers of 32 bits wrap, and NumPy says so."""
    monkeypatch.setattr(tables, "THREADS", (4, 2))
    monkeypatch.setattr(memory, "MEMORY", memory.Memory())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))
    path = tmp_path_factory.mktemp("model") / "model.ubj"
    data = xgboost.DMatrix(rows, rows[:, 0] * rows[:, 1] + rows[:, 2], feature_names=NAMES)
    xgboost.train({"max_depth": 4, "nthread": 1}, data, 4).save_model(path)
    return path


@pytest.fixture
def no_card(monkeypatch):
    monkeypatch.setattr(card, "has_card", lambda: False)


def rows(n=9):
    made = np.random.default_rng(1).normal(size=(n, 3)).astype(np.float32)
    made[2, 1] = np.nan
    return made


@pytest.mark.slow
def test_rows_in_memory(model):
    """Attributions of a card and of the processor; margins are the processor's on both."""
    one, other = (attribute(model, rows(), device=device) for device in ("cpu", "cuda"))
    assert_allclose(other.phi, one.phi, rtol=0, atol=EQUAL * np.abs(one.phi).max())
    assert_array_equal(other.margin, one.margin)
    assert_array_equal(prepare(model, device="auto")(rows()).phi, other.phi)


def test_a_run(model, tmp_path):
    """The manifest says what made the numbers; a deep check computes them again, to the same bits."""
    pq.write_table(pa.table({name: rows()[:, j] for j, name in enumerate(NAMES)}), tmp_path / "rows.parquet")
    explain(model, tmp_path / "rows.parquet", tmp_path / "run", device="cuda", precision="float64", scheduler="serial")
    assert read_manifest(str(tmp_path / "run")).device == "cuda"
    assert check_run(tmp_path / "run", deep=True, scheduler="serial").sound
    found = pq.read_table(tmp_path / "run" / "attributions")
    expected = attribute(model, rows()).phi[:, 0]
    assert_allclose(np.column_stack([found[f"phi_{name}"] for name in NAMES]), expected, rtol=0, atol=EQUAL * np.abs(expected).max())


@pytest.mark.parametrize("given", [{}, {"background_errors": True}, {"space": "probability"}], ids=["margins", "errors", "probabilities"])
@pytest.mark.slow
def test_a_run_against_a_background(tmp_path, given):
    """The processor's numbers within rounding, the same bits where they are checked; "auto" takes the processor."""
    rng = np.random.default_rng(5)
    some = rng.normal(size=(300, 3))
    data = xgboost.DMatrix(some, some[:, 0] * some[:, 1] > some[:, 2], feature_names=NAMES)
    xgboost.train({"max_depth": 4, "nthread": 1, "objective": "binary:logistic"}, data, 4).save_model(tmp_path / "model.ubj")
    for name, n, seed in (("rows", 9, 1), ("background", 41, 2)):
        table = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
        pq.write_table(pa.table(dict(zip(NAMES, table.T, strict=True))), tmp_path / f"{name}.parquet")
    found = {}
    for device in DEVICES:
        given_ = given | {"background": tmp_path / "background.parquet", "precision": "float64", "scheduler": "serial", "device": device}
        explain(tmp_path / "model.ubj", tmp_path / "rows.parquet", tmp_path / device, **given_)
        found[device] = pq.read_table(tmp_path / device / "attributions")
    assert [read_manifest(str(tmp_path / device)).device for device in DEVICES] == ["cpu", "cuda", "cpu"]
    assert check_run(tmp_path / "cuda", deep=True, scheduler="serial").sound
    names = [name for name in found["cpu"].column_names if name.startswith(("phi_", "error_"))]
    assert len(names) == 3 * (1 + bool(given.get("background_errors")))
    one, other = (np.column_stack([found[device][name] for name in names]) for device in ("cpu", "cuda"))
    assert_allclose(other, one, rtol=0, atol=EQUAL * np.abs(one).max())


def test_a_run_of_a_card_on_a_machine_without_one(model, tmp_path, monkeypatch):
    """It is checked but for what takes a card, which is said; the same command with "auto" finds it finished."""
    pq.write_table(pa.table({name: rows()[:, j] for j, name in enumerate(NAMES)}), tmp_path / "rows.parquet")
    given = model, tmp_path / "rows.parquet", tmp_path / "run"
    explain(*given, device="auto", scheduler="serial")
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    monkeypatch.setattr(card, "has_card", lambda: False)
    found = check_run(tmp_path / "run", deep=True, scheduler="serial")
    assert found.unverified == (
        "no row was explained again, nor what the manifest says of the model: a graphics card computed its attributions, and there is none here",
    )
    explain(*given, device="auto", scheduler="serial")
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_a_driver_that_fails(model, monkeypatch):
    """Whatever CUDA's libraries raise where they are imported is one line, and "auto" is the processor."""

    def fail():
        raise ImportError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(card, "has_card", fail)
    with pytest.raises(UsageError, match=r"device 'cuda' needs numba_cuda, which cannot be imported: libcuda\.so\.1: cannot open shared object file"):
        attribute(model, rows(), device="cuda")
    assert_array_equal(attribute(model, rows(), device="auto").phi, attribute(model, rows()).phi)


def test_a_card_that_fails_while_it_works(model, monkeypatch):
    """An error of CUDA's is one line; one of ours stays what it is."""
    full = type("CudaAPIError", (Exception,), {"__module__": "numba.cuda.cudadrv.driver"})

    def fail(error):
        def launch(*_):
            raise error

        return launch

    monkeypatch.setattr(tables, "launch", fail(full("[2] Call to cuMemAlloc results in\nCUDA_ERROR_OUT_OF_MEMORY")))
    with pytest.raises(UsageError, match=r"the card failed: \[2\] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY; try device 'cpu'"):
        attribute(model, rows(), device="cuda")
    monkeypatch.setattr(tables, "launch", fail(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        attribute(model, rows(), device="cuda")


@pytest.mark.slow
def test_threads_take_turns_where_a_card_has_room_for_one_slice(model, monkeypatch):
    """The simulator knows one kernel at a time, and says so where two threads have a slice there."""
    monkeypatch.setattr(slices, "SLICE_ROWS", 128)
    explainer = prepare(model, device="cuda")
    expected = explainer._explain(rows(300), None, None, 1)
    one_slice = 128 * (8 * len(NAMES) + 2 * len(NAMES))
    small = SmallCard(monkeypatch, one_slice + sum(job.n_bytes for job in tables.lay_out(explainer._prepared.method, 16, len(NAMES))))
    assert_array_equal(explainer._explain(rows(300), None, None, 3).phi, expected.phi)
    assert small.free == 0


def test_a_card_with_too_little_memory(model, monkeypatch):
    """Nothing is launched; the line says what is there, what is needed, and what to do."""
    SmallCard(monkeypatch, 100_000)
    monkeypatch.setattr(tables, "launch", lambda *_: pytest.fail("launched"))
    says = "the card has 0.1 MiB to spare, expected 0.2: tables 0.0, a slice of rows 0.2; end what else uses the card, or take device 'cpu'"
    with pytest.raises(UsageError, match=f"^device is 'cuda', but {re.escape(says)}$"):
        attribute(model, rows(8192), device="cuda")


def test_a_machine_without_a_card(model, no_card):
    """Asked for it is refused; "auto" is the processor."""
    with pytest.raises(UsageError, match="device is 'cuda', but there is no card here that CUDA can use"):
        attribute(model, rows(), device="cuda")
    assert_array_equal(attribute(model, rows(), device="auto").phi, attribute(model, rows()).phi)


def test_what_a_card_needs_is_not_installed(model, monkeypatch):
    """The line names the extra."""

    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(card, "import_module", missing)
    with pytest.raises(UsageError, match=r"device 'cuda' needs numba_cuda: pip install 'leafledger\[cuda\]'"):
        attribute(model, rows(), device="cuda")
    assert card.choose_device("auto", True, False) == "cpu"


def test_what_does_not_run_on_a_card(model, tmp_path):
    """Methods of groups: refused where a card was asked for, with a background before it is counted; computed by the processor by "auto"."""
    pq.write_table(pa.table({name: rows()[:, j] for j, name in enumerate(NAMES)}), tmp_path / "rows.parquet")
    partition = {"weather": ["wind", "rain"]}
    given = {"method": "two_step", "partition": partition, "background": tmp_path / "rows.parquet", "device": "cuda", "scheduler": "serial"}
    with pytest.raises(UsageError, match="device is 'cuda', but method 'two_step' runs on processors only"):
        explain(model, tmp_path / "rows.parquet", tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="device is 'cuda', but method 'two_step' runs on processors only"):
        attribute(model, rows(), "two_step", partition=partition, device="cuda")
    explain(model, tmp_path / "rows.parquet", tmp_path / "run", method="two_step", partition=partition, device="auto", scheduler="serial")
    assert read_manifest(str(tmp_path / "run")).device == "cpu"


def test_workers_of_a_cluster_have_the_card():
    """Their scheduler's machine needs none; a task takes one of the GPUs that a worker has."""
    assert card.choose_device("cuda", False, False) == "cuda"
    assert card.choose_device("cuda", False, True) == "cuda"
    assert card.choose_device("auto", False, False) == "cpu"
    assert card.task_resources("cuda") == {"resources": {"GPU": 1}}
    assert card.task_resources("cpu") == {}
