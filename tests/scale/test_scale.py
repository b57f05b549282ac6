"""The simulation works as it says: a few workers at a real scheduler, and parts of a run's own client."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from leafledger.kernels.reductions.reduction import MOMENTS
from leafledger.pipeline.methods.reduction_states import unpack_state
from leafledger.pipeline.runs.execute.merged_states import MergedStates
from tests.scale import __main__ as command
from tests.scale import parts as real
from tests.scale.cell import write_bits
from tests.scale.work import SUMMARIES, Work, make_items, read_ledger, stay_cold, wait_item, write_work

FAN_IN = 8
N, WORKERS = 40, 4


@pytest.fixture(scope="module")
def found():
    """One measurement, as the command makes it: three processes of its own."""
    return command.run_cell(f"{WORKERS}x{N}x0.05")


def fold(states):
    """Merge eight at a time, level by level, by their places alone."""
    while len(states) > 1:
        level = []
        for first in range(0, len(states), FAN_IN):
            merged = states[first]
            for state in states[first + 1 : first + FAN_IN]:
                merged = MOMENTS.merge(merged, state)
            level.append(merged)
        states = level
    return write_bits(states[0])


def test_every_part_comes_once_with_the_bits_of_one_process(found):
    assert (found["missing"], found["twice"], found["same"]) == (0, 0, True)
    assert command.is_right(found)
    assert not command.is_right({**found, "twice": 1})


def test_what_is_said_of_a_measurement_can_be(found):
    """Workers have worked for the time that items take, and CPU time passes in all processes."""
    assert found["seconds"] >= 0.9 * N * 0.05 / WORKERS
    assert 0 < found["busy"] <= 1
    assert 0 <= found["late_median"] <= found["late_most"] <= found["seconds"]
    assert all(found[name] > 0 for name in ("scheduler_cpu", "client_cpu", "farm_cpu", "connect", "scheduler_peak", "client_peak"))
    assert f"{WORKERS} workers, {N} parts of 0.05 s" in command.describe(found)


def test_parts_in_any_order_merge_to_the_bits_of_a_serial_fold(tmp_path):
    """Their numbers decide; added up as they come, they have other bits. Everything that is done is in the ledger."""
    work = Work(0.0, 0.2, 30)
    uri = write_work(tmp_path, work)
    stay_cold(uri)
    items = make_items(N)
    parts = {k: wait_item(str(tmp_path), "digest", uri, items[k])[0] for k in np.random.default_rng(3).permutation(N).tolist()}
    serial = fold([unpack_state(MOMENTS, work.state(k)) for k in range(N)])
    merged = MergedStates(SUMMARIES)
    for k, part in parts.items():
        merged.add(k, part.states)
    assert write_bits(merged.total()["importance"]) == serial
    assert fold([unpack_state(MOMENTS, part.states["importance"]) for part in parts.values()]) != serial
    ledger = read_ledger(tmp_path)
    assert ledger[:, 0].tolist() == list(parts)
    assert (ledger[:, 1] <= ledger[:, 2]).all()


def test_items_take_about_as_long_as_asked():
    took = [Work(10.0, 0.2, 1).take(k) for k in range(1000)]
    assert 8 <= min(took) < 8.1 < 11.9 < max(took) <= 12
    assert abs(sum(took) / 1000 - 10) < 0.1


def test_a_wrong_measurement_ends_the_command(found, monkeypatch, capsys, tmp_path):
    """And only all of them together are written for the documentation."""
    monkeypatch.setattr(command, "FILE", tmp_path / "scale.json")
    monkeypatch.setattr(command, "run_cell", lambda cell: found)
    command.main(["one"])
    assert not (tmp_path / "scale.json").exists()
    monkeypatch.setattr(command, "run_cell", lambda cell: {**found, "missing": 1})
    with pytest.raises(SystemExit, match="some parts are missing"):
        command.main([])
    assert capsys.readouterr().out.count("WRONG") == len(command.ALL)
    written = json.loads((tmp_path / "scale.json").read_text())
    assert [cell["cell"]["work"] for cell in written["cells"]] == [asdict(Work(0.05, command.SPREAD, command.FEATURES))] * len(command.ALL)


def here(work, *given):
    """Without processes of their own, which take seconds to start."""
    return work(*given)


@pytest.mark.parametrize(
    ("item_rows", "n_parts", "where"),
    [("file", 12, here), *(pytest.param(*case, real.apart, marks=pytest.mark.more) for case in ((None, 1), (100, 3)))],
    ids=["file", "all", "100"],
)
def test_stages_of_a_real_run_are_told_apart(tmp_path, monkeypatch, item_rows, n_parts, where):
    """Each once, listing not as part of planning; what processes hold is that of Linux; and the run is that of its files."""
    monkeypatch.setattr(real, "apart", where)
    found = real.measure(12, "serial", item_rows, real.FEATURES, tmp_path)
    assert (found["files"], found["parts"], found["rows"]) == (12, n_parts, 12 * real.ROWS)
    assert list(found["stages"]) == ["listing", *(name for name in real.STAGES if name != "listing")]
    assert all(each["client_cpu"] > 0 and each["seconds"] > 0 for each in found["stages"].values())
    assert all(10 << 20 < each["client_peak"] < 10 << 30 for each in found["stages"].values())
    assert found["bytes"]["plan.json"] == (tmp_path / "run" / "plan.json").stat().st_size
    assert [line.split("|")[1].strip() for line in [*real.show(found)][4:]] == [*real.STAGES, "all"]
