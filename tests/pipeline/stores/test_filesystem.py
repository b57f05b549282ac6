"""File systems by URI: every operation has a deadline, what may pass is tried again, and what goes wrong is one line."""

import ftplib
import io
import json
import sys

import botocore.session
import fsspec
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from fsspec.asyn import AsyncFileSystem, sync
from fsspec.implementations.local import LocalFileSystem
from urllib3 import HTTPResponse

from leafledger.pipeline.errors import Exit, NotThere, StorageError, UnknownStore
from leafledger.pipeline.extras import EXTRAS
from leafledger.pipeline.stores import filesystem


class AnswerBrokenOffError(Exception):
    """As the client of HTTP has some that are no OSErrors."""

    __module__ = "aiohttp.client_exceptions"


class ConnectionBrokenError(Exception):
    """As the client of SFTP has some."""

    __module__ = "paramiko.ssh_exception"


class AnsweredError(AnswerBrokenOffError):
    """With the status of an answer."""

    def __init__(self, status):
        super().__init__(f"{status}, message='…'")
        self.status = status


class RefusedError(Exception):
    """As Azure's client has some."""

    __module__ = "azure.core.exceptions"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (FileNotFoundError(2, "any words"), "no such file or object"),
        (PermissionError("access\n denied"), "access denied"),
        (TimeoutError(), "TimeoutError"),
        (ImportError("Install s3fs to access S3"), "Install s3fs to access S3"),
        (botocore.exceptions.NoCredentialsError(), "Unable to locate credentials"),
        (AnswerBrokenOffError("Response payload is not completed"), "Response payload is not completed"),
        (ConnectionBrokenError("Server connection dropped"), "Server connection dropped"),
        (ftplib.error_perm("550 Permission denied"), "550 Permission denied"),
    ],
)
def test_what_goes_wrong_with_a_store_is_one_line(error, says):
    """Whatever its type, with what was tried and where, and the error itself as its cause."""
    with pytest.raises(StorageError, match=f"^s3://b/a: cannot write: {says}$") as raised, filesystem.reported("write", "s3://b/a"):
        raise error
    assert raised.value.__cause__ is error


def raised_from(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("status", [404, 410, 401, 403, 429, 500, 503, None])
def test_a_web_server_that_is_away_has_lost_nothing(status):
    """fsspec says of it that there is no such file, whatever it answers, and if it answers nothing."""
    cause = AnswerBrokenOffError("no answer") if status is None else AnsweredError(status)
    error = raised_from(FileNotFoundError("http://h/a"), cause)
    with pytest.raises(StorageError) as raised, filesystem.reported("read", "http://h/a"):
        raise error
    gone = status in (404, 410)
    assert isinstance(raised.value, NotThere) == gone
    assert str(raised.value) == f"http://h/a: cannot read: {'no such file or object' if gone else cause}"


def test_a_cause_that_others_have_too_is_no_fault_of_a_server():
    """What S3's client was answered is that there is no such object."""
    error = raised_from(FileNotFoundError("b/a"), AnswerBrokenOffError("Not Found"))
    with pytest.raises(NotThere, match=r"^s3://b/a: cannot read: no such file or object$"), filesystem.reported("read", "s3://b/a"):
        raise error


def test_what_a_store_refuses_to_delete_is_one_line():
    """Where its file system has packed it, too; what is no word of a store goes on."""
    error = raised_from(RuntimeError("Failed to remove %s for %s", ["b/a"], "…"), RefusedError("not\nallowed"))
    with pytest.raises(StorageError, match=r"^abfs://b/a: cannot delete: not allowed$"), filesystem.reported("delete", "abfs://b/a"):
        raise error
    with pytest.raises(RuntimeError, match=r"^mine$"), filesystem.reported("delete", "abfs://b/a"):
        raise raised_from(RuntimeError("mine"), KeyError("k"))


@pytest.mark.parametrize("client", ["gcsfs.retry", "adlfs.spec"])
def test_what_a_store_refuses_is_one_line_whatever_its_client_calls_it(client):
    """A ValueError that gcsfs or adlfs raises itself is the store's; one that comes from what it calls is not."""
    scope = {"__name__": client, "loads": json.loads}
    exec("def answer():\n    raise ValueError('Bucket is requester pays.\\nSet it')\ndef parse():\n    loads('{')", scope)
    with pytest.raises(StorageError, match=r"^gs://b/a: cannot read: Bucket is requester pays\. Set it$"), filesystem.reported("read", "gs://b/a"):
        scope["answer"]()
    with pytest.raises(json.JSONDecodeError), filesystem.reported("read", "gs://b/a"):
        scope["parse"]()


@pytest.mark.parametrize("error", [KeyError("a"), ValueError("b"), KeyboardInterrupt(), StorageError("said before")])
def test_other_errors_go_on(error):
    """They are somebody else's."""
    with pytest.raises(type(error)) as raised, filesystem.reported("write", "s3://b/a"):
        raise error
    assert raised.value is error


@pytest.mark.parametrize("uri", ["nope://x", "nope://x/y?z"])
def test_a_scheme_that_nobody_serves_is_one_line(uri):
    """While the place is opened, not later."""
    with pytest.raises(StorageError) as raised:
        filesystem.open_filesystem(uri)
    assert str(raised.value).startswith(f"{uri}: cannot open: ")
    assert "\n" not in str(raised.value)


def test_paths_are_this_machine_s(tmp_path):
    """With a scheme and without; memory is somewhere else."""
    for uri in (str(tmp_path), f"file://{tmp_path}"):
        found, path = filesystem.open_filesystem(uri)
        assert (filesystem.is_local(found), path) == (True, str(tmp_path))
    assert not filesystem.is_local(filesystem.open_filesystem("memory://a")[0])


@pytest.mark.parametrize("uri", ["s3://b/a", "s3a://b/a"])
def test_requests_to_s3_have_limits_which_a_configuration_may_change(monkeypatch, uri):
    """Each of those that it does not name stays."""
    monkeypatch.delitem(fsspec.config.conf, "s3", raising=False)
    found, _ = filesystem.open_filesystem(uri)
    assert found.config_kwargs == filesystem.REQUEST
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": {"read_timeout": 7}})
    found, _ = filesystem.open_filesystem(uri)
    assert found.config_kwargs == filesystem.REQUEST | {"read_timeout": 7}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_request_that_a_store_puts_off_is_sent_five_times_more(monkeypatch, status):
    """By the client itself, and then it is an error; where a store asks for fewer requests, too."""
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)
    sent = []

    def answer(request, **_):
        sent.append(request)
        return AWSResponse(request.url, status, {}, HTTPResponse(io.BytesIO(), preload_content=False))

    names = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = botocore.session.Session().create_client("s3", config=Config(**filesystem.REQUEST), **names)
    client.meta.events.register("before-send.s3", answer)
    with pytest.raises(botocore.exceptions.ClientError):
        client.head_object(Bucket="b", Key="a")
    assert len(sent) == 1 + 5


class Asked(AsyncFileSystem):
    """A remote store."""

    cachable = False

    async def _take(self, *arguments, **given):
        return arguments, given

    def take(self):  # as adlfs has some, which wait without end
        pytest.fail("asked without a deadline")


class AskedHere(LocalFileSystem):
    """This machine's, which knows no deadlines."""

    cachable = False

    def take(self, *arguments, **given):
        return arguments, given


def test_a_deadline_grows_with_the_bytes(monkeypatch):
    """A second a MiB beyond what any operation has, whether the store's method takes one or not; none where there are none."""
    given = []

    def wait(loop, method, *arguments, timeout, **named):
        given.append(timeout)
        return sync(loop, method, *arguments, timeout=timeout, **named)

    monkeypatch.setattr(filesystem, "sync", wait)
    assert filesystem.call_store(Asked(), "take", "a", 1, b=2) == (("a", 1), {"b": 2})
    assert filesystem.call_store(Asked(), "take", n_bytes=10 << 20) == ((), {})
    assert given == [filesystem.SECONDS, filesystem.SECONDS + 10]
    assert filesystem.call_store(AskedHere(), "take", "a", n_bytes=10 << 20) == (("a",), {})
    assert len(given) == 2


@pytest.mark.parametrize("n_failures", [0, 1, 2])
def test_an_answer_that_arrives_damaged_is_asked_for_once_more(n_failures):
    """And no more than that."""
    calls = []

    def operation():
        calls.append(None)
        if len(calls) <= n_failures:
            raise botocore.exceptions.FlexibleChecksumError(error_msg="damaged")
        return "sound"

    if n_failures < 2:
        assert filesystem.retry_damaged(operation) == "sound"
    else:
        with pytest.raises(botocore.exceptions.FlexibleChecksumError):
            filesystem.retry_damaged(operation)
    assert len(calls) == min(2, n_failures + 1)


def test_what_a_store_refuses_is_asked_once():
    """Trying again is the client's business."""
    calls = []

    def refuse():
        calls.append(None)
        raise PermissionError

    with pytest.raises(PermissionError):
        filesystem.retry_damaged(refuse)
    assert len(calls) == 1


def test_local_files_need_no_client_of_s3(monkeypatch):
    """Nothing of it is caught where nothing imported it."""
    monkeypatch.delitem(filesystem.sys.modules, "botocore.exceptions")
    assert filesystem.of_botocore("ClientError") == ()


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
        filesystem.open_filesystem(uri)
    assert str(error.value).startswith(f"{uri}: cannot open: {says}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("uri", ["run\0", "/data/\0", "s3://b/\0x", "file:///a\0b"])
def test_what_no_place_can_be_called_is_one_line(uri):
    """From Python, where an argument may hold every character."""
    with pytest.raises(UnknownStore) as error:
        filesystem.open_filesystem(uri)
    assert str(error.value) == f"{uri!r}: cannot open: has the character of code 0, which no name has"


@pytest.mark.parametrize("scheme", filesystem.SERVED_BY)
def test_a_package_that_is_missing_is_named_with_the_extra_that_brings_it(monkeypatch, scheme):
    """Wherever it is installed or not."""
    module = filesystem.SERVED_BY[scheme]
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, scheme, raising=False)  # where it was imported before
    with pytest.raises(UnknownStore) as raised:
        filesystem.open_filesystem(f"{scheme}://b/a")
    assert str(raised.value) == f"{scheme}://b/a needs {module}: pip install 'leafledger[{EXTRAS[module]}]'"
    assert raised.value.exit_code == Exit.USAGE
