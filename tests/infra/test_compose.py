"""The demo of everything on one machine."""

import tomllib
from importlib import import_module
from pathlib import Path

import yaml
from prefect.settings import PREFECT_HOME, temporary_settings

from tests.infra.files import INFRA, ROOT, call

FILE = INFRA / "compose.yaml"


def test_compose_knows_every_word():
    code, said = call("check-jsonschema", "--builtin-schema", "vendor.compose-spec", FILE)
    assert code == 0, said


def test_what_services_name_is_there():
    """Volumes, services that others wait for, stages of the images' file, the version of the package; nothing listens but on the loopback address."""
    found = yaml.safe_load(FILE.read_text())
    services, stages = found["services"], (INFRA / "containers/Dockerfile").read_text()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= set(services), name
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in found["volumes"] or source == "../build/demo", volume
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        if "build" in service:
            assert (FILE.parent / service["build"]["context"] / service["build"]["dockerfile"]).exists()
            assert f" AS {service['build']['target']}\n" in stages
            assert service["image"].endswith(f":{version}")
            assert service["read_only"]
            assert service["cap_drop"] == ["ALL"]


def test_leases_of_flow_runs_outlive_the_server():
    """They lie in its volume, as its database does: what is left of one without the other is a place that nobody gives back."""
    server = yaml.safe_load(FILE.read_text())["services"]["server"]
    volumes = [volume.split(":")[1] for volume in server["volumes"]]
    storage = import_module(server["environment"]["PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"]).ConcurrencyLeaseStorage
    with temporary_settings({PREFECT_HOME: Path(server["environment"]["PREFECT_HOME"])}):
        assert any(storage().storage_path.is_relative_to(volume) for volume in volumes)
