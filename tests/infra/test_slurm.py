"""The cluster of batch jobs: its script, run as Slurm would by a program of the same name, and by Slurm where it is installed."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
import yaml

from leafledger import explain
from leafledger.pipeline.cluster.certificates import ROLES, make_certificates
from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import Exit
from tests.infra.files import INFRA
from tests.infra.slurm import missing, slurm
from tests.pipeline.conftest import make_frame, train, write_data

SBATCH = """#!/bin/sh
for script; do :; done
sed 's/--nworkers 8/--nworkers 1/; s/--death-timeout [0-9]*/--death-timeout 500/' "$script" >"$SLURM_LOG.sh"
setsid bash "$SLURM_LOG.sh" >"$SLURM_LOG" 2>&1 &
echo $! >>"$SLURM_LOG.pid"
echo "Submitted batch job $!"
"""


@pytest.fixture
def night(tmp_path, monkeypatch):
    """The example as a module; jobs start at once on this machine, each with a process in the place of eight."""
    import dask.config
    import distributed  # noqa: F401 - whose defaults are needed first

    make_certificates(tmp_path / "tls")
    for name, text in (("sbatch", SBATCH), ("scancel", "#!/bin/sh\ntrue\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path / "tls/dask.yaml"))
    spec = importlib.util.spec_from_file_location("night", INFRA / "slurm/night.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    comm = yaml.safe_load((tmp_path / "tls/dask.yaml").read_text())["distributed"]["comm"]
    settings = {f"distributed.comm.tls.{role}.{what}": path for role in ROLES for what, path in comm["tls"][role].items()}
    with dask.config.set(settings | {"distributed.comm.tls.ca-file": comm["tls"]["ca-file"], "distributed.comm.require-encryption": True}):
        yield module
    if (tmp_path / "log.pid").exists():
        for pid in map(int, (tmp_path / "log.pid").read_text().split()):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


@pytest.mark.filterwarnings("default")
def test_jobs_join_the_cluster(night, tmp_path):
    """The script asks Slurm for what the example says; run, its workers find the scheduler, by TLS."""
    with night.make_cluster() as cluster:
        script = cluster.job_script()
        for asked in ("#SBATCH -p batch", "#SBATCH --cpus-per-task=8", "#SBATCH --mem=32G", "#SBATCH -t 04:00:00", "--nworkers 8"):
            assert asked in script
        assert cluster.scheduler_address.startswith("tls://")
        cluster.scale(jobs=1)
        cluster.wait_for_workers(1, timeout=500)
        assert all(address.startswith("tls://") for address in cluster.scheduler_info["workers"])


@pytest.mark.filterwarnings("default")
def test_a_night_says_what_it_could_not_read(night, tmp_path, monkeypatch, capfd):
    """As the command does: it ends with 3 and names the file, and of a refusal there is one line."""
    monkeypatch.setattr(night, "JOBS", 1)
    train(make_frame()).save_model(tmp_path / "model.txt")
    write_data(make_frame(), tmp_path / "flights/date=2026-11-22")
    (tmp_path / "flights/date=2026-11-22/month=2/damaged.parquet").write_bytes(b"damaged")
    places = [f"{tmp_path}/{place}" for place in ("model.txt", "flights/date={date}", "explained/{date}")]
    assert night.main(*places, "2026-11-22") == Exit.PARTLY
    assert re.search("leafledger: rejected: .*/damaged.parquet: not a Parquet file", capfd.readouterr().err)
    assert night.main(*places, "2026-11-23") == Exit.NOT_YET
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.filterwarnings("default")
def test_jobs_that_never_start_end_the_night(night, tmp_path, monkeypatch, capfd):
    """As where their partition is down: in one line, with the code of a cluster that is away."""
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho Submitted batch job 1\n")
    monkeypatch.setattr(night, "HOURS", 1 / 3600)
    assert night.AWAY == Exit.AWAY
    assert night.main("model.txt", "flights", "explained", "2026-11-22") == Exit.AWAY
    assert "leafledger: none of 8 jobs has brought a worker within" in capfd.readouterr().err


@pytest.fixture
def scheduled(monkeypatch):
    """A Slurm of this machine."""
    if os.geteuid() != 0 or missing():  # packages of the system, which pip cannot install
        pytest.skip(f"root, and slurmctld, slurmd, slurm-client and munge are needed; missing: {', '.join(missing()) or 'root'}")
    with slurm() as config:
        monkeypatch.setenv("SLURM_CONF", str(config))
        yield


def ask(text, what, value):
    """The example's text with another value of one of its settings."""
    changed, times = re.subn(rf"\b({what} ?= ?)[^,\n]+", rf"\g<1>{value}", text)
    assert times == 1
    return changed


def test_a_night_on_slurm_is_one_of_this_process(scheduled, tmp_path, monkeypatch):
    """The example is run as its first lines say, with smaller jobs: Slurm starts them, they join by TLS, results are the same, no job is left."""
    script = (INFRA / "slurm/night.py").read_text()
    for what, value in (("JOBS", "2"), ("cores", "1"), ("processes", "1"), ("memory", '"2GiB"')):
        script = ask(script, what, value)
    (tmp_path / "night.py").write_text(script)
    train(make_frame()).save_model(tmp_path / "model.txt")
    write_data(make_frame(), tmp_path / "flights/date=2026-11-22")
    make_certificates(tmp_path / "tls")
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path / "tls/dask.yaml"))
    monkeypatch.setenv("HOME", str(tmp_path))
    places = ["model.txt", "flights/date={date}", "explained/{date}"]
    command = [sys.executable, "night.py", *(f"{tmp_path}/{place}" for place in places), "2026-11-22"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "explained/2026-11-22"
    assert cli.main(["check", str(out)]) == 0
    serial = explain(tmp_path / "model.txt", tmp_path / "flights/date=2026-11-22", tmp_path / "serial", date="2026-11-22", scheduler="serial")
    assert "3,000 rows explained in " in done.stdout
    assert serial.sha256 in done.stdout
    logs = [path.read_text() for path in tmp_path.glob("slurm-*.out")]
    assert len(logs) == 2
    assert any(re.search("Registered to: +tls://", log) for log in logs)
    assert subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout == ""
