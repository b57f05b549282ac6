"""A night on Slurm: a Dask cluster of batch jobs, started for a run and stopped after it. Copy it and say what your cluster is like.

    leafledger certificates ~/leafledger-tls
    DASK_CONFIG=~/leafledger-tls/dask.yaml python night.py s3://models/model.ubj 's3://flights/date={date}' 's3://explained/{date}' 2026-11-22

The folder of certificates and the environment have to be on a file system that all nodes see. Every node keeps compiled kernels in a folder of its
own, and compiles them in its first night, or before: `NUMBA_CACHE_DIR=~/.cache/leafledger/$(uname -n) leafledger warm`, run on it.

It is the command `leafledger explain` with a cluster of its own, and says and ends with what that does: 3 where rows could not be read, 9 where no
job starts within hours.
"""

import sys

from dask_jobqueue import SLURMCluster
from distributed import Security

from leafledger.pipeline.command.cli import main as command

JOBS = 8
HOURS = 6  # that jobs may wait for their turn
AWAY = 9  # as the command ends where a cluster is away: the same command goes on from there


def make_cluster() -> SLURMCluster:
    """Make a cluster that has no worker yet; certificates are those of Dask's configuration."""
    return SLURMCluster(
        queue="batch",
        walltime="04:00:00",
        cores=8,  # of a job, a process each: `leafledger plan` says what memory a process needs
        processes=8,
        memory="32GiB",
        local_directory="$TMPDIR",
        protocol="tls://",
        security=Security(require_encryption=True),
        scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        job_script_prologue=["export OMP_NUM_THREADS=1", "export NUMBA_CACHE_DIR=$HOME/.cache/leafledger/$(uname -n)"],
    )


def main(model: str, data: str, out: str, date: str) -> int:
    """Explain a night; workers are waited for until there is one. The exit code is that of the command."""
    with make_cluster() as cluster:
        cluster.scale(jobs=JOBS)
        try:
            cluster.wait_for_workers(1, timeout=HOURS * 3600)
        except TimeoutError:
            sys.stderr.write(f"leafledger: none of {JOBS} jobs has brought a worker within {HOURS} hours; see squeue, and the jobs' logs\n")
            return AWAY
        return command(["explain", model, data, "--out", out, "--date", date, "--scheduler", cluster.scheduler_address])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
