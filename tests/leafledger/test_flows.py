"""The flows as Prefect and ``python -m`` find them, from a checkout that is on the path beside a user's own ``flows``."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    """Run Python in a folder with a package called ``flows``, which is found first there."""
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "__init__.py").write_text("THEIRS = True")
    (tmp_path / "flows" / "explain.py").write_text("THEIRS = True")

    def found(*arguments):
        environment = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "DO_NOT_TRACK": "1"}
        return subprocess.run([sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return found


@pytest.mark.slow
def test_an_entrypoint_is_ours_beside_their_flows(run):
    """As Prefect loads it: the flow and every module that it imports are ours; theirs is what ``flows`` means, before and after."""
    program = (
        "import flows.explain, sys; from prefect.flows import load_flow_from_entrypoint\n"
        "flow = load_flow_from_entrypoint('leafledger.flows.explain.explain')\n"
        "assert sys.modules['flows'] is flows and flows.THEIRS and flows.explain.THEIRS and 'flows.stages' not in sys.modules\n"
        "print(flow.name, flow.fn.__module__, sys.modules['leafledger.flows.stages'].__file__)"
    )
    done = run("-c", program)
    assert done.stderr == ""
    assert done.stdout.split() == ["explain", "leafledger.flows.explain", str(ROOT / "leafledger" / "flows" / "stages.py")]


@pytest.mark.slow
def test_a_module_of_ours_runs_beside_their_flows(run):
    """``python -m`` finds it, and a mistake is one line."""
    done = run("-m", "leafledger.flows.serve", "model.txt", "data", "--out", "out/{date}", "--cron", "never")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("leafledger: --cron is 'never', expected minute, hour, ")
