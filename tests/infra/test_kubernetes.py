"""Manifests: by the schemas of Kubernetes and of Dask's operator, rendered as kubectl and Prefect's worker render them."""

import asyncio
import json
import subprocess
import uuid
from pathlib import Path
from unittest.mock import AsyncMock

import dask_kubernetes
import jsonschema
import kubernetes_validate
import pytest
import yaml

from pipeline.runs.certificates import ROLES, make_certificates
from tests.infra.files import INFRA, find

KUBERNETES = INFRA / "kubernetes"
CUSTOM = Path(dask_kubernetes.__file__).parent / "operator/deployment/helm/dask-kubernetes-operator/crds"
RENDERED = [KUBERNETES / "base", *sorted((KUBERNETES / "overlays").iterdir())]
TEMPLATE = KUBERNETES / "base/job-template.json"


def strict(schema):
    """The same, taking no field that it does not name, where it names some."""
    if isinstance(schema, dict):
        schema = {name: strict(each) for name, each in schema.items()}
        if isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
    return [strict(each) for each in schema] if isinstance(schema, list) else schema


def custom_schemas():
    """Schemas of the operator's own kinds."""
    found = {}
    for path in CUSTOM.glob("*.yaml"):
        definition = yaml.safe_load(path.read_text())["spec"]
        schema = strict(definition["versions"][0]["schema"]["openAPIV3Schema"])
        schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
        found[definition["names"]["kind"]] = schema
    return found


def check(manifest):
    """By the newest schemas, with nothing in it that they do not name."""
    if manifest["apiVersion"].startswith("kubernetes.dask.org/"):
        jsonschema.validate(manifest, custom_schemas()[manifest["kind"]])
        for part in ("scheduler", "worker") if manifest["kind"] == "DaskCluster" else ():
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": part}, "spec": manifest["spec"][part]["spec"]}
            kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)
    elif not manifest["apiVersion"].startswith("kustomize."):
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("path", sorted((KUBERNETES / "base").glob("*.yaml")), ids=lambda path: path.stem)
def test_manifests_are_what_kubernetes_takes(path):
    """YAML of two versions: an octal number is one in Kubernetes' too."""
    for manifest in yaml.safe_load_all(path.read_text()):
        check(manifest)


def test_the_schemas_refuse_what_is_misspelt():
    """A test of the test."""
    cluster = next(yaml.safe_load_all((KUBERNETES / "base/dask.yaml").read_text()))
    cluster["spec"]["worker"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        check(cluster)


@pytest.fixture(params=RENDERED, ids=lambda path: path.name)
def rendered(request):
    """All manifests of a folder, as kubectl puts them together, by kind and name."""
    kubectl = find("kubectl") or pytest.skip("there is no kubectl")
    said = subprocess.run([kubectl, "kustomize", str(request.param)], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(said.stdout)}


def test_overlays_render(rendered):
    """Everything is in the namespace, and of every image the same place is meant."""
    for (kind, _), manifest in rendered.items():
        check(manifest)
        assert kind == "Namespace" or manifest["metadata"]["namespace"] == "leafledger"
    cluster = rendered["DaskCluster", "leafledger"]["spec"]
    worker = rendered["Deployment", "prefect-worker"]["spec"]["template"]["spec"]["containers"][0]
    images = {cluster[part]["spec"]["containers"][0]["image"] for part in ("scheduler", "worker")}
    assert images == {worker["image"].replace("leafledger:", "leafledger-worker:")}


def test_what_is_named_is_there(rendered, tmp_path):
    """Accounts and config maps; of secrets those that the documentation makes, with the files that `leafledger certificates` writes."""
    made = set(make_certificates(tmp_path).files)
    cluster = rendered["DaskCluster", "leafledger"]["spec"]
    pods = [cluster[part]["spec"] for part in ("scheduler", "worker")]
    pods += [
        rendered["Deployment", "prefect-worker"]["spec"]["template"]["spec"],
        json.loads(TEMPLATE.read_text())["job_configuration"]["job_manifest"]["spec"]["template"]["spec"],
    ]
    for pod in pods:
        assert ("ServiceAccount", pod["serviceAccountName"]) in rendered
        for volume in pod["volumes"]:
            assert "configMap" not in volume or ("ConfigMap", volume["configMap"]["name"]) in rendered
            if "secret" in volume:
                assert volume["secret"]["secretName"] == "leafledger-dask-tls"
                mounted = {item["key"] for item in volume["secret"]["items"]}
                assert mounted <= made
                assert len([name for name in mounted if "key" in name]) == 1, "a pod has its own key alone"
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])
            files = {each["value"].rpartition("/")[2] for each in container.get("env", ()) if str(each.get("value")).startswith("/certificates/")}
            mounts = {item["key"] for volume in pod["volumes"] if "secret" in volume for item in volume["secret"]["items"]}
            assert files == mounts
            for source in container.get("envFrom", ()):
                assert "secretRef" in source or ("ConfigMap", source["configMapRef"]["name"]) in rendered
    assert {role for role in ROLES if any(f"{role}-key.pem" in json.dumps(pod) for pod in pods)} == set(ROLES)


def test_dask_reads_what_the_manifests_say(rendered):
    """Its own reader of variables finds certificates, and the routes of the operator, where it looks for them."""
    import dask.config

    container = rendered["DaskCluster", "leafledger"]["spec"]["scheduler"]["spec"]["containers"][0]
    found = dask.config.collect_env({each["name"]: each["value"] for each in container["env"]})
    assert dask.config.get("distributed.comm.tls.scheduler.cert", config=found) == "/certificates/scheduler.pem"
    assert dask.config.get("distributed.comm.require-encryption", config=found) is True
    for route in dask.config.get("distributed.scheduler.http.routes", config=found):
        assert __import__(route, fromlist=["routes"]).routes


def test_prefect_renders_the_job(rendered):
    """As its worker does for a flow run: with the run's variables, and those of the template that stand there for Dask."""
    from prefect.client.schemas.objects import FlowRun
    from prefect_kubernetes.worker import KubernetesWorkerJobConfiguration

    template = json.loads(TEMPLATE.read_text())
    assert rendered["ConfigMap", "leafledger-job-template"]["data"]["job-template.json"] == TEMPLATE.read_text()
    jsonschema.Draft202012Validator.check_schema(template["variables"])
    values = {"image": "registry.example.com/leafledger:0.2.0", "env": {"EXTRA": "1"}}

    async def render():  # the client is asked for blocks alone, of which the template names none
        return await KubernetesWorkerJobConfiguration.from_template_and_values(template, values, client=AsyncMock())

    configuration = asyncio.run(render())
    configuration.prepare_for_flow_run(FlowRun(id=uuid.uuid4(), name="2026-11-22", flow_id=uuid.uuid4()))
    job = configuration.job_manifest
    job["spec"]["template"]["spec"] = {
        name: each for name, each in job["spec"]["template"]["spec"].items() if name not in ("parallelism", "completions")
    }
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    container = job["spec"]["template"]["spec"]["containers"][0]
    given = {each["name"]: each.get("value") for each in container["env"]}
    assert given["EXTRA"] == "1"
    assert given["DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT"] == "/certificates/client.pem"
    assert container["image"] == values["image"]
    assert container["args"][0] == "prefect"
    assert configuration.namespace == "leafledger"
    labels = job["spec"]["template"]["metadata"]["labels"]
    (allowed,) = (
        source["podSelector"]["matchLabels"]
        for source in rendered["NetworkPolicy", "scheduler"]["spec"]["ingress"][0]["from"]
        if "app.kubernetes.io/name" in source["podSelector"]["matchLabels"]
    )
    assert allowed.items() <= labels.items()
