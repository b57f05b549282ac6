"""Credentials reach no artefact, no message and no log, whatever happens."""

import logging

import pytest
import s3fs

from tests.faults.clients import Client
from tests.faults.conftest import CANARY
from tests.faults.proxy import Rule, says
from tests.faults.verdict import ID, contents


@pytest.mark.parametrize("fault", ["AccessDenied", *(pytest.param(fault, marks=pytest.mark.long) for fault in (None, "InvalidAccessKeyId"))])
def test_no_secret_is_written_or_said(runner, proxy, bucket, environment, fault, caplog):
    """A run from bucket to bucket on workers of its own, which finishes or fails at its third part."""
    s3fs.S3FileSystem().put(f"{runner.data}/", f"{bucket}/data/", recursive=True)
    rules = [Rule("PUT .*part-00002", says(403, fault), times=float("inf"))] if fault else []
    with caplog.at_level(logging.INFO), proxy.broken(*rules):
        client = Client(environment, ["explain", runner.model, f"{bucket}/data", "--out", f"{bucket}/run", "--id", ID, "--workers", "2"])
        assert client.wait() == (9 if fault else 0)
    _, out, err = client.output()
    said = "".join([out, err, *(record.getMessage() for record in caplog.records if not record.name.startswith("werkzeug"))])
    assert ("part-00002.parquet: cannot write: " in said) == (fault is not None)
    found = contents(f"{bucket}/run")
    assert len(found) > 3
    for value in (CANARY["AWS_ACCESS_KEY_ID"], CANARY["AWS_SECRET_ACCESS_KEY"]):
        assert value not in said
        assert [name for name, data in found.items() if value.encode() in data] == []
