"""Containers without an engine: a process in namespaces of its own, with a root filesystem of its own, on a network of its own.

Of what an engine does this does what a run could notice: a network and a name, processes that end with their first one, a root filesystem that may be
read-only, volumes, an unprivileged user without capabilities, starting again. It sets no limits, and the packages are those of this environment.
"""

import os
import secrets
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOWN = ("bin", "etc", "lib", "lib64", "sbin", "usr")  # of this machine
PACKAGES = "/opt/leafledger"  # where images have this environment
FIRST_PAUSE, LONGEST_PAUSE, WELL = 0.1, 60.0, 10.0  # seconds before a start again, twice as long each time, unless it ran well for a while: Docker's
TOOLS = ("ip", "unshare", "setpriv", "chroot", "mount")


def missing() -> list[str]:
    """What is not here that containers need."""
    return [name for name in TOOLS if shutil.which(name) is None] + (["root"] if os.geteuid() else [])


def call(*command: str) -> None:
    """A command that has to do what it is told."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Mount:
    """A folder or file of this machine, in a container."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class Recipe:
    """What a container is started with."""

    command: Sequence[str]
    environment: Mapping[str, str]
    mounts: Sequence[Mount] = ()
    temporary: Sequence[str] = ()  # folders in memory that can be written
    user: int | None = None  # and group; None is root
    capable: bool = True
    read_only: bool = False
    folder: str = "/"
    again: bool = False  # started again whenever it ends


class Network:
    """A bridge that this machine is on too, as long as the context lasts: one namespace for each container, which keeps its address."""

    def __init__(self):
        self._undo, self._token, self.addresses = ExitStack(), secrets.token_hex(3), {}

    def __enter__(self) -> "Network":
        routes = subprocess.run(["ip", "-4", "route"], capture_output=True, text=True, check=True).stdout
        found = (f"10.78.{number}" for number in secrets.SystemRandom().sample(range(256), 256))
        self._subnet, self._bridge = next(subnet for subnet in found if f"{subnet}." not in routes), f"leaf{self._token}"
        call("ip", "link", "add", self._bridge, "type", "bridge")
        self._undo.callback(subprocess.run, ["ip", "link", "del", self._bridge], capture_output=True)
        call("ip", "addr", "add", f"{self._subnet}.1/24", "dev", self._bridge)
        call("ip", "link", "set", self._bridge, "up")
        return self

    def __exit__(self, *exception) -> None:
        self._undo.close()

    def join(self, name: str) -> str:
        """A new namespace, called like the container; its address."""
        number = len(self.addresses) + 2
        space, link, address = self.space(name), f"l{self._token}-{number}", f"{self._subnet}.{number}"
        call("ip", "netns", "add", space)
        self._undo.callback(subprocess.run, ["ip", "netns", "del", space], capture_output=True)
        call("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
        call("ip", "link", "set", link, "master", self._bridge, "up")
        for arguments in (
            ["addr", "add", f"{address}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
            ["link", "set", "lo", "up"],
            ["route", "add", "default", "via", f"{self._subnet}.1"],
        ):
            call("ip", "-n", space, *arguments)
        self.addresses[name] = address
        return address

    def space(self, name: str) -> str:
        """The namespace of a container."""
        return f"leaf{self._token}-{name}"

    def cut(self, name: str, up: bool = False) -> None:
        """Take a container's link away, or give it back."""
        call("ip", "link", "set", f"l{self._token}-{self.addresses[name].rpartition('.')[2]}", "up" if up else "down")


def _enter(name: str, recipe: Recipe, root: Path, hosts: Path) -> str:
    """A script that makes the root filesystem in a mount namespace of its own, and becomes the command there."""
    quoted = shlex.quote
    lines = ["set -e", f"hostname {quoted(name)}", f"mount -t tmpfs -o mode=755 root {root}"]

    def show(source: str, target: str, read_only: bool = True) -> None:
        at = quoted(f"{root}{target}")
        lines.append(f"mkdir -p {at}" if os.path.isdir(source) else f"mkdir -p {quoted(os.path.dirname(f'{root}{target}'))}; touch {at}")
        lines.append(f"mount --rbind {quoted(source)} {at}" + (f"; mount -o remount,bind,ro {at}" if read_only else ""))

    for folder in SHOWN:
        if os.path.islink(f"/{folder}"):
            lines.append(f"ln -s {quoted(os.readlink(f'/{folder}'))} {root}/{folder}")
        elif os.path.isdir(f"/{folder}"):
            show(f"/{folder}", f"/{folder}")
    show("/dev", "/dev", read_only=False)
    lines.append(f"mount --bind {quoted(str(hosts))} {root}/etc/hosts")
    lines.append(f"mkdir -p {root}/proc {root}/tmp; mount -t proc proc {root}/proc; chmod 1777 {root}/tmp")
    for entry in recipe.temporary:
        folder, _, options = entry.partition(":")
        lines.append(f"mkdir -p {root}{folder}; mount -t tmpfs {f'-o {options}' if options else ''} tmpfs {root}{folder}")
    for folder in dict.fromkeys((sys.base_prefix, sys.prefix, str(ROOT))):
        if not folder.startswith("/usr"):
            show(folder, folder)
    show(sys.prefix, PACKAGES)
    for mount in recipe.mounts:
        show(mount.source, mount.target, mount.read_only)
    if recipe.read_only:
        lines.append(f"mount -o remount,bind,ro {root}")
    who = [] if recipe.user is None else ["--reuid", str(recipe.user), "--regid", str(recipe.user), "--clear-groups"]
    bounds = [] if recipe.capable else ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    given = [f"{key}={value}" for key, value in recipe.environment.items()]
    lines.append(
        "exec "
        + shlex.join(
            ["chroot", str(root), "setpriv", "--pdeathsig", "KILL", *who, *bounds, "env", "-i", "-C", recipe.folder, *given, *recipe.command]
        )
    )
    return "\n".join(lines)


@dataclass
class Container:
    """A process with all that it starts, in a namespace of the network that is there already."""

    name: str
    recipe: Recipe
    network: Network
    folder: Path  # what it says is kept here
    hosts: Path
    code: int | None = None  # of the last time that it ended
    starts: int = 0
    process: subprocess.Popen | None = None
    _over: threading.Event = field(default_factory=threading.Event)
    _started: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def log(self) -> Path:
        """All that it has said."""
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        """Return once the process is there."""
        root = self.folder / f"{self.name}.root"
        root.mkdir(exist_ok=True)
        script = _enter(self.name, self.recipe, root, self.hosts)
        enter = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "sh", "-c", script]
        command = ["setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec", self.network.space(self.name), *enter]
        self._thread = threading.Thread(target=self._keep, args=(command,), daemon=True)
        self._thread.start()
        self._started.wait()

    def _keep(self, command: list[str]) -> None:
        pause = FIRST_PAUSE
        while True:
            began = time.monotonic()
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self.starts += 1
            self._started.set()
            self.code = self.process.wait()
            pause = FIRST_PAUSE if time.monotonic() - began > WELL else pause
            if not self.recipe.again or self._over.wait(pause):
                return
            pause = min(2 * pause, LONGEST_PAUSE)

    def kill(self) -> None:
        """End it and all that it started by SIGKILL; it is started again as its recipe says."""
        self.process.kill()

    def stop(self) -> None:
        """End it for good."""
        self._over.set()
        if self._thread is not None:
            self.process.kill()
            self._thread.join()

    def wait(self, seconds: float) -> int:
        """The exit code of one that ends by itself."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.name}: still there after {seconds} s: {self.said()[-2000:]}")
        return self.code

    def said(self) -> str:
        """All that it has said, in all of its lives."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""
