"""Alerts and the dashboard ask for metrics that there are, and alerts fire when they should, as Prometheus's own tool says."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from leafledger.pipeline.runs.execute.worker_metrics import METRICS
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.monitor.attempt import Attempt
from leafledger.pipeline.runs.monitor.metrics import RunMetrics
from leafledger.pipeline.runs.monitor.night_metrics import Night

FOLDER = Path(__file__).parents[2] / "infra" / "monitoring"
NAME = re.compile(r"\bleafledger_(?:run|worker|drift|mean|importance)_\w+")


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """From the names of all metrics to the labels that they have."""
    folder, registry, attempt = tmp_path_factory.mktemp("metrics"), CollectorRegistry(), Attempt()
    attempt.residual, attempt.seconds["planning"] = 0.0, 1.0
    found = RunMetrics(make_job("model.txt", folder / "data", folder / "run", Options()), attempt, 0.0)
    found.night = Night(((("0", "margin"), 1.0),), ((("0", "distance"), 1.0),), 0)
    registry.register(found)
    registry.register(METRICS)
    return {sample.name: set(sample.labels) for family in registry.collect() for sample in family.samples}


def queries():
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    alerts = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
    yield from (target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    yield from (variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query")
    yield from (rule["expr"] for group in alerts["groups"] for rule in group["rules"])


def test_every_query_asks_for_a_metric_that_there_is(metrics):
    found = [NAME.findall(query) for query in queries()]
    assert all(found)
    assert {name for names in found for name in names} <= set(metrics)


def test_every_label_that_is_shown_is_one_of_the_metric(metrics):
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            (name,) = NAME.findall(target["expr"])
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= metrics[name] | {"instance"}, target
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_alerts_that_ask_workers_say_which_have_no_answer():
    """Workers of these files serve no metrics; whoever gives them a dashboard is told of the promise."""
    alerts = (FOLDER / "alerts.yaml").read_text()
    silent = {path for path in ("compose.yaml", "kubernetes/base/dask.yaml") if "--no-dashboard" in (FOLDER.parent / path).read_text()}
    said = re.search(r"LeafledgerWorkerRejects\n((?: +#.*\n)+)", alerts).group(1)
    assert silent == {"compose.yaml", "kubernetes/base/dask.yaml"}
    assert {"infra/compose.yaml", "infra/kubernetes"} <= set(re.findall(r"infra/[\w./]*\w", said))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Debian's package prometheus is not installed")
@pytest.mark.parametrize("command", [("check", "rules", "alerts.yaml"), ("test", "rules", "alerts_test.yaml")])
def test_alerts_fire_when_they_should(command):
    done = subprocess.run(["promtool", *command], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested():
    alerts, tests = (yaml.safe_load((FOLDER / name).read_text()) for name in ("alerts.yaml", "alerts_test.yaml"))
    named = {rule["alert"] for group in alerts["groups"] for rule in group["rules"]}
    fired = {each["alertname"] for test in tests["tests"] for each in test["alert_rule_test"] if each.get("exp_alerts")}
    silent = {each["alertname"] for test in tests["tests"] for each in test["alert_rule_test"] if not each.get("exp_alerts")}
    assert named == fired == silent
