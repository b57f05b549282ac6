"""What is said of other tools is what was measured: processes below are counted, requests seen, values compared, and the page is the kept file."""

import json
import subprocess
import sys
import time

import pandas as pd
import pytest

from docs import generated
from tests.beside.__main__ import compare_values
from tests.beside.environments import TOOLS
from tests.beside.night import BEFORE, DEPTH, FEATURES, MISSING, MODEL, N_ROWS, N_TREES, NIGHT, TARGET, TRAINING, make_night, read_night
from tests.beside.pages import look_at
from tests.beside.steps import Steps
from tests.chromium import BROWSER

BUSY = "import time; held = bytearray(80_000_000); until = time.process_time() + 0.4\nwhile time.process_time() < until: pass\n"


def test_what_is_kept_is_of_these_tools():
    """Of their pinned versions, of the night that is made, every row of it; what adds up does, and one model has the same values everywhere."""
    kept = json.loads(generated.BESIDE.read_text())
    assert kept["night"] == {"rows": N_ROWS, "features": len(FEATURES), "trees": N_TREES, "depth": DEPTH}
    assert [each["name"] for each in kept["tools"]] == [tool.name for tool in TOOLS]
    for tool, each in zip(TOOLS, kept["tools"], strict=True):
        pinned = [package.partition("==")[2] for package in tool.packages if "==" in package]
        assert not pinned or next(iter(each["versions"].values())) == pinned[0]
        assert each["report"]["n_bytes"] > 0
        if each["values"] is not None:
            assert each["values"]["rows"] == N_ROWS
            assert each["values"]["residual"] < 1e-5
            assert each["values"]["apart"] is None or each["values"]["apart"] < 1e-5
    assert kept["tools"][0]["report"]["requests"] == []


def test_the_table_is_the_kept_file(tmp_path, monkeypatch):
    """A column for every tool; nothing where nothing was measured."""
    step = {"name": "explain", "seconds": 2.5, "processor_seconds": 1.234, "peak_bytes": 2_000_000_000}
    report = {"files": {"HTML": 1, "PNG": 2}, "n_bytes": 5_345_844, "page_bytes": 1, "script_bytes": 0, "requests": ["https://a/b.js"]}
    one = {"name": "one", "packages": 3, "installed_bytes": 999, "versions": {"one": "1.2", "x": "3"}, "steps": [step], "report": report}
    one["values"] = {"rows": 9, "residual": 2.3e-7, "apart": None}
    two = one | {"name": "two", "values": None, "steps": [step | {"name": "drift"}], "report": report | {"script_bytes": 1500}}
    said = {"night": {"rows": 9000, "features": 12, "trees": 5, "depth": 3}, "machine": {"cores": "2"}, "tools": [one, two]}
    (tmp_path / "beside.json").write_text(json.dumps(said))
    monkeypatch.setattr(generated, "BESIDE", tmp_path / "beside.json")
    before, table = generated.beside().split("\n\n")
    assert before == "Measured by `python -m tests.beside`: 9,000 flights, XGBoost, 5 trees of depth 3, 12 features, on: cores 2."
    lines = table.splitlines()
    assert lines[0] == "|  | one | two |"
    for line in (
        "| version | 1.2 | 1.2 |",
        "| packages that are installed with it | 3, 999 bytes | 3, 999 bytes |",
        "| **attributions of every row**, in a file | 1.23 s (2.5 s) |  |",
        "| most memory | 2 GB | 2 GB |",
        "| files to look at | 1 HTML, 2 PNG | 1 HTML, 2 PNG |",
        "| their size | 5.35 MB | 5.35 MB |",
        "| of these scripts | none | 1.5 kB |",
        "| requests to other hosts when the page is opened | 1 | 1 |",
        "| furthest that attributions are from adding up to the tool's own prediction | 2e-07 |  |",
        "| furthest that they are from Leafledger's, of the same model |  |  |",
    ):
        assert line in lines
    assert any(line.startswith("| **what changed since the night before** |  | 1.23 s") for line in lines)


def test_processes_below_are_counted(tmp_path):
    """One that ended within the step, one that is still there, and what they hold; another step starts anew."""
    steps, living = Steps(), None
    try:
        with steps.step("busy"):
            living = subprocess.Popen([sys.executable, "-c", BUSY + "time.sleep(60)"])
            subprocess.run([sys.executable, "-c", BUSY], check=True)
            until = time.monotonic() + 60
            while steps_used(living) < 0.4 and time.monotonic() < until:
                time.sleep(0.05)
        with steps.step("idle"):
            pass
    finally:
        if living is not None:
            living.kill()
            living.wait()
    steps.save(tmp_path, ["pytest"])
    said = json.loads((tmp_path / "steps.json").read_text())
    assert said["versions"] == {"pytest": pytest.__version__}
    busy, idle = said["steps"]
    assert 0.8 <= busy["processor_seconds"] < 10
    assert busy["peak_bytes"] > 160_000_000
    assert busy["seconds"] > 0.4
    assert idle["processor_seconds"] < 0.3


def steps_used(process):
    """Processor time of a living process."""
    import psutil

    return sum(psutil.Process(process.pid).cpu_times()[:2])


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium")
def test_requests_to_other_hosts_are_seen(tmp_path):
    """Those that a script makes too; data of the page itself, and its own files, are none."""
    script = "setTimeout(() => fetch('https://b.invalid/é').catch(() => 0), 300)"
    page = f"<script src='https://a.invalid/a.js'></script><img src='data:,x'><img src='mine.png'><script>{script}</script>"
    (tmp_path / "page.html").write_text(f"<meta charset=utf-8>{page}")
    (tmp_path / "mine.png").write_bytes(b"x" * 7)
    found = look_at(tmp_path)
    assert sorted(found.requests) == ["https://a.invalid/a.js", "https://b.invalid/%C3%A9"]
    assert found.files == {"HTML": 1, "PNG": 1}
    assert found.script_bytes == len(script.encode())
    assert found.page_bytes == (tmp_path / "page.html").stat().st_size == found.n_bytes - 7


def test_values_are_compared(tmp_path):
    """By hand: the sum of a row is a tenth off, and one value is a quarter of the largest off; a tool without values has nothing to compare."""
    zeros = pd.DataFrame({name: [0.0, 0.0] for name in FEATURES})
    ours = zeros.assign(day=[1.0, -4.0], base=2.0, prediction=[3.0, -2.0])
    theirs = zeros.assign(day=[1.0, -3.0], base=2.0, prediction=[3.0, -0.7])
    for name, frame in (("ours", ours), ("theirs", theirs)):
        frame.to_parquet(tmp_path / name)
    assert compare_values(tmp_path / "nothing", None) is None
    assert compare_values(tmp_path / "ours", None) == {"rows": 2, "residual": 0.0, "apart": None}
    assert compare_values(tmp_path / "theirs", tmp_path / "ours") == {"rows": 2, "residual": pytest.approx(0.1), "apart": pytest.approx(0.25)}


def test_nights_are_of_different_flights(tmp_path):
    """The model saw none of either night; all have the features as numbers."""
    make_night(tmp_path, n_rows=400, n_trees=2)
    frames = {name: pd.read_parquet(tmp_path / name) for name in (BEFORE, NIGHT, TRAINING)}
    assert (tmp_path / MODEL).stat().st_size > 1000
    assert [len(frames[name]) for name in (BEFORE, NIGHT)] == [400, 400]
    days = [frame["month"] * 100 + frame["day"] for frame in frames.values()]
    assert days[0].max() <= days[1].min() <= days[1].max() <= days[2].min()
    assert frames[TRAINING][TARGET].notna().all()
    assert all(frame[FEATURES].notna().all(axis=None) for frame in frames.values())
    assert (read_night(tmp_path)["seats"] == MISSING).any()
    assert list(read_night(tmp_path).columns) == FEATURES
    assert set(read_night(tmp_path).dtypes.astype(str)) == {"float32"}
