"""The flows are found by a name of their own, beside a package ``flows`` of a user's."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    """A folder with a package called ``flows``, which is found first by whoever runs Python there."""
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "__init__.py").write_text("THEIRS = True")
    (tmp_path / "flows" / "explain.py").write_text("THEIRS = True")
    return tmp_path


def test_an_entrypoint_is_ours_beside_their_flows(folder):
    """As Prefect loads it: the flow and every module that it imports are ours; theirs is what ``flows`` means, before and after."""
    program = (
        "import sys; from prefect.flows import load_flow_from_entrypoint\n"
        "import leafledger.flows.explain; assert leafledger.flows.THEIRS and leafledger.flows.explain.THEIRS\n"
        "flow = load_flow_from_entrypoint('leafledger.flows.explain.explain')\n"
        "assert sys.modules['flows'] is flows and 'leafledger.flows.stages' not in sys.modules\n"
        "print(flow.name, flow.fn.__module__, sys.modules['leafledger.flows.stages'].__file__)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == ["explain", "leafledger.flows.explain", str(ROOT / "flows" / "stages.py")]


def test_a_module_of_ours_runs_beside_their_flows(folder):
    """``python -m`` finds it, and a mistake is one line."""
    command = [sys.executable, "-m", "leafledger.flows.serve", "model.txt", "data", "--out", "out/{date}", "--cron", "never"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("leafledger: --cron is 'never', expected minute, hour, ")
