"""What a container, a Slurm job or a unit of systemd allows is read of control groups of both versions; their folders are made as these make them."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from leafledger.pipeline.cluster import cgroups
from leafledger.pipeline.cluster import resources as resources_
from leafledger.pipeline.cluster.placement import make_placement
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.runs.job import job
from leafledger.pipeline.runs.job.options import Options

GIB = 1 << 30
UNLIMITED = "9223372036854771712"  # what version 1 says
POD = "/kubepods.slice/kubepods-pod7.slice/cri-containerd-5.scope"
SLURM = "/system.slice/slurmstepd.scope/job_12/step_0/user/task_0"


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Let this process be in groups: the lines that it is told, and files by their names."""

    def make(lines, files):
        (tmp_path / "own").write_text("".join(f"{line}\n" for line in lines))
        for name, text in files.items():
            file = tmp_path / "fs" / name.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
        monkeypatch.setattr(cgroups, "OWN", str(tmp_path / "own"))
        monkeypatch.setattr(cgroups, "GROUPS", str(tmp_path / "fs"))

    return make


@pytest.mark.parametrize(
    ("lines", "files", "memory", "cores"),
    [
        (["0::/"], {"memory.max": 2 * GIB, "cpu.max": "150000 100000"}, 2 * GIB, 2),  # a container that sees its own group as the first
        (["0::/"], {"memory.max": "max", "cpu.max": "max 100000"}, None, None),
        (["0::/"], {}, None, None),  # a machine
        ([f"0::{POD}"], {f"{POD}/memory.max": GIB, f"{POD}/cpu.max": "max 100000"}, GIB, None),
        ([f"0::{SLURM}"], {f"{SLURM}/memory.max": "max", "/system.slice/slurmstepd.scope/job_12/memory.max": 3 * GIB}, 3 * GIB, None),
        (["0::/user.slice/night.service"], {"user.slice/memory.max": 5 * GIB, "user.slice/night.service/memory.max": 7 * GIB}, 5 * GIB, None),
        (["0::/a/b"], {"cpu.max": "700000 100000", "a/cpu.max": "300000 100000", "a/b/cpu.max": "400000 100000"}, None, 3),
        (
            ["4:memory:/docker/5", "3:cpu,cpuacct:/docker/5", "0::/"],
            {
                "memory/memory.limit_in_bytes": 2 * GIB,  # what is mounted in a container is its own, by whatever name it is told
                "cpu/cpu.cfs_quota_us": 50000,
                "cpu/cpu.cfs_period_us": 100000,
            },
            2 * GIB,
            1,
        ),
        (
            ["4:memory:/slurm/job_12", "3:cpu:/", "1:name=systemd:/night"],
            {
                "memory/slurm/job_12/memory.limit_in_bytes": 6 * GIB,
                "memory/memory.limit_in_bytes": UNLIMITED,
                "cpu/cpu.cfs_quota_us": -1,
                "cpu/cpu.cfs_period_us": 100000,
                "night/memory.max": 1,
            },
            6 * GIB,
            None,
        ),
        (["4:memory:/", "0::/"], {"memory.max": "what", "memory/memory.limit_in_bytes": "", "cpu.max": "0 0"}, None, None),
    ],
)
def test_the_least_limit_around_holds(groups, lines, files, memory, cores):
    """Of this process's group and of all around it, in the way that each version of Linux says it; a part of a core counts as one."""
    groups(lines, files)
    assert (cgroups.find_memory(), cgroups.find_cores()) == (memory, cores)


def test_where_there_are_no_groups_there_is_no_limit(groups, tmp_path, monkeypatch):
    """Other systems than Linux have none."""
    groups(["0::/"], {"memory.max": 1, "cpu.max": "1 1"})
    monkeypatch.setattr(cgroups, "OWN", str(tmp_path / "none"))
    assert (cgroups.find_memory(), cgroups.find_cores()) == (None, None)


@pytest.fixture
def host(monkeypatch):
    """Of 16 cores and 64 GiB."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=64 * GIB))
    monkeypatch.setattr(resources_.os, "sched_getaffinity", lambda _: set(range(16)), raising=False)


def test_workers_share_what_the_container_may_take(groups, host):
    """Not what its host has: together they have no more than the limit, and there are no more of them than cores' time; tables get half."""
    groups(["0::/"], {"memory.max": 4 * GIB, "cpu.max": "200000 100000"})
    assert resources_.count_cores() == 2
    assert resources_.table_budget() == 2 * GIB
    for made in (job.make_job("m.txt", "data", "out", Options()).placement, make_placement()):
        assert (made.threads, made.worker_memory) == (2, 4 * GIB)
    assert job.make_job("m.txt", "data", "out", Options(workers=8)).placement.worker_memory == GIB // 2
    groups(["0::/"], {"memory.max": UNLIMITED, "cpu.max": "9900000 100000"})
    assert (resources_.count_cores(), resources_.table_budget()) == (16, 32 * GIB)


@pytest.mark.parametrize(("memory", "threads"), [(64, 16), (5, 3), (1, 1), (0.5, 1)])
def test_no_more_threads_are_started_than_have_room(groups, host, memory, threads):
    """A pod may have all cores of its node, and little of its memory."""
    groups(["0::/"], {"memory.max": int(memory * GIB)})
    for made in (job.make_job("m.txt", "data", "out", Options()).placement, make_placement()):
        assert made.with_room(GIB).threads == threads
        assert made.with_room(GIB // 4).threads == max(1, min(16, 4 * memory - 2))


@pytest.mark.slow
def test_a_plan_that_the_container_has_no_room_for_is_refused(groups, host, example, tmp_path, capsys):
    """In one line that says what is needed and what is allowed, instead of a process that Linux ends; fewer threads are taken where those fit."""
    asked = ["plan", example.model, example.data, "--out", str(tmp_path / "run"), "--json"]
    groups(["0::/"], {"memory.max": 2 * GIB})
    assert main([*asked, "--workers", "8"]) == UsageError.exit_code
    said = capsys.readouterr().err
    assert said.startswith("leafledger: a worker needs ")
    assert said.endswith(", it has 256; use fewer workers\n")
    assert said.count("\n") == 1
    assert main(asked) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["memory_allowed"] == 2 * GIB
    assert main([*asked[:-1]]) == 0
    said = re.search(r"memory +(\d+) MiB for (\d+) threads .*, 2048 MiB allowed", capsys.readouterr().out)
    assert plan["memory"] >> 20 < int(said[1]) <= 2048
    assert 1 < int(said[2]) <= 16
    assert main([*asked, "--threads", "100000"]) == UsageError.exit_code
    assert re.fullmatch(r"leafledger: 100000 threads need .*, it has 2048; use fewer threads\n", capsys.readouterr().err)
    groups(["0::/"], {"memory.max": GIB // 4})
    assert main(asked) == UsageError.exit_code


ENTER = """
import sys
open(sys.argv[1], "w").write("0")
from leafledger.pipeline.cluster import cgroups
print(cgroups.find_memory())
"""


def test_a_process_in_a_real_group_finds_its_limit():
    """As Linux itself tells it, where this test may make a group with one."""
    for folder in cgroups._find_groups("memory"):
        group = folder / f"leafledger-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (limit,) = [file for name in ("memory.max", "memory.limit_in_bytes") if (file := group / name).exists()]
            limit.write_text(str(3 * GIB))
            said = subprocess.run([sys.executable, "-c", ENTER, group / "cgroup.procs"], capture_output=True, text=True, check=True)
        except (OSError, ValueError):
            continue
        finally:
            group.rmdir()
        assert int(said.stdout) == 3 * GIB
        return
    pytest.skip("no control group can be made here")
