"""Stores that fail, lie, forget or stall: every run ends as the fault-free one, or in one line after which the next run finishes it."""

import json
import threading
import time
from dataclasses import replace

import fsspec
import pytest
import s3fs

from leafledger import check_run, explain
from leafledger.pipeline.errors import Exit, InvalidRun, LeafledgerError, RunConflict, StorageError, UsageError
from leafledger.pipeline.stores import calls, commit, storage
from leafledger.pipeline.stores.dialects import s3
from leafledger.pipeline.stores.parquet_files import list_parquet
from tests.faults.conftest import PATIENCE
from tests.faults.interrupting import meet
from tests.faults.proxy import Rule, drop_answer, flip, flip_unnoticed, hang, ignores, lose_answer, reset, says, slow, truncate
from tests.faults.verdict import committed, contents
from tests.more import more

ALWAYS = float("inf")
UNAVAILABLE, INTERNAL, THROTTLED = says(503, "SlowDown"), says(500, "InternalError"), says(429, "TooManyRequests")
FORBIDDEN, EXPIRED = says(403, "AccessDenied"), says(400, "ExpiredToken")
PART, PLAN, MANIFEST, SUMMARY = r"PUT .*part-00002", "PUT .*plan.json", "PUT .*manifest.json", "PUT .*summary/importance.parquet"

PASSING = {
    "503 twice": Rule(PART, UNAVAILABLE, times=2),
    "503 twice while looking": Rule("(HEAD|GET)", UNAVAILABLE, times=2),
    "500 once": Rule(PART, INTERNAL),
    "429 once": Rule(PART, THROTTLED),
    "reset in the middle of a PUT": Rule(PART, reset),
    "hang": Rule(PART, hang),
    "slow": Rule("GET", slow, times=3),
    "probe's answer lost": Rule("PUT .*_probe", lose_answer),
    "second probe's answer lost": Rule("PUT .*_probe", lose_answer, skip=1),
    "plan's answer lost": Rule(PLAN, lose_answer),
    "plan's connection lost": Rule(PLAN, drop_answer),
    "tables' answer lost": Rule("PUT .*_tables", lose_answer),
    "part's answer lost": Rule(PART, lose_answer),
    "part's connection lost": Rule(PART, drop_answer),
    "summary's answer lost": Rule(SUMMARY, lose_answer),
    "manifest's answer lost": Rule(MANIFEST, lose_answer),
    "manifest's connection lost": Rule(MANIFEST, drop_answer),
    "tables cut": Rule("GET .*tables.npy", truncate),
    "plan cut": Rule("GET .*plan.json", truncate),
    "tables flipped": Rule("GET .*tables.npy", flip_unnoticed),
    "every seventh request": Rule(".", UNAVAILABLE, times=ALWAYS, every=7),
}

SHORT = {"503 twice", "reset in the middle of a PUT", "plan's connection lost", "part's answer lost", "manifest's answer lost", "tables flipped"}
SHORT |= {"probe's answer lost", "403 in the middle", "credentials expire", "gone"}


def cases(rules):
    """Names of rules, most of them for the long suite alone."""
    return [pytest.param(name, marks=[] if name in SHORT else pytest.mark.long) for name in rules]


@pytest.fixture(scope="module", params=[{"scheduler": "serial"}, pytest.param({"threads": 3}, marks=pytest.mark.long)], ids=["serial", "threads"])
def runner(runner, request):
    """On one thread, and on several at once."""
    return replace(runner, where=request.param)


@pytest.mark.parametrize("name", cases(PASSING))
def test_what_passes_is_survived(runner, proxy, bucket, name):
    """The run goes on as if nothing had been."""
    rule = PASSING[name]
    with proxy.broken(rule):
        runner.explain(f"{bucket}/run")
    assert rule.made
    runner.judge(f"{bucket}/run")


LASTING = {
    "503 for ever": Rule(PART, UNAVAILABLE, times=ALWAYS),
    "403 in the middle": Rule(PART, FORBIDDEN, times=ALWAYS),
    "credentials expire": Rule(".", EXPIRED, times=ALWAYS, skip=20),
    "hang for ever": Rule(PART, hang, times=ALWAYS),
    "reset for ever": Rule(PART, reset, times=ALWAYS),
    "gone": Rule(".", reset, times=ALWAYS, skip=20),
    "manifest refused": Rule(MANIFEST, INTERNAL, times=ALWAYS),
    "tables cut for ever": Rule("GET .*tables.npy", truncate, times=ALWAYS),
    "tables flipped for ever": Rule("GET .*tables.npy", flip_unnoticed, times=ALWAYS),
    "recipe flipped for ever": Rule("GET .*_tables/[0-9a-f]{64}.json", flip_unnoticed, times=ALWAYS),
}


@pytest.mark.parametrize("name", cases(LASTING))
def test_what_lasts_is_said_in_one_line_and_gone_on_from(runner, proxy, bucket, name):
    """The failed run leaves no manifest; the next one does what is missing, and nothing else."""
    with proxy.broken(rule := LASTING[name]):
        error = runner.fails(f"{bucket}/run")
    assert rule.made
    assert isinstance(error, StorageError | InvalidRun)
    runner.go_on(f"{bucket}/run")


@pytest.mark.parametrize("fault", [FORBIDDEN, pytest.param(UNAVAILABLE, marks=pytest.mark.long)], ids=["read-only", "unavailable"])
def test_an_output_that_cannot_be_written_fails_before_the_work(runner, proxy, bucket, fault):
    """No row is explained for nothing."""
    with proxy.broken(Rule("(PUT|POST|DELETE)", fault, times=ALWAYS)):
        error = runner.fails(f"{bucket}/run", progress=lambda work: pytest.fail(f"started {work.doing}"))
    assert "cannot write" in str(error)
    assert contents(f"{bucket}/run") == {}
    runner.go_on(f"{bucket}/run")


def test_a_store_that_ignores_conditions_is_refused_unless_there_is_one_writer(runner, proxy, bucket, request):
    """Two runs could overwrite each other there; a sole writer goes on from its own crash all the same."""
    if "radosgw" in request.node.name:
        pytest.skip("conditions are signed, and this store verifies signatures")
    careless = Rule("PUT", ignores("If-None-Match"), times=ALWAYS)
    with proxy.broken(careless):
        with pytest.raises(UsageError, match=r"ignores conditions .* --single-writer"):
            runner.explain(f"{bucket}/run")
        assert contents(f"{bucket}/run") == {}
    with proxy.broken(Rule(MANIFEST, INTERNAL, times=ALWAYS), careless):
        runner.fails(f"{bucket}/run", single_writer=True)
    with proxy.broken(careless):
        runner.go_on(f"{bucket}/run", single_writer=True)


def in_bucket(runner, bucket):
    """The same with its data in the bucket too, where a run of them has other bytes."""
    s3fs.S3FileSystem().put(f"{runner.data}/", f"{bucket}/data/", recursive=True)
    there = replace(runner, data=f"{bucket}/data")
    there.explain(f"{bucket}/sound")
    return replace(there, reference=contents(f"{bucket}/sound"))


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A file that goes up in pieces."""
    monkeypatch.setattr(s3, "SINGLE_PUT", 10 << 20)
    path = tmp_path / "large"
    path.write_bytes(bytes(range(256)) * (3 << 14))
    return path


def uploads(bucket):
    """Multipart uploads that were begun and neither completed nor aborted."""
    return s3fs.S3FileSystem().call_s3("list_multipart_uploads", Bucket=bucket.removeprefix("s3://")).get("Uploads", [])


@pytest.fixture
def unhurried(monkeypatch, environment):
    """An answer that comes late, from a machine that is busy, would be asked for again, and what it said had been begun would stay."""
    patience = {"config_kwargs": {**PATIENCE["config_kwargs"], "connect_timeout": 30, "read_timeout": 30}}
    monkeypatch.setenv("FSSPEC_S3", json.dumps(patience))
    monkeypatch.setitem(fsspec.config.conf, "s3", patience)
    monkeypatch.setattr(calls, "SECONDS", 120.0)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("fault", [lose_answer, drop_answer, INTERNAL, reset, None], ids=lambda fault: fault and fault.__name__)
def test_an_upload_in_pieces_is_created_once(proxy, bucket, large, tally, fault):
    """Whatever becomes of the completion's answer, the object is there, whole, once, and a second writer is told so."""
    rules = [Rule("POST .*uploadId", fault)] if fault else []
    with proxy.broken(*rules):
        commit.create(f"{bucket}/large", large)  # False where it is taken for another's, which callers compare
    assert [rule.made for rule in rules] == [1] * len(rules)
    assert storage.read(f"{bucket}/large") == large.read_bytes()
    assert not commit.create(f"{bucket}/large", large)
    until = time.monotonic() + 10
    while uploads(bucket) and time.monotonic() < until:
        time.sleep(0.5)  # a real store may take a while to forget one that was completed twice
    assert uploads(bucket) == []


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("pattern", ["PUT .*partNumber=2", "POST .*uploadId"], ids=["piece", "completion"])
def test_an_upload_that_fails_leaves_nothing(proxy, bucket, large, pattern):
    """Neither an object nor pieces that somebody pays for."""
    with proxy.broken(Rule(pattern, UNAVAILABLE, times=ALWAYS)), pytest.raises(StorageError, match="/large: cannot write"):
        commit.create(f"{bucket}/large", large)
    assert contents(bucket) == {}
    assert uploads(bucket) == []


@pytest.mark.long
def test_an_upload_that_is_cut_off_leaves_nothing(proxy, bucket, large):
    """At its deadline."""
    with proxy.broken(Rule("PUT .*partNumber=2", hang, times=ALWAYS)), pytest.raises(StorageError, match="/large: cannot write"):
        commit.create(f"{bucket}/large", large)
    assert contents(bucket) == {}
    assert uploads(bucket) == []


@pytest.fixture
def patient(monkeypatch):
    """As in production, in workers too."""
    monkeypatch.delenv("FSSPEC_S3")
    monkeypatch.delitem(fsspec.config.conf, "s3")
    monkeypatch.setattr(calls, "SECONDS", 120.0)
    s3fs.S3FileSystem.clear_instance_cache()


KINDS = {"looks": "HEAD ", "reads": "GET /[^?]+$", "lists": "GET .*list-type", "writes": "PUT "}  # no part is so large here that it goes up in pieces
THROTTLING = {
    "burst": [Rule(kind, UNAVAILABLE, times=ALWAYS, seconds=2.0) for kind in KINDS.values()],
    "rate": [Rule(KINDS["writes"], UNAVAILABLE, times=ALWAYS, rate=1.0)],
}


@pytest.mark.parametrize("name", ["burst", pytest.param("rate", marks=pytest.mark.long)])
@pytest.mark.parametrize("workers", [None, pytest.param(2, marks=pytest.mark.long)], ids=["here", "workers"])
def test_a_store_that_throttles_is_asked_more_slowly(many, proxy, bucket, patient, name, workers):
    """Whether it does nothing for a while or takes fewer writes than come: the run waits, and publishes the bytes of one that had not to."""
    there, where = in_bucket(many, bucket), {"workers": workers} if workers else {}
    with proxy.broken(*THROTTLING[name]):
        there.explain(f"{bucket}/run", **where)
    assert all(rule.made for rule in THROTTLING[name])
    there.judge(f"{bucket}/run")


@pytest.mark.parametrize("pattern", ["POST .*uploads", "PUT .*partNumber=2", "POST .*uploadId"], ids=["begin", "piece", "completion"])
def test_an_upload_that_is_throttled_is_completed(proxy, bucket, large, patient, pattern):
    """Each of its steps is tried again, and the object is there once."""
    with proxy.broken(rule := Rule(pattern, UNAVAILABLE, times=ALWAYS, seconds=2.0)):
        assert commit.create(f"{bucket}/large", large)
    assert rule.made
    assert storage.read(f"{bucket}/large") == large.read_bytes()
    assert uploads(bucket) == []


@pytest.mark.parametrize("kind", [*more("looks", "reads", "lists"), "writes"])
def test_a_store_that_throttles_for_ever_is_away(runner, proxy, bucket, kind):
    """One line and the exit code of a store that is away: whoever tries again later gets the whole run, by the parts that are there."""
    there = in_bucket(runner, bucket)
    with proxy.broken(Rule(KINDS[kind], UNAVAILABLE, times=ALWAYS, skip=3)):
        error = there.fails(f"{bucket}/run")
    assert (type(error), error.exit_code) == (StorageError, Exit.AWAY)
    there.go_on(f"{bucket}/run")


@pytest.mark.parametrize("run", ["/run", ""], ids=["folder", "bucket"])
def test_pieces_that_a_killed_writer_left_are_removed(runner, proxy, bucket, tally, run):
    """When the run is published; those of others stay, also where the run has the bucket to itself."""
    s3, mine = s3fs.S3FileSystem(), bucket + run
    for uri in (f"{mine}/attributions/part-00001.parquet", f"{mine}/attributions/part-00002.parquet", f"{bucket}/runs/part"):
        where = dict(zip(("Bucket", "Key"), s3.split_path(uri)[:2], strict=True))
        upload = s3.call_s3("create_multipart_upload", **where)["UploadId"]
        s3.call_s3("upload_part", **where, UploadId=upload, PartNumber=1, Body=b"0" * (5 << 20))
        tally.faults["upload left by a killed writer"] += 1
    assert len(uploads(bucket)) == 3
    runner.explain(mine)
    assert [upload["Key"] for upload in uploads(bucket)] == ["runs/part"]
    runner.judge(mine)


def test_uploads_that_may_not_be_listed_cost_nothing(runner, proxy, bucket):
    """Rights to look for them are not needed."""
    with proxy.broken(rule := Rule("GET .*uploads", FORBIDDEN, times=ALWAYS)):
        runner.explain(f"{bucket}/run")
    assert rule.made
    runner.judge(f"{bucket}/run")


def test_two_runs_at_once_publish_one(runner, proxy, bucket):
    """Both finish, or one says that the other was faster; what is there is one run's."""
    ended = []

    def go():
        try:
            runner.explain(f"{bucket}/run")
            ended.append(None)
        except LeafledgerError as error:
            ended.append(error)

    together = threading.Barrier(2)

    def race(exchange):
        meet(exchange, together)

    with proxy.broken(Rule("PUT .*(plan|part|manifest)", race, times=ALWAYS)):
        runs = [threading.Thread(target=go) for _ in range(2)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
    assert ended == [None, None]
    runner.judge(f"{bucket}/run")


def test_another_run_s_folder_is_not_taken(runner, proxy, bucket):
    """A run of another method that starts between this one's look and its commit is told."""
    other = []

    def overtake(exchange):
        if not other:
            other.append(True)
            explain(runner.model, runner.data, f"{bucket}/run", ids=["flight"], scheduler="serial")
        exchange.answer(exchange.forward())

    with proxy.broken(Rule(PLAN, overtake)), pytest.raises(RunConflict, match="holds another run"):
        runner.explain(f"{bucket}/run", method="banzhaf")
    runner.judge(f"{bucket}/run")


INPUT = {
    "cut": Rule("GET .*month%3D2", truncate, skip=1),
    "flipped": Rule("GET .*month%3D2", flip, skip=1),
    "503 twice": Rule("(GET|HEAD) .*month", UNAVAILABLE, skip=6, times=2),
}


@pytest.mark.parametrize("name", [*more("cut"), "flipped", pytest.param("503 twice", marks=pytest.mark.long)])
def test_input_that_arrives_damaged_is_read_again(runner, proxy, bucket, name):
    """A fault of the way is no fault of the data: nothing is rejected."""
    there = in_bucket(runner, bucket)
    with proxy.broken(INPUT[name]):
        there.explain(f"{bucket}/run")
    assert INPUT[name].made
    there.judge(f"{bucket}/run")


def test_an_object_that_is_lost_is_missed(runner, bucket):
    """The verifier names it; without its manifest, the run is finished again with that part alone."""
    runner.explain(f"{bucket}/run")
    s3fs.S3FileSystem().rm_file(f"{bucket}/run/attributions/part-00001.parquet")
    with pytest.raises((InvalidRun, StorageError), match=r"part-00001\.parquet"):
        check_run(f"{bucket}/run")
    s3fs.S3FileSystem().rm_file(f"{bucket}/run/manifest.json")
    runner.go_on(f"{bucket}/run")


def test_a_committed_part_that_is_damaged_where_it_lies_is_named(runner, bucket):
    """Nothing that was committed is ever written again: whoever removes it gets it back as it was."""
    s3, part = s3fs.S3FileSystem(), f"{bucket}/run/attributions/part-00001.parquet"
    runner.explain(f"{bucket}/run")
    s3.rm_file(f"{bucket}/run/manifest.json")
    sound = s3.cat_file(part)
    s3.pipe_file(part, sound[:100] + bytes([sound[100] ^ 1]) + sound[101:])
    error = runner.fails(f"{bucket}/run")
    assert str(error).startswith(f"{part}: damaged, or arrived damaged, remove it")
    s3.rm_file(part)
    runner.go_on(f"{bucket}/run")


@pytest.mark.long
def test_more_objects_than_a_page_are_listed_and_removed(bucket):
    """Stores list a thousand at a time."""
    filesystem = s3fs.S3FileSystem()
    filesystem.pipe({f"{bucket}/many/part-{i:05d}.parquet": b"x" for i in range(1050)})
    assert len(list_parquet(f"{bucket}/many")) == 1050
    commit.remove(f"{bucket}/many")
    assert contents(bucket) == {}


@pytest.mark.long
@pytest.mark.parametrize("name", ["cut", "flipped"])
def test_a_committed_part_that_arrives_damaged_is_not_believed(runner, proxy, bucket, name):
    """A rerun reads what is there: other bytes than the store holds never reach a manifest."""
    with proxy.broken(Rule(MANIFEST, INTERNAL, times=ALWAYS)):
        runner.fails(f"{bucket}/run")
    before = committed(f"{bucket}/run")
    damage = Rule("GET .*part-00001", {"cut": truncate, "flipped": flip_unnoticed}[name], times=ALWAYS)
    with proxy.broken(damage), pytest.raises(LeafledgerError, match=r"part-00001\.parquet: "):
        runner.explain(f"{bucket}/run", before)
    assert damage.made
    runner.go_on(f"{bucket}/run")
