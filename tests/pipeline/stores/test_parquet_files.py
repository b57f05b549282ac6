"""Listings hold every Parquet file of a place, once; what is hidden is not of it, and what cannot be told is refused."""

import os
import re
from pathlib import Path

import flask
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs

from leafledger.pipeline.errors import NotThere, StorageError, UnusablePlace, UsageError
from leafledger.pipeline.stores import storage
from leafledger.pipeline.stores.object_store import naming
from leafledger.pipeline.stores.open_store import open_filesystem
from leafledger.pipeline.stores.parquet_files import find_table, list_parquet
from tests.pipeline.stores.placing import put
from tests.pipeline.stores.remote import Cloud, RefusedError
from tests.pipeline.stores.serving import served


def names(root, uri):
    return [found.uri.removeprefix(f"{root}/") for found in list_parquet(uri)]


def test_listing_passes_over_hidden_names(tmp_path):
    """Files and folders that start with ``_`` or ``.`` are other programs' business."""
    for name in ("a.parquet", "month=1/b.parquet", "_tables/c.parquet", ".d.parquet", "e.csv", "month=1/_f.pq"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    assert [Path(found.uri).name for found in list_parquet(str(tmp_path))] == ["a.parquet", "b.parquet"]


@pytest.mark.slow
def test_folders_globs_and_files_are_listed_once_and_sorted(root):
    """A folder with all below it, also one that is called like a file; of what a glob finds twice, one; ``.pq`` too, nothing else."""
    for name in ("data/b.parquet", "data/a.parquet", "data/month=2/c.pq", "data/month=1/c.parquet", "data/d.csv", "data/e.parquet/part.parquet"):
        put(f"{root}/{name}")
    everything = ["data/a.parquet", "data/b.parquet", "data/e.parquet/part.parquet", "data/month=1/c.parquet", "data/month=2/c.pq"]
    assert names(root, f"{root}/data") == names(root, f"{root}/data/") == names(root, f"{root}/dat[a]") == everything
    assert names(root, f"{root}/data/**") == [*everything[:2], "data/d.csv", *everything[2:]]  # a glob says itself which files it means
    assert names(root, f"{root}/data/month=[12]") == everything[3:]
    assert names(root, f"{root}/data/b.parquet") == ["data/b.parquet"]


@pytest.mark.slow
def test_hidden_is_what_lies_below_the_folder(root):
    """A folder that is named may itself be hidden, or lie in one."""
    for name in ("_runs/one/a.parquet", "_runs/one/_b.parquet", "_runs/one/.tmp/c.parquet"):
        put(f"{root}/{name}")
    assert names(root, f"{root}/_runs/one") == ["_runs/one/a.parquet"]
    put(f"{root}/d.parquet")
    assert names(root, root) == ["d.parquet"]


def test_a_column_may_be_called_as_what_is_hidden(root):
    """``_key=value`` is a folder of a partition, as Spark has it; other programs' folders have no such names."""
    for name in ("data/_k=1/a.parquet", "data/_k=2/month=3/b.parquet", "data/_old/c.parquet", "data/.k=1/d.parquet", "data/_k=1/_e.parquet"):
        put(f"{root}/{name}")
    found = ["data/_k=1/a.parquet", "data/_k=2/month=3/b.parquet"]
    assert names(root, f"{root}/data") == names(root, f"{root}/data/*") == found
    assert names(root, f"{root}/data/_k=1") == found[:1]


def test_an_empty_folder_is_an_empty_list_and_nothing_is_an_error(tmp_path):
    """Whoever wants files there says so."""
    assert list_parquet(str(tmp_path)) == []
    with pytest.raises(StorageError, match=r"nowhere: cannot list: no such file or object$"):
        list_parquet(f"{tmp_path}/nowhere")


def test_files_are_parquet_by_their_name_or_by_how_they_begin(root, tmp_path):
    """Hive writes 000000_0, others .PARQUET or .parq; what begins as a Parquet file and is cut off is listed too, and found out when it is read."""
    pq.write_table(pa.table({"x": [1]}), tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    (tmp_path / "whole").unlink()
    for name in ("000000_0", "a.PARQUET", "b.parq", "c.snappy", "_d"):
        put(f"{root}/data/{name}", whole)
    put(f"{root}/data/cut", whole[:40])
    put(f"{root}/data/cut_sooner", whole[:4])
    for name, data in (("e.csv", b"a,b\n1,2\n"), ("f.txt", b"PAR"), ("empty", b"")):
        put(f"{root}/data/{name}", data)
    assert names(root, f"{root}/data") == [f"data/{name}" for name in ("000000_0", "a.PARQUET", "b.parq", "c.snappy", "cut", "cut_sooner")]


LOGS = [
    ("_delta_log/00000000000000000000.json", "Delta"),
    ("metadata/v1.metadata.json", "Iceberg"),
    (".hoodie/hoodie.properties", "Hudi"),
    ("_spark_metadata/0", "Spark's streaming"),
]


@pytest.mark.parametrize(("log", "kind"), LOGS)
def test_tables_with_a_log_are_refused(root, log, kind):
    """Their files hold rows that were deleted since; also where the folder is above the table."""
    for name in ("lake/flights/part-0.parquet", f"lake/flights/{log}"):
        put(f"{root}/{name}")
    for place in ("lake/flights", "lake", "la*"):
        with pytest.raises(UsageError, match=rf"^{re.escape(f'{root}/{place}')}: is a table of {kind}, whose log says which of its files count"):
            list_parquet(f"{root}/{place}")


@pytest.mark.parametrize(("log", "kind"), LOGS)
@pytest.mark.slow
def test_what_lies_in_a_table_is_refused(root, log, kind):
    """A folder of one of its partitions, a glob, a file: by their names alone, files would count whose rows were deleted."""
    for name in ("lake/flights/data/month=1/day=2/part-0.parquet", "lake/flights/part-1.parquet", f"lake/flights/{log}", "lake/prices/a.parquet"):
        put(f"{root}/{name}")
    partition = "lake/flights/data/month=1"
    for place in (partition, f"{partition}/day=2/", f"{partition}/day=*", f"{partition}/*/part-0.parquet", "lake/flights/part-1.parquet"):
        message = f"{root}/{place}: lies in {root}/lake/flights, which is a table of {kind}, whose log says which of its files count"
        with pytest.raises(UsageError, match=rf"^{re.escape(message)}"):
            list_parquet(f"{root}/{place}")
    assert names(root, f"{root}/lake/prices") == ["lake/prices/a.parquet"]


def test_what_lies_in_a_table_is_refused_where_links_lead_there(tmp_path):
    """From outside, to a folder or to a file; and from a table to what lies elsewhere."""
    for name in ("table/_delta_log/0.json", "table/month=1/a.parquet", "elsewhere/b.parquet", "data/c.parquet", "one/d.parquet"):
        put(f"{tmp_path}/{name}")
    (tmp_path / "data/month=1").symlink_to(tmp_path / "table/month=1")
    (tmp_path / "one/e.parquet").symlink_to(tmp_path / "table/month=1/a.parquet")
    (tmp_path / "table/month=2").symlink_to(tmp_path / "elsewhere")
    for place in ("data", "data/month=1", "one", "one/e.parquet", "table/month=2"):
        with pytest.raises(UsageError, match=rf"/{place}: lies in .*/table, which is a table of Delta"):
            list_parquet(f"{tmp_path}/{place}")
    assert names(str(tmp_path), f"{tmp_path}/elsewhere") == ["elsewhere/b.parquet"]


@pytest.mark.slow
def test_a_table_is_looked_for_above_the_files_once_for_each_folder(bucket, monkeypatch):
    """However many files a glob finds, in however many folders that it has listed by then; nor is what may not be looked at an error."""
    for k in range(50):
        put(f"{bucket}/lake/flights/month={k % 5}/{k}.parquet")
    asked, list_pages = [], s3fs.S3FileSystem._list_pages

    def counted(self, method, **given):
        asked.append(given["Prefix"])
        if given["Prefix"].startswith("lake/_delta_log"):
            raise PermissionError(13, "Access Denied")
        return list_pages(self, method, **given)

    monkeypatch.setattr(s3fs.S3FileSystem, "_list_pages", counted)
    assert len(list_parquet(f"{bucket}/lake/flights/month=*/*.parquet")) == 50
    assert "lake/_delta_log/" in asked
    assert len(asked) < 20


def test_links_are_followed(tmp_path):
    """To folders and files, as if what they lead to lay there."""
    for name in ("elsewhere/a.parquet", "another/d.parquet", "data/b.parquet"):
        put(f"{tmp_path}/{name}")
    (tmp_path / "data" / "month=1").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "c.parquet").symlink_to(tmp_path / "another" / "d.parquet")
    assert names(str(tmp_path), f"{tmp_path}/data") == ["data/b.parquet", "data/c.parquet", "data/month=1/a.parquet"]


@pytest.fixture(params=["", "listed://"], ids=["here", "elsewhere"])
def linked(request, tmp_path):
    """A folder with a file, and links to a file and to a folder that lie elsewhere and are older."""
    put(f"{tmp_path}/data/b.parquet")
    for name in ("a.parquet", "month=1/d.parquet"):
        put(f"{tmp_path}/elsewhere/{name}")
        os.utime(tmp_path / "elsewhere" / name, (1e9, 1e9))
    (tmp_path / "data" / "c.parquet").symlink_to(tmp_path / "elsewhere" / "a.parquet")
    (tmp_path / "data" / "month=1").symlink_to(tmp_path / "elsewhere" / "month=1")
    return f"{request.param}{tmp_path}/data"


def test_links_that_a_glob_finds_are_followed(linked):
    """A file is known by what the link leads to, as it is when it is read, and not by the link, which was made later; folders are gone through."""
    found = list_parquet(f"{linked}/*")
    assert [each.uri.removeprefix(f"{linked}/") for each in found] == ["b.parquet", "c.parquet", "month=1/d.parquet"]
    assert found == [storage.stat(each.uri) for each in found]
    assert list_parquet(f"{linked}/c*") == found[1:2]


def test_files_are_read_over_http(tmp_path):
    """By the URI that names them, or that of a folder, or a glob; each is known by what the server says of it as it is asked for it, later too."""
    for name in ("data/a.parquet", "data/month=1/b.parquet", "data/month=1/000000_0"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / name)
    put(f"{tmp_path}/data/_c.parquet")
    put(f"{tmp_path}/data/d.txt", b"text")
    every = ["data/a.parquet", "data/month=1/000000_0", "data/month=1/b.parquet"]
    with served(tmp_path) as root:
        assert names(root, f"{root}/data") == names(root, f"{root}/data/") == every
        assert names(root, f"{root}/data/*.parquet") == names(root, f"{root}/data/a.parquet") == every[:1]
        assert names(root, f"{root}/data/month=*") == every[1:]
        for found in list_parquet(f"{root}/data"):
            assert found == storage.stat(found.uri)
            assert (found.size, bool(found.etag)) == ((tmp_path / every[0]).stat().st_size, True)
            with storage.opened(found.uri) as file:
                assert pq.read_table(file)["x"].to_pylist() == [1.0, 2.0]


def test_a_server_that_does_not_say_how_large_a_file_is_is_refused(tmp_path):
    """Nor can its end be found, where a Parquet file says what it holds."""
    put(f"{tmp_path}/data/a.parquet")
    put(f"{tmp_path}/data/README")
    with served(tmp_path, lambda path: flask.Response(iter([path.read_bytes()]), mimetype="application/octet-stream")) as root:
        for place in ("data", "data/*.parquet", "data/a.parquet"):
            said = rf"^{re.escape(f'{root}/{place}')}: cannot list: .*a\.parquet: the server does not say how large it is$"
            with pytest.raises(StorageError, match=said):
                list_parquet(f"{root}/{place}")


@pytest.mark.parametrize("ranges", [None, "none"])
def test_a_server_that_sends_no_ranges_is_refused(tmp_path, ranges):
    """A Parquet file is read from its end. Python's own server says nothing of it and sends all, others say that they have none."""
    pq.write_table(pa.table({"x": [*map(float, range(100_000))]}), tmp_path / "a.parquet")

    def send(path):
        answer = flask.Response(path.read_bytes(), mimetype="application/octet-stream")
        if ranges is not None:
            answer.headers["Accept-Ranges"] = ranges
        return answer

    with served(tmp_path, send) as root:
        (found,) = list_parquet(f"{root}/a.parquet")
        said = rf"^{root}/a\.parquet: cannot read: the server sends files from their beginning alone, expected any range of bytes$"
        with pytest.raises(StorageError, match=said), storage.opened(found.uri) as file:
            pq.read_table(file)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("_delta_log/00000000000000000000.json", "a.parquet"), "Delta"),
        (("metadata/v1.metadata.json", "data/a.parquet"), "Iceberg"),
        ((".hoodie/hoodie.properties",), "Hudi"),
        (("_spark_metadata/0", "part-0.parquet"), "Spark's streaming"),
        (("metadata/notes.json", "a.parquet"), None),
        (("deeper/_delta_log/00000000000000000000.json",), None),
        (("metadata",), None),
    ],
)
@pytest.mark.parametrize("where", ["folder", "bucket"])
@pytest.mark.slow
def test_a_table_is_found_in_its_own_folder(tmp_path, request, names, kind, where):
    """By its log; one that lies deeper is none of this folder's."""
    root = str(tmp_path / "table") if where == "folder" else f"{request.getfixturevalue('bucket')}/table"
    filesystem, path = open_filesystem(root)
    for name in names:
        filesystem.makedirs(f"{path}/{name}".rpartition("/")[0], exist_ok=True)
        filesystem.pipe_file(f"{path}/{name}", b"{}")
    assert find_table(root) == find_table(f"{root}/") == kind
    assert find_table(f"{root}/{names[0]}") is None
    assert find_table(f"{root}/nothing") is None


@pytest.mark.slow
def test_what_a_store_said_of_files_is_found_by_their_names(bucket, monkeypatch):
    """It is not asked again as they are opened; nor is a list of all of them gone through for each, which takes an hour for a hundred thousand."""
    filesystem, _ = open_filesystem(bucket)
    for k in range(5):
        filesystem.pipe(f"{bucket}/data/{k}.parquet", b"PAR1" + bytes([k]))
    listed = list_parquet(f"{bucket}/data")
    assert max(map(len, filesystem.dircache.values())) == 1
    asked, call = [], s3fs.S3FileSystem._call_s3

    async def counted(self, method, *given, **named):
        asked.append(method)
        return await call(self, method, *given, **named)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    for k, each in enumerate(listed):
        with storage.opened(each.uri) as file:
            assert file.read() == b"PAR1" + bytes([k])
    assert asked == ["get_object"] * 5


@pytest.mark.parametrize("place", ["data", "data/*", "data/**/*.parquet", "data/month=2/*"])
def test_one_file_under_two_names_is_refused(tmp_path, place):
    """A link to a folder or to a file beside what it leads to: its rows would count twice. Hard links are files of their own."""
    for name in ("data/month=1/a.parquet", "data/month=2/b.parquet"):
        put(f"{tmp_path}/{name}")
    os.link(tmp_path / "data/month=2/b.parquet", tmp_path / "data/month=2/c.parquet")
    (tmp_path / "data/month=2/_last").symlink_to("b.parquet")
    assert len(list_parquet(f"{tmp_path}/{place}")) == (2 if "month" in place else 3)
    first, second = ("month=2/b.parquet", "month=2/d.parquet") if "month" in place else ("latest/a.parquet", "month=1/a.parquet")
    if "month" in place:
        (tmp_path / "data" / second).symlink_to("b.parquet")
    else:
        (tmp_path / "data" / "latest").symlink_to("month=1")
    said = f"{place}: {tmp_path}/data/{first} and {tmp_path}/data/{second} are one file, by a link, whose rows would count twice"
    with pytest.raises(UsageError, match=re.escape(said)):
        list_parquet(f"{tmp_path}/{place}")


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_a_server_that_is_away_is_not_taken_for_data_that_is_not_there(tmp_path, status):
    """Which would be waited for; what it says that it does not have is not there."""
    put(f"{tmp_path}/data/a.parquet")
    for place in ("data", "data/a.parquet", "data/*"):
        with served(tmp_path, refused=dict.fromkeys(("data", "data/a.parquet", "data/*"), status)) as root:
            with pytest.raises(StorageError, match=rf"^{re.escape(f'{root}/{place}')}: cannot list: .*{status}") as refusal:
                list_parquet(f"{root}/{place}")
            assert not isinstance(refusal.value, NotThere)
    with served(tmp_path) as root, pytest.raises(NotThere):
        list_parquet(f"{root}/nowhere")


def test_a_bucket_that_may_not_be_asked_for_is_not_taken_for_none(bucket, monkeypatch):
    """What the store says is raised; one that is not there is said to be so."""
    asked = s3fs.S3FileSystem._call_s3

    async def refuse(self, method, *given, **named):
        if method in ("head_bucket", "get_bucket_location"):
            raise PermissionError("Forbidden")
        return await asked(self, method, *given, **named)

    with pytest.raises(UnusablePlace, match=r"^s3://nowhere-at-all: cannot list: bucket nowhere-at-all does not exist$"):
        list_parquet("s3://nowhere-at-all")
    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", refuse)
    with pytest.raises(StorageError, match="cannot list: Forbidden") as refusal:
        list_parquet(bucket)
    assert not isinstance(refusal.value, NotThere)


@pytest.fixture
def cloud(monkeypatch):
    """Two files of data at another store, which answers everything."""
    monkeypatch.setattr(Cloud, "objects", {"box/data/a.parquet": b"PAR1a", "box/data/month=1/b.parquet": b"PAR1b", "box/other/c": b"c"})
    monkeypatch.setattr(Cloud, "errors", {})
    return Cloud


def test_data_at_other_stores_are_read(cloud):
    """Their clients' ``isdir`` takes no deadline, and what is kept of a name makes it a folder: neither matters."""
    for place in ("data", "data/*", "data/**/*.parquet"):
        found = list_parquet(f"cloud://box/{place}")
        assert [each.uri for each in found] == ["cloud://box/data/a.parquet", "cloud://box/data/month=1/b.parquet"]
        for each, content in zip(found, (b"PAR1a", b"PAR1b"), strict=True):
            with storage.opened(each.uri) as file:
                assert file.read() == content
    assert find_table("cloud://box/data") is None
    cloud.objects["box/_delta_log/0.json"] = b"{}"
    with pytest.raises(UsageError, match="lies in cloud://box, which is a table of Delta"):
        list_parquet("cloud://box/data")


@pytest.mark.parametrize("error", [PermissionError("no"), RefusedError(403), OSError("Forbidden: https://…/_delta_log")])
def test_what_may_not_be_looked_at_above_the_data_is_no_error(cloud, error):
    """However a store's client says it: credentials may be for a part of a bucket. Anything else is one, for a log may be there."""
    cloud.errors["box/_delta_log"] = error
    assert len(list_parquet("cloud://box/data")) == 2
    cloud.errors["box/_delta_log"] = RefusedError(503)
    with pytest.raises(StorageError, match=r"^cloud://box/data: cannot list: the service said 503$"):
        list_parquet("cloud://box/data")


@pytest.mark.parametrize("host", ["host", "me@host"])
def test_files_are_named_with_their_host(tmp_path, host):
    """Who was asked for a list is asked for the files, also where a name on a store does not say who that is."""
    root = f"hosted://{host}{tmp_path}"
    for name in ("data/a.parquet", "data/data/b.parquet"):
        put(f"{tmp_path}/{name}", name.encode())
    every = ["data/a.parquet", "data/data/b.parquet"]
    assert names(root, f"{root}/data") == names(root, f"{root}/data/") == names(root, f"{root}/d*a/**/*.parquet") == every
    assert names(root, f"{root}/data/a.parquet") == every[:1]
    for each in list_parquet(f"{root}/data"):
        with storage.opened(each.uri) as file:
            assert file.read() == each.uri.removeprefix(f"{root}/").encode()
    put(f"{tmp_path}/_delta_log/0.json")
    with pytest.raises(UsageError, match=f"lies in {root}, which is a table of Delta"):
        list_parquet(f"{root}/data")


class Account:
    """Names as Azure's client makes them, which knows an account by its host."""

    protocol = ("abfs", "az")

    @staticmethod
    def _get_kwargs_from_urls(uri):
        found = re.search(r"@(\w+)\.dfs\.core\.windows\.net", uri)
        return {"account_name": found[1]} if found else {}

    def unstrip_protocol(self, name):
        return f"abfs://{name}"


@pytest.mark.parametrize("host", ["box", "box@account.dfs.core.windows.net"])
@pytest.mark.parametrize(("uri", "path"), [("", "box"), ("/data", "box/data"), ("/box/*", "box/box/*"), ("/data/a.parquet", "box/data/a.parquet")])
def test_files_are_named_with_their_account(host, uri, path):
    """A container alone would be looked for in whichever account is the default."""
    as_uri = naming(Account(), f"abfs://{host}{uri}", path)
    assert as_uri("box/data/a.parquet") == f"abfs://{host}/data/a.parquet"
    assert as_uri("box/box/b") == f"abfs://{host}/box/b"
