"""What goes wrong with a store is one line, whoever says so; what is somebody else's goes on."""

import ftplib
import json

import botocore.session
import pytest

from leafledger.pipeline.errors import NotThere, StorageError, UnusablePlace
from leafledger.pipeline.stores import failures


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
    with pytest.raises(StorageError, match=f"^s3://b/a: cannot write: {says}$") as raised, failures.reported("write", "s3://b/a"):
        raise error
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    "said", ["The specified bucket does not exist", "the specified bucket does not exist.", "The specified container does not exist.\nRequestId:1"]
)
@pytest.mark.parametrize("doing", ["read", "write", "list"])
def test_a_bucket_that_is_not_there_does_not_come(said, doing):
    """In the words of Amazon, Google and Azure: by the bucket's name, and nothing to try again."""
    with (
        pytest.raises(UnusablePlace, match=f"^gs://lake/a/b: cannot {doing}: bucket lake does not exist$"),
        failures.reported(doing, "gs://lake/a/b"),
    ):
        raise FileNotFoundError(said)


def raised_from(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("status", [404, 410, 401, 403, 429, 500, 503, None])
def test_a_web_server_that_is_away_has_lost_nothing(status):
    """fsspec says of it that there is no such file, whatever it answers, and if it answers nothing."""
    cause = AnswerBrokenOffError("no answer") if status is None else AnsweredError(status)
    error = raised_from(FileNotFoundError("http://h/a"), cause)
    with pytest.raises(StorageError) as raised, failures.reported("read", "http://h/a"):
        raise error
    gone = status in (404, 410)
    assert isinstance(raised.value, NotThere) == gone
    assert str(raised.value) == f"http://h/a: cannot read: {'no such file or object' if gone else cause}"


def test_a_cause_that_others_have_too_is_no_fault_of_a_server():
    """What S3's client was answered is that there is no such object."""
    error = raised_from(FileNotFoundError("b/a"), AnswerBrokenOffError("Not Found"))
    with pytest.raises(NotThere, match=r"^s3://b/a: cannot read: no such file or object$"), failures.reported("read", "s3://b/a"):
        raise error


def test_what_a_store_refuses_to_delete_is_one_line():
    """Where its file system has packed it, too; what is no word of a store goes on."""
    error = raised_from(RuntimeError("Failed to remove %s for %s", ["b/a"], "…"), RefusedError("not\nallowed"))
    with pytest.raises(StorageError, match=r"^abfs://b/a: cannot delete: not allowed$"), failures.reported("delete", "abfs://b/a"):
        raise error
    with pytest.raises(RuntimeError, match=r"^mine$"), failures.reported("delete", "abfs://b/a"):
        raise raised_from(RuntimeError("mine"), KeyError("k"))


@pytest.mark.parametrize("client", ["gcsfs.retry", "adlfs.spec"])
def test_what_a_store_refuses_is_one_line_whatever_its_client_calls_it(client):
    """A ValueError that gcsfs or adlfs raises itself is the store's; one that comes from what it calls is not."""
    scope = {"__name__": client, "loads": json.loads}
    exec("def answer():\n    raise ValueError('Bucket is requester pays.\\nSet it')\ndef parse():\n    loads('{')", scope)
    with pytest.raises(StorageError, match=r"^gs://b/a: cannot read: Bucket is requester pays\. Set it$"), failures.reported("read", "gs://b/a"):
        scope["answer"]()
    with pytest.raises(json.JSONDecodeError), failures.reported("read", "gs://b/a"):
        scope["parse"]()


@pytest.mark.parametrize("error", [KeyError("a"), ValueError("b"), KeyboardInterrupt(), StorageError("said before")])
def test_other_errors_go_on(error):
    """They are somebody else's."""
    with pytest.raises(type(error)) as raised, failures.reported("write", "s3://b/a"):
        raise error
    assert raised.value is error


def test_local_files_need_no_client_of_s3(monkeypatch):
    """Nothing of it is caught where nothing imported it."""
    monkeypatch.delitem(failures.sys.modules, "botocore.exceptions")
    assert failures.of_botocore("ClientError") == ()
