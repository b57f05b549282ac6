"""Stores by URI: this machine's and others', with limits for requests, and one line where there is none."""

import io
import sys

import botocore.session
import fsspec
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from urllib3 import HTTPResponse

from leafledger.pipeline.errors import Exit, StorageError, UnknownStore
from leafledger.pipeline.extras import EXTRAS
from leafledger.pipeline.stores import open_store
from leafledger.pipeline.stores.dialects import s3


@pytest.mark.parametrize("uri", ["nope://x", "nope://x/y?z"])
def test_a_scheme_that_nobody_serves_is_one_line(uri):
    """While the place is opened, not later."""
    with pytest.raises(StorageError) as raised:
        open_store.open_store(uri)
    assert str(raised.value).startswith(f"{uri}: cannot open: ")
    assert "\n" not in str(raised.value)


def test_paths_are_this_machine_s(tmp_path):
    """With a scheme and without; memory is somewhere else."""
    for uri in (str(tmp_path), f"file://{tmp_path}"):
        found, path = open_store.open_store(uri)
        assert (found.near, path) == (True, str(tmp_path))
    assert not open_store.open_store("memory://a")[0].near


@pytest.mark.parametrize(
    "uri", ["/", "//", "/a", "/a/", "/a//", "//a//b", "/a/../b", "/a b", "/a*?[c]", "/~x", "/a:b", "/ü", "/a#b?c=d", "/.", "/a/.", "/a\\b"]
)
def test_a_plain_path_is_what_fsspec_makes_of_it(uri):
    """Which is not asked for it, since that takes ten times as long as looking for a file."""
    assert open_store.open_store(uri)[1] == fsspec.core.url_to_fs(uri)[1]


@pytest.mark.parametrize("uri", ["/a::b", "/a://b", "/a\0b"])
def test_a_path_that_is_none_is_refused_as_any_other(uri):
    """What fsspec reads as one file within another, or as a scheme."""
    with pytest.raises(UnknownStore):
        open_store.open_store(uri)


@pytest.mark.parametrize("uri", ["s3://b/a", "s3a://b/a"])
def test_requests_to_s3_have_limits_which_a_configuration_may_change(monkeypatch, uri):
    """Each of those that it does not name stays."""
    monkeypatch.delitem(fsspec.config.conf, "s3", raising=False)
    found, _ = open_store.open_store(uri)
    assert found.filesystem.config_kwargs == s3.REQUEST
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": {"read_timeout": 7}})
    found, _ = open_store.open_store(uri)
    assert found.filesystem.config_kwargs == s3.REQUEST | {"read_timeout": 7}


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.slow
def test_a_request_that_a_store_puts_off_is_sent_five_times_more(monkeypatch, status):
    """By the client itself, and then it is an error; where a store asks for fewer requests, too."""
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)
    sent = []

    def answer(request, **_):
        sent.append(request)
        return AWSResponse(request.url, status, {}, HTTPResponse(io.BytesIO(), preload_content=False))

    names = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = botocore.session.Session().create_client("s3", config=Config(**s3.REQUEST), **names)
    client.meta.events.register("before-send.s3", answer)
    with pytest.raises(botocore.exceptions.ClientError):
        client.head_object(Bucket="b", Key="a")
    assert len(sent) == 1 + 5


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("nosuch://x", "Protocol not known: nosuch"),
        ("zip://a.parquet::/data.zip", "what lies within another file is not supported, expected one URI without '::'"),
        ("zip://a.parquet", ""),
        ("http://[1/x.parquet", "Invalid IPv6 URL"),
        ("https://host:port/x", "Port could not be cast to integer value as 'port'"),
        ("ftp://127.0.0.1:1/x", ""),
    ],
)
def test_what_cannot_be_opened_is_one_line(uri, says):
    """Whatever the file system raises while it is made."""
    with pytest.raises(StorageError) as error:
        open_store.open_store(uri)
    assert str(error.value).startswith(f"{uri}: cannot open: {says}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("uri", ["run\0", "/data/\0", "s3://b/\0x", "file:///a\0b"])
def test_what_no_place_can_be_called_is_one_line(uri):
    """From Python, where an argument may hold every character."""
    with pytest.raises(UnknownStore) as error:
        open_store.open_store(uri)
    assert str(error.value) == f"{uri!r}: cannot open: has the character of code 0, which no name has"


@pytest.mark.parametrize("scheme", open_store.DIALECTS)
def test_a_package_that_is_missing_is_named_with_the_extra_that_brings_it(monkeypatch, scheme):
    """Wherever it is installed or not."""
    module = open_store.DIALECTS[scheme].module
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, scheme, raising=False)  # where it was imported before
    with pytest.raises(UnknownStore) as raised:
        open_store.open_store(f"{scheme}://b/a")
    assert str(raised.value) == f"{scheme}://b/a needs {module}: pip install 'leafledger[{EXTRAS[module]}]'"
    assert raised.value.exit_code == Exit.USAGE
