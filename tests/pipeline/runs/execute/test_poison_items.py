"""What kills workers is found alone: items, and of items of several files those files that do; deaths are told here, not made."""

from math import ceil, log

from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.dataset.files.listing import Joined, Rejected, WorkItem
from leafledger.pipeline.runs.execute.bundles import Bundle, BundleResult
from leafledger.pipeline.runs.execute.poison_items import retry_isolated

FAN_IN = 8


def make_item(n):
    """An item of so many files of three rows."""
    joined = tuple(Joined(f"f{k}", "", (0,), 3) for k in range(1, n))
    return WorkItem(7, "f0", "", (0,), 0, 3 * n, 0, (), joined)


class Cluster:
    """Workers that die of some files, cannot read others, and die of some only beside others."""

    def __init__(self, deadly, unreadable, together=frozenset()):
        self.deadly, self.unreadable, self.together = deadly, unreadable, together
        self.keys, self.tried, self.deaths = [], [], 0

    def _run(self, bundles, key, died, work):
        for bundle in bundles:
            (item,) = bundle.items
            self.keys.append(f"{key}-{bundle.name}")
            uris = [piece.uri for piece in item.pieces if piece.uri not in bundle.rejected]
            self.tried.append(uris)
            if self.deadly & {*uris} or (work == "do" and self.together <= {*uris} and self.together):
                self.deaths += 1
                died(bundle)
            else:
                yield bundle.rejected if work == "do" else {uri: f"{uri} is unreadable" for uri in uris if uri in self.unreadable}

    def retry_isolated(self, suspect):
        do, attempt = (lambda *given, work=work: self._run(*given, work) for work in ("do", "attempt"))
        return list(retry_isolated(do, attempt, suspect))


def dies(uri):
    return f"{uri}: row groups [0]: the processes that it was given to died, every time"


@st.composite
def clusters(draw):
    """Items of up to seventy files, a few of which are bad."""
    n = draw(st.integers(1, 70))
    names = st.integers(0, n - 1).map(lambda k: f"f{k}")
    deadly = draw(st.sets(names, max_size=4))
    return n, deadly, draw(st.sets(names, max_size=3)) - deadly


@given(drawn=clusters())
def test_files_that_kill_are_left_out_and_no_others(drawn):
    """Each is found, with what cannot be read; the rest is done once more without them, if there is any; workers die for each file once a level."""
    n, deadly, unreadable = drawn
    cluster, item = Cluster(deadly, unreadable), make_item(n)
    (done,) = cluster.retry_isolated(Bundle(0, 7, (item,)))
    reasons = {uri: dies(uri) for uri in deadly} | {uri: f"{uri} is unreadable" for uri in unreadable}
    if not deadly:
        assert (done, cluster.tried) == ({}, [[piece.uri for piece in item.pieces]])
    elif len(reasons) < n:
        assert done == reasons
        assert cluster.tried[-1] == [piece.uri for piece in item.pieces if piece.uri not in reasons]
    else:
        assert done == BundleResult(0, 7, tuple(Rejected(7, piece.uri, (0,), 3, reasons[piece.uri]) for piece in item.pieces), None)
    levels = 1 + ceil(log(n, FAN_IN) - 1e-9) if n > 1 else 1
    assert cluster.deaths <= 1 + len(deadly) * (levels - 1 if n > 1 else 0)
    assert len({*cluster.keys}) == len(cluster.keys)  # Dask takes tasks of one key for one task


def test_what_kills_only_together_is_rejected_together():
    """No file alone is to blame, so that nothing can be left out; nothing is tried without end."""
    cluster, item = Cluster(set(), set(), {"f1", "f2"}), make_item(3)
    (done,) = cluster.retry_isolated(Bundle(0, 7, (item,)))
    assert [entry.reason for entry in done.pieces] == [dies(f"f{k}") for k in range(3)]
    assert cluster.tried == [["f0", "f1", "f2"], ["f0"], ["f1"], ["f2"]]


def test_a_rest_that_kills_is_rejected_too():
    """The reasons of the files that were found are kept."""
    cluster, item = Cluster({"f0"}, {"f3"}, {"f1", "f2"}), make_item(5)
    (done,) = cluster.retry_isolated(Bundle(0, 7, (item,)))
    assert [entry.reason for entry in done.pieces] == [dies("f0"), dies("f1"), dies("f2"), "f3 is unreadable", dies("f4")]
    assert cluster.tried[-1] == ["f1", "f2", "f4"]
