"""A Prefect server with its scheduler, in a home of its own, and a small model with data to explain."""

import atexit
import io
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

MEMORY = Path("/dev/shm")  # on a disk the server's SQLite waits beside other work, and what comes meanwhile is dropped
HOME = tempfile.TemporaryDirectory(prefix="leafledger-prefect-", dir=MEMORY if MEMORY.is_dir() else None)
atexit.register(HOME.cleanup)
os.environ |= {  # before Prefect is imported, which looks for a home
    "PREFECT_HOME": HOME.name,
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_LOGGING_TO_CONSOLE_ENABLED": "false",
}

import lightgbm  # noqa: E402 - after the environment that Prefect reads on import
import numpy as np  # noqa: E402 - after the environment that Prefect reads on import
import pandas as pd  # noqa: E402 - after the environment that Prefect reads on import
import pytest  # noqa: E402 - after the environment that Prefect reads on import

END_SECONDS = 20  # of this process, once all is said
SHOWN_SECONDS = 300  # until the server shows what took place, beside other work
START_SECONDS = 400  # of a server, on a cold machine beside other work
N_ROWS = 400
SCHEDULING = {"LOOP_SECONDS": "1", "RECENT_DEPLOYMENTS_LOOP_SECONDS": "1"}
FEW = {"MIN_RUNS": "1", "MAX_RUNS": "3", "MIN_SCHEDULED_TIME": "PT30S"}  # runs made ahead; a hundred by default


@dataclass(frozen=True)
class Example:
    """Where a model and its data are."""

    model: str
    data: str


@pytest.hookimpl(trylast=True)  # servers are stopped by then
def pytest_sessionfinish(exitstatus):
    """Prefect's worker that sends logs may wait for itself without end when the interpreter ends: then it is ended."""
    end = threading.Timer(END_SECONDS, os._exit, (int(exitstatus),))
    end.daemon = True
    end.start()


def wait_for(found, seconds):
    """The first true value of ``found()``, asked until ``seconds`` have passed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.2)
    raise TimeoutError(f"waited {seconds} s for {found.__name__}")


def free_port():
    """A port of the loopback address that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def call_prefect(command):
    """What a command of Prefect's prints that succeeds, called in this process, which saves seconds."""
    from prefect.cli import app

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as ended:
            sys.exit(app())  # which exits by itself where it has something to say at the end
    assert not ended.value.code, out.getvalue()
    return out.getvalue()


@contextmanager
def run_server(port, **scheduling):
    """The API and the process of a Prefect server as ``prefect server start`` starts it, with settings of its scheduler.

    The server of Prefect's test harness runs no schedules."""
    url = f"http://127.0.0.1:{port}/api"

    def healthy():
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"]
    settings = {f"PREFECT_SERVER_SERVICES_SCHEDULER_{name}": value for name, value in (SCHEDULING | scheduling).items()}
    with (
        (Path(HOME.name) / "server.log").open("ab") as log,
        subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log) as process,
    ):
        try:
            wait_for(healthy, START_SECONDS)
            yield url, process
        finally:
            process.terminate()


RUNNING = ExitStack()  # the server


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem):
    """The server takes a twentieth of a processor while nobody asks anything: it ends with the last test of this folder."""
    if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
        RUNNING.close()


@pytest.fixture(scope="session")
def server():
    """The API of a server for all tests of this folder."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with RUNNING:
        url, _ = RUNNING.enter_context(run_server(free_port(), **FEW))
        RUNNING.enter_context(temporary_settings({PREFECT_API_URL: url}))
        for worker in (EventsWorker, APILogWorker):
            RUNNING.callback(worker.drain_all, timeout=END_SECONDS)  # while there is somebody who hears
        yield url


@pytest.fixture
def client(server):
    """A client of the server."""
    from prefect import get_client

    with get_client(sync_client=True) as found:
        yield found


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """A LightGBM model and two files of rows, some values missing."""
    folder = tmp_path_factory.mktemp("example")
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.normal(size=N_ROWS) for name in ("distance", "delay", "hour")})
    frame.loc[rng.random(N_ROWS) < 0.1, "delay"] = np.nan
    target = frame["distance"] + frame["delay"].fillna(2) * (frame["hour"] > 0)
    settings = {"verbosity": -1, "num_threads": 1, "deterministic": True, "num_leaves": 7}
    lightgbm.train(settings, lightgbm.Dataset(frame, target), 5).save_model(folder / "model.txt")
    (folder / "data").mkdir()
    frame = frame.assign(flight=np.arange(N_ROWS), late=target + rng.normal(size=N_ROWS), carrier=rng.choice(["AA", "UA"], N_ROWS))
    frame[:250].to_parquet(folder / "data" / "a.parquet")
    frame[250:].to_parquet(folder / "data" / "b.parquet")
    return Example(str(folder / "model.txt"), str(folder / "data"))


@pytest.fixture(scope="session")
def finished(server, example, tmp_path_factory):
    """The state of a finished serial flow run, and its folder."""
    from leafledger.flows.explain import explain

    out = tmp_path_factory.mktemp("flow") / "run"
    return explain(example.model, example.data, str(out), ids=["flight"], scheduler="serial", return_state=True), out
