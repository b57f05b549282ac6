"""Manifests: by the schemas of Kubernetes and of Dask's operator, rendered as kubectl and Prefect's worker render them."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import uuid
from functools import cache
from pathlib import Path
from unittest.mock import AsyncMock

import dask_kubernetes
import jsonschema
import kubernetes_validate
import pytest
import yaml
from dask.utils import parse_bytes

from infra.kubernetes.sizes import size
from leafledger.flows.deployment import check_name
from leafledger.pipeline.cluster.certificates import ROLES, make_certificates
from leafledger.pipeline.cluster.requirements import need
from leafledger.pipeline.command.terminal.documents import SCHEMAS
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


@cache
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
    """By the newest schemas, with nothing in it that they do not name; the same manifest once."""
    check_text(json.dumps(manifest))


@cache
def check_text(text):
    manifest = json.loads(text)
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


PLAN = {"n_rows": 10**9, "n_items": 4000, "memory": 900 << 20, "forecast": {"row": {"reading": 1e-6, "kernel": 24e-6, "writing": 1e-6}}}


def test_sizes_are_those_of_a_forecast(tmp_path):
    """As many threads as the rows take, and workers that a run would not refuse; in what kubectl renders requests, limits and Dask agree."""
    kubectl = find("kubectl") or pytest.skip("there is no kubectl")
    (tmp_path / "mine/sizes").mkdir(parents=True)
    shutil.copytree(KUBERNETES / "base", tmp_path / "base")
    (tmp_path / "mine/kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../base]\ncomponents: [sizes]\n"
    )
    for hours, threads, workers in ((0.5, 4, 4), (10.0, 2, 1), (0.001, 8, 500)):
        written = size(PLAN, hours, threads)
        (tmp_path / "mine/sizes/kustomization.yaml").write_text(written)
        said = subprocess.run([kubectl, "kustomize", str(tmp_path / "mine")], capture_output=True, text=True, timeout=60)
        assert said.returncode == 0, said.stderr
        found = {each["kind"]: each for each in yaml.safe_load_all(said.stdout)}
        for manifest in found.values():
            check(manifest)
        assert found["DaskAutoscaler"]["spec"]["maximum"] == workers
        assert workers == 500 or (workers - 1) * threads < 1e9 * 26e-6 / 3600 / hours <= workers * threads  # 500 have an item for each thread
        container = found["DaskCluster"]["spec"]["worker"]["spec"]["containers"][0]
        told = dict(word.removeprefix("--").split("=") for word in container["args"] if "=" in word)
        limit = parse_bytes(told["memory-limit"])
        need(PLAN["memory"]).check("worker", limit // int(told["nthreads"]), need(0).packages)
        assert container["resources"]["requests"] == {"cpu": told["nthreads"], "memory": told["memory-limit"].removesuffix("B")}
        assert parse_bytes(f"{container['resources']['limits']['memory']}B") == limit + (1 << 30)


def test_sizes_ask_for_a_forecast():
    """In one line; a plan has the fields that are read."""
    script = [sys.executable, str(KUBERNETES / "sizes.py")]
    for given, more, says in (
        ("{}", ["--hours", "1"], "no forecast there"),
        ("", ["--hours", "1"], "Expecting value"),
        ("{}", ["--hours", "0"], "above 0"),
    ):
        done = subprocess.run([*script, *more], input=given, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr.splitlines()[-1]
    assert set(PLAN) <= {entry.name for entry in SCHEMAS["plan"]}
    (forecast,) = (entry.meaning for entry in SCHEMAS["plan"] if entry.name == "forecast")
    assert "`row`, seconds of a thread that a row takes" in forecast


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


@pytest.mark.parametrize("name", ["2026-11-22", "Nächtliche Läufe: Bäche", "a_.-b", "x" * 300])
def test_names_are_those_that_kubernetes_takes(name):
    """Prefect's worker makes them of those of the flow run and its deployment, which may be what `leafledger deploy` takes."""
    check_name("name", name)
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.responses import DeploymentResponse
    from prefect_kubernetes.worker import KubernetesWorkerJobConfiguration

    async def render():
        template = json.loads(TEMPLATE.read_text())
        return await KubernetesWorkerJobConfiguration.from_template_and_values(template, {}, client=AsyncMock())

    configuration, flow = asyncio.run(render()), uuid.uuid4()
    deployment = DeploymentResponse(id=uuid.uuid4(), name=name, flow_id=flow)
    configuration.prepare_for_flow_run(FlowRun(id=uuid.uuid4(), name=name, flow_id=flow), deployment)
    made = configuration.job_manifest["metadata"]
    assert len(made["generateName"]) <= 63
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", made["generateName"] + "abcde"), made["generateName"]
    for label, value in made["labels"].items():
        assert len(value) <= 63
        assert re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", value), (label, value)
