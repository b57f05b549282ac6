"""The cluster of batch jobs: its script, run as Slurm would by a program of the same name."""

import importlib.util
import os
import signal
from contextlib import suppress

import pytest
import yaml

from pipeline.runs.certificates import ROLES, make_certificates
from tests.infra.files import INFRA

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
