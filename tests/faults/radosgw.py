"""A real object store on this machine: Ceph's monitor, one object daemon that keeps everything in memory, and its S3 gateway.

Debian has them: ``apt-get install -y --no-install-recommends radosgw ceph-mon ceph-osd ceph-mgr ceph-common``.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

BINARIES = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "ceph-authtool", "monmaptool")
START_SECONDS = 200
CONFIG = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon},v1:127.0.0.1:{old}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 1073741824
mon allow pool size one = true
mon max pg per osd = 1000
mon osd min in ratio = 0
rgw dns name = 127.0.0.1
rgw thread pool size = 32
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
run dir = {folder}
keyring = {folder}/keyring
mon data = {folder}/mon
osd data = {folder}/osd
osd journal = {folder}/osd/journal
mon data avail warn = 1
mon data avail crit = 0
rgw data = {folder}/rgw
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
def radosgw(access_key: str, secret_key: str) -> Iterator[str]:
    """The gateway's URL; it knows one user with these keys. All is gone at the end."""
    processes: list[subprocess.Popen] = []
    with tempfile.TemporaryDirectory(prefix="radosgw-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        mon, old, port = _free_ports(3)
        fsid = str(uuid.uuid4())
        (folder / "ceph.conf").write_text(CONFIG.format(fsid=fsid, mon=mon, old=old, folder=folder))
        for data in ("mon", "osd", "rgw"):
            (folder / data).mkdir()

        def call(*command: str) -> str:
            arguments = [command[0], "-c", f"{folder}/ceph.conf", *command[1:]]
            caller = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            until = time.monotonic() + START_SECONDS
            while True:
                try:
                    out, err = caller.communicate(timeout=1)
                    break
                except subprocess.TimeoutExpired:  # whoever waits for a daemon that has ended waits for ever
                    if time.monotonic() > until or any(process.poll() is not None for process in processes):
                        caller.kill()
                        caller.communicate()
                        raise RuntimeError(f"{' '.join(command)}: no answer; {_said(folder)}") from None
            if caller.returncode:
                raise RuntimeError(f"{' '.join(command)}: {err.strip()[-500:]}")
            return out

        def start(*command: str) -> None:
            with (folder / f"{command[0]}.out").open("wb") as out:
                processes.append(subprocess.Popen([command[0], "-c", f"{folder}/ceph.conf", "-f", *command[1:]], stdout=out, stderr=out))

        try:
            keyring = ["ceph-authtool", f"{folder}/keyring", "--gen-key"]
            subprocess.run([*keyring, "--create-keyring", "-n", "mon.", "--cap", "mon", "allow *"], check=True, capture_output=True)
            admin = [part for daemon in ("mon", "osd", "mgr") for part in ("--cap", daemon, "allow *")]
            subprocess.run([*keyring, "-n", "client.admin", *admin], check=True, capture_output=True)
            subprocess.run(
                ["monmaptool", "--create", "--addv", "a", f"[v2:127.0.0.1:{mon},v1:127.0.0.1:{old}]", "--fsid", fsid, f"{folder}/monmap"],
                check=True,
                capture_output=True,
            )
            call("ceph-mon", "--mkfs", "-i", "a", "--monmap", f"{folder}/monmap", "--keyring", f"{folder}/keyring")
            start("ceph-mon", "-i", "a")
            osd = str(uuid.uuid4())
            call("ceph", "osd", "new", osd)
            call("ceph", "auth", "get-or-create", "osd.0", "mon", "allow profile osd", "osd", "allow *", "-o", f"{folder}/osd/keyring")
            call("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd, "--keyring", f"{folder}/osd/keyring")
            start("ceph-osd", "-i", "0", "--keyring", f"{folder}/osd/keyring")
            start("radosgw", "-n", "client.admin", "--rgw-frontends", f"beast endpoint=127.0.0.1:{port}")
            _wait_for(f"http://127.0.0.1:{port}", folder)
            keys = ("--access-key", access_key, "--secret-key", secret_key)
            user = json.loads(call("radosgw-admin", "user", "create", "--uid", "tests", "--display-name", "tests", *keys))
            if user["keys"][0]["access_key"] != access_key:
                raise RuntimeError("radosgw knows another user")
            yield f"http://127.0.0.1:{port}"
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()


def _wait_for(url: str, folder: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(url, timeout=5)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"radosgw does not answer within {START_SECONDS} s; {_said(folder)}")


def _said(folder: Path) -> str:
    """The end of what each daemon printed and logged."""
    return "\n".join(path.read_text(errors="replace")[-1000:] for path in sorted((*folder.glob("*.out"), *folder.glob("*.log"))))


if __name__ == "__main__":
    with radosgw("access", "secret") as url:
        print(url, f"process {os.getpid()}; interrupt to end it")
        time.sleep(3600)
