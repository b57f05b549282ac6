"""A place has one form however it is written, lies where its links lead, and holds no credentials."""

import re
from types import SimpleNamespace

import pytest

from leafledger import explain
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.stores import uris
from leafledger.pipeline.stores.object_store import ObjectStore
from leafledger.pipeline.stores.open_store import find_dialect
from leafledger.pipeline.stores.uris import is_within, link_to, normalise


def test_a_place_has_one_form(tmp_path, monkeypatch):
    """Relative paths are taken where they are given, ``file://`` is a path, slashes more than one and at the end mean nothing, ".." leads up."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep" / "down").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "down")
    one = str(tmp_path / "out")
    for given in ("out", "out/", "./out", ".//out", one, f"/{one}", f"file://{one}", f"{tmp_path}//out///", "x/../out", "deep/./down/../../out"):
        assert normalise(given) == one, given
    assert normalise("link/../out") == str(tmp_path / "deep" / "out")  # as the system has it
    assert normalise("link/out") == str(tmp_path / "link" / "out")
    assert normalise("/") == "/"
    assert normalise("s3a://bucket/out/") == normalise("s3://bucket/out") == "s3://bucket/out"
    assert normalise("https://host/a") == "https://host/a"
    assert normalise("memory://a/b/") == "memory://a/b"


@pytest.mark.parametrize("uri", ["s3://b/x/../data", "s3://b/./data", "memory://x/.."])
def test_dots_are_names_to_a_store(uri):
    """What is meant cannot be told, so it is refused."""
    with pytest.raises(UsageError, match=r"has '\.' or '\.\.', which a store takes for names"):
        normalise(uri)


@pytest.mark.parametrize(
    ("out", "data"),
    [
        ("data", "data"),
        ("data/run", "data"),
        ("x/../data/run", "data"),
        ("data//run", "data"),
        ("./data/deep/../run", "data"),
        ("link/run", "data"),
        (".", "attributions"),
        ("deep/..", "./summary"),
        ("data/run", "link"),
        ("link/../data/run", "data"),
        ("file://{here}/data/run", "data"),
        ("data/run", "data/*"),
        ("link/run", "data/*"),
        ("data/run", "link/**/*.parquet"),
        ("run", "*/attributions/*.parquet"),
        ("s3a://b/data/run", "s3://b/data"),
        ("s3://b/data//run", "s3a://b/data/"),
        ("s3://b//data/run", "s3://b/data"),
        ("s3://b/data/run", "s3://b/data/**/*.parquet"),
        ("s3://b/data", "s3://b/d*"),
    ],
)
def test_an_output_within_the_data_is_refused(example, tmp_path, monkeypatch, out, data):
    """However it is written, and whatever links lead there, a glob too: the next run would explain the output."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("data")
    out = out.format(here=tmp_path)
    with pytest.raises(UsageError, match="lies within the data, whose next run would read it; choose another output"):
        make_job(example.model, data, out, Options())
    with pytest.raises(UsageError, match="lies within the background"):
        make_job(example.model, example.data, out, Options(background=data))


@pytest.mark.parametrize(
    ("out", "data"),
    [
        ("run", "data"),
        ("data-run", "data"),
        ("data/../run", "data"),
        ("run", "data/*.parquet"),
        ("data/run", "data/*.parquet"),
        ("data/run", "data/month=[1-3]/*.parquet"),
        ("s3://b/run", "s3://b/data"),
        ("s3://b/data-run", "s3://b/data"),
        ("s3://c/data/run", "s3://b/data"),
    ],
)
def test_an_output_beside_the_data_is_taken(example, tmp_path, monkeypatch, out, data):
    """A name that begins alike is another one; what a glob does not find is not read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    assert make_job(example.model, data, out, Options()).out
    assert not is_within(normalise(out), normalise(data))


@pytest.mark.parametrize("data", ["data/**.parquet", "s3://b/data/m**/*", "***"])
def test_two_stars_stand_alone(example, data):
    """Within a name they might mean one thing or another."""
    for given in ({"data": data}, {"background": data}):
        with pytest.raises(UsageError, match=rf"^.*{re.escape(data)}: has '\*\*' beside other characters, expected it alone between slashes"):
            make_job(example.model, given.get("data", example.data), "run", Options(background=given.get("background")))


@pytest.mark.parametrize(
    "uri",
    [
        "sftp://me:s3cret@host/data",
        "https://me:s3cret@host/data",
        "https://host/f.parquet?X-Amz-Credential=s3cret&X-Amz-Expires=60",
        "https://host/f.parquet?a=1&X-Amz-Signature=s3cret",
        "https://host/f.parquet?sv=2024&sig=s3cret",
        "https://host/f.parquet?access_token=s3cret#part",
        "https://host/f.parquet?X-Goog-Signature=s3cret",
        "https://host/f.parquet?AWSAccessKeyId=s3cret",
        "https://host/f.parquet?key=s3cret",
    ],
)
@pytest.mark.parametrize("name", ["model", "data", "out", "background", "tables", "latest", "partition"])
def test_credentials_are_refused_and_not_repeated(example, uri, name):
    """Whichever place they are in: a plan, a log and a deployment would hold them."""
    given = {"model": example.model, "data": example.data, "out": "run", "background": example.data, "date": "2026-01-01"} | {name: uri}
    with pytest.raises(UsageError, match=r"^[^ ]*\*\*\*[^ ]*: has credentials, which would be written into the plan") as refusal:
        explain(**given)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("uri", ["s3://bucket/a@b:c/d", "https://host:8080/a@b?versionId=3&month=4", "sftp://me@host/data", "abfs://box@account/x"])
def test_what_holds_no_secret_is_taken(uri, monkeypatch):
    """A name without a password, a version, a month; what is asked of the store is another matter."""
    scheme = uri.partition(":")[0]
    store = ObjectStore(SimpleNamespace(protocol=scheme), find_dialect(scheme), str)
    monkeypatch.setattr(uris, "open_store", lambda uri: (store, uri))  # for there is no such host
    assert normalise(uri) == uri


def test_a_name_in_a_catalog_is_no_place():
    """It stays as it is, wherever one works."""
    assert normalise("iceberg:nights.prod.flights") == "iceberg:nights.prod.flights"


@pytest.mark.parametrize(
    ("page", "target", "link"),
    [
        ("/a/index.html", "/a/b c/report/index.html", "./b%20c/report/index.html"),
        ("/a/x/index.html", "/a/b/r.html", "./../b/r.html"),
        ("s3://k/a/index.html", "s3://k/a/javascript:x/r.html", "./javascript%3Ax/r.html"),
        ("s3://k/index.html", "s3://other/a/r.html", "s3://other/a/r.html"),
        ("/a/index.html", "s3://k/a/r.html", "s3://k/a/r.html"),
        ("/a/index.html", "/a/b\udcff/r.html", "./b%FF/r.html"),
        ("s3://k/index.html", "/a/b\udcff/r.html", "/a/b%FF/r.html"),
    ],
)
def test_links_are_relative_where_they_can_be(page, target, link):
    """So that a folder can be copied, and nothing in a name is a scheme."""
    assert link_to(page, target) == link
