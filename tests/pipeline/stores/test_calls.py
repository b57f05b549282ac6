"""Every operation has a deadline, and what arrives damaged is asked for once more."""

import botocore.session
import pytest
from fsspec.asyn import AsyncFileSystem, sync
from fsspec.implementations.local import LocalFileSystem

from leafledger.pipeline.stores import calls


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

    monkeypatch.setattr(calls, "sync", wait)
    assert calls.call_store(Asked(), "take", "a", 1, b=2) == (("a", 1), {"b": 2})
    assert calls.call_store(Asked(), "take", n_bytes=10 << 20) == ((), {})
    assert given == [calls.SECONDS, calls.SECONDS + 10]
    assert calls.call_store(AskedHere(), "take", "a", n_bytes=10 << 20) == (("a",), {})
    assert len(given) == 2


@pytest.mark.parametrize("n_failures", [0, 1, 2])
def test_an_answer_that_arrives_damaged_is_asked_for_once_more(n_failures):
    """And no more than that."""
    made = []

    def operation():
        made.append(None)
        if len(made) <= n_failures:
            raise botocore.exceptions.FlexibleChecksumError(error_msg="damaged")
        return "sound"

    if n_failures < 2:
        assert calls.retry_damaged(operation) == "sound"
    else:
        with pytest.raises(botocore.exceptions.FlexibleChecksumError):
            calls.retry_damaged(operation)
    assert len(made) == min(2, n_failures + 1)


def test_what_a_store_refuses_is_asked_once():
    """Trying again is the client's business."""
    made = []

    def refuse():
        made.append(None)
        raise PermissionError

    with pytest.raises(PermissionError):
        calls.retry_damaged(refuse)
    assert len(made) == 1
