"""Two hosts, made of network namespaces, of which one is cut off in the middle of a run, and disks that are full."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack

import distributed
import pytest

from leafledger.pipeline.errors import LeafledgerError, StorageError
from tests.faults.interrupting import struck
from tests.faults.verdict import contents

PORT = 8797
pytestmark = pytest.mark.long


def call(*command):
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def hosts():
    """Two namespaces, each with a link to this one: names and this end's addresses."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    with ExitStack() as undo:
        found = {}
        for i in (1, 2):
            name, link = f"leafledger{i}", f"leaf{i}"
            if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
                pytest.skip("no network namespaces can be made here")
            undo.callback(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
            call("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
            undo.callback(subprocess.run, ["ip", "link", "del", link], capture_output=True)  # which a namespace's end takes a while to do
            call("ip", "addr", "add", f"10.77.{i}.1/24", "dev", link)
            call("ip", "link", "set", link, "up")
            for arguments in (["addr", "add", f"10.77.{i}.2/24", "dev", "eth0"], ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):
                call("ip", "-n", name, *arguments)
            found[name] = (link, f"10.77.{i}.1")
        yield found


@pytest.fixture
def cluster(hosts, monkeypatch):
    """The address of a scheduler on this host, with a worker on each of the others."""
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__PRELOAD", '["tests.faults.preload"]')
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "5s")
    monkeypatch.setenv("FAULTS_SECONDS", "1")
    dask = [sys.executable, "-m"]
    commands = [[*dask, "distributed.cli.dask_scheduler", "--host", "0.0.0.0", "--port", str(PORT), "--no-dashboard"]]
    commands += [
        ["ip", "netns", "exec", name, *dask, "distributed.cli.dask_worker", f"tcp://{address}:{PORT}", "--nthreads", "1", "--no-dashboard"]
        for name, (_, address) in hosts.items()
    ]
    with ExitStack() as undo:
        for command in commands:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=os.getcwd())
            undo.callback(process.wait)
            undo.callback(process.kill)
        address = f"tcp://127.0.0.1:{PORT}"
        with distributed.Client(address, timeout=200) as client:
            client.wait_for_workers(2, timeout=200)
        yield address


def test_a_host_that_is_cut_off_costs_nothing(many, tally, tmp_path, hosts, cluster):
    """The other one finishes the run."""

    def cut():
        call("ip", "link", "set", hosts["leafledger1"][0], "down")
        tally.faults["link cut"] += 1

    many.explain(str(tmp_path / "run"), scheduler=cluster, progress=struck(cut))
    many.judge(str(tmp_path / "run"))
    call("ip", "link", "set", hosts["leafledger1"][0], "up")


def test_a_link_that_heals_in_the_middle_of_the_commit_costs_nothing(many, tally, tmp_path, hosts, cluster):
    """The host that was cut off has gone on: what it published meanwhile, or publishes once it is back, is what the other one would."""
    link, out, timers = hosts["leafledger1"][0], str(tmp_path / "run"), []

    def heal():
        call("ip", "link", "set", link, "up")
        tally.faults["link healed"] += 1

    def cut():
        call("ip", "link", "set", link, "down")
        tally.faults["link cut"] += 1
        timers.append(threading.Timer(7.0, heal))  # after the scheduler has given the host up, and its work to the other
        timers[-1].start()

    many.explain(out, scheduler=cluster, progress=struck(cut))
    timers[0].join()
    many.judge(out)
    time.sleep(3)  # whatever the host still wants to write
    many.judge(out)


def test_links_that_lose_packets_cost_nothing(many, tally, tmp_path, hosts, cluster):
    """Three of ten packets that reach a host are lost."""
    if shutil.which("nft") is None:
        pytest.skip("loss is made by nftables: apt-get install nftables")
    for name in hosts:
        lost = "table inet loss; add chain inet loss in { type filter hook input priority 0; }; add rule inet loss in iifname eth0"
        call("ip", "netns", "exec", name, "nft", f"add {lost} numgen random mod 10 < 3 drop")
        tally.faults["link with 30 % loss"] += 1
    many.explain(str(tmp_path / "run"), scheduler=cluster)
    many.judge(str(tmp_path / "run"))


@pytest.fixture
def disk(tmp_path):
    """Mount a small disk, and let it grow."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def size(text, *options):
        if subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join((*options, f"size={text}")), "tmpfs", folder], capture_output=True).returncode:
            pytest.skip("no tmpfs can be mounted here")
        return folder

    yield size
    subprocess.run(["umount", "--lazy", folder], capture_output=True)  # tables that this process has mapped lie there


def test_a_full_disk_is_said_and_gone_on_from(runner, tally, disk):
    """Nothing is half there; once there is room, the next run does the rest."""
    folder = disk("72k")
    with pytest.raises(LeafledgerError, match="No space left on device"):
        runner.explain(str(folder / "run"))
    tally.faults["disk full"] += 1
    assert [name for name in contents(str(folder / "run")) if "/." in name] == []
    disk("64m", "remount")
    runner.go_on(str(folder / "run"))


@pytest.mark.parametrize("where", [{"scheduler": "serial"}, {"scheduler": None, "workers": 2}], ids=["serial", "workers"])
@pytest.mark.parametrize("size", ["4k", "32k"], ids=["tables", "parts"])
def test_a_full_temporary_disk_is_said_and_gone_on_from(runner, tally, tmp_path, monkeypatch, disk, size, where):
    """Of the client, or of workers, which also spill there: one line that names it, however little fits."""
    folder, out = disk(size), str(tmp_path / "run")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pytest.raises(StorageError, match=f"^{folder}: cannot write: .*No space left on device") as raised:
        runner.explain(out, **where)
    assert "\n" not in str(raised.value)
    tally.faults["temporary disk full"] += 1
    disk("64m", "remount")
    runner.go_on(out, **where)
