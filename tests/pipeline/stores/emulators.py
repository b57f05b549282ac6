"""Emulators of others' stores, where they are installed: Google's, Azure's, and Ceph's gateway."""

import fsspec

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # Azurite's own, in its documentation


def make_google(request, monkeypatch):
    """A bucket's URI at a fake-gcs-server."""
    url = request.getfixturevalue("google_url")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
    monkeypatch.setitem(fsspec.config.conf, "gs", {"token": "anon", "project": "nights"})
    return "gs://nightly"


def make_azure(request, monkeypatch):
    """A container's URI at an Azurite."""
    port = request.getfixturevalue("azure_port")
    host = f"http://127.0.0.1:{port}/{ACCOUNT}"
    monkeypatch.setenv(
        "AZURE_STORAGE_CONNECTION_STRING", f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={host};"
    )
    return "abfs://nightly"


def make_ceph(request, monkeypatch):
    """A bucket's URI at a radosgw."""
    names = {"AWS_ENDPOINT_URL": request.getfixturevalue("ceph_url"), "AWS_ACCESS_KEY_ID": "canary-id", "AWS_SECRET_ACCESS_KEY": "canary-secret"}
    for name, value in {**names, "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    return "s3://nightly"


CLOUDS = {"google": make_google, "azure": make_azure, "ceph": make_ceph}
