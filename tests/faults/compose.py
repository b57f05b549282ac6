"""The file of Compose, run without an engine: what it says is read from it, and from the file of images."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.faults.containers import ROOT, Container, Mount, Network, Recipe

FILE = ROOT / "infra" / "compose.yaml"
IMAGES = ROOT / "infra" / "containers" / "Dockerfile"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 900  # that a service may take to be there, on a cold machine beside other work
DONE, HEALTHY, STARTED = "service_completed_successfully", "service_healthy", "service_started"
# An image of others': what its own file says, as far as it matters here. Moto's is run as the Moto that tests have.
OTHERS = {"docker.io/motoserver/moto": (["moto_server", "-H", "0.0.0.0"], {"PYTHONUNBUFFERED": "1"})}
KNOWN = {"build", "cap_drop", "command", "depends_on", "deploy", "environment", "healthcheck", "image", "ports", "profiles", "read_only", "restart"}
KNOWN |= {"security_opt", "tmpfs", "volumes"}  # keys of a service; more than these and this module would pass over something


@dataclass
class Image:
    """What the file of images says of a target."""

    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    entrypoint: list[str] = field(default_factory=list)
    user: int | None = None
    folder: str = "/"


def read_image(target: str) -> Image:
    """Follow a target to its base."""
    text = IMAGES.read_text().replace("\\\n", " ")
    stages = {name: (base, body) for base, name, body in re.findall(r"^FROM (\S+) AS (\S+)\n(.*?)(?=^FROM |\Z)", text, re.MULTILINE | re.DOTALL)}
    bodies, name = [], target
    while name in stages:
        name, body = stages[name]
        bodies.insert(0, body)
    image, copied = Image(), dict(re.findall(r"^COPY (infra/\S+) (/\S+)$", text, re.MULTILINE))
    here = {there: str(ROOT / source) for source, there in copied.items()}
    for line in "\n".join(bodies).splitlines():
        word, _, rest = line.partition(" ")
        if word == "ENV":
            found = dict(each.split("=", 1) for each in rest.split())
            image.environment |= {key: value.replace("$PATH", image.environment["PATH"]) for key, value in found.items()}
        elif word == "ENTRYPOINT":
            image.entrypoint = [here.get(each, each) for each in yaml.safe_load(rest)]
        elif word == "USER":
            image.user = int(rest.split(":")[0])
        elif word == "WORKDIR":
            image.folder = rest
    return image


def expand(found: Any, variables: Mapping[str, str]) -> Any:
    """Replace variables as Compose does: ``${NAME:-default}``, and ``$$`` is a dollar."""
    if isinstance(found, dict):
        return {key: expand(value, variables) for key, value in found.items()}
    if isinstance(found, list):
        return [expand(value, variables) for value in found]
    if not isinstance(found, str):
        return found

    def replace(match: re.Match) -> str:
        if match[0] == "$$":
            return "$"
        if match["name"] is None:
            raise ValueError(f"{found!r}: a dollar that stands for nothing, expected ${{NAME:-default}} or $$")
        return variables.get(match["name"]) or match["default"] or ""

    return re.sub(r"\$(?:\$|\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}|)", replace, found)


def read_services(variables: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Every service, what it depends on as conditions by name."""
    services = expand(yaml.safe_load(FILE.read_text()), variables)["services"]
    for name, service in services.items():
        if set(service) - KNOWN:
            raise ValueError(f"{name}: has {sorted(set(service) - KNOWN)}, of which nothing is known here")
        on = service.get("depends_on", {})
        service["depends_on"] = dict.fromkeys(on, STARTED) if isinstance(on, list) else {each: how["condition"] for each, how in on.items()}
    return services


class Topology:
    """The services, of which some are up, as long as the context lasts.

    Parameters
    ----------
    folder : path
        Volumes, and what services say, are kept here.
    shared : mapping
        Folders of this machine in the place of those that the file names; ``"+/there": "/here"`` is one more, that all services can write.
    environment : mapping
        By service: what an override of the file would add.
    """

    def __init__(self, folder: Path, shared: Mapping[str, str], environment: Mapping[str, Mapping[str, str]]):
        self.folder, self.shared, self.environment = folder, shared, environment
        self.services, self.containers = read_services({}), {}
        self.network, self._undo, self._runs = Network(), ExitStack(), 0
        self.hosts = folder / "hosts"

    def __enter__(self) -> "Topology":
        self._undo.enter_context(self.network)
        names = [name for service in self.services for name in self.names(service)]
        addresses = {name: self.network.join(name) for name in names}
        lines = [f"{addresses[name]} {name} {name.rpartition('-')[0]}" for name in names]
        self.hosts.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        return self

    def __exit__(self, *exception) -> None:
        for container in reversed(list(self.containers.values())):
            container.stop()
        self._undo.close()

    def names(self, service: str) -> list[str]:
        """Containers of a service, called as Compose calls them but for the project."""
        return [f"{service}-{number + 1}" for number in range(self.services[service].get("deploy", {}).get("replicas", 1))]

    def address(self, service: str) -> str:
        """Of its first container, for this machine too."""
        return self.network.addresses[f"{service}-1"]

    def recipe(self, name: str, command: list[str] | None = None) -> Recipe:
        """What a service's container is started with."""
        service = self.services[name]
        if "build" in service:
            image = read_image(service["build"]["target"])
        else:
            entrypoint, variables = OTHERS[service["image"].rpartition(":")[0]]
            image = Image({"PATH": f"{Path(sys.prefix) / 'bin'}:{PATH}", **variables}, entrypoint)
        mounts = [self._mount(each, image.user) for each in service.get("volumes", ())]
        mounts += [Mount(here, there[1:], False) for there, here in self.shared.items() if there.startswith("+")]
        return Recipe(
            command=[*image.entrypoint, *(command or service.get("command", ()))],
            environment=image.environment | service.get("environment", {}) | dict(self.environment.get(name, {})),
            mounts=mounts,
            temporary=service.get("tmpfs", ()),
            user=image.user,
            capable="ALL" not in service.get("cap_drop", ()),
            read_only=service.get("read_only", False),
            folder=image.folder,
            again=command is None and service.get("restart", "no") == "unless-stopped",
        )

    def _mount(self, text: str, user: int | None) -> Mount:
        """A folder of the file's, or a volume, which belongs to the image's user and is seen by nobody else."""
        source, target, *options = text.split(":")
        here = Path(self.shared[source]) if source in self.shared else self.folder / "volumes" / source
        if source not in self.shared and not here.exists():
            here.mkdir(parents=True, mode=0o700)
            if user is not None:
                os.chown(here, user, user)
        return Mount(str(here), target, options == ["ro"])

    def up_and_wait(self) -> None:
        """Start all services that are in no profile, and wait until those are healthy that have a check: ``docker compose up --wait``."""
        services = [name for name, service in self.services.items() if "profiles" not in service]
        self.up(*services)
        for service in services:
            if "healthcheck" in self.services[service]:
                self.wait_healthy(service)

    def up(self, *services: str) -> None:
        """Start services with all that they depend on, as far as they are not up."""
        for service in services:
            self._meet(service)
            for name in self.names(service):
                if name not in self.containers:
                    self.containers[name] = Container(name, self.recipe(service), self.network, self.folder, self.hosts)
                    self.containers[name].start()

    def _meet(self, service: str) -> None:
        """Let what a service depends on be as far as it has to be."""
        for other, condition in self.services[service]["depends_on"].items():
            self.up(other)
            if condition == DONE and self.containers[f"{other}-1"].wait(SECONDS):
                raise RuntimeError(f"{other}: {self.containers[f'{other}-1'].said()}")
            if condition == HEALTHY:
                self.wait_healthy(other)

    def healthy(self, service: str) -> bool:
        """Whether the file's own check says so."""
        word, *test = self.services[service]["healthcheck"]["test"]
        if word != "CMD":
            raise ValueError(f"{service}: a check by {word}, of which nothing is known here")
        space, environment = self.network.space(f"{service}-1"), {"PATH": f"{Path(sys.prefix) / 'bin'}:{PATH}"}
        return subprocess.run(["ip", "netns", "exec", space, *test], env=environment, capture_output=True).returncode == 0

    def wait_healthy(self, service: str) -> None:
        """Ask until the check says so."""
        until = time.monotonic() + SECONDS
        while not self.healthy(service):
            if time.monotonic() > until:
                raise TimeoutError(f"{service}: not healthy after {SECONDS} s: {self.containers[f'{service}-1'].said()[-2000:]}")
            time.sleep(0.5)

    def run(self, service: str, *command: str) -> tuple[int, str]:
        """One container of a service more, with another command where one is given, as ``docker compose run``: exit code and all that it says."""
        self._meet(service)
        self._runs += 1
        name = f"{service}-run-{self._runs}"
        self.network.join(name)
        container = Container(name, self.recipe(service, list(command) or None), self.network, self.folder, self.hosts)
        self.containers[name] = container
        container.start()
        return container.wait(SECONDS), container.said()
