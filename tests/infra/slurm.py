"""A Slurm of this machine alone: a key, a controller and one node with a partition `batch`, all in a temporary folder.

Debian has it: ``apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge``.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

BINARIES = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "sinfo", "squeue")
PATIENCE_SECONDS = 60
CONFIG = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=8192 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES State=UP
"""


def missing() -> list[str]:
    """Binaries that are not here."""
    return [name for name in BINARIES if shutil.which(name) is None]


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for found in sockets:
            found.bind(("127.0.0.1", 0))
        return [found.getsockname()[1] for found in sockets]


@contextlib.contextmanager
def slurm() -> Iterator[Path]:
    """The file that SLURM_CONF has to name. Jobs that are left are cancelled at the end, and all is gone."""
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as name, contextlib.ExitStack() as undo:
        folder, host = Path(name), socket.gethostname().partition(".")[0]
        controller, node = _free_ports(2)
        config = folder / "slurm.conf"
        config.write_text(CONFIG.format(host=host, controller=controller, node=node, folder=folder))
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        for made in ("state", "spool"):
            (folder / made).mkdir()
        environment = os.environ | {"SLURM_CONF": str(config)}

        def call(*command: str) -> str:
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS).stdout

        def start(*command: str) -> None:
            with (folder / f"{command[0]}.out").open("wb") as out:
                process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
            undo.callback(process.wait, PATIENCE_SECONDS)
            undo.callback(process.terminate)

        # by force, since its folder is one of a user and not of the system
        munge = {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munge.pid", "seed-file": "munge.seed"}
        start("munged", "--foreground", "--force", *(f"--{option}={folder / file}" for option, file in munge.items()))
        _wait_for((folder / "munge.sock").exists, folder)
        start("slurmctld", "-D")
        start("slurmd", "-D")
        _wait_for(lambda: call("sinfo", "--noheader", "--format=%t").strip() == "idle", folder)
        undo.callback(_wait_for, lambda: not call("squeue", "--noheader"), folder)
        undo.callback(call, "scancel", "--user=root")
        yield config


def _wait_for(there: Callable[[], bool], folder: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not there():
        if time.monotonic() > until:
            said = "\n".join(f"{path.name}: {path.read_text()[-500:]}" for path in sorted(folder.glob("*.out")))
            raise RuntimeError(f"Slurm did not get there in {PATIENCE_SECONDS} seconds\n{said}")
        time.sleep(0.2)
