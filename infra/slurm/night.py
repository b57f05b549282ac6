"""A night on Slurm: a Dask cluster of batch jobs, started for a run and stopped after it. Copy it and say what your cluster is like.

    leafledger certificates ~/leafledger-tls
    DASK_CONFIG=~/leafledger-tls/dask.yaml python night.py s3://models/model.ubj 's3://flights/date={date}' 's3://explained/{date}' 2026-11-22

The folder of certificates and the environment have to be on a file system that all nodes see. Every node keeps compiled kernels in a folder of its
own, and compiles them in its first night, or before: `NUMBA_CACHE_DIR=~/.cache/leafledger/$(uname -n) leafledger warm`, run on it.
"""

import sys

from dask_jobqueue import SLURMCluster
from distributed import Security

import leafledger

JOBS = 8


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


def main(model: str, data: str, out: str, date: str) -> None:
    """Explain a night; workers are waited for until there is one."""
    with make_cluster() as cluster:
        cluster.scale(jobs=JOBS)
        cluster.wait_for_workers(1)
        manifest = leafledger.explain(model, data, out, date=date, scheduler=cluster.scheduler_address)
        sys.stdout.write(f"{manifest.n_rows:,} rows, SHA-256 {manifest.sha256}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
