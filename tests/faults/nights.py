"""What a topology's nights are made of: flights like the demo's, a model of them, the deployment of `infra/prefect.yaml`, what the server says."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from numba.core.caching import UserProvidedCacheLocator

from infra.demo import CATEGORIES, FEATURES, MODELS, TARGET, write_months
from tests.faults.containers import ROOT

N_ROWS, N_FILES = 1600, 8  # of a night in the store; one work item
DEPLOYMENT = ROOT / "infra" / "prefect.yaml"
SCHEDULER = "tls://scheduler:8786"
MODEL = "xgboost.ubj"
ATTEMPTS = 300  # a second apart, of a request to a server that is away, or whose database is busy
FINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


def draw_flights(n_rows: int, month: int, seed: int) -> pd.DataFrame:
    """Rows with the demo's columns."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"month": month, "day": rng.integers(1, 29, n_rows), "hour": rng.integers(5, 24, n_rows)})
    frame["sched_dep_time"], frame["dep_delay"] = 100 * frame["hour"], rng.exponential(30, n_rows).round() - 10
    frame["air_time"], frame["plane_year"] = rng.normal(150, 60, n_rows).round(), rng.integers(1985, 2013, n_rows).astype(float)
    frame["distance"], frame["seats"] = 8 * frame["air_time"], rng.choice([55.0, 149.0, 200.0], n_rows)
    frame["carrier"], frame["origin"] = rng.choice(["AA", "B6", "DL", "UA"], n_rows), rng.choice(["EWR", "JFK", "LGA"], n_rows)
    frame["dest"], frame["flight"], frame["tailnum"] = rng.choice(["ATL", "BOS", "LAX", "ORD"], n_rows), np.arange(n_rows), "N1"
    frame["time_hour"] = pd.Timestamp(2013, month, 1) + pd.to_timedelta(frame["hour"], unit="h")
    frame.loc[rng.random(n_rows) < 0.1, ["dep_delay", "plane_year"]] = np.nan
    frame[TARGET] = frame["dep_delay"].fillna(0) + 10 * (frame["carrier"] == "UA") + rng.normal(size=n_rows).round()
    return frame


def make_demo(folder: Path) -> None:
    """Files where the night of Compose's file looks for the demo's, and a model as `infra/prefect.yaml` names it."""
    flights = draw_flights(N_ROWS, 2, 1)
    write_months(flights, folder / "flights")
    for name in (MODEL, "arrival-delay.json"):
        (folder / "models").mkdir(exist_ok=True)
        MODELS[MODEL](flights[FEATURES].astype(dict.fromkeys(CATEGORIES, "category")), flights[TARGET], folder / "models" / name)


def fill_store(demo: Path, nights: list[str]) -> None:
    """The model, and the flights of some nights, all the same ones."""
    store = fsspec.filesystem("s3")
    for bucket in ("models", "flights", "explained"):
        store.makedirs(bucket, exist_ok=True)
    store.put_file(str(demo / "models" / "arrival-delay.json"), "models/arrival-delay.json")
    flights = pa.Table.from_pandas(draw_flights(N_ROWS, 3, 2), preserve_index=False)
    for night in nights:
        for number in range(N_FILES):
            rows = N_ROWS // N_FILES
            with store.open(f"flights/date={night}/{number}.parquet", "wb") as file:
                pq.write_table(flights.slice(number * rows, rows), file)


def share_kernels(folder: Path) -> None:
    """Kernels that are compiled in this checkout, as NUMBA_CACHE_DIR has them: images are made with theirs too."""
    for module in sorted((ROOT / "leafledger" / "kernels").rglob("*.py")):
        there = folder / UserProvidedCacheLocator.get_suitable_cache_subpath(str(module))
        for kernel in (module.parent / "__pycache__").glob(f"{module.stem}.*.nb?"):
            there.mkdir(parents=True, exist_ok=True)
            shutil.copy(kernel, there)


def wait_until(found: Callable[[], Any], seconds: float, said: Callable[[], str] = str) -> Any:
    """The first true value, asked until ``seconds`` have passed."""
    until = time.monotonic() + seconds
    while not (value := found()):
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds} s: {said()}")
        time.sleep(0.3)
    return value


class Server:
    """What Prefect's server says."""

    def __init__(self, address: str):
        self.url = f"http://{address}:4200/api"

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """One request; tried again where the server is away."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json"}, method=method)
        attempts = ATTEMPTS
        while True:
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.loads(answer.read() or "null")
            except OSError as error:
                attempts -= 1
                if not attempts or (isinstance(error, urllib.error.HTTPError) and error.code < 500):
                    raise
            time.sleep(1)

    def deploy(self, folder: Path) -> str:
        """The deployment of the file, with the scheduler among the parameters, made as the page says; its id."""
        found = yaml.safe_load(DEPLOYMENT.read_text())
        (deployment,) = found["deployments"]
        pool = deployment["work_pool"]["name"]
        wait_until(lambda: any(each["name"] == pool for each in self.ask("/work_pools/filter", {})), 300)  # which its worker makes as it starts
        deployment["parameters"]["scheduler"] = SCHEDULER
        file = folder / "prefect.yaml"
        file.write_text(yaml.safe_dump(found))
        self.call(folder, "deploy", "--prefect-file", str(file), "--all")
        return self.ask("/deployments/name/explain/nightly")["id"]

    def call(self, folder: Path, *arguments: str) -> str:
        """What Prefect's command says, used as the page does."""
        environment = os.environ | {"PREFECT_API_URL": self.url, "PREFECT_HOME": str(folder / "home")}
        command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        return done.stdout

    def schedule(self, deployment: str, seconds: float = 8.0) -> tuple[str, date]:
        """Let a deployment be due so soon, and not again for a day: the flow run that the server makes of it, and its date."""
        due = datetime.now(UTC) + timedelta(seconds=seconds)
        daily = {"interval": 86400, "anchor_date": due.isoformat(), "timezone": "UTC"}
        self.ask(f"/deployments/{deployment}/schedules", [{"schedule": daily, "active": True}])
        wanted = {"deployments": {"id": {"any_": [deployment]}}, "flow_runs": {"expected_start_time": {"before_": (due + timedelta(1)).isoformat()}}}

        def made() -> list[str]:
            runs = self.ask("/flow_runs/filter", wanted)
            return [run["id"] for run in runs if run["auto_scheduled"] and datetime.fromisoformat(run["expected_start_time"]) == due]

        with suppress(TimeoutError):
            return wait_until(made, 4 * seconds)[0], due.date()
        return self.schedule(deployment, 2 * seconds)  # the server was too slow to look in time

    def start(self, deployment: str, **parameters: Any) -> str:
        """A flow run by hand, due at once; its id."""
        return self.ask(f"/deployments/{deployment}/create_flow_run", {"parameters": parameters, "state": {"type": "SCHEDULED"}})["id"]

    def run(self, name: str) -> dict[str, Any]:
        """A flow run, as it is now."""
        return self.ask(f"/flow_runs/{name}")

    def ended(self, name: str, seconds: float) -> dict[str, Any]:
        """A flow run, once it is over."""
        return wait_until(lambda: (run := self.run(name))["state"]["type"] in FINAL and run, seconds, lambda: str(self.run(name)["state"]))

    def logs(self, name: str) -> list[str]:
        """What a flow run logged."""
        wanted = {"logs": {"flow_run_id": {"any_": [name]}}, "sort": "TIMESTAMP_ASC", "limit": 200}
        return [line["message"] for line in self.ask("/logs/filter", wanted)]
